"""Errors."""


class Error(Exception):
    """Any error of an environment."""


class DependencyNotInstalled(Error):
    """Something is missing."""


class UnregisteredEnv(Error):
    """There is no such environment."""


class ResetNeeded(Error):
    """An episode is over."""
