"""Whatever gradfix reads may be a pipe, a device or larger than memory: nobody waits, and nobody fills up."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from gradfix.autograd import imports
from gradfix.bot import plan, secret
from gradfix.bot.errors import UsageError
from gradfix.environment import imports as environment_imports
from gradfix.environment import uv
from gradfix.environment.reading import Collected, Project
from gradfix.pipeline import certificate
from gradfix.project import scanning, source
from gradfix.rules import catalog
from gradfix.system import hostile
from gradfix.verify import command

Told = str | None


def refused(call: Callable[[], object]) -> Told:
    try:
        call()
    except UsageError as error:
        return str(error)
    return None


def stated(path: Path) -> Told:
    collected = Collected("requirements.txt")
    Project(Path("/")).text(path, collected)
    return " ".join(f"{left.text} {left.why}" for left in collected.left_out)


def constraint(path: Path) -> Told:
    os.environ["UV_CONSTRAINT"] = str(path)
    try:
        assert str(path) not in uv.settings()
    finally:
        del os.environ["UV_CONSTRAINT"]
    return None


def imported(path: Path) -> Told:
    """By a script beside it, which adds a folder to its path of imports."""
    script = path.with_name("script.py")
    script.write_text(f"import sys\nimport {path.stem}\nsys.path.append('lib')\n")
    assert imports._added(str(script), (str(path.parent),)) == ()
    assert not imports.trains(str(path))
    assert imports.parse(str(path)) is None
    return None


def scanned(path: Path) -> Told:
    assert scanning.scan(str(path)) == scanning.NOTHING
    assert environment_imports._tree(path) is None
    assert not hostile.read(path, 10) or path.stat().st_size > 10
    command.project_root(path)
    return None


READERS: dict[str, Callable[[Path], Told]] = {
    "source": lambda path: str(source.load(str(path))),
    "certificate": lambda path: str(certificate.read(str(path))),
    "plan": lambda path: refused(lambda: plan.load(str(path))),
    "token": lambda path: refused(lambda: secret.token_if_any({}, str(path))),
    "codemods": lambda path: " ".join(map(str, catalog.load([str(path.parent)]).problems)),
    "requirements": stated,
    "constraint": constraint,
    "imports": imported,
    "scans": scanned,
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(8 << 30)
    path.chmod(0o600)  # As a token is kept.


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("make", "message"), [(pipe, "a named pipe"), (zeros, "a device"), (sparse, "too large to be read")]
)
@pytest.mark.parametrize("reader", READERS)
def test_nobody_waits_and_nobody_fills_up(
    reader: str, make: Callable[[Path], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # As it was; codemods of others set it.
    path = tmp_path / "hostile_file.py"
    make(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = READERS[reader](path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 64 << 10
    if told is not None:
        assert path.name in told
        assert message in told
