"""What has happened in a script that ran under watch, in the script's own lines.

``verify/watch.py`` tells facts: files, lines, names. Statements are found in the source.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradfix import source
from gradfix.codemod import Finding, Note, Span
from gradfix.errors import WORDS
from gradfix.results import Explanation
from gradfix.script import (
    CUTS,
    LAYERS,
    ScriptFile,
    bindings_of,
    changed_by,
    changes_of,
    is_inplace,
    keyword_of,
    last_line,
    last_name,
    operations_of,
    out_of_place,
    plain_name,
    prefixes,
    read_before_bound,
)
from gradfix.source import Source

VIEWS = (
    ("returns multiple views", "one of several views"),
    ("no_grad mode", "a view that was made while no gradients were recorded"),
    ("inference mode", "a view that was made in inference mode"),
    ("custom Function", "a view that a function of the script's own has made"),
)
"""What autograd refuses to have changed, by words of its message (torch/csrc/autograd/variable.cpp)."""
AT_MOST = 4
"""Places that may have changed a tensor, of which more are no help."""
DEPTH = 4
"""How many assignments back from a loss a cut is looked for."""
OVERWRITTEN = "overwritten here"
"""What is said at an operation that changes a tensor in place."""
RECORDING_OFF = frozenset({"no_grad", "inference_mode"})
"""What switches off the recording of gradients, for a block or a function."""
BY_HAND = {
    "E1": "where both losses are meant for the same parameters, add them and call backward once; where one "
    "is not, detach what they share before it",
    "E2": "compute what the backward needs after the change, or change a copy (`x = x.clone()`)",
    "E3": "compute the loss of something that requires a gradient, without what cuts the graph on the way",
    "E4": "change the weights under `with torch.no_grad():`, or compute a new tensor",
    "E5": "compute a new tensor instead",
}
"""What a person can do, where nothing better is known."""


@dataclass
class Story:
    """The notes on an error, by file, and one sentence that says what has happened."""

    facts: Mapping[str, Any]
    causes: list[tuple[str, int]] = field(default_factory=list)
    """The lines of what is known for certain to have led to the error."""
    message: str = ""
    advice: str = ""
    """How to learn what could not be told."""
    by_hand: str = ""
    """What a person can do."""
    _needs: str = ""
    """What a backward needs that something unknown has changed."""
    _notes: dict[str, list[Note]] = field(default_factory=dict)
    _files: dict[str, ScriptFile | None] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The number of the error, and autograd's own words."""
        kind: str = self.facts["kind"]
        return f'{kind} ("{WORDS[kind]}")'

    def file(self, path: str) -> ScriptFile | None:
        """The file at ``path``; ``None`` if it cannot be read as Python."""
        if path not in self._files:
            data = source.load(path)
            parsed = source.parse(path, data) if isinstance(data, bytes) else data
            self._files[path] = ScriptFile(parsed) if isinstance(parsed, Source) else None
        return self._files[path]

    def note(self, path: str, span: Span, message: str, *, over: bool = False) -> None:
        """Put ``message`` at ``span``, if nothing is said of that line yet or this is to go ``over`` it."""
        notes = self._notes.setdefault(path, [])
        if over:
            beside = self._kept - {span}
            notes[:] = [note for note in notes if note.span.line != span.line or note.span in beside]
            self._kept.add(span)
        elif any(note.span.line == span.line for note in notes):
            return
        notes.append(Note(span, message))

    @cached_property
    def _kept(self) -> set[Span]:
        """The spans of what was noted over something else."""
        return set()

    def explanation(self, path: str) -> Explanation:
        """What was noted, beginning with the file at ``path``, where the error was raised."""
        order = sorted(self._notes, key=lambda one: one != path)
        files = []
        for one in order:
            file = self.file(one)
            assert file is not None
            raised = next((line for place, line in self.facts["places"] if place == one), None)
            notes = tuple(sorted(self._notes[one], key=lambda note: note.span))
            span = file.call(raised) if raised is not None else notes[0].span
            message = self.message if one == order[0] else "the lines that led to it"
            files.append((shown(one), file.source.text, Finding(self.heading, message, span, notes)))
        return Explanation(
            tuple(files), advice=self.advice, by_hand=self.by_hand or BY_HAND[self.facts["kind"]]
        )

    @cached_property
    def _raised(self) -> tuple[str, int]:
        """Where the error was raised, or called from: the innermost place that can be read."""
        path, line = next(place for place in self.facts["places"] if self.file(place[0]) is not None)
        return path, line

    def tell(self) -> None:
        """Note everything that is known."""
        path, line = self._raised
        file = self.file(path)
        assert file is not None
        span = file.whole(line) if self.facts["kind"] in ("E4", "E5") else file.call(line)
        tellers = {
            "E1": self._freed,
            "E2": self._moved,
            "E3": self._cut,
            "E4": self._leaf,
            "E5": self._view,
        }
        here = tellers[self.facts["kind"]](file.code(span))
        self.note(path, span, here)
        for outer, outer_line in self.facts["places"][1:]:
            outer_file = self.file(outer)
            if outer_file is not None:
                self.note(outer, outer_file.whole(outer_line), "called from here: autograd raises")

    def _freed(self, failing: str) -> str:
        earlier = self._cause("earlier", "this backward has freed the graph")
        shared = self._variables("shared", "`{}` is computed here, in the graph that was freed")
        carried = self._carried()
        names = listed(shared or carried)
        by = f"{earlier} has freed" if earlier else "an earlier backward has freed"
        through = f" through {names}" if names else ""
        self.message = f"`{failing}` goes{through} into a graph that {by}"
        if carried:
            name = carried[0]
            self.by_hand = (
                f"`{name} = {name}.detach()` before the next pass uses it cuts off the graph of this one"
            )
        return "autograd raises here: the graph has been freed"

    def _carried(self) -> list[str]:
        """Note what brings the graph of an earlier pass of a loop, or of an earlier call, into this one.

        That is a variable of the graph which is read before the same block gives it its next value. The
        names of such variables.
        """
        names: list[str] = []
        for one in self.facts.get("graph", ()):
            file = self.file(one["file"])
            name = next((name for name in prefixes(one["name"]) if "[" not in name), "")
            if file is None or name in names:
                continue
            scope = file.scope(one["function"])
            inside = [
                node
                for node in ast.walk(scope)
                if isinstance(node, (ast.For, ast.While))
                and Span.of(node).line <= one["line"] <= last_line(node)
            ]
            # An attribute outlives the call of the method that sets it; a local variable does not.
            block = inside[-1] if inside else scope if "." in name else None
            read = read_before_bound(block, name) if block is not None else None
            if read is not None:
                self.note(one["file"], Span.of(read), f"`{name}` comes in here from before, with its graph")
                names.append(name)
        return names

    def _moved(self, failing: str) -> str:
        step = self._cause("step", "this step has changed the weights")
        name = self.facts.get("parameter")
        tensors = list(dict.fromkeys(one["name"] for one in self.facts.get("tensors", ())))
        by = step or self._renormalised() or self._overwritten()
        if step or name or tensors or not by:
            self._variables("made", "`{}` is computed here with the old values", anew=True)
        what = f"`{name}`" if name else listed(tensors[:2]) or self._saved()
        if not (by or name or tensors):
            self.advice = "`torch.autograd.set_detect_anomaly(True)` shows the line that computed it"
        if step:
            self.by_hand = "compute it again after the step, or step after the last backward that needs it"
        self.changed(f"`{failing}` needs {what} as it was in the forward", by)
        return "autograd raises here: it needs the old values"

    def changed(self, needs: str, by: str) -> None:
        """Say that what is needed has been changed since, and ``by`` what, as far as that is known."""
        self._needs = "" if by else needs
        self.message = f"{needs}, and {by or 'an operation in place'} has changed it since"

    def blame(self, path: str, span: Span) -> None:
        """Say that the operation at ``span`` has changed what is needed, if that is not known yet."""
        file = self.file(path)
        if self._needs and file is not None:
            self.changed(self._needs, f"`{file.code(span)}` at line {span.line}")

    def _renormalised(self) -> str:
        """Note the layer that has scaled its own weights when something was looked up in it."""
        layer = next(
            (
                one
                for one in self.facts.get("layers", ())
                if one["name"] == self.facts.get("layer") and one["option"] == "max_norm"
            ),
            None,
        )
        if layer is None:
            return ""
        name, option = layer["name"], f"max_norm={layer['value']}"
        for path, node in self._calls(lambda call: keyword_of(call, "max_norm") is not None):
            if last_name(node.func) == layer["kind"]:
                self.note(
                    path, Span.of(node), f"{option} has each lookup scale the rows that it reads, in place"
                )
        self.by_hand = f"compute with `{name}.weight.clone()`, or do without max_norm"
        return f"a lookup in `{name}`, which scales rows in place ({option}),"

    def _overwritten(self) -> str:
        """Note what has changed a tensor in place, or may have; in words, where that is one thing."""
        found: list[tuple[str, ast.expr | ast.stmt]] = []
        for one in self.facts.get("tensors", ()):
            found += self._changes(one)
        if not found:
            found = list(self._like_the_graph())
        if len(found) > AT_MOST:
            return ""
        for path, node in found:
            self.note(path, Span.of(node), OVERWRITTEN if len(found) == 1 else f"perhaps {OVERWRITTEN}")
        if len(found) != 1:
            return ""
        path, node = found[0]
        file = self.file(path)
        assert file is not None
        if isinstance(node, ast.Call):
            self.by_hand = "drop inplace=True"
        else:
            instead = out_of_place(node) if isinstance(node, ast.stmt) else None
            self.by_hand = f"`{instead}` makes a new tensor" if instead else ""
        return f"`{file.code(Span.of(node))}` at line {node.lineno}"

    def _like_the_graph(self) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
        """What is written in place, and leaves in a graph what is there behind the saved tensor."""
        after = {plain_name(operation) for operation in self.facts.get("after", ())}
        for path in self.facts.get("files", ()):
            file = self.file(path)
            for node in ast.walk(file.source.tree) if file is not None else ():
                if isinstance(node, ast.stmt) and operations_of(node) & after and changed_by(node):
                    yield path, node
        for path, call in self._calls(is_inplace):
            if plain_name(LAYERS.get(last_name(call.func), last_name(call.func))) in after:
                yield path, call

    def _calls(self, fits: Callable[[ast.Call], bool]) -> Iterator[tuple[str, ast.Call]]:
        """The calls in the script's files that fit."""
        for path in self.facts.get("files", ()):
            file = self.file(path)
            for node in ast.walk(file.source.tree) if file is not None else ():
                if isinstance(node, ast.Call) and fits(node):
                    yield path, node

    def _saved(self) -> str:
        """A tensor that no name of the running functions holds, by the operation that has saved it."""
        if "operation" not in self.facts:
            return "a tensor"
        shape = ", ".join(map(str, self.facts["shape"]))
        part = "the result" if self.facts["role"] == "result" else "an operand"
        return f"{part} of `{self.facts['operation']}` (a tensor of shape [{shape}])"

    def _cut(self, failing: str) -> str:
        names = self._variables(
            "roots", "`{}` is computed here, and nothing that requires a gradient is in it"
        )
        for root in self.facts.get("roots", ()):
            self._cuts(root)
        frozen = self.facts.get("frozen", ())
        if not self.facts.get("recording", True):
            self.by_hand = "switch recording on again: `torch.set_grad_enabled(True)`"
            names, why = [], "gradients are not being recorded"
        elif self._cutting:
            self.by_hand = self._without(list(dict.fromkeys(self._cutting)))
            why = f"{listed(names) or 'what it starts from'} hangs on no graph"
        elif frozen:
            self.by_hand = f"unfreeze what is to be trained: `{frozen[0]}.requires_grad_(True)`"
            why = f"no parameter of {listed(frozen[:2])} requires a gradient"
        else:
            why = f"{listed(names) or 'what it starts from'} hangs on no graph"
        self.message = f"`{failing}` has nothing to differentiate: {why}"
        return "autograd raises here: there is no graph"

    def _without(self, cutting: Sequence[str]) -> str:
        """What a person can do about that which cuts the graph."""
        off = [name for name in cutting if name in RECORDING_OFF or name == "set_grad_enabled"]
        if off:
            return f"compute the loss outside of {listed(off[:1])}"
        makes = [name for name in cutting if name in ("tensor", "as_tensor")]
        instead = "; `torch.stack` of tensors makes one that has their graph" if makes else ""
        return f"leave out {listed(cutting[:3])} on the way to the loss{instead}"

    def _leaf(self, failing: str) -> str:
        self.message = (
            f"`{failing}` changes a leaf that requires a gradient in place, while gradients are recorded"
        )
        path, line = self._raised
        file = self.file(path)
        assert file is not None
        for node in ast.walk(file.around(line)):
            if isinstance(node, ast.stmt) and node.lineno <= line <= last_line(node):
                instead = out_of_place(node)
                if instead is not None:
                    self.by_hand = (
                        "change weights by hand under `with torch.no_grad():`; "
                        f"in a computation, `{instead}` makes a new tensor"
                    )
        return "autograd raises here"

    def _view(self, failing: str) -> str:
        what = next((told for sign, told in VIEWS if sign in self.facts["message"]), "a view")
        self.message = f"`{failing}` changes in place {what}, which autograd refuses"
        path, line = self._raised
        file = self.file(path)
        assert file is not None
        around = file.around(line)
        for node in ast.walk(around):
            if not (isinstance(node, ast.stmt) and node.lineno <= line <= last_line(node)):
                continue
            for name in changed_by(node):
                begins = around.lineno if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) else 0
                variable = {"file": path, "function": begins, "name": name, "line": node.lineno}
                found = self._assignment(variable, anew=True)
                if found is not None:
                    self.note(found[0], Span.of(found[2]), f"`{found[1]}` comes from here")
                instead = out_of_place(node)
                if instead is not None:
                    self.by_hand = f"`{instead}` makes a new tensor, and leaves what it is a view of as it is"
        return "autograd raises here"

    def _cause(self, fact: str, message: str) -> str:
        """Note an earlier call; the call and its line in words, or nothing where it is not known."""
        words = ""
        for path, line in self.facts.get(fact, ()):
            file = self.file(path)
            if file is None:
                continue
            span = file.call(line)
            raised = (path, line) in map(tuple, self.facts["places"])
            if not words:
                if raised:
                    words = "an earlier run of the same line"
                    self.note(path, span, f"{message} when it ran before; now autograd raises here")
                else:
                    words = f"`{file.code(span)}` at line {line}"
                    self.note(path, span, message)
                    self.causes.append((path, line))
            elif not raised:
                self.note(path, file.whole(line), f"called from here, {message}")
        return words

    def _variables(self, fact: str, message: str, *, anew: bool = False) -> list[str]:
        """Note where variables were assigned; their names, as the lines that are shown have them."""
        names = []
        for one in self.facts.get(fact, ()):
            found = self._assignment(one, anew=anew)
            name = one["name"]
            if found is not None:
                path, name, node = found
                self.note(path, Span.of(node), message.format(name))
            names.append(name)
        return list(dict.fromkeys(names))

    def _assignment(
        self, variable: Mapping[str, Any], *, anew: bool = False
    ) -> tuple[str, str, ast.stmt] | None:
        """The statement that gave ``variable`` its value, with its file and what it calls it there.

        That is the last before its line, or in its function, or in the class whose attribute it is.
        Assignments like ``+=`` count unless it is the one that made the value ``anew``.
        """
        inside = self._attribute(variable, anew)
        if inside is not None or variable.get("classes"):
            return inside
        file = self.file(variable["file"])
        if file is None:
            return None
        for scope in (file.scope(variable["function"]), file.source.tree):
            for name in prefixes(variable["name"]):
                nodes = sorted(bindings_of(scope, name, anew), key=lambda node: node.lineno)
                before = [node for node in nodes if node.lineno < variable["line"]]
                if nodes:
                    return variable["file"], name, (before or nodes)[-1]
        return None

    def _attribute(self, variable: Mapping[str, Any], anew: bool) -> tuple[str, str, ast.stmt] | None:
        """The last statement in the class of an attribute that binds it, outside of constructors if any."""
        attribute = variable["name"].rpartition(".")[2].partition("[")[0]
        for path, qualified in variable.get("classes", ()):
            file = self.file(path)
            cls = file.cls(qualified) if file is not None else None
            methods = [one for one in ast.walk(cls) if isinstance(one, ast.FunctionDef)] if cls else []
            methods.sort(key=lambda one: (one.name != "__init__", one.lineno))
            for method in reversed(methods):
                me = method.args.args[0].arg if method.args.args else "self"
                nodes = list(bindings_of(method, f"{me}.{attribute}", anew))
                if nodes:
                    return path, f"{me}.{attribute}", nodes[-1]
        return None

    def _changes(self, variable: Mapping[str, Any]) -> list[tuple[str, ast.expr | ast.stmt]]:
        """The statements in place on ``variable``: in its function, or in the class whose attribute it is."""
        found: list[tuple[str, ast.expr | ast.stmt]] = []
        file = self.file(variable["file"])
        if file is not None:
            names = set(prefixes(variable["name"]))
            found += [
                (variable["file"], node) for node in changes_of(file.scope(variable["function"]), names)
            ]
        attribute = variable["name"].rpartition(".")[2].partition("[")[0]
        for path, qualified in variable.get("classes", ()):
            held = self.file(path)
            cls = held.cls(qualified) if held is not None else None
            for method in ast.walk(cls) if cls is not None else ():
                if isinstance(method, ast.FunctionDef) and method.args.args:
                    found += [
                        (path, node)
                        for node in changes_of(method, {f"{method.args.args[0].arg}.{attribute}"})
                        if (path, node) not in found
                    ]
        return found

    def _cuts(self, variable: Mapping[str, Any], depth: int = DEPTH) -> None:
        """Note what no gradient passes, among the assignments that led to ``variable``."""
        found = self._assignment(variable)
        if found is None or not depth:
            return
        path, _, statement = found
        file = self.file(path)
        assert file is not None
        self._unrecorded(path, file, statement)
        value = getattr(statement, "value", None)
        if isinstance(value, ast.AST):
            self._cuts_in(path, file, value, {**variable, "file": path, "line": statement.lineno}, depth)

    def _cuts_in(
        self, path: str, file: ScriptFile, value: ast.AST, variable: Mapping[str, Any], depth: int
    ) -> None:
        """The same among what ``value`` is computed from."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and last_name(node.func) in CUTS:
                self._cutting.append(last_name(node.func))
                span = Span.of(node)
                self.note(path, span, f"no gradient passes `{last_name(node.func)}`", over=True)
            elif isinstance(node, ast.Call) and depth:
                for function in file.called(node):
                    self._unrecorded(path, file, function)
                    inner = {
                        **variable,
                        "function": function.lineno,
                        "line": last_line(function) + 1,
                        "classes": (),
                    }
                    for result in ast.walk(function):
                        if isinstance(result, ast.Return) and result.value is not None:
                            self._unrecorded(path, file, result)
                            self._cuts_in(path, file, result.value, inner, depth - 1)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._cuts({**variable, "name": node.id, "classes": ()}, depth - 1)

    def _unrecorded(self, path: str, file: ScriptFile, statement: ast.stmt) -> None:
        """Note the block, or the function, in which no gradients are recorded and ``statement`` stands."""
        for outer in file.outer(statement):
            if isinstance(outer, ast.With):
                places = [item.context_expr for item in outer.items]
            elif isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                places = outer.decorator_list
            else:
                continue
            for place in places:
                name = last_name(place.func if isinstance(place, ast.Call) else place)
                off = name == "set_grad_enabled" and ast.unparse(place).endswith("(False)")
                if name in RECORDING_OFF or off:
                    self._cutting.append(name)
                    self.note(
                        path, Span.of(place), "nothing that is computed under this has a graph", over=True
                    )

    @cached_property
    def _cutting(self) -> list[str]:
        """What was found to cut the graph."""
        return []


def listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def shown(path: str) -> str:
    """``path`` as people write it: from the current folder, if it lies there."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
