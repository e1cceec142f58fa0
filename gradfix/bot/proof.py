"""How sure a rewrite is: its outcome with all that its runs had to do without, and the evidence.

Of a certificate only text is used, and none of it as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gradfix.bot import picture
from gradfix.bot.markdown import cell, code, prose
from gradfix.bot.plan import Rewrite
from gradfix.bot.replay import ReplayedRewrite
from gradfix.pipeline.results import Outcome

_CHECKS = 40
"""Checks of one certificate that are shown."""


def outcome_of(rewrite: Rewrite) -> str:
    """What became of a rewrite, in a few words, with what a proof had to do without: ``proved with made-up
    data``."""
    if rewrite.outcome is Outcome.PROVED_ALONE:
        return str(rewrite.outcome)
    if rewrite.outcome is not Outcome.PROVED:
        return "not verified"
    return f"proved{without(rewrite)}"


def without(rewrite: Rewrite) -> str:
    """What the runs had instead of the real thing, as `` with made-up data``; empty if they had that."""
    described = standins(rewrite)
    kinds = {
        "made-up data": any("made-up" in one for one in described),
        "smaller batches": any(one.startswith("batches of ") for one in described),
        "replacements": any("made-up" not in one and not one.startswith("batches of ") for one in described),
        "no values computed": _is_dataless(rewrite),
    }
    found = [name for name, holds in kinds.items() if holds]
    return f" with {_listed(found)}" if found else ""


def standins(rewrite: Rewrite) -> list[str]:
    """What was made up, reduced or replaced, since the runs did not have it."""
    described = (rewrite.certificate or {}).get("standins")
    return [one for one in described if isinstance(one, str)] if isinstance(described, list) else []


def _is_dataless(rewrite: Rewrite) -> bool:
    """Whether the versions were too large for a full run, and only shapes and hashes were compared."""
    runs = items((rewrite.certificate or {}).get("runs"))
    return any(str(run.get("version")).endswith("without data") for run in runs)


def proof(step: ReplayedRewrite) -> Iterator[str]:
    rewrite = step.rewrite
    outcome = outcome_of(rewrite)
    if rewrite.outcome is Outcome.PROVED_ALONE:
        yield f"**Proved for the step alone**, with what it is handed made up: {prose(rewrite.reason, 500)}."
    elif rewrite.outcome is not Outcome.PROVED:
        reason = rewrite.reason or "verification was switched off"
        yield f"**Not verified by running the code**: {prose(reason, 300)}."
    else:
        yield (
            f"**{outcome[:1].upper()}{outcome[1:]}:** the script was run before and after, and the gradients "
            "that reach each optimizer were compared, step by step."
        )
    if described := standins(rewrite):
        yield "In both runs, this took the place of the real thing:"
        more = [f"- and {len(described) - _CHECKS} more"] if len(described) > _CHECKS else []
        yield "\n".join([*(f"- {prose(one, 200)}" for one in described[:_CHECKS]), *more])
    checks = items((rewrite.certificate or {}).get("checks"))
    counts = [(sum(one.get("verdict") == kind for one in checks), kind) for kind in ("holds", "not checked")]
    (held, _), (left, _) = counts
    parts = [f"{count(held, 'check')} {'holds' if held == 1 else 'hold'}"] if held else []
    parts += [f"{left} could not be made"] if left else []
    title = f"Evidence: {', '.join(parts)}" if parts else "Evidence"
    if evidence := list(_evidence(step)):
        yield from folded(title, evidence)


def _evidence(step: ReplayedRewrite) -> Iterator[str]:
    certificate = step.rewrite.certificate or {}
    runs = items(certificate.get("runs"))
    by_version = {str(run.get("version")).partition(",")[0]: run for run in reversed(runs)}
    shown = [(name, by_version[name]) for name in ("before", "after") if name in by_version]
    if shown:
        rows = [f"| {name} | {cell(prose(str(run.get('summary', ''))))} |" for name, run in shown]
        yield "\n".join(["| version | what happened |", "|---|---|", *rows])
    checks = items(certificate.get("checks"))
    if checks:
        yield "\n".join(_check(one) for one in checks[:_CHECKS])
    if len(checks) > _CHECKS:
        yield f"and {len(checks) - _CHECKS} more."
    if checks:
        yield (
            "Not checked is whether the model learns well: only which gradients reach which optimizer, at "
            "the first steps."
        )
    drawn = picture.draw(step.before, step.after)
    if drawn is not None:
        yield (
            "Which optimizer gets gradients from which loss. Dotted arrows are gradients that are never "
            "used; red is what raises or goes away, green what is new."
        )
        yield drawn
    if described := _conditions(certificate):
        yield described


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


def items(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def folded(summary: str, parts: Iterable[str]) -> Iterator[str]:
    """Paragraphs that are to be unfolded."""
    yield f"<details><summary>{summary}</summary>"
    yield from parts
    yield "</details>"


def count(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
