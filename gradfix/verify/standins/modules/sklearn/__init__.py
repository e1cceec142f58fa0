"""sklearn: splits, scales, measures, small data sets, groups, neighbours and linear models."""

from ...inert import others

__version__ = "1.3.0"
__getattr__ = others(__name__)
