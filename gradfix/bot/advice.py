"""Advice for reviewers who do not know a mistake: the same for every repository."""

from __future__ import annotations

from gradfix.core.codemod import Effect, Fix

_ERRORS = {
    "E1": "RuntimeError: Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed)",
    "E2": "RuntimeError: one of the variables needed for gradient computation has been modified by an "
    "inplace operation",
    "E3": "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "E4": "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation",
    "E5": "RuntimeError: Output 0 of UnbindBackward0 is a view and is being modified inplace",
}

_WHY = {
    "E1": "Autograd frees a graph once a backward has gone through it, so a second one through it fails.",
    "E2": "Autograd computes a gradient from values that the forward has saved, and raises if they have "
    "been modified.",
    "E3": "Autograd computes gradients only through what was computed from tensors that require grad.",
    "E4": "A leaf tensor that requires grad may be modified in place only under `no_grad`.",
    "E5": "Autograd cannot record that one of several views of a tensor is modified in place.",
}

_SILENT = {
    Effect.PRESERVES: "The gradients are right; memory and time are wasted.",
    Effect.REPAIRS: "No error is raised: the step just has no gradient to work with.",
    Effect.CHANGES: "No error is raised: only the results show it.",
}

_BEHAVIOUR = {
    Effect.PRESERVES: "What the script learns stays the same.",
    Effect.REPAIRS: "Up to the point where it fails today, nothing changes; from there on, it trains.",
    Effect.CHANGES: "**This changes what the script learns:** earlier results will not come out again.",
}

_CHOICES = {
    "carried-hidden-state": "**This is a choice.** With the state detached, learning does not reach back "
    "beyond one iteration of the loop (truncated backpropagation through time). If it is meant to reach "
    "further, add up the losses of several iterations instead, call `backward` once for their sum, and "
    "detach the state only then.",
    "missing-zero-grad": "**This is a choice.** If gradients should add up over several iterations "
    "(gradient accumulation), step and clear once every few iterations instead.",
    "requires-grad-input": "**This is a choice.** If the gradient with respect to the data itself is needed, "
    "keep `requires_grad=True`, and give each iteration a fresh copy: `x.detach().requires_grad_()`.",
}


def predicted(kind: str) -> str:
    """What autograd says when it raises an error of this kind (``E1`` to ``E5``)."""
    return _ERRORS[kind]


def why(fix: Fix) -> str:
    """One sentence: why what a fix repairs is a mistake."""
    return _WHY[fix.claim.raises] if fix.claim.raises is not None else _SILENT[fix.effect]


def behaviour(fix: Fix) -> str:
    """One sentence: whether the script behaves differently after a fix."""
    if fix.effect is Effect.REPAIRS and fix.claim.raises is None:
        return "From now on the step has a gradient to use."
    return _BEHAVIOUR[fix.effect]


def choice(codemod: str) -> str:
    """Where the repair is one of two things that may be meant: what it decides, and the other one."""
    return _CHOICES.get(codemod, "")
