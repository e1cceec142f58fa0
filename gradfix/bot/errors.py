"""How the bot fails: every failure knows the exit code that it leads to, and none holds a secret.

Exit codes of the bot: 0, done or nothing to do; 1, partly done, another run may do the rest; 2, it was
called wrongly; 3, the forge does not allow it; 4, the forge asks to come back later.
"""

from __future__ import annotations

DONE, PARTLY, USAGE, NOT_ALLOWED, LIMITED = range(5)


class BotError(Exception):
    """Something that ends the work, or a part of it; the message is for people."""

    exit_code = PARTLY


class UsageError(BotError):
    """The bot was called or configured wrongly."""

    exit_code = USAGE


class NotAllowed(BotError):
    """The token is not known, or may not do this, or a branch is protected."""

    exit_code = NOT_ALLOWED


class RateLimited(BotError):
    """The forge asks to wait for longer than the bot waits."""

    exit_code = LIMITED


class Unreachable(BotError):
    """The forge did not answer, several times; nothing that can be repeated was left half done."""


class AnswerLost(BotError):
    """A request that creates something was sent, and whether it did is not known."""


class Refused(BotError):
    """The forge understood the request and will not do it, since something is in its way (409, 422)."""


class Missing(BotError):
    """There is no such thing on the forge, or the token may not see it (404)."""

    exit_code = USAGE


class LostRace(BotError):
    """A branch was moved by somebody else since it was looked at; it has been left as it is."""
