"""What is registered: everything that can be made."""

from __future__ import annotations

from ...environments import ActionWrapper, Env, ObservationWrapper, RewardWrapper, Wrapper, register, registry

__all__ = ["ActionWrapper", "Env", "ObservationWrapper", "RewardWrapper", "Wrapper", "register", "registry"]
