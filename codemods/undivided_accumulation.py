"""A step comes after several micro-batches, and their losses are not divided by their number.
The gradient is that many times larger, as with a larger learning rate.

    for i, (x, y) in enumerate(batches):          for i, (x, y) in enumerate(batches):
        loss = mse_loss(net(x), y)                    loss = mse_loss(net(x), y)
        loss.backward()                     =>        (loss / 4).backward()
        if (i + 1) % 4 == 0:                          if (i + 1) % 4 == 0:
            optimizer.step()                              optimizer.step()
            optimizer.zero_grad()                         optimizer.zero_grad()

Each loss is the mean over its micro-batch, and the gradients of four of them add up to four times that of
the mean over all. SGD then steps with four times the learning rate, a weight decay or a penalty counts for
less, and a bound for clipping for something else. Adam divides by the size of the gradients, and hardly
notices.

When not to fix it: where the learning rate was tuned for the sum.

Preconditions:

* the step waits for a fixed number of iterations of the loop that it stands in, and uses what one backward
  of each has computed;
* every term of the loss is a mean, as it is by default, and none is divided or multiplied; nothing in the
  file speaks of a `reduction`;
* nothing reads the gradients, and the learning rate is not divided either.

Nothing is rewritten: another learning rate mends it as well, and may have been chosen for that.

By hand: divide the loss by the number of iterations per step.

Effect: none.

Severity: info. The learning rate may have been chosen with it.
Clause: each loss once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.autograd.graph import Backward
from gradfix.autograd.model_ledger import ONE, multiples_of, operation
from gradfix.autograd.program import EntryPoint, Program
from gradfix.autograd.trace_queries import backwards, clipped_between
from gradfix.core.codemod import Finding, Severity
from gradfix.core.span import Span
from gradfix.rules.edits import note, receiver, stepped
from gradfix.rules.intent.accumulation import DelayedStep, delayed_steps

MEANS = frozenset(
    """mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss binary_cross_entropy
    binary_cross_entropy_with_logits kl_div mean nn.MSELoss nn.L1Loss nn.SmoothL1Loss nn.HuberLoss
    nn.CrossEntropyLoss nn.NLLLoss nn.BCELoss nn.BCEWithLogitsLoss""".split()
)
"""What takes the mean over a batch, unless it is told to do something else."""


def find(program: Program) -> Iterator[Finding]:
    """Report each sum of means over micro-batches that a step consumes."""
    if "reduction" in program.text or "size_average" in program.text:
        return
    reported: set[ast.AST] = set()
    for entry in program.entry_points:
        for one in delayed_steps(program, entry.run_without_options):
            if one.step.site not in reported and _undivided(entry, one):
                reported.add(one.step.site)
                yield _finding(program, one)


def _undivided(entry: EntryPoint, one: DelayedStep) -> bool:
    """Whether a loss is a sum of means, none of which is scaled, whichever way conditions go."""
    for run in entry.runs:
        if run.grad_reads or run.external_optimizers or clipped_between(run, -1):
            return False
        if not all(_plain(b) for b in backwards(run) if b.site is one.backward.site):
            return False
    made = one.step.optimizer.created
    if any(isinstance(node, ast.BinOp) for node in ast.walk(made)):
        return False  # The learning rate may be divided.
    return not (isinstance(one.window, ast.Constant) and one.window.value == 1)


def _plain(backward: Backward) -> bool:
    """Whether what is differentiated is a sum of means, as they are."""
    terms = multiples_of(backward)
    if not terms or not backward.certain or backward.failure is not None or backward.scaler is not None:
        return False
    return all(operation(node) in MEANS and factor == ONE for node, factor in terms)


def _finding(program: Program, one: DelayedStep) -> Finding:
    loss = receiver(program, one.backward)
    name, iterations = stepped(program, one.step.optimizer) or "the optimizer", program.segment(one.window)
    assert isinstance(one.backward.site, ast.Call)
    return Finding(
        "undivided-accumulation",
        f"`{name}` steps on the sum of `{iterations}` losses, and `{loss}` is not divided by `{iterations}`",
        Span.of(one.backward.site),
        (
            note(one.backward.site, "every iteration adds the gradient of a mean over its own batch"),
            note(one.step.site, f"this step runs once every `{iterations}` iterations"),
        ),
        severity=Severity.INFO,
        advice=f"backpropagate `{loss} / {iterations}`",
    )
