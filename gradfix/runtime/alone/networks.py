"""Networks whose source nobody sees, in several kinds, and optimizers over them.

A network here takes whatever it is given and gives what its use asks for. Everything that it is given and
every one of its parameters has a part in everything that it gives. What else a network may be shows in its
*kind*: what is proved has to hold for all of them.
"""

from __future__ import annotations

import math
import sys
import types
from typing import Any

import torch

from .. import FOLDER
from ..standins import context, value
from .given import _number, is_method, tensors
from .kinds import KINDS

WIDTH = 8


_kinds = [KINDS[0]]


def choose(asked: list[str]) -> None:
    """Choose the kind of the networks in this run, by the arguments of the driver."""
    _kinds[:] = [one for one in asked if one in KINDS][:1] or _kinds


def kind() -> str:
    """The kind of the networks in this run."""
    return _kinds[0]


_trunks: dict[str, torch.nn.Module] = {}


def network(place: str, owner: str = "") -> Network:
    """A network that nobody sees.

    Args:
        place: What people call it.
        owner: The optimizer that updates it.
    """
    context.run().used(place, f"a network that is made up ({kind()})")
    trunk = _trunks.setdefault(owner, _trunk()) if kind() == "shared" and owner else _trunk()
    return Network(place, trunk)


def _trunk() -> torch.nn.Module:
    layers: list[torch.nn.Module] = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()]
    if kind() == "noisy":
        layers[1:1] = [torch.nn.BatchNorm1d(WIDTH), torch.nn.Dropout(0.2)]
    return torch.nn.Sequential(*layers)


class Network(torch.nn.Module):
    """See the module's docstring."""

    _state: torch.Tensor

    def __init__(self, place: str, trunk: torch.nn.Module) -> None:
        super().__init__()
        self.place = place
        self.trunk = trunk
        self.head = torch.nn.Linear(WIDTH, WIDTH)
        if kind() == "stateful":
            self.register_buffer("_state", torch.zeros(WIDTH))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.compute("()", args, kwargs)

    def compute(self, what: str, args: Any, kwargs: Any) -> Any:
        """What a call of the network, or of one of its methods, gives."""
        handed = [*tensors(args), *tensors(kwargs)] or [torch.ones(value.rows_of(context.run()), 1)]
        rows = max(one.shape[0] if one.dim() else 1 for one in handed)
        hidden = torch.stack([_pooled(one, rows) for one in handed]).sum(0)
        if kind() == "stateful":
            hidden = hidden + self._state
            with torch.no_grad():
                self._state = 0.9 * self._state + 0.1 * hidden.detach().mean(0)
        hidden = self.head(self.trunk(hidden))
        count = _outputs()
        if count is None:
            return self.shaped(hidden, self.place + what)
        return tuple(self.shaped(hidden * (1 + at), f"{self.place}{what}[{at}]") for at in range(count))

    def shaped(self, hidden: torch.Tensor, place: str) -> torch.Tensor:
        """``hidden`` as numbers between 0 and 1 in the sizes that its use asks for."""
        with torch.no_grad():
            sizes = value.sizes(context.run(), place)[1:]
        width = math.prod(sizes)
        wide = hidden.repeat(1, -(-width // WIDTH))[:, :width] * torch.linspace(0.5, 1.5, width)
        return wide.sigmoid().reshape(hidden.shape[0], *sizes)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or name == "module":
                raise
        found = None if is_method(sys._getframe(1)) else _number(name, f"{self.place}.{name}")
        return Method(self, name) if found is None else found


class Method:
    """A method, or a part, of a network that nobody sees: it computes with the network's parameters."""

    def __init__(self, owner: Network, name: str) -> None:
        self.owner, self.name = owner, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.owner.compute(f".{self.name}()", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("parameters", "named_parameters", "train", "eval", "state_dict", "modules"):
            return getattr(self.owner, name)
        if name.startswith("_"):
            raise AttributeError(name)
        return Method(self.owner, f"{self.name}.{name}")


def _pooled(one: torch.Tensor, rows: int) -> torch.Tensor:
    """Something that a network is given, as ``rows`` rows."""
    if kind() == "cut":
        # In value the same for what has a gradient, which the network needs to have: what a network computed.
        coarse = (one.detach().float() * 8).round() / 8
        one = coarse + (one - one.detach()) if one.requires_grad else coarse
    flat = one.float().reshape(one.shape[0] if one.dim() else 1, -1)
    pooled = torch.nn.functional.adaptive_avg_pool1d(flat.unsqueeze(0), WIDTH).squeeze(0)
    return pooled if pooled.shape[0] == rows else pooled.mean(0, keepdim=True).expand(rows, -1)


def _outputs() -> int | None:
    """Into how many names the user's code unpacks what a network gives, if it does."""
    frame: types.FrameType | None = sys._getframe(1)
    torch_folder = torch.__path__[0]
    while frame is not None and frame.f_code.co_filename.startswith((FOLDER, torch_folder)):
        frame = frame.f_back
    return value.unpacked(frame) if frame is not None else None


def optimizer(place: str, owned: list[Any], line: int = 0) -> torch.optim.Optimizer:
    """A real optimizer over what a world says that it owns.

    Args:
        place: What people call it.
        owned: Networks.
        line: The line of the file under test from where it is known.
    """
    parameters = list(dict.fromkeys(one for net in owned for one in net.parameters()))
    run = context.run()
    run.used(place, "Adam over " + " and ".join(getattr(net, "place", "a network") for net in owned))
    if line:
        at = {"script": [line, None, None, None], "inner": None, "tensor": False, "called": place}
        run.recorder.places.__dict__["here"] = lambda: at
    try:
        return torch.optim.Adam(parameters, lr=0.01)
    finally:
        run.recorder.places.__dict__.pop("here", None)
