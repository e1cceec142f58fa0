"""accelerate: the training of one process on the CPU, which is the script's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

from ...inert import Inert, others
from . import logging, utils
from .utils import DistributedDataParallelKwargs, DistributedType, GradScalerKwargs, InitProcessGroupKwargs

__all__ = [
    "Accelerator",
    "DistributedDataParallelKwargs",
    "DistributedType",
    "GradScalerKwargs",
    "InitProcessGroupKwargs",
    "logging",
    "utils",
]


class Steps:
    """An optimizer or a schedule that moves only when the gradients of all its batches are there."""

    def __init__(self, inner: Any, owner: Accelerator) -> None:
        self.__dict__.update(_inner=inner, _owner=owner)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """The inner one's, when it is time."""
        return self._inner.step(*args, **kwargs) if self._owner.sync_gradients else None

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """The inner one's, when it is time."""
        if self._owner.sync_gradients:
            self._inner.zero_grad(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)


class Accelerator:
    """One process on the CPU."""

    def __init__(self, *args: Any, gradient_accumulation_steps: int = 1, **kwargs: Any) -> None:
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.device = torch.device("cpu")
        self.num_processes, self.process_index, self.local_process_index = 1, 0, 0
        self.is_main_process = self.is_local_main_process = self.is_last_process = True
        self.sync_gradients = True
        self.mixed_precision = "no"
        self.use_distributed = self.optimizer_step_was_skipped = False
        self.distributed_type = DistributedType.NO
        self.native_amp = False
        self.project_dir = self.logging_dir = kwargs.get("project_dir")
        self.trackers: list[Any] = []
        self.state = SimpleNamespace(
            num_processes=1,
            process_index=0,
            device=self.device,
            deepspeed_plugin=None,
            fsdp_plugin=None,
            mixed_precision="no",
            distributed_type=DistributedType.NO,
        )
        self._batches = 0

    def prepare(self, *given: Any, **kwargs: Any) -> Any:
        """What is given, as it is."""
        made = tuple(self._prepared(one) for one in given)
        return made[0] if len(made) == 1 else made

    def _prepared(self, one: Any) -> Any:
        moves = isinstance(one, torch.optim.Optimizer) or type(one).__module__.startswith("torch.optim")
        return Steps(one, self) if moves and self.gradient_accumulation_steps > 1 else one

    prepare_model = prepare_optimizer = prepare_scheduler = prepare_data_loader = prepare

    def backward(self, loss: torch.Tensor, **kwargs: Any) -> None:
        """The gradients of a loss, of as many batches as are accumulated."""
        if self.gradient_accumulation_steps > 1:
            loss = loss / self.gradient_accumulation_steps
        loss.backward(**kwargs)  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def accumulate(self, *models: Any) -> Iterator[None]:
        """A batch of several."""
        self._batches += 1
        self.sync_gradients = self._batches % self.gradient_accumulation_steps == 0
        yield

    def no_sync(self, model: Any) -> Any:
        """There is nobody to wait for."""
        return contextlib.nullcontext()

    join_uneven_inputs = no_sync

    def autocast(self, *args: Any, **kwargs: Any) -> Any:
        """Numbers keep their precision."""
        return contextlib.nullcontext()

    main_process_first = local_main_process_first = profile = autocast

    def clip_grad_norm_(self, parameters: Any, max_norm: Any, norm_type: float = 2) -> Any:
        """As torch does it."""
        if self.sync_gradients:
            return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
        return None

    def clip_grad_value_(self, parameters: Any, clip_value: Any) -> None:
        """As torch does it."""
        if self.sync_gradients:
            torch.nn.utils.clip_grad_value_(parameters, clip_value)

    def gather(self, values: Any, *args: Any, **kwargs: Any) -> Any:
        """Those of one process."""
        return values

    gather_for_metrics = reduce = pad_across_processes = unwrap_model = skip_first_batches = gather

    def get_state_dict(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        """The model's own."""
        return model.state_dict()

    def print(self, *args: Any, **kwargs: Any) -> None:
        """Print."""
        print(*args, **kwargs)

    def on_main_process(self, function: Any = None) -> Any:
        """The function as it is."""
        return function if function is not None else self.on_main_process

    on_local_main_process = on_last_process = on_main_process

    def save(self, value: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        """As torch does it."""
        torch.save(value, path)

    def wait_for_everyone(self, *args: Any, **kwargs: Any) -> None:
        """There is nobody."""

    save_state = load_state = save_model = init_trackers = log = end_training = wait_for_everyone
    free_memory = clear = register_for_checkpointing = register_save_state_pre_hook = wait_for_everyone
    register_load_state_pre_hook = set_trigger = wait_for_everyone

    def check_trigger(self) -> bool:
        """Nothing has happened elsewhere."""
        return False

    def get_tracker(self, *args: Any, **kwargs: Any) -> Any:
        """It only logs."""
        return Inert("accelerate.tracker", lenient=True)


class PartialState(Accelerator):
    """The world of one process."""


AcceleratorState = PartialState
__getattr__ = others(__name__)
