"""pytorch_lightning: a module's own steps, in the order in which its trainer takes them, on the CPU.

Nothing is logged, validated or kept. What a step computes, which parameters it may change, when gradients are
cleared, and when the hooks of the module and of the script's own callbacks are called is as pytorch_lightning
2.6.6 has it, by running both; several optimizers that are stepped on automatically are as 1.x documents them.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from ... import context
from ...inert import Inert, others
from ..easydict import EasyDict

__all__ = ["Callback", "LightningDataModule", "LightningModule", "Trainer", "seed_everything"]


def seed_everything(seed: Any = None, *args: Any, **kwargs: Any) -> int:
    """Python's generator, numpy's and torch's."""
    number = int(seed or 0)
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % (1 << 32))
    return number


class Callback:
    """Something that is called during the training."""


class _Settings:
    """What keeps the arguments that an object was made with."""

    def save_hyperparameters(self, *names: Any, ignore: Any = (), frame: Any = None, **kwargs: Any) -> None:
        """The arguments of the function that calls this, or what is given."""
        frame = frame or sys._getframe(1)
        held = dict(frame.f_locals)
        found: dict[str, Any] = {}
        for name in names:
            if isinstance(name, str):
                found[name] = held.get(name)
            else:
                found.update(name if isinstance(name, dict) else vars(name))
        if not names:
            code = frame.f_code
            count = code.co_argcount + code.co_kwonlyargcount
            found = {name: held[name] for name in code.co_varnames[:count] if name in held and name != "self"}
            found.update(held.get("kwargs") or {})
        left_out = [ignore] if isinstance(ignore, str) else ignore or ()
        self.hparams.update({name: one for name, one in found.items() if name not in left_out})

    @property
    def hparams(self) -> Any:
        """The arguments that were kept."""
        if "_hparams" not in self.__dict__:
            self.__dict__["_hparams"] = EasyDict()
        return self.__dict__["_hparams"]

    @hparams.setter
    def hparams(self, value: Any) -> None:
        self.__dict__["_hparams"] = value

    @classmethod
    def add_argparse_args(cls, parser: Any, **kwargs: Any) -> Any:
        """The options of Trainer have their usual values."""
        return parser

    @classmethod
    def from_argparse_args(cls, args: Any, **kwargs: Any) -> Any:
        """Made with the options that its own arguments have the names of."""
        given = vars(args) if hasattr(args, "__dict__") else dict(args)
        names = inspect.signature(cls.__init__).parameters
        return cls(**{**{name: one for name, one in given.items() if name in names}, **kwargs})


class LightningModule(_Settings, torch.nn.Module):
    """A network with its own step of training."""

    automatic_optimization = True
    current_epoch = global_step = global_rank = local_rank = 0
    trainer: Any = None

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    @property
    def logger(self) -> Any:
        """It takes any call."""
        return Inert("logger", True)

    def log(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is logged or printed."""

    log_dict = print = log

    def optimizers(self, *args: Any, **kwargs: Any) -> Any:
        """Its optimizers, or the one."""
        found = self.trainer.optimizers
        return found[0] if len(found) == 1 else found

    def lr_schedulers(self) -> Any:
        """Its schedules, or the one."""
        found = self.trainer.schedules
        return found[0] if len(found) == 1 else found or None

    def manual_backward(self, loss: Any, *args: Any, **kwargs: Any) -> None:
        """``loss.backward()``."""
        loss.backward(*args, **kwargs)

    def backward(self, loss: Any, *args: Any, **kwargs: Any) -> None:
        """``loss.backward()``."""
        loss.backward()

    def toggle_optimizer(self, optimizer: Any, *args: Any) -> None:
        """Only what this optimizer changes has gradients until it is toggled back."""
        kept = {id(one) for group in optimizer.param_groups for one in group["params"]}
        self.__dict__["_toggled"] = [(one, one.requires_grad) for one in self.parameters()]
        for one in self.parameters():
            one.requires_grad = one.requires_grad and id(one) in kept

    def untoggle_optimizer(self, *args: Any) -> None:
        """As it was before."""
        for one, had in self.__dict__.pop("_toggled", ()):
            one.requires_grad = had

    def optimizer_step(self, epoch: int, index: int, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """One step, in which the gradients are computed."""
        closure = next((one for one in (*args, *kwargs.values()) if callable(one)), None)
        optimizer.step(closure)

    def optimizer_zero_grad(self, epoch: int, index: int, optimizer: Any, *args: Any) -> None:
        """Clear its gradients."""
        optimizer.zero_grad()

    def clip_gradients(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """To a norm, or by value."""
        if gradient_clip_val:
            held = [one for group in optimizer.param_groups for one in group["params"]]
            by_value = str(gradient_clip_algorithm).endswith("value")
            clip = torch.nn.utils.clip_grad_value_ if by_value else torch.nn.utils.clip_grad_norm_
            clip(held, gradient_clip_val)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """As the trainer was told."""
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def lr_scheduler_step(self, scheduler: Any, *args: Any) -> None:
        """One step of a schedule."""
        scheduler.step()

    def freeze(self) -> None:
        """Nothing of it has gradients any more."""
        for one in self.parameters():
            one.requires_grad = False
        self.eval()

    @classmethod
    def load_from_checkpoint(cls, path: Any, *args: Any, **kwargs: Any) -> Any:
        """The same network with the weights that it is made with."""
        names = inspect.signature(cls.__init__).parameters
        return cls(**{name: one for name, one in kwargs.items() if name in names})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *args, **kwargs: None  # What the trainer calls on its way.
        return super().__getattr__(name)


class LightningDataModule(_Settings):
    """The batches of a training."""

    trainer: Any = None

    def prepare_data(self) -> None:
        """Nothing to be done."""

    def setup(self, stage: Any = None) -> None:
        """Nothing to be done."""


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Trainer(_Settings):
    """Takes the steps of a module, epoch after epoch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.optimizers: list[Any] = []
        self.schedules: list[Any] = []
        self.intervals: list[str] = []
        self.max_epochs = kwargs.get("max_epochs") or 1000
        self.max_steps = kwargs.get("max_steps") or -1
        self.every = kwargs.get("accumulate_grad_batches") or 1
        self.clip = kwargs.get("gradient_clip_val"), kwargs.get("gradient_clip_algorithm")
        held = _listed(kwargs.get("callbacks") or [])
        self.callbacks: list[Any] = [one for one in held if isinstance(one, Callback)]
        self.global_step = self.current_epoch = self.global_rank = 0
        self.world_size = self.num_devices = self.devices = self.num_nodes = 1
        self.is_global_zero, self.sanity_checking = True, False
        self.callback_metrics: dict[str, Any] = {}
        self.logger = Inert("logger", True)

    def fit(self, model: Any, train_dataloaders: Any = None, *args: Any, **kwargs: Any) -> None:
        """Train."""
        data = kwargs.get("datamodule")
        batches = kwargs.get("train_dataloader", train_dataloaders)
        if isinstance(batches, LightningDataModule):
            data, batches = batches, None
        model.__dict__["trainer"] = self
        if data is not None:
            data.trainer = self
        for one in (data, model):
            if one is not None:
                getattr(one, "prepare_data", lambda: None)()
                _called(getattr(one, "setup", None), "fit")
        configured = model.configure_optimizers()
        self._configured(configured)
        self.train_dataloader = batches = batches or (data or model).train_dataloader()
        model.train()
        self._hook(model, "on_fit_start")
        self._hook(model, "on_train_start")
        for epoch in range(self.max_epochs if self.max_epochs > 0 else 1000):
            model.current_epoch = self.current_epoch = epoch
            self._hook(model, "on_train_epoch_start")
            found = iter(batches)
            index, batch = 0, next(found, None)
            while batch is not None:
                following = next(found, None)
                self._hook(model, "on_train_batch_start", batch, index)
                loss = self._step(model, batch, index, following is None)
                if following is None:
                    self._schedule(model, "epoch")
                self._hook(model, "on_train_batch_end", {} if loss is None else {"loss": loss}, batch, index)
                index, batch = index + 1, following
            self._hook(model, "on_train_epoch_end")
            if 0 < self.max_steps <= self.global_step:
                return

    def _hook(self, model: Any, name: str, *args: Any) -> None:
        """Call what the script's own callbacks, and then its module, have for a moment of the training."""
        for one in self.callbacks:
            _called(getattr(one, name, None), self, model, *args)
        _called(getattr(model, name), *args)

    def _schedule(self, model: Any, interval: str) -> None:
        """The schedules of the learning rate that are due."""
        if model.automatic_optimization:
            for schedule, due in zip(self.schedules, self.intervals):
                if due == interval and not isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
                    _called(model.lr_scheduler_step, schedule, None)

    def _configured(self, found: Any) -> None:
        """Optimizers and schedules, in any of the forms that a module may give them in."""
        schedules: list[Any] = []
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], (list, tuple)):
            found, schedules = found[0], _listed(found[1])
        for one in _listed(found):
            if isinstance(one, dict):
                self.optimizers.append(one["optimizer"])
                schedules += [one["lr_scheduler"]] if "lr_scheduler" in one else []
            elif one is not None:
                self.optimizers.append(one)
        self.schedules = [one["scheduler"] if isinstance(one, dict) else one for one in schedules]
        self.intervals = [
            one.get("interval", "epoch") if isinstance(one, dict) else "epoch" for one in schedules
        ]

    def _step(self, model: Any, batch: Any, index: int, last: bool) -> Any:
        """One batch; returns its loss, without a graph."""
        if not model.automatic_optimization:
            _called(model.training_step, batch, index)
            self._count(model)
            return None
        several = len(self.optimizers) > 1
        kept: list[Any] = [None]
        steps = last or (index + 1) % self.every == 0
        for number, optimizer in enumerate(self.optimizers):
            if several:
                model.toggle_optimizer(optimizer, number)

            def closure(number: int = number, optimizer: Any = optimizer) -> Any:
                """The loss, whose gradients are there then."""
                found = _called(model.training_step, batch, index, *([number] if several else []))
                loss = found.get("loss") if isinstance(found, dict) else found
                if loss is None:
                    return None
                kept[0] = loss.detach()
                if index % self.every == 0:
                    self._hook(model, "on_before_zero_grad", optimizer)
                    _called(model.optimizer_zero_grad, self.current_epoch, index, optimizer, number)
                loss = loss / self.every if self.every > 1 else loss
                self._hook(model, "on_before_backward", loss)
                _called(model.backward, loss, optimizer, number)
                self._hook(model, "on_after_backward")
                if steps:
                    self._hook(model, "on_before_optimizer_step", optimizer, number)
                    clips = model.configure_gradient_clipping
                    older = "optimizer_idx" in inspect.signature(clips).parameters
                    clips(optimizer, *([number] if older else []), *self.clip)
                return loss

            if steps:
                arguments = [self.current_epoch, index, optimizer, *([number] if several else []), closure]
                _called(model.optimizer_step, *arguments)
                self._count(model)
            else:
                closure()
            if several:
                model.untoggle_optimizer(number)
        if steps:
            self._schedule(model, "step")
        return kept[0]

    def _count(self, model: Any) -> None:
        model.global_step = self.global_step = self.global_step + 1

    def test(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Nothing is tested."""
        return [{}]

    validate = predict = test

    def save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is kept."""


def _called(function: Callable[..., Any] | None, *args: Any) -> Any:
    """Call a function with as many of the arguments as it takes."""
    if function is None:
        return None
    held = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in held):
        return function(*args)
    return function(
        *args[: sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in held)]
    )


_others = others(__name__)


def __getattr__(name: str) -> Any:
    if name in ("loggers", "callbacks", "profilers", "plugins", "strategies", "utilities"):
        context.run().used("pytorch_lightning." + name, "nothing: it only logs, shows or keeps")
        return Inert("pytorch_lightning." + name, True)
    return _others(name)
