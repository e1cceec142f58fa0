"""Plants faults in checkouts of training code and scores what gradfix makes of them."""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import by_definition
import faults
import judge
import sequence
from faults import Mutant
from syntax import Code, Project, is_call

from gradfix.core.codemod import Finding
from gradfix.pipeline import driver
from gradfix.pipeline.analysis import analyse, reported_by
from gradfix.pipeline.driver import RequestedOptions
from gradfix.project import source
from gradfix.verify.recording import Recording

SIZE = 1 << 20
"""Larger files are passed over."""


HANDED_IN = "handed in"
"""The verdict on a flag that keeps the graph of a loss which the function is given.

Here it is needless. Of another caller it is not to be known from the file, so it is counted apart.
"""


BY_DEFINITION = {**by_definition.OPERATORS, **sequence.OPERATORS}.keys()
"""Operators that leave nothing to be decided by running."""


@dataclass
class Row:
    """One mutant, and what became of it."""

    checkout: str
    file: str
    operator: str
    line: int
    verdict: str = "undecided"
    """``fault``, ``equivalent``, ``undecided``, or ``handed in`` (see :data:`HANDED_IN`)."""
    why: str = ""
    found: str = ""
    """The finding that names it, as ``code:line``, or whose fix brings the original back."""
    other: str = ""
    """Findings that the original does not have, but that do not name it."""
    restored: str = ""
    """How what ``apply`` writes is the original: ``tree``, ``order`` (but for where ``zero_grad`` stands
    among statements that it commutes with), ``gradients``; or why not."""
    text: str = field(default="", repr=False)
    after: str = field(default="", repr=False)


@dataclass
class Results:
    """All rows, and what was found in the originals."""

    rows: list[Row] = field(default_factory=list)
    originals: list[str] = field(default_factory=list)
    files: int = 0
    checkouts: set[str] = field(default_factory=set)

    def lines(self) -> str:
        kept = ("text", "after")
        return "".join(
            json.dumps({k: v for k, v in asdict(row).items() if k not in kept}) + "\n" for row in self.rows
        )

    def table(self) -> str:
        """The score, an operator a line."""
        heads = (
            "| planted | mutants | equivalent | faults | found | restored | undecided | found | restored |"
        )
        out = [heads, "|---" * 9 + "|"]
        for operator in [*faults.OPERATORS, "all"]:
            rows = [row for row in self.rows if operator in (row.operator, "all")]
            if not rows:
                continue
            cells = [operator, len(rows), sum(r.verdict == "equivalent" for r in rows)]
            for verdict in ("fault", "undecided"):
                some = [r for r in rows if r.verdict == verdict]
                restored = sum(r.restored in RESTORED for r in some)
                cells += [len(some), _found(some), restored]
            out.append("| " + " | ".join(map(str, cells)) + " |")
        out.append("")
        given = [row for row in self.rows if row.verdict == HANDED_IN]
        out.append(f"Graphs kept of losses that are handed in: {len(given)}, found {_found(given)}.")
        out.append(f"{len(self.checkouts)} checkouts, {self.files} files.")
        out.append(f"Findings in the originals: {len(self.originals)}")
        return "\n".join([*out, *self.originals])


def _found(rows: list[Row]) -> int:
    return sum(bool(row.found) for row in rows)


RESTORED = ("tree", "order", "gradients")


def order(path: Path) -> str:
    """A key that sorts files the same way everywhere and for no reason of their own."""
    return hashlib.sha256(str(path).encode()).hexdigest()


def training_files(checkout: Path) -> Iterator[tuple[Path, str]]:
    """The files in which something can be planted, in an order that has nothing to do with what they hold."""
    names = (
        [checkout]
        if checkout.is_file()
        else sorted(checkout.rglob("*.py"), key=lambda p: order(p.relative_to(checkout)))
    )
    for path in names:
        if any(
            part.startswith(".") or part in ("tests", "test")
            for part in path.relative_to(checkout).parts[:-1]
        ):
            continue
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue
        if len(text) > SIZE or "backward" not in text:
            continue
        try:
            code = Code(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        if any(code.calls("backward")) and any(code.calls("step")):
            yield path, text


def files(checkout: Path) -> Iterator[str]:
    """The text of every file of Python in a checkout."""
    for path in [checkout] if checkout.is_file() else sorted(checkout.rglob("*.py")):
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue
        if len(text) <= SIZE:
            yield text


def score(checkout: Path, options: argparse.Namespace, results: Results) -> None:
    """Plant, look, repair and run."""
    project = Project(files(checkout))
    requested = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(requested, driver.Options)
    root = checkout if checkout.is_dir() else checkout.parent
    results.checkouts.add(checkout.name)
    some = len(options.only) < len(faults.OPERATORS)
    taken = 0
    for path, text in training_files(checkout):
        if taken >= options.files:
            break
        name = str(path.relative_to(root))
        seed = f"{checkout.name}/{name}"
        mutants = list(faults.plant(text, options.per_operator, seed, project, options.only))
        if some and not mutants:
            continue  # Of some operators many a file has nothing: there are others.
        taken += 1
        before = findings(path, text, requested)
        results.files += 1
        results.originals += [f"{checkout.name}/{name}:{f.span.line}: {f.code}: {f.message}" for f in before]
        wanted = [text, repaired(path, text, requested)] if before else [text]
        rows = [Row(checkout.name, name, m.operator, m.line, text=m.text) for m in mutants]
        for row, mutant in zip(rows, mutants):
            look(row, mutant, path, wanted, before, requested)
        pairs = [(r, m) for r, m in zip(rows, mutants) if r.operator not in BY_DEFINITION]
        if pairs and not options.no_run:
            decide([r for r, _ in pairs], [m for _, m in pairs], path, root, wanted, options.python)
        for row, mutant in zip(rows, mutants):
            if row.operator in BY_DEFINITION:
                row.verdict, row.why = "fault", "by definition"
            if row.verdict == "undecided" and row.operator == "retain-added":
                if not re.search(rf"the original raises E[12]@{row.line}\b", row.why):
                    # The original does without.
                    row.verdict, row.why = "fault", "by definition"
            if mutant.handed_in and row.verdict == "fault":
                row.verdict = HANDED_IN
            if row.restored == "?":
                row.restored = "another"
            named(row)
        results.rows += rows


def named(row: Row) -> None:
    """What brings the original back was about what was planted, whatever kind of finding it is."""
    if not row.found and row.restored in RESTORED:
        row.found, row.other = row.other, ""


def findings(path: Path, text: str, options: driver.Options) -> list[Finding]:
    parsed = source.parse(str(path), text.encode(), SIZE)
    if not isinstance(parsed, source.Source):
        return []
    return list(reported_by(analyse(parsed, options), options))


def repaired(path: Path, text: str, options: driver.Options) -> str:
    """What ``apply`` makes of a file."""
    parsed = source.parse(str(path), text.encode(), SIZE)
    assert isinstance(parsed, source.Source)
    return driver.repair(parsed, options).after.decode()


def look(
    row: Row,
    mutant: Mutant,
    path: Path,
    wanted: list[str],
    before: list[Finding],
    options: driver.Options,
) -> None:
    """What gradfix finds in a mutant and what it makes of it.

    ``wanted`` are the original, and the original repaired if it has findings of its own: what is written for
    the mutant has to be one of them.
    """
    text = wanted[0]
    # What was a waste and raises now has another message.
    known = {(f.code, f.message, text.splitlines()[f.span.line - 1].strip()) for f in before}
    lines = mutant.text.splitlines()
    new = [
        f
        for f in findings(path, mutant.text, options)
        if (f.code, f.message, lines[f.span.line - 1].strip()) not in known
    ]
    for finding in new:
        spots = {finding.span.line, *(n.span.line for n in finding.notes)}
        label = f"{finding.code}:{finding.span.line}"
        if finding.code in faults.EXPECTED[mutant.operator] and spots & mutant.places:
            row.found = row.found or label
        else:
            row.other = row.other or label
    if not new:
        row.restored = "nothing written"
        return
    row.after = repaired(path, mutant.text, options)
    if row.after == mutant.text:
        row.restored = "nothing written"
    elif ast.dump(ast.parse(row.after)) in [ast.dump(ast.parse(one)) for one in wanted]:
        row.restored = "tree"
    elif settled(row.after) in [settled(one) for one in wanted]:
        row.restored = "order"
    else:
        row.restored = "?"


def settled(text: str) -> str:
    """The program with every ``zero_grad`` as late as it may be: right before something that minds.

    An optimizer's step is as late as it may be too; it minds every call, as that could be a forward.
    """
    code = Code(text)
    minds = busy(code)
    for node in ast.walk(code.tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, name, settle_steps(sink(block, minds)))
    return ast.dump(code.tree)


def settle_steps(block: list[ast.stmt]) -> list[ast.stmt]:
    out = list(block)
    for statement in reversed(block):
        if not is_call(statement, "step"):
            continue
        at = out.index(statement)
        while at + 1 < len(out) and quiet(out[at + 1]):
            out[at], out[at + 1] = out[at + 1], out[at]
            at += 1
    return out


def quiet(statement: ast.stmt) -> bool:
    """Whether a statement only computes with what it has: it calls nothing and looks at no gradient."""
    return isinstance(statement, (ast.Assign, ast.AugAssign, ast.Pass)) and not any(
        isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr in ("grad", "data"))
        for node in ast.walk(statement)
    )


def busy(code: Code) -> set[str]:
    """Names that may touch gradients when they are called: those of the file's own training functions."""
    return {
        f.name
        for f in ast.walk(code.tree)
        if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and handles(f, set())
    }


def touches(statement: ast.AST, minds: set[str]) -> bool:
    """Whether a statement may look at or change a gradient, or leaves the block."""
    leaving = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Yield)
    return handles(statement, minds) or any(isinstance(node, leaving) for node in ast.walk(statement))


def handles(code: ast.AST, minds: set[str]) -> bool:
    """Whether some code may look at or change a gradient."""
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and (
            node.attr in {"backward", "step", "zero_grad", "grad", "parameters", "scale"}
            or node.attr in minds
        ):
            return True
        if isinstance(node, ast.Name) and node.id in minds:
            return True
    return False


def sink(block: list[ast.stmt], minds: set[str]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    waiting: list[ast.stmt] = []
    for statement in block:
        if is_call(statement, "zero_grad"):
            waiting.append(statement)
            continue
        if waiting and touches(statement, minds):
            out += sorted(waiting, key=ast.dump)
            waiting = []
        out.append(statement)
    return out + sorted(waiting, key=ast.dump)


# ---------------------------------------------------------------------------- running


def callers(code: Code, function: str, depth: int = 2) -> Iterator[str]:
    """The functions and methods of a file that call one of them, the outermost first."""
    name = function.rsplit(".", 1)[-1]
    found = [
        code.name(node)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Call)
        and name
        and name in (getattr(node.func, "id", None), getattr(node.func, "attr", None))
        and getattr(getattr(node.func, "value", None), "id", "self") == "self"
    ]
    for outer in sorted({*found} - {"", function}):
        if depth:
            yield from callers(code, outer, depth - 1)
        yield outer


def decide(
    rows: list[Row], mutants: list[Mutant], path: Path, root: Path, wanted: list[str], python: str | None
) -> None:
    """Say of each mutant by running it whether it is a fault, and of each repair whether it is one."""
    text = wanted[0]
    watched = {line for m in mutants for line in m.watched}
    code = Code(text)
    called = {m.function: list(callers(code, m.function)) for m in mutants}
    entries = sorted({"", *called, *(name for names in called.values() for name in names)})
    originals = dict(
        zip(entries, judge.run([judge.job(path, root, text, e, watched) for e in entries], python))
    )
    chosen: dict[int, tuple[str, Recording]] = {}
    for number, (row, mutant) in enumerate(zip(rows, mutants)):
        reasons = []
        for entry in dict.fromkeys(["", *called[mutant.function], mutant.function]):
            recording = originals[entry]
            reason = judge.usable(recording)
            if reason is None and not mutant.watched <= judge.ran(recording):
                reason = "the planted line is not run"
            if reason is None:
                chosen[number] = (entry, recording)
                break
            reasons.append(reason)
        row.why = "; ".join(reasons) if number not in chosen else ""
    numbers = list(chosen)
    runs = judge.run([judge.job(path, root, mutants[n].text, chosen[n][0], ()) for n in numbers], python)
    # Where the original's tree comes back there is nothing to run.
    changed = [n for n in numbers if rows[n].after and rows[n].after != mutants[n].text]
    repairs = [n for n in changed if rows[n].restored != "tree"]
    written = judge.run([judge.job(path, root, rows[n].after, chosen[n][0], ()) for n in repairs], python)
    ways = sorted({chosen[n][0] for n in repairs})
    best = dict(zip(ways, judge.run([judge.job(path, root, wanted[-1], e, ()) for e in ways], python)))
    goals = [best[chosen[n][0]] for n in repairs]
    for number, recording in zip(numbers, runs):
        verdict = judge.compare(chosen[number][1], recording)
        row = rows[number]
        row.why = f"run: {verdict.why}"
        if row.operator == "retain-added" and verdict.kind == "same":
            row.verdict = "fault"  # It keeps for nothing what the original does without.
        elif verdict.kind != "undecided":
            row.verdict = "equivalent" if verdict.kind == "same" else "fault"
    for number, recording, goal in zip(repairs, written, goals):
        verdict = judge.compare(chosen[number][1], recording)
        if verdict.kind != "same" and judge.usable(goal) is None:
            verdict = judge.compare(goal, recording)
        # That an optimizer stays idle on the stage says nothing against a repair of what others showed there.
        shown = rows[number].verdict == "fault" and verdict.shows_no_difference
        if rows[number].restored == "?" and (verdict.kind == "same" or shown):
            rows[number].restored = "gradients"
        elif rows[number].restored in ("tree", "order") and verdict.kind not in ("same", "undecided"):
            rows[number].why += f" (the repaired program: {verdict.why})"
