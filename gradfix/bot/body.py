"""The words of a pull request: title, body and commit message, from rewrites that were made again.

Findings and lines are gradfix's own; of the plan's certificates only text is used, and every text that comes
from a repository or a certificate goes through :mod:`gradfix.bot.markdown`. The same rewrites give the same
words: there is no date and no time in them. The change itself is not in them, for every forge shows it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gradfix import __version__
from gradfix.bot import state
from gradfix.bot.advice import behaviour, choice, predicted, why
from gradfix.bot.config import REBUILD, BotConfig
from gradfix.bot.markdown import cell, code, fence, one_line, plain, prose, unlinked
from gradfix.bot.plan import PlanFile
from gradfix.bot.proof import count, folded, items, outcome_of, proof, standins, without
from gradfix.bot.replay import ReplayedRewrite, Rewritten
from gradfix.core.codemod import Effect, Severity
from gradfix.pipeline.results import Outcome
from gradfix.report.excerpt import excerpt

LIMIT = 60_000
"""Characters of a body: GitHub takes 65,536."""
TITLE = 72
_SHOWN = 8
"""Rewrites that are explained in full; the others are in the table."""


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
    patch: str = ""
    """The change, for who cannot see it on the forge yet."""


def words(
    files: Sequence[Rewritten], base: str, plan: PlanFile, settings: BotConfig, gradfix_url: str | None = None
) -> Words:
    """What the pull request with ``files`` says.

    Args:
        files: What it rewrites.
        base: The commit that its branch is built on.
        plan: Where and how both versions were run; in the commit that it is for, ``files`` are the same.
        settings: Who commits, and how.
        gradfix_url: The address of gradfix's own repository, if it is known.
    """
    steps = [(file, step) for file in files for step in file.steps]
    keys = tuple(sorted({step.key for _, step in steps}))
    title = title_of(steps)
    body = _fitting(steps, base, plan, gradfix_url)
    facts = _facts([step for _, step in steps], base)
    message = _message(title, steps, keys, settings)
    patch = "".join(step.rewrite.diff for _, step in steps)
    return Words(title, state.marked(title, body, keys, facts), message, keys, facts, patch)


def _facts(steps: Sequence[ReplayedRewrite], base: str) -> str:
    """A digest of what a reviewer would want to be told anew: outcomes, verdicts, what was made up, and what
    the branch is built on."""
    wording = [base]
    for step in steps:
        checks = items((step.rewrite.certificate or {}).get("checks"))
        verdicts = [f"{one.get('name')} {one.get('subject')} {one.get('verdict')}" for one in checks]
        wording += [step.key.digest, step.rewrite.outcome, *sorted(verdicts), *sorted(standins(step.rewrite))]
    return state.digest_of("\n".join(wording))


# ---------------------------------------------------------------------------- title and commit


def title_of(steps: Sequence[tuple[Rewritten, ReplayedRewrite]]) -> str:
    """A conventional title: ``fix(train): detach fake``."""
    effects = {step.attempt.fix.effect for _, step in steps}
    kind = "perf" if effects == {Effect.PRESERVES} else "fix"
    paths = list(dict.fromkeys(file.path for file, _ in steps))
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", PurePosixPath(paths[0]).stem).strip("-")[:30]
    scope = f"({unlinked(stem)})" if len(paths) == 1 and stem else ""
    where = "" if scope else f" in {count(len(paths), 'file')}"
    codemods = {step.attempt.finding.code for _, step in steps}
    if len(steps) == 1:
        what = plain(steps[0][1].attempt.fix.message)
    elif len(codemods) == 1:
        what = f"{codemods.pop().replace('-', ' ')}, {count(len(steps), 'time')}"
    else:
        what = count(len(steps), "gradient mistake")
    return one_line(f"{kind}{scope}: {what}{where}", TITLE)


def _message(
    title: str,
    steps: Sequence[tuple[Rewritten, ReplayedRewrite]],
    keys: Iterable[state.Key],
    settings: BotConfig,
) -> str:
    wording = []
    for file, step in steps:
        place = f"{file.path}, {step.before.layout.words(step.attempt.finding.span.line)}"
        wording += [f"{plain(place)}: {plain(step.attempt.finding.message)}", ""]
    sign = f"Signed-off-by: {settings.author}\n" if settings.sign_off else ""
    lines = "\n".join(wording[:100]).rstrip()
    return f"{title}\n\n{lines}\n\n{sign}{state.trailers(keys)}"


# ---------------------------------------------------------------------------- the body


def _fitting(
    steps: Sequence[tuple[Rewritten, ReplayedRewrite]], base: str, plan: PlanFile, gradfix_url: str | None
) -> str:
    """The body with as many rewrites explained in full as there is room for."""
    check = [_commands(steps, plan, gradfix_url), *_moved_on(steps, base, plan)]
    end = [*folded("Check it yourself", check), "---", _footer(steps, gradfix_url)]
    for shown in range(min(len(steps), _SHOWN), 0, -1):
        body = "\n\n".join([*_parts(steps, shown), *end])
        if len(body) <= LIMIT:
            return body
    return "\n\n".join([*_parts(steps, 0), *end])[:LIMIT]


def _parts(steps: Sequence[tuple[Rewritten, ReplayedRewrite]], shown: int) -> Iterator[str]:
    if len(steps) > 1:
        yield _summary(steps)
        yield _table(steps)
    for number, (file, step) in enumerate(steps[:shown], 1):
        if len(steps) > 1:
            at = step.before.layout.words(step.attempt.finding.span.line)
            yield f"### {number}. {code(file.path)}, {at}"
        yield from _explained(file, step)
    if 0 < shown < len(steps):
        rest = len(steps) - shown
        yield f"{count(rest, 'more change')} {'is' if rest == 1 else 'are'} only in the table."


def _summary(steps: Sequence[tuple[Rewritten, ReplayedRewrite]]) -> str:
    paths = list(dict.fromkeys(file.path for file, _ in steps))
    where = code(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    outcomes = [outcome_of(step.rewrite) for _, step in steps]
    wording = ", ".join(f"{outcomes.count(one)} {one}" for one in dict.fromkeys(outcomes))
    if len(set(outcomes)) == 1:
        wording = f"{'both' if len(steps) == 2 else f'all {len(steps)}'} {outcomes[0]}"
    return f"This fixes {len(steps)} gradient mistakes in {where}: **{wording}**."


def _table(steps: Sequence[tuple[Rewritten, ReplayedRewrite]]) -> str:
    rows = ["| where | mistake | severity | fix | effect | outcome |", "|---|---|---|---|---|---|"]
    for file, step in steps[:100]:
        at = step.before.layout.place(step.attempt.finding.span.line)
        place = code(f"{file.path}:{at}", 120)
        fix = step.attempt.fix
        mistake = code(step.attempt.finding.code)
        severity = _severity(step)
        row = (place, mistake, severity, prose(fix.message, 120), fix.effect, outcome_of(step.rewrite))
        rows.append(f"| {' | '.join(cell(item) for item in row)} |")
    if len(steps) > 100:
        rows.append(f"| {len(steps) - 100} more | | | | | |")
    return "\n".join(rows)


def _explained(file: Rewritten, step: ReplayedRewrite) -> Iterator[str]:
    """What happens, why, what mends it, and how sure that is."""
    finding, fix, at = step.attempt.finding, step.attempt.fix, step.before.layout
    said = _said(step)
    raises = "a line" if fix.claim.raises_line is None else at.words(fix.claim.raises_line)
    place = f"{raises} of {code(file.path)}"
    if said:
        yield f"{code(file.path)} stops with this error when it is run{without(step.rewrite)}:"
        yield f"> {code(said, 400)}"
    elif fix.claim.raises is not None:
        yield f"Going by the code, {place} will raise this error:"
        yield f"> {code(predicted(fix.claim.raises))}"
    where = "" if said or fix.claim.raises else f"{code(file.path)}, {at.words(finding.span.line)}: "
    yield f"{where}{_sentence(finding.message)} {why(fix)}"
    yield fence(_excerpt(step), "text")
    yield f"**Severity:** {_severity(step)} ({code(finding.code)})."
    wording = f"**The fix:** {prose(fix.message)}. {behaviour(fix)}"
    yield f"{wording}\n\n{other}" if (other := choice(finding.code)) else wording
    yield from proof(step)


def _severity(step: ReplayedRewrite) -> str:
    return str(step.attempt.finding.severity or Severity.ERROR)


def _said(step: ReplayedRewrite) -> str:
    """What autograd said when the original was run: its sentence, without hints."""
    runs = items((step.rewrite.certificate or {}).get("runs"))
    said = next((str(run.get("error") or "") for run in runs if run.get("version") == "before"), "")
    return re.split(r"\. (?:Saved intermediate|Specify retain_graph|Hint:)|\n", said)[0]


def _sentence(text: str) -> str:
    wording = prose(text)
    return f"{wording[:1].upper()}{wording[1:]}."


def _excerpt(step: ReplayedRewrite) -> str:
    """The lines that the finding speaks of, marked."""
    shown = step.before.layout
    rows = excerpt(shown.lines, step.attempt.finding)
    places = [shown.place(row.number) if row.number else "" for row in rows]
    width = max(map(len, places), default=0)
    return "\n".join(f"{place:>{width}} | {row.text}".rstrip() for place, row in zip(places, rows))


# ---------------------------------------------------------------------------- the rest


def _commands(
    steps: Sequence[tuple[Rewritten, ReplayedRewrite]], plan: PlanFile, gradfix_url: str | None
) -> str:
    """How to get gradfix, and the two commands that make the change and prove it again."""
    names = {step.attempt.finding.code for _, step in steps}
    paths = list(dict.fromkeys(file.path for file, _ in steps))
    # What looks like an option is none with a folder before it.
    named = [f"./{path}" if path.startswith("-") else path for path in paths]
    unsafe = any(step.attempt.fix.effect is Effect.CHANGES for _, step in steps)
    proved = all(step.rewrite.outcome is Outcome.PROVED for _, step in steps)
    flags = ["--select", ",".join(sorted(names)), *(["--unsafe-fixes"] if unsafe else [])]
    flags += [] if proved else ["--unproved"]
    flags += [f"--script={plan.command.script}"] if plan.command.script is not None else []
    flags += ["-m", plan.command.module] if plan.command.module is not None else []
    arguments = ["--", *plan.command.arguments] if plan.command.arguments else []
    words = [one_line(word) for word in ("gradfix", "apply", *flags, *named, *arguments)]
    commands = f"git checkout {plan.base}\n{shlex.join(words)}"
    planned = [
        one for one in plan.changes if one.path in paths and {r.codemod for r in one.rewrites} <= names
    ]
    whole = sum(len(one.rewrites) for one in planned) == len(steps)
    # Its exit code is about all that it finds there.
    alone = whole and not any(one.left for one in planned)
    what = "the same change" if whole else "this change, and more that is not proposed here,"
    ends = "; it ends with exit code 0 if everything is proved again" if proved and alone else ""
    clone = "`pip install .` in a clone of it"
    how = clone if gradfix_url is None else f"`pip install {shlex.quote(f'gradfix @ git+{gradfix_url}')}`"
    wording = (
        f"gradfix {__version__} is installed, into any environment, with {how}. Two commands then make "
        f"{what} and run the script before and after{ends}:"
    )
    return f"{wording}\n\n{fence(commands, 'sh')}"


def _moved_on(steps: Sequence[tuple[Rewritten, ReplayedRewrite]], base: str, plan: PlanFile) -> Iterator[str]:
    """Where both versions were run at another commit than the branch is built on: that it is the same."""
    if plan.base != base:
        files = "file" if len({file.path for file, _ in steps}) == 1 else "files"
        yield f"This branch is built on {base}; merged into {plan.base}, it gives the same {files}."


def _footer(steps: Sequence[tuple[Rewritten, ReplayedRewrite]], gradfix_url: str | None) -> str:
    ignored = code(f"# gradfix: ignore[{steps[0][1].attempt.finding.code}]")
    name = "gradfix" if gradfix_url is None else f"[gradfix]({gradfix_url})"
    return (
        f"Opened by **{name}**, which looks for gradient mistakes in PyTorch training code and runs the "
        "script before and after each fix. **Not wanted?** Close this, and it will not be proposed again; "
        f"{ignored} at the end of the line silences it for good. If you push commits to this branch, gradfix "
        f"leaves it alone; the label `{REBUILD}` rebuilds it without them."
    )


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
