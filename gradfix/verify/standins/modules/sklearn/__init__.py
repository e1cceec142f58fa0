"""sklearn: splits, scales, measures and small data sets; its estimators only where their values are shown."""

from ...inert import others

__version__ = "1.3.0"
__getattr__ = others(__name__)
