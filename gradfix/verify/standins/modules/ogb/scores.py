"""How good an answer is, by torch."""

from __future__ import annotations

from typing import Any

import torch


def _tensor(value: Any) -> torch.Tensor:
    return torch.as_tensor(value).detach().cpu()


def _by_task(true: torch.Tensor, told: torch.Tensor, score: Any) -> float:
    """The mean of what the tasks have that hold both a right one and a wrong one."""
    found = []
    for column in range(true.shape[1]):
        known = true[:, column] == true[:, column]
        right = true[known, column] == 1
        if right.any() and not right.all():
            found.append(score(right, told[known, column].double()))
    return float(sum(found) / len(found)) if found else 0.0


def _area(right: torch.Tensor, told: torch.Tensor) -> float:
    places = torch.unique(told, return_inverse=True)[1]
    below = torch.bincount(places[~right], minlength=int(places.max()) + 1)
    less = below.cumsum(0) - below
    return float((less[places[right]] + below[places[right]] / 2).sum() / (right.sum() * (~right).sum()))


def _precision(right: torch.Tensor, told: torch.Tensor) -> float:
    ordered = right[told.argsort(descending=True, stable=True)]
    shares = ordered.cumsum(0) / torch.arange(1, len(ordered) + 1)
    return float(shares[ordered].mean())


class Evaluator:
    """What the one for a data set's name says of answers."""

    def __init__(self, name: str) -> None:
        self.name, self.K = name, 50

    def eval(self, input_dict: Any) -> dict[str, Any]:
        """Every measure that the answers allow."""
        if "y_pred_pos" in input_dict:
            right, wrong = (_tensor(input_dict[key]) for key in ("y_pred_pos", "y_pred_neg"))
            if wrong.dim() == 2:
                ranks = 1 + (wrong > right[:, None]).sum(1) + (wrong == right[:, None]).sum(1) / 2
                hits = {f"hits@{first}_list": (ranks <= first).float() for first in (1, 3, 10)}
                return {**hits, "mrr_list": 1 / ranks}
            least = wrong.topk(self.K).values[-1] if len(wrong) >= self.K else -float("inf")
            return {f"hits@{self.K}": float((right > least).float().mean())}
        true, told = (_tensor(input_dict[key]) for key in ("y_true", "y_pred"))
        return {
            "acc": float((true == told).float().mean()),
            "rocauc": _by_task(true, told, _area),
            "ap": _by_task(true, told, _precision),
            "rmse": float((true.double() - told.double()).pow(2).mean().sqrt()),
        }
