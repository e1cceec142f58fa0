"""The user's own command, run under watch: what is started, and what is said when autograd raises.

``command`` gives the command line that takes the place of this process (``verify/watch.py`` says how the
script is watched). When an error of autograd leaves the script, that file hands the facts to ``explain``:
what failed where, which backward had freed the graph, which step or operation had changed a tensor, and the
names that the script has for them. They are put into the script's lines here, together with what the
static model says of the same file.

The facts win. A finding counts only if it predicts this very error, of this kind at this line, and if it
blames no other backward or step than those that are known to have led to it; without one, gradfix knows no
fix.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gradfix import patch as patches
from gradfix import pipeline, source
from gradfix.codemod import Finding, Note, Span
from gradfix.errors import WORDS
from gradfix.pipeline import Refusal, Wishes
from gradfix.results import Explanation, Reported
from gradfix.source import Problem, Source, split_lines

WATCH = Path(__file__).parent / "verify" / "watch.py"
HOME = str(Path(__file__).parent.parent)
CALLS = frozenset({"backward", "manual_backward", "grad", "step"})
"""The last names of calls that run a backward or a step."""
_CALL = re.compile(rf"\b({'|'.join(sorted(CALLS))})\s*\(")
CUTS = frozenset(
    {"detach", "item", "numpy", "tolist", "argmax", "tensor", "as_tensor", "from_numpy", "no_grad"}
)
"""The last names of what no gradient passes."""
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
RAISES = "raises"
"""What a codemod says at the line where autograd raises."""
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


def command(script: Sequence[str], python: str | None, *, module: bool = False) -> list[str] | Problem:
    """The command that runs ``script``, its path or module and its arguments, under watch."""
    from gradfix.verify.interpreter import choose_interpreter, usual_interpreter

    path = Path.cwd() / "-m" if module else Path(script[0])
    if not module and not path.is_file():
        return Problem(script[0], "is a folder" if path.is_dir() else "does not exist")
    interpreter = usual_interpreter() if python is None else choose_interpreter(path, python)
    if isinstance(interpreter, str):
        return Problem(script[0], f"cannot be run: {interpreter}")
    return [interpreter.executable, str(WATCH), json.dumps(explainer()), *(["-m"] if module else []), *script]


def explainer() -> list[str]:
    """The command that starts this gradfix again, where no module of the script's can stand in for its own.

    It is isolated from the environment, and finds modules where this process does.
    """
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    start = f"import sys; sys.path[:] = {[*folders, HOME]!r}; from gradfix.__main__ import main; main()"
    return [sys.executable, "-I", "-c", start, "explain-error"]


def explain(facts: Mapping[str, Any]) -> Explanation | None:
    """What is to be said of an error; ``None`` where none of its lines can be read.

    Args:
        facts: As ``verify/watch.py`` tells them.
    """
    told = _Told(facts)
    places = [place for place in map(tuple, facts["places"]) if told.file(place[0]) is not None]
    if not places:
        return None
    told.tell()
    for path in dict.fromkeys(path for path, _ in places):
        lines = {line for one, line in places if one == path}
        reported = _predicted(path, facts["kind"], lines, told.causes)
        if reported is not None:
            return _with_fix(told, path, reported, facts.get("command", ()))
    return told.explanation(places[0][0])


# ---------------------------------------------------------------------------- what the model says


def _predicted(path: str, kind: str, lines: set[int], causes: Sequence[tuple[str, int]]) -> Reported | None:
    """The finding that predicts this error, unless it blames something else than what has led to it."""
    options = pipeline.prepare([path], Wishes(verify=False))
    if isinstance(options, Refusal):
        return None
    for file in pipeline.check([path], options).files:
        for reported in file.findings:
            if _foretells(reported.finding, kind, lines) and not _contradicts(
                reported.finding, file.text, lines, causes, path
            ):
                return reported
    return None


def _foretells(finding: Finding, kind: str, lines: set[int]) -> bool:
    """Whether ``finding`` is of an error of this kind on one of these lines."""
    claims = [fix.claim for fix in finding.fixes]
    if any(claim.raises == kind and claim.raises_line in lines for claim in claims):
        return True
    raising = (note.span for note in finding.notes if RAISES in note.message)
    return (
        not claims
        and finding.raises == kind
        and any(span.line <= line <= span.end_line for span in raising for line in lines)
    )


def _contradicts(
    finding: Finding, text: str, raised: set[int], causes: Sequence[tuple[str, int]], path: str
) -> bool:
    """Whether ``finding`` blames backward or step calls, and not those that are known to have led to it."""
    lines = split_lines(text)
    spans = [finding.span, *(note.span for note in finding.notes)]
    blamed = {
        span.line
        for span in spans
        if span.line not in raised and _CALL.search(" ".join(lines[span.line - 1 : span.end_line]))
    }
    known = [line for cause, line in causes if cause == path]
    covered = all(any(span.line <= line <= span.end_line for span in spans) for line in known)
    return bool(blamed) and not covered


def _with_fix(told: _Told, path: str, reported: Reported, command: Sequence[str]) -> Explanation:
    """The explanation with the notes of the finding, and its patch if one holds.

    ``command`` is what was run: the same command proves the patch.
    """
    finding, fix = reported.finding, reported.fix
    noted = {note.span.line for note in finding.notes}
    for note in finding.notes:
        told.note(path, note.span, note.message, over=True)
        if note.message == OVERWRITTEN:
            told.blame(path, note.span)
    told.note(path, finding.span, "", over=finding.span.line not in noted)
    explanation = told.explanation(path)
    explanation = explanation._replace(known=f"{finding.code}: {finding.message}")
    explanation = explanation._replace(by_hand=finding.advice, advice="")
    parsed = told.file(path)
    assert parsed is not None
    after = parsed.source.encode(reported.fixed_text) if reported.fixed_text is not None else None
    if fix is None or not isinstance(after, bytes):
        return explanation
    name = _shown(path)
    relative = name if not os.path.isabs(name) else os.path.basename(name)
    unsafe = " --unsafe-fixes" if fix.applicability == "unsafe" else ""
    return explanation._replace(
        fix=f"fix ({fix.effect}, {fix.applicability}): {fix.message}",
        patch=patches.unified_diff(relative.replace(os.sep, "/"), parsed.source.data, after),
        apply=f"gradfix apply --select {finding.code}{unsafe} {_as_run(name, path, command)}",
    )


def _as_run(name: str, path: str, command: Sequence[str]) -> str:
    """How ``gradfix apply`` is told to run the file at ``path``, shown as ``name``, by ``command``."""
    words = [shlex.quote(name)]
    if command[:1] == ["-m"]:
        words[:0] = ["-m", shlex.quote(command[1])]
        command = command[1:]
    elif command and os.path.realpath(command[0]) != os.path.realpath(path):
        words[:0] = ["--script", shlex.quote(command[0])]
    if len(command) > 1:
        words += ["--", shlex.join(command[1:])]
    return " ".join(words)


# ---------------------------------------------------------------------------- the facts, in lines


@dataclass(frozen=True)
class _File:
    source: Source

    @cached_property
    def scopes(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in ast.walk(self.source.tree) if isinstance(node, functions)]

    def call(self, line: int) -> Span:
        """The backward or step call that runs at ``line``, or the line."""
        calls = [
            node
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.Call)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and _last_name(node.func) in CALLS
        ]
        if calls:
            return Span.of(max(calls, key=lambda node: (node.lineno, node.col_offset)))
        return self.whole(line)

    def whole(self, line: int) -> Span:
        """All of ``line`` but its indentation and trailing blanks."""
        text = self.source.lines[line - 1] if 0 < line <= len(self.source.lines) else ""
        code = text.rstrip()
        start = len(code) - len(code.lstrip())
        return Span(line, len(code[:start].encode()), line, len(code.encode()))

    def scope(self, first_line: int) -> ast.AST:
        """The function that begins at ``first_line``, or the module."""
        for function in self.scopes:
            if first_line in {function.lineno, *(one.lineno for one in function.decorator_list)}:
                return function
        return self.source.tree

    def cls(self, qualified: str) -> ast.ClassDef | None:
        """The class of that name."""
        last = qualified.rpartition(".")[2]
        classes = (node for node in ast.walk(self.source.tree) if isinstance(node, ast.ClassDef))
        return next((node for node in classes if node.name == last), None)

    def called(self, call: ast.Call) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The function of this file that a call runs, where there is one only that it can be.

        A network that is called runs the ``forward`` of its class.
        """
        name = _last_name(call.func)
        found = [one for one in self.scopes if one.name == name]
        if not found and isinstance(call.func, ast.Name | ast.Attribute):
            made = [
                _last_name(node.value.func)
                for node in _binding(self.source.tree, ast.unparse(call.func), anew=True)
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            ]
            classes = [cls for cls in map(self.cls, made) if cls is not None]
            found = [one for cls in classes for one in cls.body if getattr(one, "name", "") == "forward"]  # type: ignore[misc]
        return found if len(found) == 1 else []

    def outer(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """What ``statement`` stands in, up to its function."""
        line = statement.lineno
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.With | ast.FunctionDef | ast.AsyncFunctionDef):
                if node.lineno <= line <= _end(node):
                    yield node

    def around(self, line: int) -> ast.AST:
        """The innermost function that has ``line``, or the module."""
        functions = [one for one in self.scopes if one.lineno <= line <= _end(one)]
        return max(functions, key=lambda one: one.lineno, default=self.source.tree)

    def code(self, span: Span) -> str:
        """The first line of what is at ``span``, without the arguments of a call that is long."""
        raw = self.source.lines[span.line - 1].encode()
        end = span.end_column if span.end_line == span.line else len(raw)
        code = raw[span.column : end].decode(errors="replace").strip()
        return code if len(code) <= 50 else f"{code[:47]}..."


@dataclass
class _Told:
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
    _files: dict[str, _File | None] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The number of the error, and autograd's own words."""
        kind: str = self.facts["kind"]
        return f'{kind} ("{WORDS[kind]}")'

    def file(self, path: str) -> _File | None:
        """The file at ``path``; ``None`` if it cannot be read as Python."""
        if path not in self._files:
            data = source.load(path)
            parsed = source.parse(path, data) if isinstance(data, bytes) else data
            self._files[path] = _File(parsed) if isinstance(parsed, Source) else None
        return self._files[path]

    def note(self, path: str, span: Span, message: str, *, over: bool = False) -> None:
        """Put ``message`` at ``span``, if nothing is said of that line yet or this is to go ``over`` it."""
        notes = self._notes.setdefault(path, [])
        if over:
            notes[:] = [note for note in notes if note.span.line != span.line or note.span in self._kept]
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
            files.append((_shown(one), file.source.text, Finding(self.heading, message, span, notes)))
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
        names = _listed(shared or carried)
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
            name = next((name for name in _prefixes(one["name"]) if "[" not in name), "")
            if file is None or name in names:
                continue
            scope = file.scope(one["function"])
            inside = [
                node
                for node in ast.walk(scope)
                if isinstance(node, (ast.For, ast.While)) and Span.of(node).line <= one["line"] <= _end(node)
            ]
            # An attribute outlives the call of the method that sets it; a local variable does not.
            block = inside[-1] if inside else scope if "." in name else None
            read = _read_before_bound(block, name) if block is not None else None
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
        what = f"`{name}`" if name else _listed(tensors[:2]) or self._saved()
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
        for path, node in self._calls(lambda call: _keyword(call, "max_norm") is not None):
            if _last_name(node.func) == layer["kind"]:
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
            instead = _out_of_place(node) if isinstance(node, ast.stmt) else None
            self.by_hand = f"`{instead}` makes a new tensor" if instead else ""
        return f"`{file.code(Span.of(node))}` at line {node.lineno}"

    def _like_the_graph(self) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
        """What is written in place, and leaves in a graph what is there behind the saved tensor."""
        after = {_plain(operation) for operation in self.facts.get("after", ())}
        for path in self.facts.get("files", ()):
            file = self.file(path)
            for node in ast.walk(file.source.tree) if file is not None else ():
                if isinstance(node, ast.stmt) and _operations(node) & after and _changed(node):
                    yield path, node
        for path, call in self._calls(_is_inplace):
            if _plain(LAYERS.get(_last_name(call.func), _last_name(call.func))) in after:
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
            why = f"{_listed(names) or 'what it starts from'} hangs on no graph"
        elif frozen:
            self.by_hand = f"unfreeze what is to be trained: `{frozen[0]}.requires_grad_(True)`"
            why = f"no parameter of {_listed(frozen[:2])} requires a gradient"
        else:
            why = f"{_listed(names) or 'what it starts from'} hangs on no graph"
        self.message = f"`{failing}` has nothing to differentiate: {why}"
        return "autograd raises here: there is no graph"

    def _without(self, cutting: Sequence[str]) -> str:
        """What a person can do about that which cuts the graph."""
        off = [name for name in cutting if name in RECORDING_OFF or name == "set_grad_enabled"]
        if off:
            return f"compute the loss outside of {_listed(off[:1])}"
        makes = [name for name in cutting if name in ("tensor", "as_tensor")]
        instead = "; `torch.stack` of tensors makes one that has their graph" if makes else ""
        return f"leave out {_listed(cutting[:3])} on the way to the loss{instead}"

    def _leaf(self, failing: str) -> str:
        self.message = (
            f"`{failing}` changes a leaf that requires a gradient in place, while gradients are recorded"
        )
        path, line = self._raised
        file = self.file(path)
        assert file is not None
        for node in ast.walk(file.around(line)):
            if isinstance(node, ast.stmt) and node.lineno <= line <= _end(node):
                instead = _out_of_place(node)
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
            if not (isinstance(node, ast.stmt) and node.lineno <= line <= _end(node)):
                continue
            for name in _changed(node):
                begins = around.lineno if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) else 0
                variable = {"file": path, "function": begins, "name": name, "line": node.lineno}
                found = self._assignment(variable, anew=True)
                if found is not None:
                    self.note(found[0], Span.of(found[2]), f"`{found[1]}` comes from here")
                instead = _out_of_place(node)
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
            for name in _prefixes(variable["name"]):
                nodes = sorted(_binding(scope, name, anew), key=lambda node: node.lineno)
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
                nodes = list(_binding(method, f"{me}.{attribute}", anew))
                if nodes:
                    return path, f"{me}.{attribute}", nodes[-1]
        return None

    def _changes(self, variable: Mapping[str, Any]) -> list[tuple[str, ast.expr | ast.stmt]]:
        """The statements in place on ``variable``: in its function, or in the class whose attribute it is."""
        found: list[tuple[str, ast.expr | ast.stmt]] = []
        file = self.file(variable["file"])
        if file is not None:
            names = set(_prefixes(variable["name"]))
            found += [(variable["file"], node) for node in _changing(file.scope(variable["function"]), names)]
        attribute = variable["name"].rpartition(".")[2].partition("[")[0]
        for path, qualified in variable.get("classes", ()):
            held = self.file(path)
            cls = held.cls(qualified) if held is not None else None
            for method in ast.walk(cls) if cls is not None else ():
                if isinstance(method, ast.FunctionDef) and method.args.args:
                    found += [
                        (path, node)
                        for node in _changing(method, {f"{method.args.args[0].arg}.{attribute}"})
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
        self, path: str, file: _File, value: ast.AST, variable: Mapping[str, Any], depth: int
    ) -> None:
        """The same among what ``value`` is computed from."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and _last_name(node.func) in CUTS:
                self._cutting.append(_last_name(node.func))
                span = Span.of(node)
                self.note(path, span, f"no gradient passes `{_last_name(node.func)}`", over=True)
            elif isinstance(node, ast.Call) and depth:
                for function in file.called(node):
                    self._unrecorded(path, file, function)
                    inner = {
                        **variable,
                        "function": function.lineno,
                        "line": _end(function) + 1,
                        "classes": (),
                    }
                    for result in ast.walk(function):
                        if isinstance(result, ast.Return) and result.value is not None:
                            self._unrecorded(path, file, result)
                            self._cuts_in(path, file, result.value, inner, depth - 1)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._cuts({**variable, "name": node.id, "classes": ()}, depth - 1)

    def _unrecorded(self, path: str, file: _File, statement: ast.stmt) -> None:
        """Note the block, or the function, in which no gradients are recorded and ``statement`` stands."""
        for outer in file.outer(statement):
            if isinstance(outer, ast.With):
                places = [item.context_expr for item in outer.items]
            elif isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                places = outer.decorator_list
            else:
                continue
            for place in places:
                name = _last_name(place.func if isinstance(place, ast.Call) else place)
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


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _binding(scope: ast.AST, name: str, anew: bool) -> Iterator[ast.stmt]:
    """The statements in ``scope`` that bind ``name``; those like ``+=`` unless the value is made ``anew``."""
    for node in ast.walk(scope):
        if isinstance(node, ast.stmt) and name in _bound(node):
            if not (anew and isinstance(node, ast.AugAssign)):
                yield node


def _changing(scope: ast.AST, names: set[str]) -> Iterator[ast.stmt]:
    """The statements in ``scope`` that change one of ``names`` in place."""
    for node in ast.walk(scope):
        if isinstance(node, ast.stmt) and not names.isdisjoint(_changed(node)):
            yield node


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is_inplace(call: ast.Call) -> bool:
    """Whether a call, or the layer that it makes, works in place: ``nn.ReLU(True)`` says so as well."""
    given = _keyword(call, "inplace")
    if given is None and _last_name(call.func) in ("ReLU", "ReLU6", "SiLU", "Hardswish") and call.args:
        given = call.args[0]
    return isinstance(given, ast.Constant) and given.value is True


LAYERS = {"ReLU6": "Hardtanh", "relu6": "Hardtanh", "Dropout": "Mul", "dropout": "Mul"}
"""What autograd calls the operation of a layer, where that is not its name."""


def _plain(name: str) -> str:
    """A name without what writings differ in: ``masked_fill_`` and ``MaskedFill`` are one."""
    return name.replace("_", "").lower()


def _operations(node: ast.stmt) -> set[str]:
    """What autograd calls a statement in place, in plain."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Subscript):
            return {"copyslices", "indexput"}
        return {{"mult": "mul", "matmult": "mm"}.get(kind := type(node.op).__name__.lower(), kind)}
    if isinstance(node, ast.Assign):
        return {"copyslices", "indexput", "copy"}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return {_plain(_last_name(node.value.func))}
    return set()


def _read_before_bound(block: ast.AST, name: str) -> ast.expr | None:
    """Where ``block`` reads ``name`` with its graph, if that is before the first statement that binds it."""
    bound = [node for node in ast.walk(block) if isinstance(node, ast.stmt) and name in _bound(node)]
    cut = {
        node.value
        for node in ast.walk(block)
        if isinstance(node, ast.Attribute) and node.attr in CUTS | {"data", "shape", "size"}
    }
    reads = [
        node
        for node in ast.walk(block)
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and node not in cut
        and ast.unparse(node) == name
    ]
    added = (node.target for node in bound if isinstance(node, ast.AugAssign))
    reads += [node for node in added if isinstance(node, (ast.Name, ast.Attribute))]
    if not bound or not reads:
        return None
    first, read = min(bound, key=lambda node: node.lineno), min(reads, key=lambda node: node.lineno)
    return read if read.lineno <= _end(first) else None


def _prefixes(name: str) -> Iterator[str]:
    """``self.h[0]``, ``self.h``, ``self``."""
    while name:
        yield name
        cut = max(name.rfind("."), name.rfind("["))
        name = name[:cut] if cut > 0 else ""


def _bound(node: ast.stmt) -> set[str]:
    """The names and attributes that a statement assigns to."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [node.target]
    elif isinstance(node, ast.Expr):
        # `outputs.append(value)` is what gave a list its elements.
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
            targets = [call.func.value]
    flat = [inner for target in targets for inner in _flat(target)]
    return {ast.unparse(target) for target in flat}


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for inner in target.elts:
            yield from _flat(inner)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def _changed(node: ast.stmt) -> set[str]:
    """The names of what a statement changes in place."""
    if isinstance(node, ast.AugAssign):
        target = node.target
        return {ast.unparse(target.value if isinstance(target, ast.Subscript) else target)}
    if isinstance(node, ast.Assign):
        return {ast.unparse(one.value) for one in node.targets if isinstance(one, ast.Subscript)}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and re.fullmatch(r"[a-z]\w*[a-z0-9]_", function.attr):
            return {ast.unparse(function.value)}
    return set()


def _out_of_place(node: ast.stmt) -> str | None:
    """The assignment that does what a statement does in place to a name or an attribute, in one line."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name | ast.Attribute):
        return f"{ast.unparse(node.target)} = {ast.unparse(ast.BinOp(node.target, node.op, node.value))}"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        method = node.value.func
        if isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name | ast.Attribute):
            name = ast.unparse(method.value)
            return f"{name} = {name}.{method.attr[:-1]}{ast.unparse(node.value)[len(ast.unparse(method)) :]}"
    return None


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _shown(path: str) -> str:
    """``path`` as people write it: from the current folder, if it lies there."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
