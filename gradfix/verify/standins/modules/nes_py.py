"""nes_py: games of a console; what presses its buttons is chosen by number."""

from __future__ import annotations

import sys
from typing import Any

from ..environments import ActionWrapper
from ..spaces import Discrete


class JoypadSpace(ActionWrapper):
    """A game with as many actions as there are combinations of buttons."""

    def __init__(self, env: Any, actions: Any) -> None:
        super().__init__(env)
        self.meanings = [" ".join(one) for one in actions]
        self.action_space = Discrete(len(self.meanings))

    def get_action_meanings(self) -> list[str]:
        """The combinations."""
        return self.meanings

    get_keys_to_action = dict


BinarySpaceToDiscreteSpaceEnv = JoypadSpace
wrappers = sys.modules[__name__]
