"""Another place of the same classes."""

from . import (  # noqa: F401
    CloudpickleWrapper,
    DummyVecEnv,
    ShmemVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)
