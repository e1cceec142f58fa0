"""Agents: from states to actions, without gradients."""

from __future__ import annotations

import copy
from typing import Any

import numpy
import torch

from ...inert import others
from .actions import ProbabilityActionSelector

__getattr__ = others(__name__)


def default_states_preprocessor(states: Any, **old: Any) -> torch.Tensor:
    """States together, of the type that they have."""
    return torch.as_tensor(numpy.array([numpy.asarray(one) for one in states]))


def float32_preprocessor(states: Any, **old: Any) -> torch.Tensor:
    """States together, as numbers of single precision."""
    return torch.as_tensor(numpy.array([numpy.asarray(one) for one in states], dtype="float32"))


class BaseAgent:
    """The base of all; one without memory has no states of its own."""

    def initial_state(self) -> Any:
        """Before the first step of an episode."""
        return None

    def __call__(self, states: Any, agent_states: Any) -> Any:
        raise NotImplementedError


class _Agent(BaseAgent):
    def __init__(self, model: Any, action_selector: Any, device: Any, preprocessor: Any) -> None:
        self.model, self.action_selector = model, action_selector
        self.device, self.preprocessor = device, preprocessor

    def _scores(self, found: Any) -> Any:
        return found

    @torch.no_grad()
    def __call__(self, states: Any, agent_states: Any = None) -> Any:
        given = states if self.preprocessor is None else self.preprocessor(states)
        scores = self._scores(self.model(given.to(self.device) if torch.is_tensor(given) else given))
        actions = self.action_selector(scores.cpu().numpy())
        return actions, [None] * len(states) if agent_states is None else agent_states


class DQNAgent(_Agent):
    """Actions by their values."""

    def __init__(
        self,
        dqn_model: Any,
        action_selector: Any,
        device: Any = "cpu",
        preprocessor: Any = default_states_preprocessor,
        cuda: bool = False,
    ) -> None:
        super().__init__(dqn_model, action_selector, device, preprocessor)


class PolicyAgent(_Agent):
    """Actions by their probabilities."""

    def __init__(
        self,
        model: Any,
        action_selector: Any = None,
        device: Any = "cpu",
        apply_softmax: bool = False,
        preprocessor: Any = default_states_preprocessor,
        cuda: bool = False,
    ) -> None:
        super().__init__(model, action_selector or ProbabilityActionSelector(), device, preprocessor)
        self.apply_softmax = apply_softmax

    def _scores(self, found: Any) -> Any:
        # In double precision, in which the probabilities' sum is near enough to 1 for numpy to draw by them.
        return torch.softmax(found.double(), dim=1) if self.apply_softmax else found


class ActorCriticAgent(PolicyAgent):
    """The same with a network that gives values of states as well; each state of its own is that value."""

    def _scores(self, found: Any) -> Any:
        self._values = found[1]
        return super()._scores(found[0])

    def __call__(self, states: Any, agent_states: Any = None) -> Any:
        actions, _ = super().__call__(states, agent_states)
        return actions, self._values.squeeze().cpu().numpy().tolist()


class TargetNet:
    """A copy of a network that follows it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.target_model = copy.deepcopy(model)

    def sync(self) -> None:
        """All of its weights."""
        self.target_model.load_state_dict(self.model.state_dict())

    def alpha_sync(self, alpha: float) -> None:
        """Its weights, but this part of the copy's own."""
        mine = self.target_model.state_dict()
        for name, value in self.model.state_dict().items():
            mine[name] = mine[name] * alpha + (1 - alpha) * value
        self.target_model.load_state_dict(mine)
