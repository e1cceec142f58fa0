"""vizdoom: a game that is told what to show and which buttons there are."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import torch

from .. import context
from ..environments import EPISODE
from ..spaces import array


class _Names(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Mode(metaclass=_Names):
    """Who plays."""


class Button(metaclass=_Names):
    """What may be pressed."""


class GameVariable(metaclass=_Names):
    """What is told beside the picture."""


class ScreenFormat(metaclass=_Names):
    """Colours, and in what order."""


class ScreenResolution(metaclass=_Names):
    """Width and height."""


class ViZDoomErrorException(Exception):
    """Never raised."""


ViZDoomUnexpectedExitException = SignalException = ViZDoomErrorException
scenarios_path = ""
vizdoom = sys.modules[__name__]
PLACE = re.compile(r"^\s*(\w+)\s*(\+?=)\s*(?:\{([^}]*)\}|(\S+))", re.M)


class DoomGame:
    """A game of random pictures and rewards, with episodes of a few steps."""

    def __init__(self) -> None:
        self.format, self.sides = "CRCGCB", (320, 240)
        self.buttons: list[Any] = []
        self.variables: list[Any] = []
        self.shown: set[str] = set()
        self.elapsed, self.total, self.last = 0, 0.0, 0.0
        self.generator = context.run().generator("doom")
        context.run().used("game of vizdoom", f"random pictures, episodes of {EPISODE} steps")

    def load_config(self, path: Any) -> bool:
        """What a file of settings says, if there is one."""
        for name, _, several, one in PLACE.findall(context.read(str(path))):
            words = several.split() or [one]
            if name == "available_buttons":
                self.buttons = words
            elif name == "available_game_variables":
                self.variables = words
            elif name == "screen_format":
                self.format = one
            elif name == "screen_resolution":
                self.set_screen_resolution(one)
        if not self.buttons:
            self.buttons = ["MOVE_LEFT", "MOVE_RIGHT", "ATTACK"]
        return True

    def set_screen_format(self, what: Any) -> None:
        """Colours, and in what order."""
        self.format = str(what)

    def set_screen_resolution(self, what: Any) -> None:
        """Width and height."""
        found = re.search(r"(\d+)X(\d+)", str(what))
        self.sides = (int(found[1]), int(found[2])) if found else self.sides

    def add_available_button(self, button: Any, *args: Any) -> None:
        """One more that may be pressed."""
        self.buttons.append(button)

    def set_available_buttons(self, buttons: Any) -> None:
        """Those that may be pressed."""
        self.buttons = list(buttons)

    def add_available_game_variable(self, variable: Any) -> None:
        """One more that is told."""
        self.variables.append(variable)

    def set_available_game_variables(self, variables: Any) -> None:
        """Those that are told."""
        self.variables = list(variables)

    def get_available_buttons(self) -> list[Any]:
        """Those that may be pressed."""
        return self.buttons

    def get_available_buttons_size(self) -> int:
        """How many may be pressed."""
        return len(self.buttons)

    def get_available_game_variables_size(self) -> int:
        """How many are told."""
        return len(self.variables)

    def get_screen_width(self) -> int:
        """Of a picture."""
        return self.sides[0]

    def get_screen_height(self) -> int:
        """Of a picture."""
        return self.sides[1]

    def get_screen_channels(self) -> int:
        """Of a picture."""
        return 1 if "GRAY" in self.format or "8" in self.format else 3

    def get_game_variable(self, variable: Any) -> float:
        """Up to 100, as health is."""
        return float(torch.randint(1, 101, (), generator=self.generator))

    def init(self) -> bool:
        """Begin."""
        self.new_episode()
        return True

    def new_episode(self, *args: Any) -> None:
        """From the beginning."""
        self.elapsed, self.total, self.last = 0, 0.0, 0.0

    def is_episode_finished(self) -> bool:
        """After a few steps."""
        return self.elapsed >= EPISODE

    is_player_dead = is_episode_finished

    def is_running(self) -> bool:
        """Always."""
        return True

    def get_state(self) -> Any:
        """A picture and what is told; nothing where the episode is over."""
        if self.is_episode_finished():
            return None
        wide, high = self.sides
        grey = self.get_screen_channels() == 1
        sizes = (high, wide) if grey else (3, high, wide) if "CRCGCB" in self.format else (high, wide, 3)
        flat = torch.randint(0, 256, (3, high, wide), generator=self.generator).to(torch.uint8)
        told = [self.get_game_variable(one) for one in self.variables]
        screen = torch.randint(0, 256, sizes, generator=self.generator).to(torch.uint8)
        return SimpleNamespace(
            number=self.elapsed,
            tic=self.elapsed,
            screen_buffer=array(screen),
            game_variables=array(torch.tensor(told)) if told else None,
            depth_buffer=array(flat[0]),
            labels_buffer=array(flat[1]),
            automap_buffer=array(flat if "CRCGCB" in self.format else flat.permute(1, 2, 0)),
            labels=[],
            objects=[],
            sectors=[],
        )

    def advance_action(self, *args: Any) -> None:
        """One step."""
        self.elapsed += 1
        self.last = float(torch.rand((), generator=self.generator)) * 2 - 1
        self.total += self.last

    def set_action(self, action: Any) -> None:
        """Whatever is pressed."""

    def make_action(self, action: Any, *args: Any) -> float:
        """One step, and what it was worth."""
        self.advance_action()
        return self.last

    def get_last_reward(self) -> float:
        """What the last step was worth."""
        return self.last

    def get_total_reward(self) -> float:
        """What all steps were worth."""
        return self.total

    def get_last_action(self) -> list[float]:
        """Nothing was pressed."""
        return [0.0] * len(self.buttons)

    def get_episode_time(self) -> int:
        """Steps so far."""
        return self.elapsed

    get_ticrate = get_episode_timeout = get_episode_time

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("set_", "add_", "clear_", "send_", "close", "respawn", "load", "save")):
            return lambda *args, **kwargs: None
        raise AttributeError(name)
