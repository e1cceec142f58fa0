"""Command lines that the project itself shows: in what it says of itself, and in its shell scripts.

``python train.py --dataroot ./datasets/maps --model cycle_gan`` in a README is what a person would type.
An option that a script cannot go without gets its value from there, where one stands there in full. All
that such a line gives is only tried where a run failed without it, as a plan (see ``content``).
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shlex
from collections.abc import Sequence

from . import content, context

FILES = 60
"""Files that are looked at."""
LARGE = 1 << 17
"""Bytes of one, at most."""
OPEN = re.compile(
    r"[$<>{}\[\]`*]|\.\.\.|/path/|^path/|your_|YOUR_|"
    r"(?<!\w)(?:[A-Z0-9]+_)*(?:PATH|DIR|FOLDER|FILE|NAME|ID)(?:_[A-Z]+)*(?!\w)"
)
"""In what somebody has yet to fill in."""
ELSE = re.compile(r"\b(test|eval|evaluate|sample|generate|infer|inference|predict|demo|resume|load)", re.I)
"""In lines by which a script does something else than to train from the beginning."""


@functools.cache
def shown(script: str, folders: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """What the project types behind the name of a script, those first by which it trains."""
    name = re.escape(os.path.basename(script))
    module = re.escape(os.path.splitext(os.path.basename(script))[0])
    started = re.compile(
        r"(?:python[\d.]*|torchrun|launch|deepspeed|mpirun)\b[^|;&]*?"
        r"(?:(?<![\w-])(?:[\w./-]*/)?" + name + r"|-m\s+(?:[\w.]+\.)?" + module + r")(?![\w.])(?P<rest>.*)"
    )
    found: list[tuple[str, ...]] = []
    texts = [context.read(script), *(context.read(one) for one in files(folders))]
    for text in texts:
        for line in re.sub(r"\\\s*\n", " ", text).splitlines():
            at = started.search(line)
            words = split(at["rest"]) if at else ()
            if words and words not in found:
                found.append(words)
    return tuple(sorted(found, key=unlikely))


def unlikely(words: tuple[str, ...]) -> tuple[bool, int]:
    """How unlikely it is that a line trains as it stands: what it does, and what is not filled in."""
    return bool(ELSE.search(" ".join(words))), sum(bool(OPEN.search(one)) for one in words)


def files(folders: tuple[str, ...]) -> list[str]:
    """The files in which commands stand, those nearest to the script first."""
    found = []
    for folder in folders:
        for above, inner, names in context.folders(folder):
            inner[:] = sorted(one for one in inner if one[0] != "." and one != "site-packages")[:40]
            near = above == folder
            found += [
                os.path.join(above, one)
                for one in sorted(names)
                if one.endswith((".sh", ".bash")) or (near and re.match(r"readme|usage|run", one, re.I))
            ]
            if len(found) > FILES:
                break
    kept = [one for one in dict.fromkeys(found[:FILES]) if not one.endswith((".py", ".png", ".gif", ".jpg"))]
    return [one for one in kept if os.path.isfile(one) and os.path.getsize(one) <= LARGE]


def split(text: str) -> tuple[str, ...]:
    """The words of a command up to its end."""
    text = re.split(r"[|;&`]|\s\d?>|</|\s#", text, maxsplit=1)[0]
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return ()


def lines(run: context.Run) -> tuple[tuple[str, ...], ...]:
    """The command lines that the project shows for the script that was started."""
    return shown(run.entry, tuple(run.folders()))


def said(run: context.Run, options: Sequence[str]) -> str | None:
    """What the project types for an option of these names, if it says so in full."""
    for words in lines(run):
        for place, word in enumerate(words):
            name, equals, behind = word.partition("=")
            if name not in options:
                continue
            found = behind if equals else words[place + 1] if place + 1 < len(words) else ""
            if found and not left_open(name, [found]) and not found.startswith("--"):
                return found
    return None


def tried(run: context.Run, parser: argparse.ArgumentParser) -> list[str]:
    """The words to parse: of one of the project's lines, if the plan says so, those that the parser knows."""
    turn = content.book.planned("arguments", "told")
    known = parser._option_string_actions
    every = list(dict.fromkeys(one for one in (understood(words, known) for words in lines(run)) if one))
    every = [words for words in every if not instead(words, known)]
    content.book.told = len(every)
    return [*every[(turn - 1) % len(every)]] if turn and every else []


def instead(words: tuple[str, ...], known: dict[str, argparse.Action]) -> bool:
    """Whether an option says that a script is to do something else: ``--resume`` alone, ``--test 1``."""
    for word, value in zip(words, (*words[1:], "")):
        name, _, behind = word.partition("=")
        found = ELSE.match(name.lstrip("-")) if name in known else None
        if found is None or name.lstrip("-") != found[0]:
            continue
        if isinstance(known[name], argparse._StoreTrueAction) or YES.fullmatch(behind or value):
            return True
    return False


def left_open(option: str, values: Sequence[str]) -> bool:
    """Whether the values of an option are yet to be filled in: ``--kind $KIND``, ``--gpus GPUS``."""
    own = option.lstrip("-").replace("-", "_")
    return any(OPEN.search(one) or one == own.upper() != own for one in values)


YES = re.compile(r"1|true|yes|y", re.I)
"""How somebody says that a switch is on which takes a value."""


def understood(words: tuple[str, ...], known: dict[str, argparse.Action]) -> tuple[str, ...]:
    """The options of a line that a parser knows, each with its values, if these are filled in.

    What makes the script do something else than train (``--mode test``) is left as the script has it.
    """
    found: list[str] = []
    groups: list[list[str]] = []
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            groups.append([word])
        elif groups:
            groups[-1].append(word)
    for option, *values in groups:
        name = option.partition("=")[0]
        action = known.get(name)
        if action is None or isinstance(action, argparse._HelpAction) or left_open(name, [option, *values]):
            continue
        count = 0 if action.nargs == 0 else action.nargs
        if count == 0 or "=" in option:
            found.append(option)
        elif values and not (ELSE.fullmatch(values[0]) and values[0] != action.default is not None):
            found += [
                option,
                *(values if count in ("+", "*") else values[: count if type(count) is int else 1]),
            ]
    return tuple(found)


def advise(run: context.Run) -> str | None:
    """The plan in which the script is started as the project shows it, or as it shows it next."""
    turn = (content.book.planned("arguments", "told") or 0) + 1
    if turn > min(content.book.told, content.TURNS):
        return None
    return content.planned_with("arguments", "told", turn)
