"""timm.utils: what a training script counts and keeps."""

from __future__ import annotations

import copy
import os
from typing import Any

import torch

from ...inert import others

__getattr__ = others(__name__)


class AverageMeter:
    """A mean that goes on."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """From the beginning."""
        self.val = self.avg = self.sum = self.count = 0.0

    def update(self, val: Any, n: int = 1) -> None:
        """One more."""
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output: torch.Tensor, target: torch.Tensor, topk: Any = (1,)) -> list[Any]:
    """How many of a hundred are among the first."""
    most = min(max(topk), output.shape[1])
    right = output.topk(most, 1)[1].t().eq(target.reshape(1, -1).expand(most, -1))
    return [right[: min(k, most)].reshape(-1).float().sum(0) * 100.0 / len(target) for k in topk]


def unwrap_model(model: Any) -> Any:
    """The network itself."""
    return getattr(model, "module", model)


def get_state_dict(model: Any, unwrap_fn: Any = unwrap_model) -> Any:
    """Its weights."""
    return unwrap_fn(model).state_dict()


class NativeScaler:
    """The backward call and the step of a training, without scaling."""

    state_dict_key = "amp_scaler"

    def __call__(
        self,
        loss: Any,
        optimizer: Any,
        clip_grad: float | None = None,
        clip_mode: str = "norm",
        parameters: Any = None,
        create_graph: bool = False,
        need_update: bool = True,
    ) -> None:
        loss.backward(create_graph=create_graph)
        if need_update:
            if clip_grad is not None:
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    def load_state_dict(self, state: Any) -> None:
        """Nothing was kept."""


ApexScaler = NativeScaler


class ModelEma:
    """A network whose weights follow another's."""

    def __init__(
        self, model: Any, decay: float = 0.9999, device: Any = "", resume: str = "", **kwargs: Any
    ) -> None:
        self.ema = self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for one in self.ema.parameters():
            one.requires_grad_(False)

    def update(self, model: Any) -> None:
        """Follow."""
        with torch.no_grad():
            for own, other in zip(self.ema.state_dict().values(), unwrap_model(model).state_dict().values()):
                own.copy_(own * self.decay + other * (1 - self.decay))


ModelEmaV2 = ModelEma


def setup_default_logging(*args: Any, **kwargs: Any) -> None:
    """Nothing is shown."""


def natural_key(text: str) -> Any:
    """A text, to be put in order."""
    return text


def random_seed(seed: int = 42, rank: int = 0) -> None:
    """Seed torch."""
    torch.manual_seed(seed + rank)


class CheckpointSaver:
    """Keeps the best weights of a training; of a run nothing is kept."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def save_checkpoint(self, epoch: int, metric: Any = None) -> tuple[Any, int]:
        """Say which was best: this one."""
        return metric, epoch

    def save_recovery(self, epoch: int, batch_idx: int = 0) -> None:
        """Nothing is kept."""


def update_summary(*args: Any, **kwargs: Any) -> None:
    """Nothing is written."""


def get_outdir(path: str, *paths: str, inc: bool = False) -> str:
    """A folder to write to."""
    found = os.path.join(path, *paths)
    os.makedirs(found, exist_ok=True)
    return found


def reduce_tensor(tensor: torch.Tensor, n: int) -> torch.Tensor:
    """The mean over all processes, of which there is one."""
    return tensor.clone() / n


def distribute_bn(model: Any, world_size: int, reduce: bool = False) -> None:
    """Nothing is shared among one process."""


def dispatch_clip_grad(parameters: Any, value: float, mode: str = "norm", norm_type: float = 2.0) -> None:
    """Limit gradients."""
    if mode == "norm":
        torch.nn.utils.clip_grad_norm_(parameters, value, norm_type=norm_type)
    elif mode == "value":
        torch.nn.utils.clip_grad_value_(parameters, value)
    else:
        raise NotImplementedError(mode)
