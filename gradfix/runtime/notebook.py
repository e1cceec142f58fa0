"""What the code of a notebook finds when it runs without IPython."""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import linecache
import re
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

from . import FOLDER

END = re.compile(r"pass  # end of cell (\d+)")
"""What stands between two cells in the code of a notebook (see ``project/notebooks.py``)."""

MARK = "# IPython: "
"""Before a line of IPython's, in the comment of what takes its place (see ``project/notebooks.py``)."""


def is_notebook(path: str) -> bool:
    return path.endswith(".ipynb")


class NeedsIPython(RuntimeError):
    """The script goes by what only IPython can do."""

    __module__ = "builtins"  # It is shown by its own name.


class Shell:
    """What ``get_ipython()`` gives: magics and shell commands do nothing, and have no output."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}

    def run_line_magic(self, *arguments: object) -> None:
        """Nothing for a magic that the script calls; without arguments it stands for one that matters."""
        if not arguments:
            raise _refused()

    def run_cell_magic(self, *_: object) -> None:
        pass

    def magic(self, *_: object) -> None:
        pass

    def system(self, *_: object) -> None:
        pass

    def getoutput(self, *_: object) -> Any:
        raise _refused()

    def captured(self) -> types.SimpleNamespace:
        """What ``%%capture`` has caught, which is nothing."""
        return types.SimpleNamespace(stdout="", stderr="", outputs=[], show=lambda: None)


def _refused() -> NeedsIPython:
    frame = sys._getframe(2)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    what = line.partition(MARK)[2].strip() or line.strip()
    return NeedsIPython(f"`{what}` needs IPython, and is not run")


def display(*_: object, **__: object) -> None:
    """Nobody looks at it."""


def provide(namespace: dict[str, Any]) -> None:
    """Give the code what IPython gives it; it has no file."""
    namespace.pop("__file__", None)
    shell = Shell()

    def get_ipython() -> Shell:
        return shell

    vars(builtins).update(get_ipython=get_ipython, display=display)


def flags_of(tree: ast.Module) -> int:
    """How IPython compiles: ``await`` may stand at the top, and imports from ``__future__`` in any cell.

    These are taken out of ``tree``.
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for node in list(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            tree.body.remove(node)
            for alias in node.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


def execute(code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run the code of all cells."""
    waiting = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio

        asyncio.run(waiting)


def compiled(source: str, path: str) -> types.CodeType:
    """The code of all cells; its lines are what tracebacks show."""
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    tree = ast.parse(source, path)
    flags = flags_of(tree)
    code: types.CodeType = compile(tree, path, "exec", flags, dont_inherit=True)
    return code


def place(source: str, line: int) -> tuple[int, int]:
    """The cell that a line of the code is in, and its number within that."""
    row = 0
    cells = []
    for number, text in enumerate(source.splitlines(), start=1):
        row += 1
        if number == line:
            cells.append(row)
        if (end := END.fullmatch(text)) is not None:
            if cells:
                return int(end[1]), cells[0]
            row = 0
    return 0, line


def _own(stack: traceback.StackSummary, path: str) -> Iterator[traceback.FrameSummary]:
    """The frames from the notebook on, without ours."""
    entered = all(frame.filename != path for frame in stack)
    for frame in stack:
        entered = entered or frame.filename == path
        if entered and not frame.filename.startswith(FOLDER):
            yield frame


def traceback_of(error: BaseException, source: str, path: str) -> str:
    """What Python prints of an error, with the places in the notebook by cell and line."""
    told = traceback.TracebackException.from_exception(error)
    waiting, seen = [told], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        one.stack[:] = list(_own(one.stack, path))
        for frame in one.stack:
            if frame.filename == path and frame.lineno:
                _ = frame.line  # It is read while the number is that of the code.
                before = frame.lineno
                cell, frame.lineno = place(source, before)
                last = getattr(frame, "end_lineno", None)
                if last is not None:
                    frame.end_lineno = last + frame.lineno - before
                frame.filename = f"{path}, cell {cell}"
    return "".join(told.format())
