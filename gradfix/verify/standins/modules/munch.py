"""munch: a dictionary whose keys are attributes."""

from ..fields import Fields as Munch
from ..fields import made as munchify  # noqa: F401
from ..fields import plain as unmunchify  # noqa: F401

DefaultMunch = Munch
