"""The words of a pull request: title, body and commit message, from rewrites that were made again.

Findings, lines and diffs are gradfix's own; of the plan's certificates only text is used, and every text
that comes from a repository or a certificate goes through :mod:`gradfix.bot.markdown`. The same rewrites
give the same words: there is no date and no time in them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gradfix import __version__
from gradfix.bot import picture, state
from gradfix.bot.config import REBUILD, BotConfig
from gradfix.bot.markdown import cell, code, fence, one_line, plain, prose, unlinked
from gradfix.bot.replay import Rewritten, Step
from gradfix.codemod import Effect
from gradfix.report.excerpt import excerpt
from gradfix.results import Outcome

LIMIT = 60_000
"""Characters of a body: GitHub takes 65,536."""
TITLE = 72
_SHOWN = 8
"""Rewrites that are explained in full; the others are in the table."""
_CHECKS = 40
"""Checks of one certificate that are shown."""
_UNFOLDED = 8
"""With more checks than this, they are to be unfolded."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a pull request says."""

    title: str
    body: str
    """With its marker."""
    message: str
    """Of the commit, without the seal."""
    keys: tuple[state.Key, ...]
    facts: str
    """What must change for the body to be written anew; see :class:`state.Marker`."""


def words(files: Sequence[Rewritten], base: str, proved_at: str, settings: BotConfig) -> Words:
    """What the pull request with ``files`` says.

    Args:
        files: What it rewrites.
        base: The commit that it is built on.
        proved_at: The commit at which both versions were run; in it, ``files`` are the same.
        settings: Who commits, and how.
    """
    steps = [(file, step) for file in files for step in file.steps]
    keys = tuple(sorted({step.key for _, step in steps}))
    title = title_of(steps)
    body = _fitting(steps, base, proved_at)
    facts = _facts([step for _, step in steps], base, proved_at)
    return Words(
        title, state.marked(title, body, keys, facts), _message(title, steps, keys, settings), keys, facts
    )


def _facts(steps: Sequence[Step], base: str, proved_at: str) -> str:
    """A digest of what a reviewer would want to be told anew: the commits, outcomes and verdicts."""
    told = [__version__, base, proved_at]
    for step in steps:
        checks = _items((step.rewrite.certificate or {}).get("checks"))
        verdicts = [f"{one.get('name')} {one.get('subject')} {one.get('verdict')}" for one in checks]
        told += [step.key.digest, step.rewrite.outcome, *sorted(verdicts)]
    return state.digest_of("\n".join(told))


# ---------------------------------------------------------------------------- title and commit


def title_of(steps: Sequence[tuple[Rewritten, Step]]) -> str:
    """A conventional title: ``fix(train): detach fake``."""
    effects = {step.attempt.fix.effect for _, step in steps}
    kind = "perf" if effects == {Effect.PRESERVES} else "fix"
    paths = list(dict.fromkeys(file.path for file, _ in steps))
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", PurePosixPath(paths[0]).stem).strip("-")[:30]
    scope = f"({unlinked(stem)})" if len(paths) == 1 and stem else ""
    where = "" if scope else f" in {_count(len(paths), 'file')}"
    codemods = {step.attempt.finding.code for _, step in steps}
    if len(steps) == 1:
        what = plain(steps[0][1].attempt.fix.message)
    elif len(codemods) == 1:
        what = f"{codemods.pop().replace('-', ' ')}, {_count(len(steps), 'time')}"
    else:
        what = _count(len(steps), "gradient mistake")
    return one_line(f"{kind}{scope}: {what}{where}", TITLE)


def _message(
    title: str, steps: Sequence[tuple[Rewritten, Step]], keys: Iterable[state.Key], settings: BotConfig
) -> str:
    told = []
    for file, step in steps:
        place = f"{file.path}, line {step.attempt.finding.span.line}"
        told += [f"{plain(place)}: {plain(step.attempt.finding.message)}", ""]
    sign = f"Signed-off-by: {settings.author}\n" if settings.sign_off else ""
    lines = "\n".join(told[:100]).rstrip()
    return f"{title}\n\n{lines}\n\n{sign}{state.trailers(keys)}"


# ---------------------------------------------------------------------------- the body


def _fitting(steps: Sequence[tuple[Rewritten, Step]], base: str, proved_at: str) -> str:
    """The body with as many rewrites explained in full as there is room for."""
    for shown in range(min(len(steps), _SHOWN), 0, -1):
        body = "\n\n".join(_parts(steps, base, proved_at, shown))
        if len(body) <= LIMIT:
            return body
    return "\n\n".join(_parts(steps, base, proved_at, 0))[:LIMIT]


def _parts(steps: Sequence[tuple[Rewritten, Step]], base: str, proved_at: str, shown: int) -> Iterator[str]:
    yield _lead(steps)
    for number, (file, step) in enumerate(steps[:shown]):
        yield from _why(file, step, numbered=number + 1 if len(steps) > 1 else None)
    if len(steps) > 1:
        yield "### All changes"
        yield _table(steps)
    if shown < len(steps):
        rest = len(steps) - shown
        yield f"{_count(rest, 'change')} {'is' if rest == 1 else 'are'} not explained above."
    yield "### What running it showed"
    for number, (file, step) in enumerate(steps[:shown] or steps[:1]):
        yield from _certificate(file, step, numbered=number + 1 if len(steps) > 1 else None)
    if proved_at != base:
        same = (
            "the rewritten file is"
            if len({file.path for file, _ in steps}) == 1
            else "the rewritten files are"
        )
        yield f"This was run at {proved_at}. The base branch has moved since; {same} the same in both."
    yield "### What was not checked"
    yield _unchecked([step for _, step in steps[:shown]])
    yield "### Does it behave differently?"
    yield _behaviour(steps)
    yield "### Check it yourself"
    yield _commands(steps, proved_at)
    yield "### Say no"
    yield _refusal(steps)


def _lead(steps: Sequence[tuple[Rewritten, Step]]) -> str:
    paths = list(dict.fromkeys(file.path for file, _ in steps))
    where = code(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    proved = sum(step.rewrite.outcome is Outcome.PROVED for _, step in steps)
    what = f"This fixes {_count(len(steps), 'gradient mistake')} in {where}."
    if proved == len(steps):
        each = "The rewrite is" if proved == 1 else "Every rewrite is"
        made_up = any("made-up" in one for _, step in steps for one in _standins(step))
        how = " with made-up data" if made_up else ""
        why = ", since the real data is not here" if made_up else ""
        return (
            f"{what} {each} **proved{how}**: both versions were run{why}, and what every optimizer consumed "
            "was compared."
        )
    left = len(steps) - proved
    some = "It has" if len(steps) == 1 else f"{left} of them have"
    return f"{what} **{some} not been verified by running the code**; the reason is given below."


def _why(file: Rewritten, step: Step, numbered: int | None) -> Iterator[str]:
    number = f"{numbered}. " if numbered else ""
    yield f"### {number}What was wrong"
    yield f"{code(file.path)}: {prose(step.attempt.finding.message)}."
    yield fence(_excerpt(step), "text")
    yield f"The change: {prose(step.attempt.fix.message)}."
    yield fence(_diff(step, file.path), "diff")
    drawn = picture.draw(step.before, step.after)
    if drawn is not None:
        yield (
            "Which loss feeds which optimizer. Dotted: its gradient gets there and is not used. Red: raises, "
            "or goes. Green: comes."
        )
        yield drawn


def _excerpt(step: Step) -> str:
    """The lines that the finding speaks of, marked."""
    rows = excerpt(step.before.lines, step.attempt.finding)
    width = len(str(max((row.number or 0 for row in rows), default=0)))
    return "\n".join(f"{row.number or '':>{width}} | {row.text}".rstrip() for row in rows)


def _diff(step: Step, path: str) -> str:
    from gradfix.patch import unified_diff

    return unified_diff(path, step.before.data, step.after.data).decode("utf-8", "replace")


def _table(steps: Sequence[tuple[Rewritten, Step]]) -> str:
    rows = ["| where | mistake | change | effect | outcome |", "|---|---|---|---|---|"]
    for file, step in steps[:100]:
        place = code(f"{file.path}:{step.attempt.finding.span.line}", 120)
        fix = step.attempt.fix
        row = (
            place,
            code(step.attempt.finding.code),
            prose(fix.message, 120),
            fix.effect,
            step.rewrite.outcome,
        )
        rows.append(f"| {' | '.join(cell(item) for item in row)} |")
    if len(steps) > 100:
        rows.append(f"| {len(steps) - 100} more | | | | |")
    return "\n".join(rows)


# ---------------------------------------------------------------------------- certificates


def _certificate(file: Rewritten, step: Step, numbered: int | None) -> Iterator[str]:
    if numbered:
        yield f"**{numbered}. {code(file.path)}**"
    if step.rewrite.outcome is not Outcome.PROVED:
        reason = step.rewrite.reason or "verification was switched off"
        yield f"Not verified: {prose(reason, 300)}."
    certificate = step.rewrite.certificate or {}
    runs = _items(certificate.get("runs"))
    by_version = {str(run.get("version")): run for run in reversed(runs)}
    shown = [(name, by_version[name]) for name in ("before", "after") if name in by_version]
    if shown:
        rows = [f"| {name} | {cell(prose(str(run.get('summary', ''))))} |" for name, run in shown]
        yield "\n".join(["| version | what happened |", "|---|---|", *rows])
    if standins := _standins(step):
        yield "In both versions, this was made up, reduced or replaced:"
        yield "\n".join(f"- {prose(one, 200)}" for one in standins[:_CHECKS])
    checks = [one for one in _items(certificate.get("checks")) if one.get("verdict") != "not checked"]
    if checks:
        yield from _checks(checks)
    if told := _conditions(certificate):
        yield told


def _standins(step: Step) -> list[str]:
    """What took the place of what the runs did not have."""
    told = (step.rewrite.certificate or {}).get("standins")
    return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []


def _checks(checks: Sequence[dict[str, Any]]) -> Iterator[str]:
    listed = "\n".join(_check(one) for one in checks[:_CHECKS])
    if len(checks) <= _UNFOLDED:
        yield listed
        return
    held = sum(one.get("verdict") == "holds" for one in checks)
    yield f"<details><summary>{held} of {len(checks)} checks hold</summary>"
    yield listed
    if len(checks) > _CHECKS:
        yield f"and {len(checks) - _CHECKS} more."
    yield "</details>"


def _check(one: dict[str, Any]) -> str:
    verdict = one.get("verdict")
    mark = "holds" if verdict == "holds" else f"**{prose(str(verdict), 20)}**"
    return f"- {mark}: {prose(str(one.get('detail', '')))}"


def _conditions(certificate: dict[str, Any]) -> str:
    """Under which conditions it was run."""
    parts = []
    for name, key in (("Python", "python"), ("torch", "torch"), ("sandbox", "sandbox")):
        value = certificate.get(key)
        if isinstance(value, str) and value:
            parts.append(
                f"{name} {code(value, 200)}" if name != "sandbox" else f"{name}: {prose(value, 300)}"
            )
    seeds = certificate.get("seeds")
    if isinstance(seeds, list) and seeds:
        parts.append(f"seeds {', '.join(str(seed) for seed in seeds[:10] if isinstance(seed, int))}")
    return f"Run with {'; '.join(parts)}." if parts else ""


def _items(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _unchecked(steps: Sequence[Step]) -> str:
    told: dict[str, None] = {}
    for step in steps:
        for one in _items((step.rewrite.certificate or {}).get("checks")):
            if one.get("verdict") == "not checked":
                told[prose(str(one.get("detail", "")))] = None
    told["Whether the model learns well: only which gradients reach which optimizer, at the first steps."] = (
        None
    )
    return "\n".join(f"- {item}" for item in list(told)[-20:])


# ---------------------------------------------------------------------------- the rest

_BEHAVIOUR = {
    Effect.PRESERVES: "No. Every gradient that an optimizer consumes stays equal.",
    Effect.REPAIRS: "Up to where the script stops working today, nothing changes. From there on, it works.",
    Effect.CHANGES: "**Yes.** The script runs today, and this changes what it learns: results of earlier "
    "runs will not come out again.",
}


def _behaviour(steps: Sequence[tuple[Rewritten, Step]]) -> str:
    effects = [effect for effect in Effect if any(step.attempt.fix.effect is effect for _, step in steps)]
    if len(effects) == 1:
        return _BEHAVIOUR[effects[0]]
    return "\n".join(f"- {effect}: {_BEHAVIOUR[effect]}" for effect in effects)


def _commands(steps: Sequence[tuple[Rewritten, Step]], base: str) -> str:
    names = ",".join(sorted({step.attempt.finding.code for _, step in steps}))
    paths = list(dict.fromkeys(file.path for file, _ in steps))
    # What looks like an option is none with a folder before it.
    quoted = " ".join(shlex.quote(f"./{path}" if path.startswith("-") else path) for path in paths[:10])
    unsafe = any(step.attempt.fix.effect is Effect.CHANGES for _, step in steps)
    flags = f"--select {names}{' --unsafe-fixes' if unsafe else ''}"
    commands = f"git checkout {base}\ngradfix verify {flags} {quoted}"
    told = f"With gradfix {__version__}, which runs both versions again and prints the evidence:"
    return f"{told}\n\n{fence(commands, 'sh')}"


def _refusal(steps: Sequence[tuple[Rewritten, Step]]) -> str:
    name = steps[0][1].attempt.finding.code
    return "\n".join(
        [
            "- Close this pull request: what it holds will not be proposed again.",
            f"- Or write {code(f'# gradfix: ignore[{name}]')} behind the line: nobody will hear of it again.",
            "- Or push to this branch what you would rather have. Then gradfix leaves it alone, unless you "
            f"add the label `{REBUILD}`: that has it rebuild the branch, without your commits.",
        ]
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---------------------------------------------------------------------------- comments

SETTLED = "<!-- gradfix:settled -->"


def settled_comment(base: str) -> str:
    """What is said when the base branch has no such mistake any more."""
    return (
        f"The base branch (at {base}) does not have this mistake any more, or says that it is not to be "
        "reported. So there is nothing left to merge: gradfix closes this and deletes its branch.\n\n"
        f"{SETTLED}\n"
    )


def rebuilt_comment(replaced: str) -> str:
    """What is said when a person has asked for a branch to be rebuilt."""
    return (
        f"Rebuilt as the label `{REBUILD}` asks. The branch was at {replaced} before.\n\n"
        f"<!-- gradfix:rebuilt {replaced} -->\n"
    )
