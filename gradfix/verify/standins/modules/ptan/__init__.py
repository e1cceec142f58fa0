"""ptan: agents, what they experience in environments, and memories of that."""

from ...inert import others
from . import actions, agent, common, experience

__all__ = ["actions", "agent", "common", "experience"]
__getattr__ = others(__name__)
