"""Which loss feeds which optimizer, before and after, as a picture in Mermaid's language.

It is drawn from the static model: nothing is run for it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from gradfix.autograd.graph import Backward
from gradfix.autograd.program import Program, analyze
from gradfix.autograd.run import Run
from gradfix.autograd.trace_queries import backwards, steps
from gradfix.bot import markdown
from gradfix.project.source import Source
from gradfix.rules.edits import stepped

MOST = 12
"""A picture with more arrows than this explains nothing."""

_ERRORS = {
    "E1": "raises: its graph was freed",
    "E2": "raises: a value that it needs was modified",
    "E3": "raises: it has no graph",
}


@dataclass(frozen=True, slots=True)
class Diagram:
    """What the model sees in one version: arrows from losses to optimizers, and losses that raise."""

    arrows: tuple[tuple[str, str], ...]
    """What an optimizer consumes."""
    strays: tuple[tuple[str, str], ...]
    """What reaches an optimizer's parameters and is never consumed."""
    raises: tuple[tuple[str, str], ...]
    """A loss, and the kind of the error."""


def draw(before: Source, after: Source) -> str | None:
    """The picture as a fenced block; ``None`` if there is nothing to see."""
    old, new = flow_of(before), flow_of(after)
    if old == new or not all(0 < len(flow.arrows) + len(flow.strays) <= MOST for flow in (old, new)):
        return None
    lines = ["flowchart LR"]
    styles: list[str] = []
    count = 0
    for name, flow, other in (("before", old, new), ("after", new, old)):
        lines += [f"  subgraph {name}", "    direction LR"]
        arrows = [*flow.arrows, *flow.strays]
        names = dict.fromkeys([loss for loss, _ in (*arrows, *flow.raises)])
        losses = {loss: f"{name}_l{number}" for number, loss in enumerate(names)}
        optimizers = {
            optimizer: f"{name}_o{number}"
            for number, optimizer in enumerate(dict.fromkeys(optimizer for _, optimizer in arrows))
        }
        raises = dict(flow.raises)
        for loss, node in losses.items():
            error = _ERRORS.get(raises.get(loss, ""), "")
            lines.append(f"    {node}[{markdown.label(f'{loss}: {error}' if error else loss, 80)}]")
            styles += [f"  style {node} stroke:#cf222e,stroke-width:2px"] if error else []
        lines += [f"    {node}([{markdown.label(optimizer)}])" for optimizer, node in optimizers.items()]
        for loss, optimizer in arrows:
            stray = (loss, optimizer) in flow.strays
            lines.append(f"    {losses[loss]} {'-.->' if stray else '-->'} {optimizers[optimizer]}")
            if (loss, optimizer) not in (other.strays if stray else other.arrows):
                colour = "#cf222e" if name == "before" else "#1a7f37"
                styles.append(f"  linkStyle {count} stroke:{colour},stroke-width:3px")
            count += 1
        lines.append("  end")
    return markdown.fence("\n".join([*lines, *styles]), "mermaid")


def flow_of(version: Source) -> Diagram:
    """What the model sees in ``version``, in the main run of each way into it."""
    from pathlib import Path

    program = analyze(version.tree, version.text, Path(version.path))
    arrows: dict[tuple[str, str], None] = {}
    strays: dict[tuple[str, str], None] = {}
    raises: dict[str, str] = {}
    for entry in program.entry_points:
        run = entry.runs[0]
        arrows |= dict.fromkeys(_arrows(program, run))
        for backward in backwards(run):
            strays |= dict.fromkeys(_reached(program, run, backward))
            if backward.failure is not None:
                raises.setdefault(_called(program, backward.receivers), backward.failure.kind)
    return Diagram(
        tuple(sorted(arrows)), tuple(sorted(strays.keys() - arrows)), tuple(sorted(raises.items()))
    )


def _arrows(program: Program, run: Run) -> list[tuple[str, str]]:
    found = []
    for step in steps(run):
        optimizer = stepped(program, step.optimizer) or step.optimizer.label
        for consumed in step.consumed.values():
            sure = [backward for backward, (certain, _) in consumed.items() if certain]
            found += [(_called(program, backward.receivers), optimizer) for backward in sure]
    return found


def _reached(program: Program, run: Run, backward: Backward) -> list[tuple[str, str]]:
    """The optimizers whose parameters get a gradient of ``backward``."""
    if not backward.accumulates:
        return []
    sure = {leaf for leaf, certain in backward.reached.items() if certain}
    owners = [optimizer.state for optimizer in run.optimizers if not sure.isdisjoint(optimizer.state.owned())]
    loss = _called(program, backward.receivers)
    return [(loss, stepped(program, owner) or owner.label) for owner in owners]


def _called(program: Program, receivers: Sequence[ast.expr]) -> str:
    return ", ".join(program.segment(receiver) for receiver in receivers) or "?"
