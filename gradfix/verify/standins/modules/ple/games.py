"""The games: their keys, the sizes of their screens and the names of what they tell. What is told and seen is
random, and an episode short."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from ...context import run
from ...environments import EPISODE

KEYS = {"up": 119, "left": 97, "right": 100, "down": 115, "jump": 32}


class PyGameWrapper:
    """A game."""

    size: ClassVar[tuple[int, int]] = (64, 64)
    keys: ClassVar[str] = "up left right down"
    names: ClassVar[str] = ""
    """Numbers that are told of it; behind a ``*`` what is told of three things, with as many for each."""
    allowed_fps: Any = None
    rng: Any = None

    def __init__(self, width: int | None = None, height: int | None = None, **kwargs: Any) -> None:
        self.width, self.height = width or self.size[0], height or self.size[1]
        self.actions = {name: KEYS[name] for name in self.keys.split()}
        self.rewards = {"positive": 1.0, "negative": -1.0, "tick": 0.0, "loss": -5.0, "win": 5.0}
        self.generator = run().generator("ple", type(self).__name__)
        self.lives, self.score_sum, self.steps = 3, 0.0, 0

    def adjustRewards(self, rewards: dict[str, float]) -> None:
        """Give other rewards."""
        self.rewards.update(rewards)

    def init(self) -> None:
        """Begin again."""
        self.score_sum, self.steps = 0.0, 0

    reset = init

    def setRNG(self, rng: Any) -> None:
        """Nothing is drawn from it."""
        self.rng = rng

    def step(self, dt: float = 0) -> None:
        """Go on."""
        names = ("positive", "negative", "tick")
        self.steps += 1
        drawn = int(torch.randint(3, (1,), generator=self.generator))
        self.score_sum += self.rewards["loss" if self.game_over() else names[drawn]]

    def game_over(self) -> bool:
        """Whether it is over."""
        return self.steps >= EPISODE

    def getScore(self) -> float:
        """The rewards so far."""
        return self.score_sum

    def getActions(self) -> list[int]:
        """The keys."""
        return list(self.actions.values())

    def getScreenDims(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height

    def getScreenRGB(self) -> Any:
        """What is seen, width x height x 3."""
        shape = (self.width, self.height, 3)
        return torch.randint(0, 256, shape, generator=self.generator, dtype=torch.uint8).numpy()

    def numbers(self, *shape: int) -> Any:
        """Numbers on the screen."""
        return torch.rand(*shape, generator=self.generator) * min(self.width, self.height)

    def getGameState(self) -> Any:
        """What is told; nothing of games that tell nothing."""
        told: dict[str, Any] = {}
        for name in self.names.split():
            if name[0] != "*":
                told[name] = float(self.numbers(1))
                continue
            group, _, each = name[1:].partition("/")
            held = {
                part: self.numbers(3, *([2] if "pos" in group else [])).tolist()
                for part in (each or "all").split("/")
            }
            told[group] = held if each else held["all"]
        return told or None


class FlappyBird(PyGameWrapper):
    """A bird between pipes."""

    size, keys = (288, 512), "up"
    names = (
        "player_y player_vel next_pipe_dist_to_player next_pipe_top_y next_pipe_bottom_y "
        "next_next_pipe_dist_to_player next_next_pipe_top_y next_next_pipe_bottom_y"
    )


class Catcher(PyGameWrapper):
    """Fruits that fall."""

    keys = "left right"
    names = "player_x player_vel fruit_x fruit_y"


class Pong(PyGameWrapper):
    """Two rackets and a ball."""

    size, keys = (64, 48), "up down"
    names = "player_y player_velocity cpu_y ball_x ball_y ball_velocity_x ball_velocity_y"


class Snake(PyGameWrapper):
    """A snake that grows."""

    names = "snake_head_x snake_head_y food_x food_y *snake_body *snake_body_pos"


class Pixelcopter(PyGameWrapper):
    """A helicopter in a cave."""

    size, keys = (48, 48), "up"
    names = (
        "player_y player_vel player_dist_to_ceil player_dist_to_floor next_gate_dist_to_player "
        "next_gate_block_top next_gate_block_bottom"
    )


class PuckWorld(PyGameWrapper):
    """A puck, what it is to be at, and what it is not."""

    names = (
        "player_x player_y player_velocity_x player_velocity_y good_creep_x good_creep_y bad_creep_x "
        "bad_creep_y"
    )


class WaterWorld(PyGameWrapper):
    """Food and poison in water."""

    size = (48, 48)
    names = "player_x player_y player_velocity_x player_velocity_y *creep_dist/GOOD/BAD *creep_pos/GOOD/BAD"


class MonsterKong(PyGameWrapper):
    """Ladders and fireballs."""

    size, keys = (500, 465), "left right jump up down"


class RaycastMaze(PyGameWrapper):
    """A maze from within."""

    size = (48, 48)
