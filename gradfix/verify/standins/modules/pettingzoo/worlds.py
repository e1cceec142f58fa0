"""What all worlds of several agents have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from ...context import run
from ...environments import EPISODE, INF
from ...spaces import Box, Discrete, Space

MPE: dict[str, Callable[[int], dict[str, tuple[int, int]]]] = {
    # Values that an agent sees, and its actions.
    "simple": lambda count: {"agent_0": (4, 5)},
    "simple_spread": lambda count: {f"agent_{one}": (6 * count, 5) for one in range(count)},
    "simple_adversary": lambda count: {
        "adversary_0": (4 * 2, 5),
        **{f"agent_{one}": (4 * 2 + 2, 5) for one in range(2)},
    },
    "simple_tag": lambda count: {**{f"adversary_{one}": (16, 5) for one in range(3)}, "agent_0": (14, 5)},
    "simple_push": lambda count: {"adversary_0": (8, 5), "agent_0": (19, 5)},
    "simple_speaker_listener": lambda count: {"speaker_0": (3, 3), "listener_0": (11, 5)},
    "simple_reference": lambda count: {"agent_0": (21, 50), "agent_1": (21, 50)},
    "simple_crypto": lambda count: {"eve_0": (4, 4), "bob_0": (8, 4), "alice_0": (8, 4)},
}
ATARI = {
    # Agents, and actions of each unless all 18 are asked for.
    "boxing": (2, 18), "double_dunk": (2, 18), "entombed_competitive": (2, 18), "foozpong": (4, 6),
    "entombed_cooperative": (2, 18), "flag_capture": (2, 18), "ice_hockey": (2, 18), "joust": (2, 18),
    "mario_bros": (2, 18), "maze_craze": (2, 18), "othello": (2, 10), "pong": (2, 6), "quadrapong": (4, 6),
    "space_invaders": (2, 6), "space_war": (2, 18), "surround": (2, 5), "tennis": (2, 18),
    "video_checkers": (2, 5), "volleyball_pong": (4, 6), "warlords": (4, 6), "wizard_of_wor": (2, 10),
    "basketball_pong": (2, 6), "combat_plane": (2, 18), "combat_tank": (2, 18),
}  # fmt: skip
PLAYERS = ("first_0", "second_0", "third_0", "fourth_0")
SISL = {"multiwalker": ("walker", 3, 31, 4), "waterworld": ("pursuer", 2, 242, 2)}


class Parallel:
    """A world in which all agents act at once."""

    def __init__(self, name: str, spaces: dict[str, tuple[Space, Space]]) -> None:
        self.possible_agents = list(spaces)
        self.agents = list(spaces)
        self.max_num_agents = self.num_agents = len(spaces)
        self.spaces = spaces
        self.observation_spaces = {agent: pair[0] for agent, pair in spaces.items()}
        self.action_spaces = {agent: pair[1] for agent, pair in spaces.items()}
        self.metadata = {"name": name, "render_modes": ["human"]}
        self.generator = run().generator("world", name)
        self.elapsed = 0
        self.unwrapped = self.aec_env = self.env = self
        self.render_mode = None
        run().used("world " + name, f"random states, episodes of {EPISODE} steps")

    def observation_space(self, agent: str) -> Space:
        """What an agent sees."""
        return self.spaces[agent][0]

    def action_space(self, agent: str) -> Space:
        """What an agent does."""
        return self.spaces[agent][1]

    def observe(self, agent: str) -> Any:
        """What an agent sees now."""
        return self.spaces[agent][0].draw(self.generator)

    def reward(self) -> float:
        """Between -1 and 1."""
        return float(torch.rand(1, generator=self.generator)) * 2 - 1

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        """First states; with what they tell beside them, if the code unpacks two."""
        from ...environments import answered

        return answered(self.begun(), {a: {} for a in self.agents})

    def begun(self) -> dict[str, Any]:
        """First states."""
        self.elapsed, self.agents = 0, list(self.possible_agents)
        return {agent: self.observe(agent) for agent in self.agents}

    def step(self, actions: Any) -> Any:
        """The next states, rewards, and who is done: four mappings, or five."""
        from ...environments import stepped

        return stepped(*self.following(actions))

    def following(self, actions: Any) -> tuple[Any, ...]:
        """What follows, in five mappings."""
        self.elapsed += 1
        seen = {agent: self.observe(agent) for agent in self.agents}
        rewards = {agent: self.reward() for agent in self.agents}
        over = dict.fromkeys(self.agents, self.elapsed >= EPISODE)
        told: dict[str, Any] = {agent: {} for agent in self.agents}
        cut = dict.fromkeys(self.agents, False)
        if self.elapsed >= EPISODE:
            self.agents = []
        return seen, rewards, over, cut, told

    def state(self) -> Any:
        """All that there is to see."""
        return torch.cat(
            [torch.as_tensor(self.observe(one)).reshape(-1) for one in self.possible_agents]
        ).numpy()

    def seed(self, *args: Any) -> None:
        """The run's seed says what happens."""

    render = close = seed


class Turns(Parallel):
    """A world in which one agent acts after the other."""

    def reset(self, *args: Any, **kwargs: Any) -> None:
        """Begin."""
        self.elapsed, self.agents = 0, list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.dones = dict.fromkeys(self.agents, False)
        self.terminations, self.truncations = dict(self.dones), dict(self.dones)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}

    def agent_iter(self, max_iter: int = 1 << 62) -> Iterator[str]:
        """Whose turn it is."""
        while self.agents and max_iter > 0:
            max_iter -= 1
            yield self.agent_selection

    def last(self, observe: bool = True) -> Any:
        """What the agent sees whose turn it is."""
        from ...environments import stepped

        agent = self.agent_selection
        return stepped(self.observe(agent), self.rewards[agent], self.dones[agent], False, {})

    def step(self, action: Any) -> None:
        """Act, and let the next one have its turn."""
        agent = self.agent_selection
        order = self.possible_agents
        after = order[(order.index(agent) + 1) % len(order)]
        if self.dones[agent]:
            self.agents = [one for one in self.agents if one != agent]
        self.rewards[agent] = self.reward()
        self.elapsed += after == order[0]
        if self.elapsed >= EPISODE:
            self.dones = dict.fromkeys(order, True)
            self.terminations = dict(self.dones)
        self.agent_selection = after


def spaces_of(name: str, settings: dict[str, Any]) -> dict[str, tuple[Space, Space]] | None:
    """The spaces of the agents of a world, if they are known."""
    short = re.sub(r"_v\d+$", "", name)
    numbers = settings.get("continuous_actions", False)
    if short in MPE:
        agents = MPE[short](int(settings.get("N", 3)))
        return {
            agent: (
                Box(-INF, INF, (size,)),
                Box(0.0, 1.0, (count,)) if numbers else Discrete(count),
            )
            for agent, (size, count) in agents.items()
        }
    if short in SISL:
        begin, count, size, actions = SISL[short]
        return {
            f"{begin}_{one}": (Box(-INF, INF, (size,)), Box(-1.0, 1.0, (actions,))) for one in range(count)
        }
    if short in ATARI:
        count, actions = ATARI[short]
        actions = 18 if settings.get("full_action_space") else actions
        return {one: (Box(0, 255, (210, 160, 3), "uint8"), Discrete(actions)) for one in PLAYERS[:count]}
    return None


def module(name: str) -> Any:
    """The module of a world, which makes it in either form."""

    def made(kind: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            spaces = spaces_of(name, kwargs)
            if spaces is None:
                run().stop(
                    "the environment " + name + " is not here, its spaces are unknown, and they are needed"
                )
            return kind(name, spaces)

        return make

    found = ModuleType(name)
    found.__dict__.update(parallel_env=made(Parallel), env=made(Turns), raw_env=made(Turns))
    return found
