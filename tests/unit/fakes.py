"""Codemods for tests: each looks for a word and offers other words for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TEMPLATE = '''"""The word {word} is wrong.

Before: ``{word}``. After: another word.
"""

import ast

from gradfix.core.codemod import Claim, Effect, Finding, Fix, Note, ReplaceExpression
from gradfix.core.span import Span


def find(program):
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Name) and node.id == {word!r}:
            span = Span.of(node)
            claim = Claim(raises_line=span.line)
            fixes = tuple(
                Fix(f"say {{text}}", Effect(effect), (ReplaceExpression(span, text),), claim)
                for text, effect in {fixes!r}
            )
            yield Finding({name!r}, "the word {word} is wrong", span, (Note(span, "here"),), fixes)
'''


def write_codemod(folder: Path, name: str, word: str, fixes: Sequence[tuple[str, str]] = ()) -> None:
    """A codemod ``name`` that reports ``word`` and offers ``fixes``: ``(replacement, effect)``."""
    folder.mkdir(exist_ok=True)
    code = TEMPLATE.format(name=name, word=word, fixes=list(fixes))
    (folder / f"{name.replace('-', '_')}.py").write_text(code)


def standard_codemods(folder: Path) -> str:
    """A folder with a codemod for each way that choosing a fix can go."""
    write_codemod(folder, "bad-word", "bad", [("good", "preserves")])
    write_codemod(folder, "broken-word", "broken", [("good", "repairs")])
    write_codemod(folder, "risky-word", "risky", [("good", "changes")])
    write_codemod(folder, "stubborn-word", "stubborn", [("(stubborn)", "preserves"), ("good", "preserves")])
    write_codemod(folder, "traded-word", "traded", [("bad", "repairs")])
    write_codemod(folder, "hopeless-word", "hopeless")
    write_codemod(folder, "idle-word", "idle", [("bad", "preserves")])
    return str(folder)


def gradfix(
    *arguments: object, cwd: Path, env: Mapping[str, str] | None = None, check: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as its user does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    environment.pop("FORCE_COLOR", None)
    return subprocess.run(
        [sys.executable, "-m", "gradfix", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        check=check,
        timeout=120,
    )


def git(*arguments: str, cwd: Path) -> bytes:
    """Run git with a configuration that depends on nothing."""
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false"]
    done = subprocess.run(["git", *settings, *arguments], cwd=cwd, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
