"""The program of the project, run as a driver: its arguments are made up, and what is absent is left out."""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from typing import Any

from ..probe import coverage
from ..standins import context
from ..standins.schema import Schema, with_entry
from . import gaps, planted
from .given import Given, number
from .loading import _execute, _import_package, _text, begin


def program(path: str) -> None:
    """Run the script at ``path``, from the project's root."""
    run = context.run()
    absolute = os.path.join(os.path.realpath(run.root), path)
    begin(absolute)
    main = sys.modules["__main__"]
    main.__file__ = absolute
    sys.argv[:] = [absolute]
    argparse.ArgumentParser.parse_known_args = _parsing(  # type: ignore[method-assign]
        argparse.ArgumentParser.parse_known_args
    )
    if absolute == run.job.get("path", ""):
        tree = coverage.marked(run.job["source"], absolute, run.job["watched"])
        main.__dict__["__planted__"] = planted
    else:
        tree = ast.parse(_text(absolute), absolute)
    if any(isinstance(one, ast.ImportFrom) and one.level for one in ast.walk(tree)):
        main.__package__ = os.path.dirname(path).replace("/", ".")
        _import_package(main.__package__)
    _texts.append(_text(absolute))
    for statement in gaps.filled(run, absolute, tree).body:
        _execute(statement, main, absolute, only_imports=True)


def _parsing(real: Any) -> Any:
    """``parse_known_args`` with made-up values for arguments that a script insists on."""

    def parse(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
        for action in self._actions:
            if not action.required or isinstance(action, argparse._SubParsersAction):
                continue
            action.required = False
            if not action.option_strings:
                action.nargs = "?"
            if action.default is None:
                action.default = _argument(action)
            context.run().used(f"the argument {action.dest}", repr(action.default))
        return real(self, args, namespace)

    return parse


def _argument(action: argparse.Action) -> Any:
    """The value of an argument that nobody gives."""
    run = context.run()
    if action.type in (int, float):
        found = number(action.dest)
        return action.type(1) if isinstance(found, Given) else action.type(found)
    words = list(action.choices or _compared(action.dest))
    told = re.findall(r"[\w-]+", action.help or "") if isinstance(action.help, str) else []
    words = [one for one in told if any(str(word) in one for word in words)] + words
    about = os.path.splitext(os.path.basename(run.job.get("path", "")))[0].lower()
    words.sort(key=lambda one: (not _shares(str(one).lower(), about), "train" not in str(one)))
    if len(words) > 1:
        run.words[action.dest] = len(words)
    return words[run.schema.get("words", {}).get(action.dest, 0) % len(words)] if words else action.dest


def _shares(word: str, name: str) -> bool:
    """Whether some letters of a word stand in a name as well."""
    return any(word[at : at + SHARED] in name for at in range(len(word) - SHARED + 1))


SHARED = 5
_texts: list[str] = []
"""The script's own."""


def _compared(name: str) -> list[str]:
    """The words that a script compares something of this name with."""
    found: dict[str, None] = {}
    for text in _texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Compare):
                both = [node.left, *node.comparators]
                if any(name == getattr(one, "attr", getattr(one, "id", "")) for one in both):
                    words = [one.value for one in both if isinstance(one, ast.Constant)]
                    found.update(dict.fromkeys(one for one in words if isinstance(one, str) and one))
    return list(found)


def other_words(run: context.StandinRun) -> Schema | None:
    """The schema with the next word for an argument, where the script has not trained with this one."""
    for name, count in run.words.items():
        at = run.schema.get("words", {}).get(name, 0) + 1
        if at < min(count, WORDS):
            return with_entry(run.schema, "words", name, at)
    return None


WORDS = 6
"""How many words are tried for an argument."""
