"""configargparse: argparse with other names, and options that files of settings may give."""

from __future__ import annotations

import argparse
import inspect
from argparse import (
    ArgumentDefaultsHelpFormatter,  # noqa: F401
    HelpFormatter,  # noqa: F401
    Namespace,  # noqa: F401
    RawDescriptionHelpFormatter,  # noqa: F401
    RawTextHelpFormatter,  # noqa: F401
)
from typing import Any

OWN = ("is_config_file", "is_config_file_arg", "is_write_out_config_file_arg", "env_var")


def add(self: Any, *names: str, **settings: Any) -> Any:
    """An option; that it may stand in a file or in the environment is left out."""
    return self.add_argument(*names, **{name: value for name, value in settings.items() if name not in OWN})


class ArgumentParser(argparse.ArgumentParser):
    """A parser of command lines only."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        taken = inspect.signature(argparse.ArgumentParser.__init__).parameters
        super().__init__(*args, **{name: value for name, value in settings.items() if name in taken})

    def add_argument(self, *names: Any, **settings: Any) -> Any:
        """As ever, without what is said of files."""
        return super().add_argument(
            *names, **{name: value for name, value in settings.items() if name not in OWN}
        )


ArgParser = Parser = ArgumentParser
for _owner in (ArgumentParser, argparse._ArgumentGroup):
    for _name in ("add", "add_arg"):
        setattr(_owner, _name, add)
YAMLConfigFileParser = DefaultConfigFileParser = object
