"""What becomes of the findings in a folder of repositories: how many rewrites are executed, and proved.

    python benchmarks/repositories.py FOLDER --out DIR [--python EXE] [--seconds N] [--total N] [--safe]

Each folder in ``FOLDER`` is a repository. ``gradfix check`` looks for findings, and ``gradfix apply --dry-run
--step-alone`` proves what it would write, with ``--seconds`` for the proofs of one repository (120); none is
begun after ``--total`` seconds. Nothing is written to the repositories, and all that is run of them is run in
the sandbox. Fixes that change what a running program learns are proved too, but for ``--safe``.

``DIR/results.jsonl`` gets a line for each repository, and those that have one are left alone: to go on,
start it again. Every rewrite that is proved, or refuted, is in a folder of ``DIR`` as a diff below what was
found and what was seen, for somebody who reads it: whether a *proved* one is wrong is told by nothing else.

Several fixes that are tried for one finding count as one rewrite, by the best of their outcomes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from typing import Any

from gradfix.cli.commands import collect_rarely
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, RequestedOptions, StepsAlone, TimeLimit
from gradfix.pipeline.results import Attempt, Outcome, Plan, Report
from gradfix.report.evidence import stem

Row = dict[str, Any]
PROVED = ("by the program", "with made-up data", "for the step alone")


def main() -> None:
    """Measure what has not been measured, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--total", type=float, default=float("inf"))
    parser.add_argument("--safe", action="store_true")
    chosen = parser.parse_args()
    collect_rarely()
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = chosen.out / "results.jsonl"
    rows = _read(results)
    known = {row["repository"] for row in rows}
    repositories = sorted(path for path in chosen.folder.iterdir() if path.is_dir())
    until = time.monotonic() + chosen.total
    with results.open("a", encoding="utf-8") as lines:
        for repository in (path for path in repositories if path.name not in known):
            if time.monotonic() > until:
                break
            print(repository.name, file=sys.stderr, flush=True)
            rows.append(_measured(repository, chosen))
            print(json.dumps(rows[-1]), file=lines, flush=True)
    print("\n".join(_summary(rows, len(repositories))))


def _read(results: Path) -> list[Row]:
    """What has been measured already."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def _measured(repository: Path, chosen: argparse.Namespace) -> Row:
    """What becomes of one repository; why not, where it cannot be looked at."""
    paths = [str(repository)]
    requested = RequestedOptions(unsafe_fixes=not chosen.safe, python=chosen.python)
    begun = time.monotonic()
    options = driver.prepare(paths, requested)
    if not isinstance(options, Options):
        return {"repository": repository.name, "failed": options.message}
    report = driver.check(paths, options)
    checked = time.monotonic()
    rewrites: list[Row] = []
    if any(one.finding.fixes for one in report.findings):
        # The files are looked at once more, and the limit is for proofs.
        limit = TimeLimit.from_now(round(chosen.seconds + checked - begun))
        plan = driver.plan(paths, _proving(paths, requested, limit))
        rewrites = [_rewrite(tried) for tried in _by_finding(plan)]
        _write_diffs(repository, plan, chosen.out)
    proved = time.monotonic()
    return {
        "repository": repository.name,
        **_found(report),
        "rewrites": rewrites,
        "seconds": {"check": round(checked - begun, 1), "proofs": round(proved - checked, 1)},
    }


def _proving(paths: list[str], requested: RequestedOptions, limit: TimeLimit) -> Options:
    """The options under which rewrites are proved."""
    limited = replace(requested, step_alone=StepsAlone.WRITTEN, time_limit=limit)
    options = driver.prepare(paths, limited)
    assert isinstance(options, Options)
    return options


def _found(report: Report) -> Row:
    coverage = report.coverage
    return {
        "files": report.checked,
        "problems": len(report.all_problems),
        "training steps": coverage.total,
        "followed": coverage.covered,
        "findings": len(report.findings),
        "with a fix": sum(one.fix is not None for one in report.findings),
        "codes": dict(Counter(one.finding.code for one in report.findings)),
    }


def _by_finding(plan: Plan) -> Iterator[list[Attempt]]:
    """The fixes that were tried, those for one finding together."""
    for file in plan.files:
        for _, tried in groupby(file.attempts, lambda one: (one.finding.code, one.finding.span)):
            yield list(tried)


def _rewrite(tried: list[Attempt]) -> Row:
    """What came of the fixes that were tried for one finding: of the best of them."""
    order = [Outcome.PROVED, Outcome.PROVED_ALONE, Outcome.REFUTED, Outcome.UNVERIFIED]
    best = min(tried, key=lambda one: order.index(one.outcome))
    evidence = best.evidence
    return {
        "code": best.finding.code,
        "effect": str(best.fix.effect),
        "outcome": _outcome(best),
        "executed": best.outcome is not Outcome.UNVERIFIED or bool(evidence is not None and evidence.checks),
        "reason": best.reason,
        "why no program": "" if evidence is None or evidence.alone is None else evidence.alone.why,
    }


def _outcome(attempt: Attempt) -> str:
    if attempt.outcome is Outcome.PROVED:
        made_up = attempt.evidence is not None and attempt.evidence.made_up
        return PROVED[1] if made_up else PROVED[0]
    if attempt.outcome is Outcome.PROVED_ALONE:
        return PROVED[2]
    return "refuted" if attempt.outcome is Outcome.REFUTED else "not checked"


def _write_diffs(repository: Path, plan: Plan, out: Path) -> None:
    """Each rewrite that is proved, or refuted, as a file for a reader."""
    for file in plan.files:
        for number, attempt in enumerate(file.attempts, start=1):
            outcome = _outcome(attempt)
            if outcome == "not checked":
                continue
            folder = out / ("refuted" if outcome == "refuted" else "proved")
            folder.mkdir(exist_ok=True)
            path = Path(file.path).relative_to(repository)
            name = f"{repository.name}--{stem(str(path))}-{number}-{attempt.finding.code}.diff"
            (folder / name).write_text(_shown(str(path), attempt, outcome), encoding="utf-8")


def _shown(path: str, attempt: Attempt, outcome: str) -> str:
    """What was found, what was seen, and the rewrite."""
    finding = attempt.finding
    seen = [] if attempt.evidence is None else attempt.evidence.lines()
    said = [
        f"{path}:{finding.span.line}: {finding.code}: {finding.message}",
        *(f"line {note.span.line}: {note.message}" for note in finding.notes),
        f"assumed: {finding.assumption}" if finding.assumption else "",
        f"{attempt.fix.message} ({attempt.fix.effect})",
        f"{outcome}: {attempt.reason}",
        *seen,
    ]
    versions = (text.splitlines(keepends=True) for text in (attempt.before, attempt.after))
    lines = [
        line if line.endswith("\n") else f"{line}\n" for line in unified_diff(*versions, path, path, n=12)
    ]
    return "".join(f"# {line}\n" for line in said if line) + "".join(lines)


# ---------------------------------------------------------------------------- the sums


def _summary(rows: list[Row], known: int) -> Iterator[str]:
    """The figures, each stage out of the one before it."""
    looked = [row for row in rows if "failed" not in row]
    rewrites = [one for row in looked for one in row["rewrites"]]
    outcomes = Counter(one["outcome"] for one in rewrites)

    def total(key: str) -> int:
        return sum(row[key] for row in looked)

    yield f"{len(rows)} of {known} repositories, {len(rows) - len(looked)} of them could not be looked at"
    yield f"{total('files'):6} files, {total('problems')} problems"
    yield f"{total('followed'):6} of {total('training steps')} training steps followed"
    yield f"{total('findings'):6} findings"
    yield f"{len(rewrites):6} rewrites offered"
    yield f"{sum(one['executed'] for one in rewrites):6} executed before and after"
    yield f"{sum(outcomes[kind] for kind in PROVED):6} proved"
    yield from (f"{outcomes[kind]:12} {kind}" for kind in PROVED)
    yield f"{outcomes['refuted']:6} refuted"
    yield f"{outcomes['not checked']:6} not checked"
    unchecked = [one for one in rewrites if one["outcome"] == "not checked"]
    yield "   why the program does not show it:"
    yield from _counted(one["why no program"] or one["reason"] for one in unchecked)
    alone = [one["reason"].partition("; the step alone: ")[2] for one in unchecked]
    yield "   why the step alone does not show it:"
    yield from _counted(reason for reason in alone if reason)
    yield "   wrong ones among the proved: for a reader of the diffs to say"
    seconds = Counter[str]()
    for row in looked:
        seconds.update(row["seconds"])
    yield f"{seconds['check']:.0f} s to find, {seconds['proofs']:.0f} s to prove"


def _counted(reasons: Iterable[str]) -> Iterator[str]:
    """How often each kind of reason is given, the most frequent first."""
    counted = Counter(map(_kind, reasons))
    yield from (f"{number:12} {kind}" for kind, number in counted.most_common())


KINDS = (
    ("--seconds", "the time for the repository was over"),
    ("the time for this file is up", "the time for the file was over"),
    ("is not installed", "a package is not installed"),
    ("is the project's own", "a module of the project is not found"),
    ("imports from the package around it", "it is run as a script, and is a module"),
    ("backward() was never called", "nothing calls the training"),
    ("which is not there", "a file is missing"),
    ("reach the network", "it wants the network"),
    ("an accelerator", "it wants an accelerator"),
    ("the script requires", "it wants arguments"),
    ("reads its arguments", "it wants arguments"),
)
"""What reasons say, and what they are counted as."""


def _kind(reason: str) -> str:
    """The kind of a reason, without names of the program."""
    if (known := next((kind for sign, kind in KINDS if sign in reason), None)) is not None:
        return known
    if (raised := re.search(r"raised (\w+)", reason)) is not None:
        return f"it raised {raised[1]}"
    plain = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\bline \d+|\d+", "...", reason)
    return re.split(r"[:;(]", plain)[0].strip()[:90]


if __name__ == "__main__":
    main()
