"""minigrid: rooms that are seen as grids of objects, and what changes how they are seen."""

from __future__ import annotations

import sys
from typing import Any

from ..environments import Env, ObservationWrapper, Passing
from ..inert import others
from ..spaces import Box

MiniGridEnv = Env
wrappers = minigrid = sys.modules[__name__]


class ImgObsWrapper(ObservationWrapper):
    """The grid alone."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = env.observation_space["image"]

    def observation(self, observation: Any) -> Any:
        """The grid alone."""
        return observation["image"]


class _Whole(ObservationWrapper):
    def __init__(self, env: Any, *args: Any, tile_size: int = 8, **kwargs: Any) -> None:
        super().__init__(env)
        self.picture = Box(0, 255, self.shape(tile_size), "uint8")
        self.observation_space = type(env.observation_space)(
            {**env.observation_space.spaces, "image": self.picture}
        )

    def shape(self, tile: int) -> tuple[int, int, int]:
        """Of what is seen: the side of the room as its name says it, times that of a tile."""
        sides = [int(one) for one in str(self.spec.id).replace("-", "x").split("x") if one.isdigit()]
        return (sides[0] * tile, sides[0] * tile, 3) if sides else (8 * tile, 8 * tile, 3)

    def observation(self, observation: Any) -> Any:
        """With another picture."""
        return {**observation, "image": self.picture.sample()}


class RGBImgObsWrapper(_Whole):
    """A picture of the whole room."""


class RGBImgPartialObsWrapper(_Whole):
    """A picture of what lies ahead."""

    def shape(self, tile: int) -> tuple[int, int, int]:
        """Seven tiles wide."""
        return (7 * tile, 7 * tile, 3)


class FullyObsWrapper(_Whole):
    """The grid of the whole room."""

    def shape(self, tile: int) -> tuple[int, int, int]:
        """A number for each field."""
        return super().shape(1)


class FlatObsWrapper(ObservationWrapper):
    """The grid and the words of what is to be done, in one row."""

    def __init__(self, env: Any, *args: Any) -> None:
        super().__init__(env)
        self.observation_space = Box(0, 255, (2835,), "uint8")

    def observation(self, observation: Any) -> Any:
        """In one row."""
        return self.observation_space.sample()


class OneHotPartialObsWrapper(_Whole):
    """The grid with a row of zeros and a one for each field."""

    def shape(self, tile: int) -> tuple[int, int, int]:
        """As many kinds of objects, colours and states as there are."""
        return (7, 7, 20)


ReseedWrapper = ActionBonus = StateBonus = PositionBonus = DirectionObsWrapper = ViewSizeWrapper = Passing
__getattr__ = others(__name__)
