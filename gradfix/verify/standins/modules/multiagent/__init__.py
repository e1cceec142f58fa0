"""multiagent: the particle worlds of OpenAI, with the real spaces and random states."""

from ...inert import others

__getattr__ = others(__name__)
