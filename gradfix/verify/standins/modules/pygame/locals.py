"""What ``from pygame.locals import *`` gives."""

from .color import Color
from .constants import ALL
from .rect import Rect

globals().update(ALL)
__all__ = list(ALL)
__all__ += ["Color", "Rect"]
