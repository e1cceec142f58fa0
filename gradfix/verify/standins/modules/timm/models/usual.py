"""timm.models: networks of torchvision with the methods that those of timm have."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ....context import run


class Usual(nn.Module):
    """Put in front of the class of a network: features, how they are pooled, and a last layer."""

    num_classes: int
    num_features: int
    pooled: bool
    last: str

    def get_classifier(self) -> Any:
        """The last layer."""
        found = getattr(self, self.last)
        return found[-1] if isinstance(found, nn.Sequential) else found

    def reset_classifier(self, num_classes: int, global_pool: Any = None, *args: Any) -> None:
        """Another last layer, or none."""
        self.num_classes = num_classes
        if global_pool is not None:
            self.pooled = global_pool != ""
        setattr(self, self.last, nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity())

    def forward_features(self, x: torch.Tensor) -> Any:
        """The features at each place of a picture."""
        if self.last == "fc":
            for name, part in self.named_children():
                x = x if name in ("avgpool", "fc") else part(x)
            return x
        made: Any = getattr(self, "features")(x)  # noqa: B009
        return torch.relu(made) if "densenet" in type(self).__name__.lower() else made

    def forward_head(self, x: torch.Tensor, pre_logits: bool = False) -> Any:
        """The scores of features."""
        x = x.mean((2, 3)) if self.pooled else x
        last: Any = getattr(self, self.last)
        return x if pre_logits else last(x)

    def forward(self, x: torch.Tensor) -> Any:
        """A batch of pictures."""
        return self.forward_head(self.forward_features(x))


def usual(made: Any, settings: dict[str, Any]) -> Any:
    """A network of torchvision as one of timm's, if it ends in one layer."""
    if not isinstance(made, nn.Module):
        return made
    network: Any = made
    classes = settings.get("num_classes", 1000)
    if settings.get("features_only"):
        run().stop("timm is missing and the features of its networks are needed")
    last = "fc" if hasattr(network, "fc") else "classifier"
    head: Any = getattr(network, last, None)
    end = head[-1] if isinstance(head, nn.Sequential) else head
    if not isinstance(end, nn.Linear) or sum(isinstance(one, nn.Linear) for one in head.modules()) > 1:
        network.num_classes = classes
        return network
    network.__class__ = type(type(network).__name__, (Usual, type(network)), {})
    network.num_classes, network.num_features = classes, end.in_features
    network.last, network.pooled = last, settings.get("global_pool") != ""
    if classes != end.out_features:
        network.reset_classifier(classes)
    channels = settings.get("in_chans", 3)
    if channels != 3:
        name, first = next(item for item in network.named_modules() if isinstance(item[1], nn.Conv2d))
        wide: Any = nn.Conv2d(
            channels, first.out_channels, first.kernel_size, first.stride, first.padding, bias=False
        )
        network.get_submodule(name.rpartition(".")[0])._modules[name.rpartition(".")[2]] = wide
    return network
