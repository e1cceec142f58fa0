"""The wrappers of games."""

from ..stable_baselines3.common.atari_wrappers import (
    ClipRewardEnv,
    EpisodicLifeEnv,
    FireResetEnv,
    MaxAndSkipEnv,
    NoopResetEnv,
    WarpFrame,
)

__all__ = ["ClipRewardEnv", "EpisodicLifeEnv", "FireResetEnv", "MaxAndSkipEnv", "NoopResetEnv", "WarpFrame"]
