"""What has happened in a script that ran under watch, in the script's own lines.

``runtime/watch`` tells facts: files, lines, names. Statements are found in the source.

What a person can do is said only where the facts bear it out on this program: each piece of advice stands
behind the condition under which it is right. Where none is known to hold, the facts are told alone.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradfix.core.codemod import Finding, Note
from gradfix.core.errors import quoted
from gradfix.core.span import Span
from gradfix.pipeline.results import Explanation
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.watch.script import (
    CUTS,
    LAYERS,
    ScriptFile,
    bindings_of,
    bound_by,
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
    read_after,
    read_before_bound,
)

VIEWS = (
    ("returns multiple views", "one of several views"),
    ("no_grad mode", "a view created under `no_grad`"),
    ("inference mode", "a view created in inference mode"),
    ("custom Function", "a view created by a custom autograd function"),
)
"""What autograd refuses to have changed, by words of its message (torch/csrc/autograd/variable.cpp)."""
AT_MOST = 4
"""Places that may have changed a tensor, of which more are no help."""
DEPTH = 4
"""How many assignments back from a loss a cut is looked for."""
OVERWRITTEN = "modified in place here"
"""What is said at an operation that changes a tensor in place."""
RECORDING_OFF = frozenset({"no_grad", "inference_mode"})
"""What switches off the recording of gradients, for a block or a function."""


@dataclass
class RunExplainer:
    """The notes on an error, by file, and one sentence that says what has happened."""

    facts: Mapping[str, Any]
    causes: list[tuple[str, int]] = field(default_factory=list)
    """The lines of what is known for certain to have led to the error."""
    message: str = ""
    advice: str = ""
    """How to learn what could not be told."""
    by_hand: str = ""
    """What a person can do, if the facts bear it out."""
    _needs: str = ""
    """What a backward needs that something unknown has changed."""
    _notes: dict[str, list[Note]] = field(default_factory=dict)
    _files: dict[str, ScriptFile | None] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The error in autograd's own words."""
        return quoted(self.facts["kind"])

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
            said = file.source.layout.reworded
            notes = tuple(note._replace(message=said(note.message)) for note in notes)
            found = Finding(self.heading, said(message), span, notes)
            files.append((shown(one), file.source.text, found))
        return Explanation(tuple(files), advice=self.advice, by_hand=self.by_hand)

    @cached_property
    def _raised(self) -> tuple[str, int]:
        """Where the error was raised, or called from: the innermost place that can be read."""
        path, line = next(place for place in self.facts["places"] if self.file(place[0]) is not None)
        return path, line

    def explain(self) -> None:
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
        by = f"{earlier or 'an earlier backward'} has already freed"
        through = f" through {names}" if names else ""
        self.message = f"`{failing}` goes{through} into a graph that {by}"
        if self.facts.get("same"):
            self.by_hand = (
                f"compute {self._anew() or self._roots(failing)} again before the second backward: "
                "each backward frees the graph that it goes through"
            )
        elif self.facts.get("joint"):
            self.by_hand = f"call backward once, on the sum of this loss and that of {earlier}"
        else:
            again = earlier.startswith("an earlier run")
            self.by_hand = self._way(carried, "in every iteration" if again else "for this backward")
        return "autograd raises here: the graph has been freed"

    def _roots(self, failing: str) -> str:
        """What the failing backward differentiates."""
        return listed([one["name"] for one in self.facts.get("roots", ())][:2]) or f"the loss of `{failing}`"

    def _anew(self) -> str:
        """What has to be computed again, up to its last part, for the failing backward to succeed."""
        across = self.facts.get("across") or {}
        first = [one["name"] for one in across.get("again", ())]
        ends = [one["name"] for one in (*across.get("entered", ()), *self.facts.get("roots", ()))]
        if not first or first[0] in ends:
            return listed(first)
        return f"{listed(first)}, and what is computed from it,"

    def _way(self, carried: Sequence[str], when: str) -> str:
        """How the failing backward can do without what was computed before, by what it would lose by that.

        Args:
            carried: Variables that are assigned again in each iteration.
            when: What else would be computed again.
        """
        across = self.facts.get("across")
        if not across or across["whole"]:
            return ""
        held = list(dict.fromkeys(one["name"] for one in across["entered"]))
        state = [one["name"] for one in across["rebound"] if set(prefixes(one["name"])) & set(carried)]
        if across["starves"]:
            anew = self._anew()
            left = listed(across["starved"]) or "its parameters"
            return (
                f"compute {anew} again {when}; detaching it would leave {left} without a gradient"
                if anew
                else ""
            )
        if (across["fed"] or not held) and (state or held):
            return (
                f"{self._detached(list(dict.fromkeys(state or held)))} before the next iteration uses it: "
                "the gradient then stops there, and every parameter still gets one"
            )
        if held and not across["fed"]:
            return (
                f"{self._detached(held)} if this loss should not train it; compute it again {when} if it "
                "should: either way, every parameter gets a gradient"
            )
        return ""

    def _detached(self, names: Sequence[str]) -> str:
        """How tensors by these names are detached."""
        if len(names) == 1 and "[" not in names[0]:
            return f"`{names[0]} = {names[0]}.detach()`"
        return f"detach {listed(names[:4])}"

    def _carried(self) -> list[str]:
        """Note what brings the graph of an earlier iteration of a loop, or of an earlier call, into this one.

        That is a variable of the graph which is read before the same block gives it its next value. The
        names of such variables.
        """
        names: list[str] = []
        rebound = (self.facts.get("across") or {}).get("rebound", ())
        for one in (*self.facts.get("graph", ()), *rebound):
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
                self.note(one["file"], Span.of(read), f"`{name}` still has its previous value and graph here")
                names.append(name)
        return names

    def _moved(self, failing: str) -> str:
        step = self._cause("step", "this step has modified the weights")
        name = self.facts.get("parameter")
        tensors = list(dict.fromkeys(one["name"] for one in self.facts.get("tensors", ())))
        by = step or self._renormalised() or self._overwritten()
        if step or name or tensors or not by:
            self._variables("made", "`{}` is computed here with the old values", anew=True)
        what = f"`{name}`" if name else listed(tensors[:2]) or self._saved()
        if not (by or name or tensors):
            self.advice = "`torch.autograd.set_detect_anomaly(True)` shows the line that computed it"
        if step:
            self.by_hand = self._after_the_step(step)
        self.changed(f"`{failing}` needs {what} as it was in the forward", by)
        return "autograd raises here: it needs the old values"

    def _after_the_step(self, step: str) -> str:
        """How the failing backward can do with the weights that the step has left."""
        after = "after every step" if step.startswith("an earlier run") else f"after {step}"
        across = self.facts.get("across")
        if across and across["whole"]:
            anew = self._anew()
            return f"compute {anew} again {after}" if anew else ""
        return self._way(self._carried(), f"{after}, with the new weights")

    def changed(self, needs: str, by: str) -> None:
        """Say that what is needed has been changed since, and ``by`` what, as far as that is known."""
        self._needs = "" if by else needs
        self.message = f"{needs}, and {by or 'an operation in place'} has modified it since"

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
                    path, Span.of(node), f"with {option}, each lookup scales the rows it reads in place"
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
        elif isinstance(node, ast.stmt):
            self.by_hand = self._instead(node, self.facts.get("tensors", ()))
        return f"`{file.code(Span.of(node))}` at line {node.lineno}"

    def _instead(self, node: ast.stmt, tensors: Sequence[Mapping[str, Any]]) -> str:
        """What to write for a statement in place, if what it changes may as well be another tensor.

        None takes the place of a parameter, and a view would no longer change what it is a view of.
        """
        changed = [one for one in tensors if set(prefixes(one["name"])) & changed_by(node)]
        if any(one["parameter"] or one["view"] for one in changed):
            return ""
        instead = out_of_place(node)
        if instead is not None:
            return f"`{instead}` makes a new tensor"
        name = next(iter(changed_by(node)), "")
        if changed and name.isidentifier():
            return f"`{name} = {name}.clone()` before it: then a copy is modified"
        return ""

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
        names = self._variables("roots", "`{}` is computed here, from nothing that requires grad")
        for root in self.facts.get("roots", ()):
            self._cuts(root)
        frozen = self.facts.get("frozen", ())
        why = f"{listed(names) or 'the loss'} has no graph"
        if not self.facts.get("recording", True):
            self.by_hand = self._recorded_again()
            why = "gradients are disabled"
        elif self._cutting:
            self.by_hand = self._without(list(dict.fromkeys(self._cutting)))
        elif frozen:
            self.by_hand = "`requires_grad_(True)` on those of its parameters that are to be trained"
            why = f"no parameter of {listed(frozen[:2])}, which an optimizer should train, requires grad"
        self.message = f"`{failing}` cannot compute gradients: {why}"
        return "autograd raises here: there is no graph"

    def _recorded_again(self) -> str:
        """What a person can do where the recording of gradients is switched off, and where that is done."""
        path, line = self._raised
        file = self.file(path)
        assert file is not None
        around = [name for outer in file.outer(file.statement(line)) for name, _ in switches_off(outer)]
        if around:
            return f"compute the loss, and call backward, outside of `{around[-1]}`"
        calls = list(self._calls(lambda call: ast.unparse(call).endswith("set_grad_enabled(False)")))
        for where, call in calls:
            self.note(where, Span.of(call), "this disables gradients until they are enabled again")
        return "enable gradients again: `torch.set_grad_enabled(True)`" if calls else ""

    def _without(self, cutting: Sequence[str]) -> str:
        """What a person can do about that which cuts the graph."""
        off = [name for name in cutting if name in RECORDING_OFF or name == "set_grad_enabled"]
        other = [name for name in cutting if name not in off]
        if off:
            return "" if other else f"compute the loss outside of {listed(off[:1])}"
        if set(other) <= {"detach"}:
            return "leave out `detach` on the way to the loss"
        makes = [name for name in other if name in ("tensor", "as_tensor")]
        instead = "; `torch.stack` of tensors keeps their graph" if makes else ""
        return (
            f"compute the loss from what goes into {listed(other[:3])}, with operations that have a "
            f"gradient{instead}"
        )

    def _leaf(self, failing: str) -> str:
        self.message = f"`{failing}` modifies a leaf that requires grad in place, outside of `no_grad`"
        path, line = self._raised
        file = self.file(path)
        assert file is not None
        node = file.statement(line)
        names = changed_by(node)
        leaves = [one for one in self.facts.get("leaves", ()) if one["name"] in names]
        gradients = {f"{name}.grad" for name in names}
        reads = {ast.unparse(one) for one in ast.walk(file.source.tree) if isinstance(one, ast.Attribute)}
        updates = {ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Attribute)} & gradients
        parameters = names & set(self.facts.get("parameters", ()))
        if updates or parameters or any(one["parameter"] or one["owned"] for one in leaves):
            self.by_hand = "modify it under `with torch.no_grad():`"
        elif leaves and not reads & gradients:
            # Nobody asks for the gradient of the leaf by the name that a new tensor takes over.
            self.by_hand = self._instead(node, leaves)
        return "autograd raises here"

    def _view(self, failing: str) -> str:
        what = next((told for sign, told in VIEWS if sign in self.facts["message"]), "a view")
        self.message = f"`{failing}` modifies in place {what}, which autograd does not allow"
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
                    self.note(found[0], Span.of(found[2]), f"`{found[1]}` is created here")
                instead = out_of_place(node)
                if instead is not None and read_after(around, node, name):
                    self.by_hand = f"`{instead}` makes a new tensor, and leaves the base of the view as it is"
                elif any(isinstance(one, ast.For) and name in bound_by(one) for one in ast.walk(around)):
                    self.by_hand = (
                        "collect the new parts in a list, and combine them with `torch.stack` or `torch.cat`"
                    )
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
        """Note what no gradient iterations, among the assignments that led to ``variable``."""
        found = self._assignment(variable)
        if found is None or depth <= 0 or found[2] in self._followed:
            return
        path, _, statement = found
        self._followed.add(statement)
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
                self._cut_at(path, node)
            elif isinstance(node, ast.Call) and depth > 0:
                for function in file.called(node):
                    self._cuts_in_function(path, file, function, variable, depth - 1)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._cuts({**variable, "name": node.id, "classes": ()}, depth - 1)

    def _cut_at(self, path: str, call: ast.Call) -> None:
        """Note a call that no gradient iterations, unless what goes into it is known to need none."""
        names = {ast.unparse(one) for one in ast.walk(call) if isinstance(one, ast.Name | ast.Attribute)}
        trainable = self.facts.get("trainable", ())
        held = {prefix for name in trainable for prefix in prefixes(name)}
        # In a function that has returned, a layer is known by the name that it has in its network.
        inner = {name.rpartition(".")[2] for name in trainable if "." in name}
        needed = names & held or {name.rpartition(".")[2] for name in names if "." in name} & inner
        if needed:
            self._cutting.append(last_name(call.func))
        elif names and all(name.split(".")[0] in self._harmless for name in names):
            return
        self.note(path, Span.of(call), f"no gradient flows through `{last_name(call.func)}`", over=True)

    @cached_property
    def _harmless(self) -> set[str]:
        """Names of what holds nothing that requires a gradient; and of torch itself."""
        return {*self.facts.get("constants", ()), "torch", "np", "numpy"}

    def _cuts_in_function(
        self,
        path: str,
        file: ScriptFile,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        variable: Mapping[str, Any],
        depth: int,
    ) -> None:
        """The same in what a function returns."""
        if function in self._followed:
            return
        self._followed.add(function)
        self._unrecorded(path, file, function)
        inner = {**variable, "function": function.lineno, "line": last_line(function) + 1, "classes": ()}
        for result in ast.walk(function):
            if isinstance(result, ast.Return) and result.value is not None:
                self._unrecorded(path, file, result)
                self._cuts_in(path, file, result.value, inner, depth)

    @cached_property
    def _followed(self) -> set[ast.AST]:
        """The assignments and functions in which a cut was looked for."""
        return set()

    def _unrecorded(self, path: str, file: ScriptFile, statement: ast.stmt) -> None:
        """Note the block, or the function, in which no gradients are recorded and ``statement`` stands."""
        for outer in file.outer(statement):
            for name, place in switches_off(outer):
                self._cutting.append(name)
                self.note(path, Span.of(place), "nothing computed under this has a graph", over=True)

    @cached_property
    def _cutting(self) -> list[str]:
        """What was found to cut the graph."""
        return []


def switches_off(block: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What switches the recording of gradients off for a block or a function, by name and place."""
    places: list[ast.expr] = []
    if isinstance(block, ast.With):
        places = [item.context_expr for item in block.items]
    elif isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef):
        places = block.decorator_list
    for place in places:
        name = last_name(place.func if isinstance(place, ast.Call) else place)
        off = name == "set_grad_enabled" and ast.unparse(place).endswith("(False)")
        if name in RECORDING_OFF or off:
            yield name, place


def listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def shown(path: str) -> str:
    """``path`` as people write it: from the current folder, if it lies there."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
