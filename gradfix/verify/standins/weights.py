"""Downloads and trained weights: the same networks with the weights that they are made with."""

from __future__ import annotations

import ast
import copy
import os
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.hub
import torch.utils.model_zoo

from . import absent, content, context, inert, siblings, sizes


class AbsentWeights(Mapping[str, Any]):
    """What a file of weights held that is not there. A network that is given it keeps its own."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getitem__(self, name: str) -> Any:
        if any(part in str(name).lower() for part in ("epoch", "step", "iter", "best", "loss", "acc")):
            return 0
        return AbsentWeights(self.path)

    def __setitem__(self, name: str, value: Any) -> None:
        pass

    def __delitem__(self, name: str) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentWeights(self.path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return AbsentWeights(self.path)

    def __iter__(self) -> Iterator[Any]:
        count = context.unpacking(sys._getframe(1))
        return iter([AbsentWeights(self.path)] * (count or 0))

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return True


NOT_THERE = re.compile(r"Error\(s\) in loading state_dict|out of range|has no attribute '\d|^'?[\w.]*\.\d")
"""Messages for what a network lacks that has fewer blocks."""


def blocks(run: context.Run, name: str, real: list[int]) -> list[int]:
    """How many equal blocks each part has of a known network that is made in the place of the real one."""
    if not run.small or run.medium or content.book.planned("networks", "whole"):
        return real
    fewer = [min(one, sizes.SMALL["depth"]) for one in real]
    if fewer != real:
        content.book.shallow = True
        run.used("the blocks of " + name, ", ".join(map(str, fewer)) + " in place of " + str(real)[1:-1])
    return fewer


def advise(error: BaseException) -> str | None:
    """The plan with whole networks, if one with fewer blocks lacks what the script asks for."""
    if content.book.shallow and NOT_THERE.search(str(error)):
        return content.planned_with("networks", "whole", True)
    return None


def binding(run: context.Run, frame: types.FrameType | None) -> ast.Assign | None:
    """The statement of a frame that binds what it loads: ``model = torch.load(file)``."""
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno) if frame else []
    node = around[-1] if around else None
    if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("torch.load("):
        return node
    return None


def rebound(run: context.Run) -> Any:
    """Copies of the network, and of what goes with it, in whose place a statement puts what it loads.

    In ``model = torch.load(file)`` that is a network of the same kind, if ``model`` was one before.
    """
    frame = context.caller_of_standins(run)
    node = binding(run, frame)
    if frame is None or node is None:
        return None
    (target, *others) = node.targets
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    if others or not isinstance(node.value, ast.Call) or not all(isinstance(one, ast.Name) for one in parts):
        return None
    space = {**frame.f_globals, **frame.f_locals}
    held = tuple(space.get(one.id) for one in parts if isinstance(one, ast.Name))
    if not isinstance(held[0], torch.nn.Module):
        return None
    try:
        made = copy.deepcopy(held)
    except (RuntimeError, TypeError):
        return None
    return made if isinstance(target, ast.Tuple) else made[0]


DATA = re.compile(r"^_?(?:raw_?|train(?:ing)?_?|all_?)?(?:data|data_?set|corpus|samples)$", re.I)
"""Names under which nobody keeps the weights of a network."""


def called_data(run: context.Run) -> bool:
    """Whether the script calls data what it loads, whatever its file: ``data = torch.load(path)``."""
    node = binding(run, context.caller_of_standins(run))
    if node is None:
        return False
    target = node.targets[-1]
    name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
    return DATA.match(name) is not None


def saved_by_another(run: context.Run, path: str) -> torch.nn.Module | None:
    """The network that a statement loads whole, as a script beside it makes it that saves it so."""
    frame = context.caller_of_standins(run)
    node = binding(run, frame)
    if frame is None or node is None or len(node.targets) != 1:
        return None
    return siblings.network(run, path, frame.f_code.co_filename, node.targets[0])


def install(run: context.Run) -> None:
    """Networks keep their own weights where trained ones are not there."""
    real_load = torch.load

    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(f, absent.AbsentFile):
            f = f.name
        if isinstance(f, inert.Inert):
            # The path of what a missing library has downloaded, or a file that it has opened.
            run.used(f"weights {f._path}", "networks keep their own")
            return AbsentWeights(f._path)
        if isinstance(f, (str, os.PathLike)) and absent.is_absent(f):
            if called_data(run) or not absent.looks_like_weights(os.fspath(f)):
                return content.absent(run, f, tensors=True)
            held = rebound(run)
            if held is not None and absent.spared(run, f):
                # The script goes on with the network that it has, which an optimizer may have already.
                return real_load(f, *args, **kwargs)
            if held is None and (whole := saved_by_another(run, os.fspath(f))) is not None:
                return whole
            run.used("weights " + os.path.basename(os.fspath(f)), "networks keep their own")
            return AbsentWeights(os.fspath(f)) if held is None else held
        kwargs.setdefault("weights_only", False)
        if not args and kwargs.get("map_location") is None:
            kwargs["map_location"] = "cpu"  # They may have been written where there was an accelerator.
        return real_load(f, *args, **kwargs)

    context.replace(torch, "load", load)

    keys = torch.nn.modules.module._IncompatibleKeys
    for owner in (torch.nn.Module, torch.optim.Optimizer):

        def load_state(
            self: Any, state: Any, *args: Any, _real: Any = owner.load_state_dict, **kwargs: Any
        ) -> Any:
            if isinstance(state, (AbsentWeights, content.Content)) or (isinstance(state, dict) and not state):
                # The keys that are missing, and those that nobody expected.
                return keys([], []) if isinstance(self, torch.nn.Module) else None
            made = (AbsentWeights, content.Content)
            if isinstance(state, dict) and any(isinstance(one, made) for one in state.values()):
                own = self.state_dict()
                state = {
                    key: own.get(key, value) if isinstance(value, made) else value
                    for key, value in state.items()
                }
            return _real(self, state, *args, **kwargs)

        context.replace(owner, "load_state_dict", load_state)

    def from_url(url: str, *args: Any, **kwargs: Any) -> Any:
        run.used("weights " + url.rsplit("/", 1)[-1], "networks keep their own")
        return AbsentWeights(url)

    def from_hub(repository: str, model: str, *args: Any, **kwargs: Any) -> Any:
        if "pytorch/vision" in repository:
            import torchvision.models

            for name in ("pretrained", "weights"):
                kwargs.pop(name, None)
            return getattr(torchvision.models, model)(**kwargs)
        # It may be for what the training never comes to; what does, ends the run.
        run.used("network of " + str(repository), "an object without values")
        return inert.Inert(str(repository))

    context.replace(torch.hub, "load_state_dict_from_url", from_url)

    def listed(repository: str, *args: Any, **kwargs: Any) -> list[str]:
        run.used("networks of " + str(repository), "none are listed")
        return []

    context.replace(torch.hub, "load", from_hub)
    context.replace(torch.hub, "list", listed)
    context.replace(torch.utils.model_zoo, "load_url", from_url)
