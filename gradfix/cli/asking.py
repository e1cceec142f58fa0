"""What `gradfix apply --interactive` asks at the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gradfix.cli.output import put, put_all, refuse, renderer
from gradfix.pipeline.asking import Answer, Choice, Offer
from gradfix.pipeline.results import Attempt
from gradfix.project import source
from gradfix.project.source import Problem
from gradfix.report import evidence
from gradfix.rules.catalog import Catalog
from gradfix.system import files, scratch
from gradfix.system.printable import printable, visible

KEYS = {
    "accept": "ay",
    "skip": "sn",
    "ignore": "i",
    "explain": "x",
    "edit": "e",
    "quit": "q\x04",
}
"""By what is to be done, the keys for it; those of `git add -p` do, too, and the end of the input quits."""
HELP = {
    "accept": "a, y  accept: prove this fix now, and write it if that holds",
    "skip": "s, n  skip: leave this finding as it is",
    "ignore": "i     ignore: add a comment that silences this finding",
    "explain": "x     explain: what is wrong, and when not to fix it",
    "edit": "e     edit: change the file with the fix in it in an editor; that is proved instead",
    "quit": "q     quit: ask nothing more; what was written stays",
}


def must_be_at_a_terminal() -> None:
    """End if nobody could answer."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        refuse("--interactive asks at a terminal, and standard input or output is none")


class Terminal:
    """Somebody at a terminal, who is asked about one finding after the other."""

    def __init__(self, known: Catalog) -> None:
        self._known = known

    def __call__(self, offer: Offer) -> Answer:
        """What is to become of a finding."""
        possible = [name for name in KEYS if offer.after is not None or name not in ("accept", "edit")]
        if offer.trouble:
            put(f"{visible(offer.trouble)}\n")
        else:
            put_all(renderer().offer(offer.source.path, offer.source.text, offer.reported))
            if offer.after is None and offer.reported.fix is not None:
                put("This fix can be accepted with --unsafe-fixes.\n")
        while True:
            match self._key(possible):
                case "accept":
                    return Answer(Choice.ACCEPT)
                case "skip":
                    return Answer(Choice.SKIP)
                case "ignore":
                    return Answer(Choice.IGNORE)
                case "quit":
                    return Answer(Choice.QUIT)
                case "explain":
                    self._explain(offer.reported.finding.code)
                case "edit":
                    answer = _edited(offer)
                    if answer is not None:
                        return answer
                case _:
                    put("".join(f"  {HELP[name]}\n" for name in possible))

    def _key(self, possible: list[str]) -> str:
        """What is to be done; empty if the key is none of those that mean something."""
        names = ", ".join(f"{name} ({KEYS[name][0]})" for name in possible)
        key = read_key(f"{names}, ? ")
        put(f"{key if key.isprintable() else ''}\n")
        return next((name for name in possible if key.lower() in KEYS[name]), "")

    def _explain(self, code: str) -> None:
        codemod = self._known.get(code)
        put(f"{visible(codemod if isinstance(codemod, str) else codemod.in_short)}\n\n")


def showing_outcomes(folder: str | None) -> Callable[[str, int, Attempt], None]:
    """Say what came of a fix that was accepted, and keep its certificate in ``folder``, if there is one."""

    def attempted(path: str, number: int, attempt: Attempt) -> None:
        if folder is not None:
            evidence.save_one(path, number, attempt, folder)
        put_all(renderer().outcome(attempt))

    return attempted


def read_key(question: str) -> str:
    """The next key after ``question``, or the first character of a line where a terminal gives only lines.

    A line's end alone is passed over: who types ``y`` and Enter means one answer.
    """
    with _single_keys():
        put(question)
        while True:
            data = os.read(sys.stdin.fileno(), 1)
            if not data:
                return "\x04"
            if data not in b" \t\r\n":
                return data.decode("ascii", "replace")


@contextmanager
def _single_keys() -> Iterator[None]:
    """Have the terminal hand over each key at once; keys that came before the question are dropped."""
    try:
        import termios
        import tty
    except ImportError:
        yield
        return
    descriptor = sys.stdin.fileno()
    try:
        usual = termios.tcgetattr(descriptor)
    except termios.error:
        yield
        return
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, usual)


def _edited(offer: Offer) -> Answer | None:
    """The file as somebody has edited it, with the fix to begin with; ``None`` if that came to nothing."""
    assert offer.after is not None
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with scratch.folder() as folder:
        path = Path(folder, os.path.basename(offer.source.path))
        files.save(path, offer.after.data)
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except (OSError, ValueError) as error:
            put(f"{printable(f'the editor {editor} cannot be started: {error}')}\n")
            return None
        if done.returncode:
            put(f"{printable(f'the editor {editor} ended with {done.returncode}, so nothing is taken')}\n")
            return None
        parsed = source.read(str(path))
    if isinstance(parsed, Problem):
        put(f"{printable(f'what was edited cannot be taken: {parsed.message}')}\n")
        return None
    return Answer(Choice.ACCEPT, parsed.text)
