"""What several test modules need, as `cases`: the fixtures of the codemods, with what their headers say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Case:
    """One fixture: a program, what it must become, and what its header says of it."""

    path: Path
    fixed: Path | None
    fault: str
    effect: str
    raises: tuple[str, int] | None
    """The kind of autograd's error and its line; None if nothing is raised."""

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"


def _case(path: Path) -> Case:
    head = dict(re.findall(r"^# (fault|effect|raises): (.*?)\r?$", path.read_bytes().decode(), re.M))
    error = re.match(r"(E\d) at line (\d+)", head["raises"])
    fixed = path.with_suffix(".fixed.py")
    return Case(
        path,
        fixed if fixed.exists() else None,
        head["fault"],
        head["effect"],
        (error[1], int(error[2])) if error else None,
    )


CASES = [_case(p) for p in sorted(FIXTURES.glob("*/*.py")) if not p.name.endswith(".fixed.py")]
