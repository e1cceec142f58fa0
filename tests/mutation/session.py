"""Takes guards out, one at a time, and holds the programs against what the tests assert of them.

What the model makes of a version of a file does not depend on the codemods, so it is kept from one guard to
the next, and so is what a codemod finds where the guard that is out has decided nothing.
"""

from __future__ import annotations

import builtins
import importlib
import signal
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from guards import NAME, Guard, Switchboard

if TYPE_CHECKING:
    from examples import Example

ROOT = Path(__file__).parents[2]
NOT_CODEMODS = {"__init__", "catalog", "gan_order"}
"""What finds no mistakes."""
SECONDS = 5
"""No program takes more of the processor, whichever guard is out: what goes on for ever is noticed too."""


class TooLong(BaseException):
    """A guard is out without which something does not come to an end; no codemod may catch that."""


class Session:
    """gradfix with its guards compiled in. Only one can be in a process, before gradfix is imported."""

    def __init__(self) -> None:
        assert not any(name.startswith("gradfix.rules") for name in sys.modules)
        self.board = Switchboard()
        setattr(builtins, NAME, self.board.value)
        paths = [ROOT / "codemods", ROOT / "gradfix" / "rules"]
        modules = sorted(p for folder in paths for p in folder.rglob("*.py") if p.stem not in NOT_CODEMODS)
        get_code = SourceFileLoader.get_code

        def instrumented(loader: SourceFileLoader, name: str) -> CodeType | None:
            path = Path(loader.path)
            if path not in modules:
                return get_code(loader, name)
            return compile(self.board.compiled(path.read_text(), path.stem), str(path), "exec")

        SourceFileLoader.get_code = instrumented  # type: ignore[method-assign, assignment]
        from gradfix.pipeline import driver
        from gradfix.pipeline.options import Options, RequestedOptions

        prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
        assert isinstance(prepared, Options)
        self.options = prepared
        loaded = [codemod.module() for codemod in prepared.catalog.codemods]
        within = (p.relative_to(ROOT).with_suffix("").parts for p in modules if p.parent != paths[0])
        loaded += [importlib.import_module(".".join(parts)) for parts in within]
        held = [value for module in loaded for value in vars(module).values()]
        self._memories = [value.cache_clear for value in held if hasattr(value, "cache_clear")]
        self._versions: dict[Hashable, Any] = {}
        self._found: dict[Hashable, Any] = {}
        self._keep_versions()
        self._keep_findings()

    @property
    def guards(self) -> list[Guard]:
        """All of them, in the order of their numbers."""
        return self.board.guards

    def _keep_versions(self) -> None:
        """Have the model run once on each version of a file."""
        from gradfix.autograd.program import Program
        from gradfix.pipeline import analysis, choosing

        run_model = analysis.run_model

        def kept(parsed: Any, ways: Collection[tuple[str, str]] | None = None) -> Any:
            key = parsed.path, parsed.text, None if ways is None else frozenset(ways)
            if key not in self._versions:
                self._versions[key] = run_model(parsed, ways)
            return self._versions[key]

        def fails(path: str, what: str, error: Exception) -> Any:
            raise error

        analysis.run_model = choosing.run_model = kept
        analysis.problem_of = fails
        Program.release = lambda self: None  # type: ignore[method-assign]

    def _keep_findings(self) -> None:
        """Have a codemod look again only where the guard that is out may decide what it finds."""
        from gradfix.core.codemod import Codemod

        def find(codemod: Codemod) -> Callable[[Any], list[Any]]:
            def found(program: Any) -> list[Any]:
                runs = tuple((len(entry.runs), len(entry.pending)) for entry in program.entry_points)
                key = codemod.name, id(program), runs
                if key not in self._found or self.board.out in self._found[key][1]:
                    before = self.board.decisive
                    self.board.decisive = set()
                    for clear in self._memories:
                        clear()
                    for run in (run for entry in program.entry_points for run in entry.runs):
                        run.index = None  # It has the answers about single events.
                    try:
                        result = list(codemod.module().find(program))
                        if self.board.out not in self.board.decisive:
                            self._found[key] = result, frozenset(self.board.decisive)
                        return result
                    finally:
                        self.board.decisive |= before
                self.board.decisive |= self._found[key][1]
                return self._found[key][0]  # type: ignore[no-any-return]

            return found

        Codemod.find = property(find)  # type: ignore[assignment, method-assign]

    def outcome(self, example: Example, out: int | None = None) -> Hashable:
        """What the tests assert of a program while a guard is out; or what it fails by."""

        def stop(number: int, frame: FrameType | None) -> None:
            raise TooLong

        before = signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        self.board.out = out
        try:
            return example.outcome(self.options)
        except (Exception, TooLong) as error:
            return repr(error)
        finally:
            self.board.out = None
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    def noticed(self, example: Example, among: Collection[int]) -> Iterator[int]:
        """The guards of ``among`` that a program needs: without one of them, something else comes of it."""
        self._versions.clear()
        self._found.clear()
        self.board.decisive = set()
        right = self.outcome(example)
        decisive = sorted(self.board.decisive.intersection(among))
        for number in decisive:
            if self.outcome(example, number) == right:
                continue
            # Runs that were made on demand for one guard may be there for the next: then all is made anew.
            if self.outcome(example) != right:
                self._versions.clear()
                self._found.clear()
                self.outcome(example)
                if self.outcome(example, number) == right:
                    continue
            yield number


def survey(session: Session, examples: Iterable[Example], among: Iterable[int]) -> dict[int, str]:
    """Those of some guards that a program needs, each with the first that does."""
    witnesses: dict[int, str] = {}
    waiting = set(among)
    for example in examples:
        if not waiting:
            break
        for number in session.noticed(example, waiting):
            witnesses[number] = example.name
        waiting.difference_update(witnesses)
    return witnesses
