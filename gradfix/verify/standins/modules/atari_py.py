"""atari_py, and ale_py: the emulator of Atari's games itself, with random pictures and short episodes."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import torch

from ..context import run
from ..environments import ATARI, EPISODE
from ..inert import others
from ..spaces import array

SKIPPED = 4
"""Frames for which scripts mostly hold an action: an episode has as many times more of them."""
HIGH, WIDE = 210, 160
GAMES = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): actions for name, actions in ATARI.items()}


def list_games() -> list[str]:
    """The games that there are."""
    return sorted(GAMES)


def get_game_path(game: str) -> str:
    """Where a game lies; there is none."""
    return os.path.join("atari_roms", game + ".bin")


class ALEInterface:
    """A game, frame by frame."""

    def __init__(self) -> None:
        self.told: dict[Any, Any] = {}
        self.load("pong")

    def load(self, game: Any) -> None:
        """Begin a game."""
        self.name = os.path.splitext(os.path.basename(str(game)))[0].lower()
        self.generator = run().generator("atari", self.name)
        self.elapsed = 0

    def loadROM(self, path: Any) -> None:
        """Begin the game of a file."""
        self.load(path)
        run().used("game " + self.name, f"random pictures, episodes of {EPISODE * SKIPPED} frames")

    def getMinimalActionSet(self) -> Any:
        """The numbers of what the game reacts to."""
        return array(torch.arange(GAMES.get(self.name, 18)))

    def getLegalActionSet(self) -> Any:
        """The numbers of all that a player may do."""
        return array(torch.arange(18))

    def reset_game(self) -> None:
        """From the beginning."""
        self.elapsed = 0

    def act(self, action: Any, *args: Any) -> int:
        """One frame, and what it was worth."""
        self.elapsed += 1
        return int(torch.randint(-1, 2, (), generator=self.generator))

    def game_over(self, *args: Any) -> bool:
        """After a few frames."""
        return self.elapsed >= EPISODE * SKIPPED

    def lives(self) -> int:
        """Those that are left."""
        return 3

    def getScreenDims(self) -> tuple[int, int]:
        """Height and width, as ale_py says them."""
        return HIGH, WIDE

    def getEpisodeFrameNumber(self) -> int:
        """Frames so far."""
        return self.elapsed

    getFrameNumber = getEpisodeFrameNumber

    def drawn(self, *sizes: int) -> Any:
        """Bytes."""
        return array(torch.randint(0, 256, sizes, generator=self.generator, dtype=torch.uint8))

    def getScreenGrayscale(self, into: Any = None) -> Any:
        """What is seen, without colours."""
        return filled(into, self.drawn(HIGH, WIDE))

    def getScreenRGB(self, into: Any = None) -> Any:
        """What is seen."""
        return filled(into, self.drawn(HIGH, WIDE, 3))

    getScreenRGB2 = getScreen = getScreenRGB

    def getRAM(self, into: Any = None) -> Any:
        """The memory of the console."""
        return filled(into, self.drawn(128))

    def getRAMSize(self) -> int:
        """Bytes of it."""
        return 128

    def keep(self, key: Any, value: Any) -> None:
        """What the emulator is told to do."""
        self.told[key] = value

    setInt = setFloat = setBool = setString = keep

    def kept(self, key: Any) -> Any:
        """The same, asked for again."""
        return self.told[key]

    getInt = getFloat = getBool = getString = kept

    def setRAM(self, *args: Any) -> None:
        """What is seen is random anyway."""

    saveState = loadState = saveScreenPNG = setRAM


def filled(into: Any, values: Any) -> Any:
    """Values, in an array that was handed over for them."""
    if into is None:
        return values
    into[...] = values.reshape(into.shape)
    return into


ale_python_interface = sys.modules[__name__]
__getattr__ = others(__name__)
