"""The base classes."""

from ...environments import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper

__all__ = ["ActionWrapper", "Env", "ObservationWrapper", "RewardWrapper", "Wrapper"]
