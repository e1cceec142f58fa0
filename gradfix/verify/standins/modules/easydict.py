"""easydict: a dictionary whose keys are attributes."""

from ..fields import Fields as EasyDict  # noqa: F401
