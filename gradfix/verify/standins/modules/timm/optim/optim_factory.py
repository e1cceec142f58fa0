"""timm.optim.optim_factory: optimizers by their names."""

from __future__ import annotations

from typing import Any

import torch

from ....context import run


def param_groups_weight_decay(model: Any, weight_decay: float = 1e-5, no_weight_decay_list: Any = ()) -> Any:
    """Weights that are to shrink, and those that are not."""
    wanted = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    plain = [one for name, one in wanted if one.dim() <= 1 or name in no_weight_decay_list]
    others = [one for name, one in wanted if not (one.dim() <= 1 or name in no_weight_decay_list)]
    return [{"params": plain, "weight_decay": 0.0}, {"params": others, "weight_decay": weight_decay}]


add_weight_decay = param_groups_weight_decay


def optimizer_kwargs(cfg: Any) -> dict[str, Any]:
    """The settings of an optimizer among those of a script."""
    found = {"opt": cfg.opt, "lr": cfg.lr, "weight_decay": cfg.weight_decay}
    return {**found, "momentum": getattr(cfg, "momentum", 0.9)}


def create_optimizer(args: Any, model: Any, filter_bias_and_bn: bool = True) -> Any:
    """The optimizer that a script's settings name."""
    return create_optimizer_v2(model, **optimizer_kwargs(args), filter_bias_and_bn=filter_bias_and_bn)


def create_optimizer_v2(
    model_or_params: Any,
    opt: str = "sgd",
    lr: float | None = None,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
    filter_bias_and_bn: bool = True,
    **kwargs: Any,
) -> Any:
    """The optimizer of a name, for a network or weights."""
    weights = model_or_params
    if isinstance(weights, torch.nn.Module):
        # Those of torch would shrink all with what is not said of a group.
        groups = param_groups_weight_decay(weights, weight_decay) if filter_bias_and_bn else None
        weights = groups or weights.parameters()
    name = opt.lower().split("_")[-1]
    given: dict[str, Any] = {"weight_decay": weight_decay}
    if lr is not None:
        given["lr"] = lr
    if name in ("sgd", "nesterov", "momentum"):
        return torch.optim.SGD(
            weights, momentum=momentum, nesterov=name != "momentum", **{"lr": 0.1, **given}
        )
    kinds = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop")
    kind = next((one for one in kinds if one.lower() == name), None)
    if kind is None:
        run().stop("timm is missing and its optimizer " + opt + " is needed")
    return getattr(torch.optim, kind)(weights, **given)
