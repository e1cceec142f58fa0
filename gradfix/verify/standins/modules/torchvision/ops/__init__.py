"""Operations on boxes and regions of pictures, and layers that networks are made of."""

from .boxes import *  # noqa: F403
from .deform import *  # noqa: F403
from .feature_pyramid_network import *  # noqa: F403
from .losses import *  # noqa: F403
from .misc import *  # noqa: F403
from .poolers import *  # noqa: F403
