"""Environments of packages that are not there, and those of which nothing is known but how they are used.

Where neither an id nor a package tells the spaces of an environment, the project's code does: it asks
``action_space.n`` or ``action_space.shape``, and its network takes pictures or vectors. A kind that the
code leaves open is not made up, for another network would be trained. Sizes are settled like those of the
content of files: an unknown one is a prime, and the message of a mismatch says what it should have been.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import torch

from . import content, context, environments, inert
from .environments import EPISODE, INF, Made
from .spaces import Box, Dict, Discrete, MultiDiscrete, Space, array

SIDE = 84
"""Height and width of a screen of which nothing is known."""
ACTIONS = 2
"""Discrete actions of which nothing is known: whoever has more answers takes fewer."""
OFFLINE = 1000
"""Transitions in data that were collected before."""
BY_NUMBER = re.compile(r"act\w*_space\w*\.n\b")
BY_VALUES = re.compile(r"act\w*_space\w*\.(shape|high|low)\b")
CHOOSES = re.compile(r"Categorical\(|argmax\(|\.max\((?:dim=|axis=)?-?1|multinomial\(")
DRAWS = re.compile(r"Normal\(|tanh\(")
EITHER = re.compile(r"len\([\w.]*(?:obs|shape)[\w.]*\)\s*(?:==|>|<|in\b)|Conv2d.*\bif\b.*observation_space")
"""Code that has a network for pictures and one for vectors."""
STEPS = re.compile(
    r"^[ \t]*\w[\w.\[\]]*(?:[ \t]*,[ \t]*\w[\w.\[\]]*){3,4}[ \t]*=[ \t]*[\w.\[\]]+\.step\(", re.M
)
OFFLINE_ID = re.compile(
    r"(?:bullet-)?(halfcheetah|hopper|walker2d|ant)-(?:random|medium|expert|full|human|cloned)"
)
MEMORY = re.compile(r"(?:Endless-)?(?:MortarMayhemB?|MysteryPath|SearingSpotlights)(?:-Grid)?$")
"""The worlds of memory_gym."""
REAL = {"halfcheetah": "HalfCheetah", "hopper": "Hopper", "walker2d": "Walker2d", "ant": "Ant"}


class Info(dict[str, Any]):
    """What an environment tells beside its state: 0 for what only the real one knows."""

    def __missing__(self, name: str) -> int:
        return 0


class World(Made):
    """An environment whose spaces come from its package, or from its use."""

    def _step(self, action: Any) -> Any:
        observation, reward, ended, cut, info = super()._step(action)
        return observation, reward, ended, cut, Info(info)

    def get_dataset(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Transitions that somebody collected."""
        context.run().used("transitions of " + self.spec.id, f"{OFFLINE} made-up ones")
        states = torch.rand(OFFLINE + 1, *self.observation_space.shape, generator=self.generator)
        actions = torch.rand(OFFLINE, *self.action_space.shape, generator=self.generator) * 2 - 1
        ends = torch.arange(OFFLINE) % EPISODE == EPISODE - 1
        return {
            "observations": array(states[:-1]),
            "next_observations": array(states[1:]),
            "actions": array(actions),
            "rewards": array(torch.rand(OFFLINE, generator=self.generator)),
            "terminals": array(ends),
            "timeouts": array(torch.zeros(OFFLINE, dtype=torch.bool)),
        }

    def get_normalized_score(self, score: Any) -> Any:
        """As it is."""
        return score


class Grid(World):
    """A room that is seen as a grid of objects."""

    def observe(self) -> Any:
        """What lies ahead, the direction, and what is to be done."""
        return {**super().observe(), "mission": "get to the green goal square"}


def of_family(name: str, short: str) -> Made | None:
    """An environment of a family that has the same spaces for all of its ids."""
    if short.startswith(("MiniGrid-", "BabyAI-")):
        seen = {"image": Box(0, 255, (7, 7, 3), "uint8"), "direction": Discrete(4)}
        return Grid(name, Dict(seen), Discrete(7))
    if short.startswith("SuperMarioBros"):
        return World(name, Box(0, 255, (240, 256, 3), "uint8"), Discrete(256))
    if MEMORY.match(short):
        actions = Discrete(4) if short.endswith("-Grid") else MultiDiscrete([3, 3])
        return World(name, Box(0, 255, (84, 84, 3)), actions)
    if short.startswith("procgen"):
        return World(name, Box(0, 255, (64, 64, 3), "uint8"), Discrete(15))
    if offline := OFFLINE_ID.match(short):
        size, actions = environments.CONTROL[REAL[offline[1]]]
        return World(name, Box(-INF, INF, (size,)), environments.box(actions))
    return None


def by_use(name: str) -> Made | None:
    """An environment with the spaces that the project's loaded code asks for, if it only takes one kind."""
    run = context.run()
    text = "\n".join(
        run.text(file)
        for file in {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        | {run.script}
        if isinstance(file, str) and run.owns_file(file)
    )
    actions, states = actions_of(name, text), states_of(name, text)
    if actions is None or states is None:
        return None
    content.book.touched = content.book.touched or screen(name)
    return World(name, states, actions)


def settled(place: str, sizes: list[int]) -> list[int]:
    """The sizes at a place, as a plan has them."""
    found = list(content.book.planned(place, "dims") or sizes)
    content.book.dims[place] = found
    return found


def screen(name: str) -> str:
    """The place of an environment's states; its name is read as no name of data."""
    return "states of " + name + "[*]"


def actions_of(name: str, text: str) -> Space | None:
    """The actions that code takes: numbered, or values; ``None`` if it takes both, or nobody knows."""
    numbered, valued = bool(BY_NUMBER.search(text)), bool(BY_VALUES.search(text))
    if not (numbered or valued):
        numbered, valued = bool(CHOOSES.search(text)), bool(DRAWS.search(text))
    if numbered and not valued:
        return Discrete(content.book.planned(screen(name), "actions") or ACTIONS)
    if valued and not numbered:
        place = "actions of " + name + "[*]"
        return Box(-1.0, 1.0, tuple(settled(place, [content.book.prime(place)])))
    return None


def states_of(name: str, text: str) -> Space | None:
    """The states that code takes: pictures where it convolves them, else vectors or numbers."""
    place = screen(name)
    if EITHER.search(text) and "Conv2d(" in text:
        return None
    if "Conv2d(" in text:
        return Box(0, 255, tuple(settled(place, [SIDE, SIDE, 3])), "uint8")
    if re.search(r"observation_space\.n\b", text) and "observation_space.shape" not in text:
        return Discrete(16)
    return Box(-INF, INF, tuple(settled(place, [content.book.prime(place)])))


def of_inert(value: inert.Inert) -> Any:
    """The environment that an object of a missing package is, if the project's code uses it as one."""
    run = context.run()
    frame = run.caller()
    if frame is None or not STEPS.search(run.text(frame.f_code.co_filename)):
        return None
    if "_world" not in value.__dict__:
        made = value.__dict__["_world"] = by_use(value._path)
        if made is not None:
            told(run, value._path, made)
    return value.__dict__["_world"]


def told(run: context.Run, name: str, made: Made) -> None:
    """Say what spaces an environment was given by its use."""
    states, actions = made.observation_space, made.action_space
    kind = "numbered" if isinstance(actions, Discrete) else "continuous"
    run.used("environment " + name, f"spaces by their use: random states {states.shape}, {kind} actions")


def advise(error: BaseException) -> str | None:
    """A plan with screens whose channels, or actions whose number, a message says."""
    place = next((one for one in reversed(content.book.dims) if one.startswith("states of ")), None)
    if place is None:
        return None
    dims, message = content.book.dims[place], str(error)
    channels = re.search(r"to have (\d+) channels, but got (\d+) channels", message)
    if channels and len(dims) == 3:
        right, wrong = int(channels[1]), int(channels[2])
        if wrong == dims[0]:
            return content.planned_with(place, "dims", [right, *dims[1:2] * 2])
        if wrong == dims[2]:
            return content.planned_with(place, "dims", [*dims[:2], right])
    return None
