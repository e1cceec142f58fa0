"""What is known of an error that autograd has raised: what led to it, and what could be done about it."""

from __future__ import annotations

import re
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

from ..autograd_errors import FREED, MOVED
from .graph import beside, is_leaf, leading_to, leaves_beside, operation
from .hooks import Event, Watch, roots_of
from .names import Names, Variable
from .own_code import Place, is_own, own_files
from .trainings import parameters_of

NODES = 100_000
"""Graph nodes that are looked at, at most, when an error is explained."""
SECONDS = 5.0
"""How long may be spent on looking at a graph."""
NAMES = 100
"""Variables in the graph that failed that are told."""


class Facts(Names):
    """What is known of an error, in ``told``: kind, message, lines, and per kind what led to it."""

    def __init__(self, watch: Watch, kind: str, error: BaseException) -> None:
        super().__init__()
        self.watch = watch
        self.deadline = time.monotonic() + SECONDS
        self.roots: list[Any] = []
        self.failed: list[Place] = []
        self.owned: dict[int, set[int]] | None = None
        self.look(error)
        self.told: dict[str, Any] = {
            "kind": kind,
            "message": str(error).split("\n", 1)[0],
            "places": self.failed[::-1],
            "files": own_files(),
        }
        nodes = self.nodes([root.grad_fn for root in self.roots])
        self.told["roots"] = [one.told() for one in self.holding(self.roots)]
        if kind == "E1":
            self.told.update(self.freed(nodes))
        elif kind == "E2":
            self.told.update(self.moved(nodes))
            self.told["layers"] = list(self.writing_in_place())
        elif kind == "E3":
            self.told["recording"] = bool(sys.modules["torch"].is_grad_enabled())
            self.told["frozen"] = list(self.frozen())
            self.told["trainable"] = sorted(set(self.trainable()))
            self.told["constants"] = sorted(self.constants)
        elif kind == "E4":
            owners = self.owners()
            self.told["parameters"] = list(self.modules.values())
            self.told["leaves"] = [
                {**one.told(), "owned": id(one.value) in owners}
                for one in self.variables
                if one.value.requires_grad and one.value.is_leaf
            ][:NAMES]
        if kind in ("E1", "E2"):
            self.told["graph"] = [one.told() for one in self.variables if one.value.grad_fn in nodes][:NAMES]

    def look(self, error: BaseException) -> None:
        """Collect lines, names and the roots of the backward calls from the traceback.

        What the engine calls (a custom function, the hook of a tensor) does not lead to the error: it is only
        where autograd has noticed.
        """
        trace = error.__traceback__
        frames: list[tuple[types.FrameType, int]] = []
        engine = False
        while trace is not None:
            frame = trace.tb_frame
            if is_own(frame.f_code.co_filename):
                if not engine:
                    self.failed.append((frame.f_code.co_filename, trace.tb_lineno))
                    frames.append((frame, trace.tb_lineno))
            elif frame.f_code.co_name in ("_engine_run_backward", "backward", "grad"):
                self.roots += [
                    root
                    for root in roots_of(frame.f_locals)
                    if all(root is not known for known in self.roots)
                ]
                engine = engine or frame.f_code.co_name == "_engine_run_backward" or bool(self.roots)
            trace = trace.tb_next
        # The innermost names are those that the reader has before him.
        for frame, line in reversed(frames):
            self.collect(frame, line)

    def nodes(self, roots: list[Any], barred: Any = ()) -> dict[Any, None]:
        """The nodes of a graph, from its roots on and not through what is ``barred``; a part of many."""
        found: dict[Any, None] = dict.fromkeys(barred)
        waiting = [root for root in roots if root is not None]
        while waiting and len(found) < NODES and time.monotonic() < self.deadline:
            node = waiting.pop()
            if node not in found:
                found[node] = None
                waiting.extend(after for after, _ in node.next_functions if after is not None)
        return found if not barred else {node: None for node in found if node not in barred}

    def troubles(self, nodes: dict[Any, None], text: str) -> Iterator[tuple[Any, str, str]]:
        """The nodes whose saved tensors cannot be had because of what autograd calls ``text``.

        Each with the name of such a tensor in it, and autograd's message.
        """
        for node in nodes:
            if time.monotonic() > self.deadline:
                return
            names = [name for name in dir(node) if name.startswith("_saved_") or name == "saved_tensors"]
            for name in names:
                try:
                    getattr(node, name)
                except RuntimeError as error:
                    if text in str(error):
                        yield node, name, str(error)
                        break
                except Exception:
                    continue

    def holding(self, values: list[Any]) -> list[Variable]:
        """The variables that hold one of ``values``, a tensor each once."""
        wanted = {id(value) for value in values}
        found: dict[int, Variable] = {}
        for one in self.variables:
            if id(one.value) in wanted:
                found.setdefault(id(one.value), one)
        return list(found.values())

    def writing_in_place(self) -> Iterator[dict[str, Any]]:
        """The layers that change their input (``inplace=True``) or their own weights (``max_norm``)."""
        for name, layer in self.layers.values():
            for option in ("inplace", "max_norm"):
                value = getattr(layer, option, None)
                if value is True or (option == "max_norm" and isinstance(value, (int, float))):
                    yield {"name": name, "kind": type(layer).__name__, "option": option, "value": value}

    def frozen(self) -> Iterator[str]:
        """The networks that an optimizer is to train, and none of whose parameters requires a gradient."""
        owned = self.owners()
        for name, layer in self.layers.values():
            parameters = list(layer.parameters())
            if "." not in name and parameters and not any(one.requires_grad for one in parameters):
                if any(id(one) in owned for one in parameters):
                    yield name

    def trainable(self) -> Iterator[str]:
        """The names of what a gradient could reach: networks, layers, tensors that require a gradient."""
        for name, layer in self.layers.values():
            if any(one.requires_grad for one in layer.parameters()):
                yield name
        yield from (one.name for one in self.variables if one.value.requires_grad)

    def freed(self, nodes: dict[Any, None]) -> dict[str, Any]:
        """Which earlier backward has freed a part of the graph, and what was computed in that part."""
        broken = {node for node, _, _ in self.troubles(nodes, FREED)}
        failing = self.watch.events[-1] if self.watch.events else None
        for event in reversed(self.watch.kept):
            if event is failing:
                continue
            shared = self.nodes(event.roots)
            common = broken & shared.keys()
            if common:
                return {
                    "earlier": event.places,
                    **self.hanging({node: None for node in shared if node in nodes}),
                    "across": self.across(nodes, broken, event),
                    "joint": self.can_be_added(nodes, shared, event),
                    "same": all(root.grad_fn in event.roots for root in self.roots),
                }
        return self.hanging(self.nodes(list(broken)))

    def hanging(self, old: dict[Any, None]) -> dict[str, Any]:
        """The variables whose graph is the old part: those that were computed last in it."""
        found = [one for one in self.variables if one.value.grad_fn is not None and one.value.grad_fn in old]
        # What this very backward has freed before it failed is no older graph.
        before = [one for one in found if all(one.value is not root for root in self.roots)]
        found = sorted(before or found, key=lambda one: -one.value.grad_fn._sequence_nr())
        unique = list({id(one.value): one for one in reversed(found)}.values())[::-1]
        return {"shared": [one.told() for one in unique[:3]]}

    def moved(self, nodes: dict[Any, None]) -> dict[str, Any]:
        """Which tensor has moved since it was saved, and the step that moved it."""
        told = [self.moved_tensor(*trouble) for trouble in self.troubles(nodes, MOVED)]
        # What is known best is told; of equals the one that was saved last.
        ranked = sorted(
            told, key=lambda one: ("step" not in one, "parameter" not in one, "tensors" not in one)
        )
        best = ranked[0] if ranked else {}
        event = best.pop("event", None)
        if event is not None:
            moved = {node for node, _, _ in self.troubles(nodes, MOVED)}
            best["across"] = self.across(nodes, moved | self.freed_before(nodes), event)
        return best

    def freed_before(self, nodes: dict[Any, None]) -> set[Any]:
        """Those of ``nodes`` that an earlier backward has freed."""
        failing = self.watch.events[-1] if self.watch.events else None
        roots = [root for event in self.watch.kept if event is not failing for root in event.roots]
        return {node for node, _, _ in self.troubles(nodes, FREED)} & self.nodes(roots).keys()

    # What could be done about it: the conditions under which advice is right are looked up in the graph.

    def across(self, nodes: dict[Any, None], broken: set[Any], event: Event) -> dict[str, Any] | None:
        """How the failing backward gets into what was computed before ``event``, and what it reaches without.

        What was computed before is entered at some nodes: with the graph cut off there, nothing ``broken`` is
        left, but parameters may be left without a gradient.
        """
        if event.thread != threading.get_ident() or event.clock < 0 or time.monotonic() > self.deadline:
            return None
        # What this very backward has freed before it failed is no obstacle.
        broken = {node for node in broken if node._sequence_nr() < event.clock}
        leading = leading_to(nodes, broken)
        before = {node for node in leading if not is_leaf(node) and node._sequence_nr() < event.clock}
        roots = [root.grad_fn for root in self.roots]
        now = [node for node in nodes if node not in before]
        entered = {node for node in roots if node in before}
        entered |= {after for node in now for after, _ in node.next_functions if after in before}
        if not entered:
            return None
        rest = self.nodes([node for node in roots if node not in before], before)
        owned = self.owners()
        lost = [
            node.variable
            for node in nodes
            if is_leaf(node) and node not in rest and (id(node.variable) in owned or not owned)
        ]
        names = [self.modules.get(id(one)) for one in lost]
        names = [name.rpartition(".")[0] if name else None for name in names]
        names += [one.name for one in self.holding(lost)]
        held = [one for one in self.variables if one.value.grad_fn in entered]
        # Of several names for one tensor the plainest is told.
        held.sort(key=lambda one: -len(re.findall(r"[.\[]", one.name)))
        operations = {operation(node) for node in entered}
        return {
            "whole": all(node in before for node in roots),
            "again": [
                one.told()
                for one in sorted(
                    (one for one in self.variables if one.value.grad_fn in before),
                    key=lambda one: one.value.grad_fn._sequence_nr(),
                )
            ][:1],
            "entered": [one.told() for one in {id(one.value): one for one in held}.values()],
            "rebound": [
                one.told()
                for one in self.variables
                if one.value.grad_fn is not None
                and one.value.grad_fn._sequence_nr() >= event.clock
                and operation(one.value.grad_fn) in operations
            ][:NAMES],
            "fed": any(
                any(is_leaf(leaf) for leaf in beside(node))
                for node in leading_to(
                    rest, {n for n in rest if any(a in entered for a, _ in n.next_functions)}
                )
                if node not in before
            ),
            "starves": bool(lost),
            "starved": list(dict.fromkeys(name for name in names if name))[:4],
        }

    def can_be_added(self, nodes: dict[Any, None], earlier: dict[Any, None], event: Event) -> bool:
        """Whether the failing loss and that of an earlier backward are both for one step that is yet to come.

        No step lies between them, one optimizer owns all that they reach, the gradients of the first are
        still there, and neither loss is a part of the other.
        """
        since = [one for one in self.watch.events if one.number > event.number]
        failing = [root.grad_fn for root in self.roots]
        if any(one.optimizer is not None for one in since):
            return False
        if any(root in nodes for root in event.roots) or any(root in earlier for root in failing):
            return False
        owned = self.owners()
        first = [node.variable for node in earlier if is_leaf(node)]
        second = [node.variable for node in nodes if is_leaf(node)]
        owners = {frozenset(owned.get(id(one), ())) for one in (*first, *second)}
        return len(owners) == 1 and len(*owners) == 1 and all(one.grad is not None for one in first)

    def made_of(self, node: Any) -> list[dict[str, Any]]:
        """The variable that was computed first of those whose graph goes through ``node``."""
        hanging = [one for one in self.variables if one.value.grad_fn is not None]
        hanging.sort(key=lambda one: one.value.grad_fn._sequence_nr())
        for one in hanging:
            if one.value.grad_fn._sequence_nr() >= node._sequence_nr():
                if node in self.nodes([one.value.grad_fn]):
                    return [one.told()]
        return []

    def moved_tensor(self, node: Any, saved_as: str, message: str) -> dict[str, Any]:
        saved = re.search(r"\[[\w.]+ \[([\d, ]*)\]\].* version (\d+); expected version (\d+)", message)
        if saved is None:
            return {}
        shape = [int(size) for size in saved.group(1).split(",") if size.strip()]
        version = int(saved.group(2))
        parameter = next(
            (
                leaf
                for leaf in leaves_beside(node)
                if leaf._version == version and sorted(leaf.shape) == sorted(shape)
            ),
            None,
        )
        if parameter is None:
            tensors = [
                one
                for one in self.variables
                if sorted(one.value.shape) == sorted(shape) and one.value._version == version
            ]
            unique: dict[int, Variable] = {}
            for one in tensors:
                unique.setdefault(id(one.value), one)
            role = "result" if saved_as.startswith("_saved_result") else "operand"
            return {
                "made": self.made_of(node),
                "tensors": [one.told() for one in unique.values()],
                "operation": operation(node),
                "role": role,
                "shape": shape,
                "after": sorted({operation(other) for other in self.followers(node)}),
            }
        name = self.modules.get(id(parameter)) or next(
            (one.name for one in self.variables if one.value is parameter), None
        )
        layer = next(
            (
                held
                for held, one in self.layers.values()
                if any(owned is parameter for owned in one._parameters.values())
            ),
            None,
        )
        known = {"parameter": name, "layer": layer, "made": self.made_of(node)}
        return {**known, **self.step_since(node, parameter)}

    def followers(self, node: Any) -> Iterator[Any]:
        """The nodes of what was computed of the result of ``node``, or of its operands, before or in place.

        What changes a tensor in place is one of them, if gradients were recorded then.
        """
        sources = {node, *(before for before, _ in node.next_functions if before is not None)}
        sources |= {b for one in list(sources) for b, _ in one.next_functions if b is not None}
        for other in self.nodes([one.value.grad_fn for one in self.variables] + self.roots_nodes()):
            if other is not node and any(before in sources for before, _ in other.next_functions):
                yield other

    def roots_nodes(self) -> list[Any]:
        return [root.grad_fn for root in self.roots]

    def step_since(self, node: Any, parameter: Any) -> dict[str, Any]:
        """The last step of an optimizer of ``parameter`` after ``node`` was made."""
        owners = self.owners().get(id(parameter), set())
        born = node._sequence_nr()
        for event in reversed(self.watch.events):
            if (
                event.optimizer in owners
                and event.clock > born >= 0
                and event.thread == threading.get_ident()
            ):
                return {
                    "step": event.places,
                    "optimizer": self.optimizers.get(event.optimizer or 0),
                    "event": event,
                }
        return {}

    def owners(self) -> dict[int, set[int]]:
        """The identities of the optimizers by those of the parameters that they update."""
        if self.owned is None:
            import gc

            kind = sys.modules["torch"].optim.Optimizer
            self.owned = {}
            for one in gc.get_objects():
                if issubclass(type(one), kind):
                    for parameter in parameters_of(one):
                        self.owned.setdefault(id(parameter), set()).add(id(one))
        return self.owned
