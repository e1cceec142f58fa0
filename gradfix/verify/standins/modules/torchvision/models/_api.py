"""Networks by their names, and the trained weights that they do not have."""

from __future__ import annotations

from typing import Any

from torch import nn

from ....context import run
from ....weights import AbsentWeights


class Weights:
    """The names of trained weights that are not here."""

    classes = 1000
    """How many classes the network was trained for that the weights are of."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(self)(self.name + "." + name)

    def __getitem__(self, name: str) -> Weights:
        return type(self)(self.name + "." + name)

    __call__ = __getitem__

    @property
    def meta(self) -> dict[str, Any]:
        """What is told of the weights: the names of the classes are numbers here."""
        return {"categories": [str(number) for number in range(self.classes)]}

    def get_state_dict(self, *args: Any, **kwargs: Any) -> AbsentWeights:
        """The weights that are not there."""
        return AbsentWeights(self.name)

    def transforms(self) -> Any:
        """The transformations that go with them."""
        from .. import transforms

        return transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )


class Addresses(dict[str, str]):
    """Where older versions have the weights of their networks from."""

    def __missing__(self, name: str) -> str:
        return name + ".pth"


def untrained(name: str) -> None:
    """Tell that a network keeps the weights that it is made with."""
    run().used("weights of " + name, "those that it is made with")


def named(name: str, build: Any, *settings: Any, **more: Any) -> Any:
    """The function of this name that makes a network, never with trained weights."""

    def make(
        pretrained: Any = None, progress: Any = None, *, weights: Any = None, **kwargs: Any
    ) -> nn.Module:
        if pretrained or weights:
            untrained(name)
        made: nn.Module = build(*settings, **{**more, **kwargs})
        return made

    make.__name__ = make.__qualname__ = name
    return make
