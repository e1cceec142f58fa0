"""What keeps an account of training: nothing is logged."""

from __future__ import annotations

from typing import Any

from ....inert import others

__getattr__ = others(__name__)


class _Tracker:
    def __init__(self, writer: Any, *args: Any, **kwargs: Any) -> None:
        self.writer = writer

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: Any) -> None:
        self.writer.close()


class TBMeanTracker(_Tracker):
    """Means of some values at a time."""

    def track(self, param_name: Any, value: Any, iter_index: Any) -> None:
        """Nothing is kept."""


class RewardTracker(_Tracker):
    """What the last episodes gave."""

    def __init__(self, writer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(writer)
        self.total_rewards: list[Any] = []

    def reward(self, reward: Any, frame: int, epsilon: Any = None) -> Any:
        """The mean of a hundred episodes, once there are some."""
        self.total_rewards.append(reward)
        last = self.total_rewards[-100:]
        return sum(last) / len(last) if len(self.total_rewards) > 30 else None
