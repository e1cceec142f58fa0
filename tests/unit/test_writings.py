"""Libraries that steer the training, seen from outside: the model has their import and not their code.

The fixtures play these libraries by a class or a function in the case itself, so that they run without them.
Here the same programs import the real thing, which is not installed: nothing is run.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest
from cases import CASES, Case

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source


@dataclass(frozen=True)
class Library:
    """A library, and the fixtures that play it."""

    imported: str
    name: str
    """What the fixtures define in its place."""
    cases: tuple[str, ...]


LIBRARIES = (
    Library(
        "from accelerate import Accelerator",
        "Accelerator",
        ("undetached_fake/accelerate", "traps/accelerate_gan", "traps/accelerate_style"),
    ),
    Library(
        "from lightning.fabric import Fabric",
        "Fabric",
        ("undetached_fake/fabric", "traps/fabric_style", "traps/fabric_accumulation"),
    ),
    Library(
        "from lightning import LightningModule",
        "LightningModule",
        ("undetached_fake/lightning_manual", "traps/lightning_manual", "traps/lightning_manual_accumulation"),
    ),
    Library(
        "from tqdm import tqdm",
        "tqdm",
        ("carried_hidden_state/enumerate_tqdm", "carried_hidden_state/enumerate_tqdm_right"),
    ),
    Library(
        "from torch.nn.parallel import DistributedDataParallel",
        "DistributedDataParallel",
        ("traps/ddp_no_sync_exit_stack",),
    ),
)
PROGRAMS = [(library, case) for library in LIBRARIES for case in CASES if case.name in library.cases]


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def importing(library: Library, path: Path) -> Source:
    """The program with the library's import where it defines what plays the library."""
    text = path.read_text(encoding="utf-8")
    (played,) = [
        statement
        for statement in ast.parse(text).body
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)) and statement.name == library.name
    ]
    lines = text.splitlines()
    assert played.end_lineno is not None
    # As many lines as before, so that places stay comparable.
    gap = [""] * (played.end_lineno - played.lineno)
    lines[played.lineno - 1 : played.end_lineno] = [library.imported, *gap]
    read = source.parse(str(path), "\n".join([*lines, ""]).encode(), 1 << 24)
    assert isinstance(read, Source)
    return read


def test_every_fixture_is_there() -> None:
    assert {case.name for _, case in PROGRAMS} == {name for library in LIBRARIES for name in library.cases}


@pytest.mark.parametrize(
    ("library", "case"), PROGRAMS, ids=[f"{library.name}-{case.name}" for library, case in PROGRAMS]
)
def test_the_real_import_is_judged_as_what_plays_it(library: Library, case: Case, options: Options) -> None:
    result = driver.repair(importing(library, case.path), options)
    assert not result.problems
    assert not result.remaining
    assert result.after.decode() == importing(library, case.fixed or case.path).text
