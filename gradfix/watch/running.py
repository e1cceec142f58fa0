"""The user's own command, run under watch: what is started, and what is said when autograd raises.

``command`` gives the command line that takes the place of this process (``runtime/watch`` says how the
script is watched). When an error of autograd leaves the script, that file hands the facts to ``explain``:
what failed where, which backward had freed the graph, which step or operation had changed a tensor, and the
names that the script has for them. They are put into the script's lines here, together with what the
static model says of the same file.

The facts win. A finding counts only if it predicts this very error, of this kind at this line, and if it
blames no other backward or step than those that are known to have led to it; without one, gradfix knows no
fix.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradfix
from gradfix import runtime
from gradfix.core.codemod import Effect, Finding, Severity
from gradfix.pipeline import driver
from gradfix.pipeline.options import Refusal, RequestedOptions
from gradfix.pipeline.results import Explanation, Reported
from gradfix.project import configuration, source
from gradfix.project.source import Problem, split_lines
from gradfix.watch.explain_run import OVERWRITTEN, RunExplainer, shown
from gradfix.watch.script import CALLS

HOME = str(Path(gradfix.__file__).parent.parent)
_CALL = re.compile(rf"\b({'|'.join(sorted(CALLS))})\s*\(")
RAISES = "raises"
"""What a codemod says at the line where autograd raises."""


def command(
    script: Sequence[str],
    python: str | None,
    *,
    module: bool = False,
    min_severity: Severity | None = None,
    config: str | None = None,
    color: str | None = None,
) -> list[str] | Problem:
    """The command that runs ``script``, its path or module and its arguments, under watch.

    Args:
        min_severity: Findings that are less bad are not told with what has happened.
        config: The file whose configuration holds for what is told.
        color: When it is told in colour.
    """
    from gradfix.verify.interpreter import choose_interpreter, usual_interpreter

    path = Path.cwd() / "-m" if module else Path(script[0])
    if not module and not path.is_file():
        return Problem(script[0], "is a folder" if path.is_dir() else "does not exist")
    if config is not None and isinstance(wrong := configuration.settings_of(config), Problem):
        return wrong
    given = [] if module else _notebook(script[0])
    if isinstance(given, Problem):
        return given
    interpreter = usual_interpreter() if python is None else choose_interpreter(path, python)
    if isinstance(interpreter, str):
        return Problem(script[0], f"cannot be run: {interpreter}")
    if (
        module
        and script[0] == "pytest"
        and min_severity is None
        and config is None
        and _is_beside_the_plugin(interpreter.executable)
    ):
        return [interpreter.executable, "-m", "pytest", "--gradfix", *script[1:]]
    told = {
        "--min-severity": min_severity,
        "--config": None if config is None else os.path.abspath(config),
        "--color": color,
    }
    options = [word for name, value in told.items() if value is not None for word in (name, str(value))]
    explaining = json.dumps([*explainer(), *options])
    return [
        interpreter.executable,
        runtime.MAIN,
        "watch",
        explaining,
        *(["-m"] if module else given),
        *script,
    ]


def left_out(path: str) -> str:
    """What of a notebook is not run, in words; empty if it is all run."""
    parsed = source.read(path) if source.is_notebook(path) else None
    if not isinstance(parsed, source.Source):
        return ""
    from gradfix.project import notebooks

    return notebooks.left_out(parsed.text)


def _notebook(path: str) -> list[str] | Problem:
    """How the code of a notebook is handed over, which no interpreter can read from its file."""
    if not source.is_notebook(path):
        return []
    parsed = source.read(path)
    if isinstance(parsed, Problem):
        return parsed
    # It is left open for the process that takes the place of this one, and gone with that.
    with tempfile.TemporaryFile() as file:
        file.write(parsed.text.encode())
        file.flush()
        held = os.dup(file.fileno())
    os.set_inheritable(held, True)
    return ["--notebook", str(held)]


def _is_beside_the_plugin(executable: str) -> bool:
    """Whether an interpreter is that of this gradfix, and pytest finds the plugin there.

    pytest catches what tests raise: only from inside can it be explained.
    """
    from importlib.metadata import entry_points

    same = os.path.dirname(os.path.abspath(executable)) == os.path.dirname(os.path.abspath(sys.executable))
    return same and bool(entry_points(group="pytest11", name="gradfix"))


def explainer() -> list[str]:
    """The command that starts this gradfix again, where no module of the script's can stand in for its own.

    It is isolated from the environment, and finds modules where this process does.
    """
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    start = f"import sys; sys.path[:] = {[*folders, HOME]!r}; from gradfix.__main__ import main; main()"
    return [sys.executable, "-I", "-c", start, "explain-error"]


USUAL = RequestedOptions(verify=False, whole=True)
"""Findings are told with an error though they are known already: it has been raised."""


def explanations(facts: Mapping[str, Any], requested: RequestedOptions = USUAL) -> Iterator[Explanation]:
    """What is to be said of how a script has ended.

    Args:
        facts: As ``runtime/watch`` tells them.
        requested: By which the findings are chosen that are told with them.
    """
    if facts["kind"] != "silent":
        found = explain(facts, requested)
        if found is not None:
            yield found
        return
    from gradfix.watch import untrained

    for explanation in untrained.explain(facts):
        yield _with_likely_reason(explanation, facts, requested)


def explain(facts: Mapping[str, Any], requested: RequestedOptions = USUAL) -> Explanation | None:
    """What is to be said of an error; ``None`` where none of its lines can be read."""
    explainer = RunExplainer(facts)
    places = [place for place in map(tuple, facts["places"]) if explainer.file(place[0]) is not None]
    if not places:
        return None
    explainer.explain()
    for path in dict.fromkeys(path for path, _ in places):
        lines = {line for one, line in places if one == path}
        reported = _predicted(path, facts["kind"], lines, explainer.causes, requested)
        if reported is not None:
            return _with_fix(explainer, path, reported, facts.get("command", ()))
    return explainer.explanation(places[0][0])


# ---------------------------------------------------------------------------- what the model says


def _predicted(
    path: str,
    kind: str,
    lines: set[int],
    causes: Sequence[tuple[str, int]],
    requested: RequestedOptions,
) -> Reported | None:
    """The finding that predicts this error, unless it blames something else than what has led to it."""
    options = driver.prepare([path], requested)
    if isinstance(options, Refusal):
        return None
    for file in driver.check([path], options).files:
        for reported in file.findings:
            foretold = _foretells(reported.finding, kind, lines)
            if foretold and not _contradicts(reported.finding, file.text, lines, causes, path):
                return reported
            if not foretold and _foretells_of_framework(reported.finding, kind, file.text, lines):
                return reported
    return None


def _with_likely_reason(
    explanation: Explanation, facts: Mapping[str, Any], requested: RequestedOptions
) -> Explanation:
    """``explanation`` with the silent mistake that the model finds at its lines, and the patch for it."""
    explainer = RunExplainer(facts)
    name, _, crash = explanation.files[0]
    path = os.path.abspath(name)
    options = driver.prepare([path], requested)
    if isinstance(options, Refusal):
        return explanation
    lines = {crash.span.line, *(note.span.line for note in crash.notes)}
    for file in driver.check([path], options).files:
        for reported in file.findings:
            finding = reported.finding
            silent = [fix for fix in finding.fixes if fix.effect is not Effect.PRESERVES]
            spans = [finding.span, *(note.span for note in finding.notes)]
            if (silent or not finding.fixes) and any(
                span.line <= line <= span.end_line for span in spans for line in lines
            ):
                known = explanation._replace(known=f"{finding.code}: {finding.message}")
                return _patched(known, explainer, path, reported, facts.get("command", ()))
    return explanation


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


def _foretells_of_framework(finding: Finding, kind: str, text: str, raised: set[int]) -> bool:
    """Whether ``finding`` is of an error that a framework's call raises, of what a method returns to it.

    The line that has called the framework then says nothing of ``backward``.
    """
    lines = split_lines(text)
    if finding.raises != kind and not any(fix.claim.raises == kind for fix in finding.fixes):
        return False
    if any(_CALL.search(lines[line - 1]) for line in raised if line <= len(lines)):
        return False
    spans = [note.span for note in finding.notes if RAISES in note.message]
    return any(lines[s.line - 1].encode()[s.column : s.end_column] == b"return" for s in spans)


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


def _with_fix(explainer: RunExplainer, path: str, reported: Reported, command: Sequence[str]) -> Explanation:
    """The explanation with the notes of the finding, and its patch if one holds.

    ``command`` is what was run: the same command proves the patch.
    """
    finding = reported.finding
    noted = {note.span.line for note in finding.notes}
    for note in finding.notes:
        explainer.note(path, note.span, note.message, over=True)
        if note.message == OVERWRITTEN:
            explainer.blame(path, note.span)
    explainer.note(path, finding.span, "", over=finding.span.line not in noted)
    explanation = explainer.explanation(path)
    explanation = explanation._replace(known=f"{finding.code}: {finding.message}", advice="")
    return _patched(explanation, explainer, path, reported, command)


def _patched(
    explanation: Explanation, explainer: RunExplainer, path: str, reported: Reported, command: Sequence[str]
) -> Explanation:
    """``explanation`` with the patch of a finding, if one holds."""
    finding, fix = reported.finding, reported.fix
    parsed = explainer.file(path)
    assert parsed is not None
    after = parsed.source.encode(reported.fixed_text) if reported.fixed_text is not None else None
    if fix is None or not isinstance(after, bytes):
        return explanation
    name = shown(path)
    relative = name if not os.path.isabs(name) else os.path.basename(name)
    unsafe = " --unsafe-fixes" if fix.applicability == "unsafe" else ""
    # Of what no command runs, as a test, it is not known whether it can be proved.
    unsafe += " --unproved" if fix.is_authors_choice or not command else ""
    return explanation._replace(
        fix=f"fix ({fix.effect}, {fix.applicability_label}): {fix.message}",
        patch=driver.readable(relative.replace(os.sep, "/"), parsed.source.data, after),
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
