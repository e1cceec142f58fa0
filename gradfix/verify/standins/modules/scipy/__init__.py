"""scipy: what scripts for training take from it, by numpy; files that are not there are made up."""

from ...inert import others

__version__ = "1.11.0"
__getattr__ = others(__name__)
