"""The replay memory."""

from ..stable_baselines3.common.buffers import ReplayBuffer, ReplayBufferSamples, RolloutBuffer

__all__ = ["ReplayBuffer", "ReplayBufferSamples", "RolloutBuffer"]
