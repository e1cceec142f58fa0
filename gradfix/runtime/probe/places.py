"""Where in the user's code something happens, and what that code calls its tensors."""

from __future__ import annotations

import itertools
import os
import sys
import types
from typing import Any

import torch

from .. import FOLDER

NOWHERE: dict[str, Any] = {"script": None, "inner": None, "tensor": False}
"""The place of what the user's code did not cause."""


class Places:
    """Looks at frames: those of the script at ``path``, and of other files of the project at ``root``."""

    def __init__(self, path: str, root: str) -> None:
        self.path = path
        self.root = os.path.join(root, "")
        self.projects: dict[str, bool] = {}

    def in_project(self, filename: str) -> bool:
        """Whether a frame's file is the user's own code."""
        known = self.projects.get(filename)
        if known is None:
            known = self.projects[filename] = self.own(filename)
        return known

    def own(self, filename: str) -> bool:
        """Whether a file lies in the project and is not installed there."""
        if filename[:1] == "<":  # Made at run time, or a part of the interpreter.
            return False
        try:
            path = os.path.abspath(filename)
        except OSError:  # A relative name, and the working folder is out of reach.
            return False
        installed = path.startswith((os.path.join(sys.prefix, ""), FOLDER)) or "site-packages" in path
        return path.startswith(self.root) and not installed

    def place(self, frames: list[tuple[types.FrameType, int, int]]) -> dict[str, Any]:
        """Where in the user's code something happens, from frames given innermost first.

        ``script`` is the innermost position in the script, ``inner`` the innermost one in the
        project where that is another file; ``tensor`` says that the call there was
        ``Tensor.backward`` itself, so that its receiver is what is differentiated.
        """
        inner: tuple[str, int] | None = None
        below: types.FrameType | None = None
        tensor = False
        position: list[Any] | None = None
        for frame, instruction, line in frames:
            name = frame.f_code.co_filename
            if name == self.path or self.in_project(name):
                if inner is None:
                    inner = (name, line)
                    called = below.f_code if below is not None else None
                    tensor = called is not None and called.co_name == "backward"
                    tensor = tensor and os.path.basename(called.co_filename) == "_tensor.py"  # type: ignore[union-attr]
                if name == self.path:
                    position = [line, None, None, None]
                    if hasattr(frame.f_code, "co_positions"):
                        spans = frame.f_code.co_positions()
                        position = [line, *next(itertools.islice(spans, instruction // 2, None))[1:]]
                    break
            below = frame
        elsewhere = None
        if inner is not None and inner[0] != self.path:
            elsewhere = {"file": os.path.relpath(inner[0], self.root), "line": inner[1]}
        return {"script": position, "inner": elsewhere, "tensor": tensor}

    def here(self) -> dict[str, Any]:
        """The place from which the hook that asks was reached."""
        frames = []
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append((frame, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        return self.place(frames)

    def names(self) -> dict[int, str]:
        """What the user's code that is running calls its tensors, by identity."""
        found: dict[int, str] = {}

        def add(name: str, value: object, deep: bool) -> None:
            if isinstance(value, torch.nn.Module):
                found.setdefault(id(value), name)
                for inner, parameter in value.named_parameters():
                    found.setdefault(id(parameter), name + "." + inner)
            elif isinstance(value, torch.Tensor):
                found.setdefault(id(value), name)
            elif deep and isinstance(value, (list, tuple)):
                for index, item in enumerate(value[:100]):
                    add(name + "[" + str(index) + "]", item, False)
            elif deep and isinstance(value, dict):
                for key, item in list(value.items())[:100]:
                    add(name + "[" + repr(key) + "]", item, False)
            elif deep and name == "self":
                for key, item in list(getattr(value, "__dict__", {}).items()):
                    add("self." + key, item, False)

        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self.path or self.in_project(name):
                for space in (frame.f_locals, frame.f_globals):
                    for key, value in list(space.items()):
                        if not key.startswith("__"):
                            add(key, value, True)
            frame = frame.f_back
        return found
