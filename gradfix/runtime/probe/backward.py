"""A backward call of the user's code: what is measured before it, and recorded after it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from . import BY_HAND
from .gradients import ParameterSlot, restore, same, state
from .recorder import Recorder


def backward(
    recorder: Recorder, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """One call of ``torch.autograd.backward``, with what is recorded of it."""
    recorder.about_to_differentiate()
    with recorder.bookkeeping(), torch.no_grad():
        call = WatchedBackward(recorder, args, kwargs)
    failure: Exception | None = None
    began = perf_counter()
    try:
        result = call.run(original)
    except Exception as error:
        failure = error
    seconds = perf_counter() - began
    with recorder.bookkeeping(), torch.no_grad():
        call.note(failed=failure is not None)
    if failure is not None:
        recorder.failed(failure, "backward", call.at)
        raise failure
    with recorder.bookkeeping(), torch.no_grad():
        call.tell(seconds)
    recorder.backwards += 1
    return result


class WatchedBackward:
    """A call, and what gradients and graphs were before it."""

    def __init__(self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.recorder, self.args, self.kwargs = recorder, args, kwargs
        job = recorder.job
        self.at = recorder.places.here()
        first = args[0] if args else kwargs.get("tensors")
        listed = [first] if isinstance(first, torch.Tensor) else list(first or ())
        self.roots = [root for root in listed if isinstance(root, torch.Tensor)]
        self.value = recorder.describe(self.roots[0]) if len(self.roots) == 1 else None
        self.owned = recorder.parameters()
        self.watched = {id(slot.tensor): slot for _, _, slot in self.owned}
        recorder.refresh(self.owned)
        self.bare = not recorder.optimizers
        """Whether nothing has been handed to an optimizer yet: then leaves are looked at."""
        if self.bare:
            recorder.reachable_leaves(self.roots)
        recorder.look(self.watched)
        self.saved = recorder.effects.saved(self.roots) if job["thorough"] else None
        self.through = None
        self.cut, self.dropped, self.used = recorder.corrections.get(
            recorder.backwards, (False, set(), frozenset())
        )
        if not job["blind"]:
            seeds = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
            owners = owners_of(self.owned)
            inputs = args[4] if len(args) > 4 else kwargs.get("inputs")
            inputs = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs or ())
            self.through = recorder.traversals.look(self.roots, owners, seeds is not None, inputs)
        leaves = recorder.leaves if self.bare else {}
        self.states = {key: state(slot.tensor) for key, slot in self.watched.items()}
        self.leaf_states = {key: state(leaf) for key, (_, leaf) in leaves.items()}
        self.weights = {name: recorder.describe(leaf) for name, leaf in leaves.values()}
        self.copies: dict[int, torch.Tensor | None] = {}
        if job["still"] or self.dropped:
            for key, slot in self.watched.items():
                gradient = slot.tensor.grad
                self.copies[key] = None if gradient is None else gradient.detach().clone()
        self.changed: set[int] = set()
        """The identities of the parameters whose gradients it has changed."""

    def run(self, original: Callable[..., Any]) -> Any:
        """Make the call."""
        recorder = self.recorder
        with contextlib.ExitStack() as around:
            around.enter_context(recorder.inside())
            if self.cut or self.used:
                around.enter_context(recorder.traversals.cut_off(self.cut, self.used))
            if recorder.rounding is not None:
                around.enter_context(recorder.rounding.within(self.roots))
            return None if recorder.job["blind"] else original(*self.args, **self.kwargs)

    def note(self, *, failed: bool) -> None:
        """Note what it has added to gradients; take back what it was to leave out."""
        recorder = self.recorder
        spared = {
            id(slot.tensor) for index, position, slot in self.owned if (index, position) in self.dropped
        }
        for key in spared:
            restore(self.watched[key].tensor, self.states[key][0], self.copies[key])
        self.changed = {
            key
            for key, slot in self.watched.items()
            if key not in spared and not same(state(slot.tensor), self.states[key])
        }
        for key in self.changed:
            self.watched[key].fed(BY_HAND if failed else recorder.backwards)
            if recorder.rounding is not None:
                self.watched[key].terms += recorder.rounding.terms.get(key, 0.0)

    def tell(self, seconds: float) -> None:
        """Write the event."""
        recorder = self.recorder
        still = recorder.job["still"]
        rounding = recorder.rounding if still else None
        retain = self.args[2] if len(self.args) > 2 else self.kwargs.get("retain_graph")
        if retain is None:
            retain = self.args[3] if len(self.args) > 3 else self.kwargs.get("create_graph")
        shares = []
        for index, position, slot in self.owned if still else ():
            if id(slot.tensor) in self.changed and slot.tensor.grad is not None:
                earlier = self.copies[id(slot.tensor)]
                now = slot.tensor.grad.detach()
                shares.append([index, position, recorder.describe(now if earlier is None else now - earlier)])
        recorder.emit(
            "backward",
            at=self.at,
            value=self.value,
            retain=bool(retain),
            saved=self.saved,
            seconds=seconds,
            through=self.through,
            reached=[
                [index, position] for index, position, slot in self.owned if id(slot.tensor) in self.changed
            ],
            shares=shares,
            terms=[
                [index, position, rounding.terms.get(id(slot.tensor), 0.0)]
                for index, position, slot in self.owned
                if rounding is not None
            ],
            leaves={
                name: recorder.describe(leaf.grad)
                for key, (name, leaf) in recorder.leaves.items()
                if self.bare and not same(state(leaf), self.leaf_states.get(key, (None, -1)))
            },
            weights=self.weights,
        )
        recorder.traversals.gone(recorder.backwards)


def owners_of(owned: list[tuple[int, int, ParameterSlot]]) -> dict[int, list[tuple[int, int]]]:
    """By the identity of a parameter, its optimizers and its places in them."""
    found: dict[int, list[tuple[int, int]]] = {}
    for index, position, slot in owned:
        found.setdefault(id(slot.tensor), []).append((index, position))
    return found
