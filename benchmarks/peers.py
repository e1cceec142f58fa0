"""What gradfix and other static tools for PyTorch say of the same programs, which are gradfix's own fixtures.

    python benchmarks/peers.py [--only NAME...] [--python310 EXE] [--semgrep-rules DIR] [--write]

Each tool is installed from PyPI, in the version that is pinned below, into an environment of its own in
``benchmarks/.venv-peers``, if it is not there yet, and goes over copies of the programs in another folder.
A program whose header names a fault has to be reported, any other is a trap. One rule counts for all:

* A fault is found if a report stands in the step around a statement at fault: in the outermost loop around
  it, else in its function, else anywhere in the program. A statement is at fault if the correction changes
  it, or if it raises. Where neither is known, a report anywhere does. What a report says is not asked.
* A trap with any report is a false alarm. Reports elsewhere in a program with a fault count for nothing.

Reports on style, speed, an accelerator's memory, seeds and hyperparameters are left out: no program is about
those. ``--python310`` is an interpreter for what does not install on later ones (default: ``python3.10``).
Semgrep's rules are not on PyPI: ``--semgrep-rules`` is the ``python`` folder of a checkout of Trail of Bits'
``semgrep-rules``. What cannot be installed or run is named with the reason.

``--write`` keeps what was measured in ``benchmarks/peers.json``, of which ``tools/generate_docs.py`` makes a
table in ``docs/codemods.md``.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import difflib
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KEPT = HERE / "peers.json"
ENVIRONMENTS = HERE / ".venv-peers"

sys.path.insert(0, str(ROOT / "tests"))
from cases import CASES, Case  # noqa: E402

TIMEOUT = 1800
"""Seconds that a tool may take for all programs."""


class UnavailableError(Exception):
    """A tool cannot be installed or run here; the text is the reason."""


@dataclass(frozen=True)
class Report:
    """One thing that a tool says."""

    path: Path
    line: int | None
    """None if it is said of the whole file."""


Scan = Callable[[Path, Path, Sequence[Path]], Iterable[Report]]
"""Goes over programs: the environment of a tool, the folder with all programs, and the programs."""


@dataclass(frozen=True)
class Peer:
    """A tool: where it comes from, how it is asked, and which of its reports count."""

    name: str
    package: str
    version: str
    scan: Scan
    counted: str
    needs: tuple[str, ...] | None = None
    """All that the part that is asked needs, where the whole needs more."""
    old_python: bool = False


# ---------------------------------------------------------------------------- how each is asked


def _gradfix(_environment: Path, folder: Path, _programs: Sequence[Path]) -> Iterable[Report]:
    command = [sys.executable, "-m", "gradfix", "check", "--no-cache", "--output-format", "json", str(folder)]
    for found in json.loads(_output(command, ROOT)):
        if found["training_steps"] is None:  # The last element counts what was followed, and is no finding.
            yield Report(Path(found["filename"]), found["location"]["row"])


PREFLIGHT_OTHER = frozenset({"TG004", "TG007", "TG008", "TG010", "TG012", "TG013"})
"""Loading, synchronisation, seeds, memory, distributed data, transfers."""


def _preflight(environment: Path, folder: Path, _programs: Sequence[Path]) -> Iterable[Report]:
    command = [str(environment / "bin" / "torch-preflight"), "check", "-f", "json", "-j", "1", str(folder)]
    for found in json.loads(_output(command, folder))["diagnostics"]:
        if found["code"] not in PREFLIGHT_OTHER:
            yield Report(Path(found["path"]), found["line"])


def _torchfix(environment: Path, folder: Path, programs: Sequence[Path]) -> Iterable[Report]:
    command = [str(environment / "bin" / "torchfix"), "--select", "ALL", *map(str, programs)]
    yield from _lines(_output(command, folder), r"^(?P<path>[^:\n]+\.py):(?P<line>\d+):\d+: TOR\d+ ")


def _semgrep(rules: Path | None) -> Scan:
    def scan(environment: Path, folder: Path, _programs: Sequence[Path]) -> Iterable[Report]:
        if rules is None:
            raise UnavailableError(
                "its rules for PyTorch are not on PyPI, and `--semgrep-rules` was not given"
            )
        quiet = ["--metrics", "off", "--disable-version-check", "--quiet", "--json", "--no-git-ignore"]
        command = [str(environment / "bin" / "semgrep"), "scan", *quiet, "--config", str(rules), str(folder)]
        for found in json.loads(_output(command, folder))["results"]:
            if "torch" in found["check_id"].rsplit(".", 1)[-1]:
                yield Report(Path(found["path"]), found["start"]["line"])

    return scan


DSLINTER = "gradient-clear-pytorch,mode-toggling-pytorch,forward-pytorch"


def _dslinter(environment: Path, folder: Path, programs: Sequence[Path]) -> Iterable[Report]:
    options = [
        "--load-plugins=dslinter",
        "--disable=all",
        f"--enable={DSLINTER}",
        "--output-format=parseable",
    ]
    printed = _output([str(environment / "bin" / "pylint"), *options, *map(str, programs)], folder)
    yield from _lines(printed, r"^(?P<path>[^:\n]+\.py):(?P<line>\d+): \[")


MLDOCT = """
import importlib.util, json, sys
(folder,) = importlib.util.find_spec("mldoctor").submodule_search_locations
sys.path.insert(0, folder)  # The package itself imports torch.
from linter import lint_script
for path in sys.argv[1:]:
    for found in lint_script(path)[0]:
        if found["severity"] != "INFO" and found["type"] != "cpu_bottleneck":
            print(json.dumps([path, found["line"]]))
"""

PULSEML = """
import ast, json, sys
from pulse.pulse_cli import _mllint_scan
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    for _, line, _ in _mllint_scan([(path, path, text, ast.parse(text))]):
        print(json.dumps([path, line]))
"""


def _driven(driver: str) -> Scan:
    """A linter that is called as a function, for its command has no output that could be read."""

    def scan(environment: Path, folder: Path, programs: Sequence[Path]) -> Iterable[Report]:
        command = [str(environment / "bin" / "python"), "-c", driver, *map(str, programs)]
        for line in _output(command, folder).splitlines():
            if line.startswith('["'):
                path, row = json.loads(line)
                yield Report(Path(path), row)

    return scan


def _output(command: Sequence[str], folder: Path) -> str:
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"it does not run here: {error}") from error
    if not ran.stdout.strip() and "Traceback" in ran.stderr:
        raise UnavailableError(f"it does not run here: {ran.stderr.strip().splitlines()[-1]}")
    return ran.stdout


def _lines(printed: str, pattern: str) -> Iterable[Report]:
    for found in re.finditer(pattern, printed, re.MULTILINE):
        yield Report(Path(found["path"]), int(found["line"]))


def peers(semgrep_rules: Path | None) -> tuple[Peer, ...]:
    """All tools beside gradfix."""
    return (
        Peer(
            "torch-preflight",
            "torch-preflight",
            "0.5.0",
            _preflight,
            "rules on graphs, evaluation, clearing, losses and modes",
        ),
        Peer(
            "mldoct",
            "mldoct",
            "1.0.0",
            _driven(MLDOCT),
            "warnings and worse but for data loaders",
            needs=(),
        ),
        Peer("pulseml's linter", "pulseml", "1.3.14", _driven(PULSEML), "all of its static checks"),
        Peer(
            "dslinter",
            "dslinter",
            "2.0.9",
            _dslinter,
            "clearing, modes, `forward`",
            old_python=True,
        ),
        Peer("TorchFix", "torchfix", "0.7.0", _torchfix, "all rules"),
        Peer(
            "Semgrep",
            "semgrep",
            "1.185.0",
            _semgrep(semgrep_rules),
            "Trail of Bits' rules for PyTorch",
        ),
    )


# ---------------------------------------------------------------------------- environments


def _installed(peer: Peer, python310: str) -> Path:
    environment = ENVIRONMENTS / f"{peer.package}-{peer.version}"
    if (environment / "installed").exists():
        return environment
    python = shutil.which(python310) if peer.old_python else sys.executable
    if python is None:
        raise UnavailableError(f"it needs Python 3.10 at most, and there is no `{python310}`")
    print(f"Setting up {environment.relative_to(ROOT)}", file=sys.stderr)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    package = f"{peer.package}=={peer.version}"
    commands = [[python, "-m", "venv", "--clear", str(environment)]]
    commands += [[*pip, package]] if peer.needs is None else [[*pip, "--no-deps", package, *peer.needs]]
    try:
        for command in commands:
            subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnavailableError(f"it does not install here: {_reason(error)}") from error
    (environment / "installed").touch()
    return environment


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    printed = getattr(error, "stderr", None) or str(error)
    told = [line for line in printed.splitlines() if line.lower().startswith("error")]
    return (told or printed.splitlines() or [""])[-1].strip()


# ---------------------------------------------------------------------------- the rule


def at_fault(case: Case) -> list[range] | None:
    """The lines of the steps around what is at fault; None for the whole program."""
    text = case.path.read_text(encoding="utf-8")
    lines = _changed(text, case.fixed.read_text(encoding="utf-8")) if case.fixed else set()
    if case.raises is not None:
        lines.add(case.raises[1])
    return [_step(ast.parse(text), line) for line in sorted(lines)] if lines else None


def _changed(before: str, after: str) -> set[int]:
    """The lines, from 1, that a correction changes or takes away, and those beside what it adds."""
    old = before.splitlines()
    found: set[int] = set()
    for kind, start, end, _, _ in difflib.SequenceMatcher(None, old, after.splitlines()).get_opcodes():
        if kind == "insert":
            found |= {max(start, 1), min(start + 1, len(old))}
        elif kind != "equal":
            found |= set(range(start + 1, end + 1))
    return {line for line in found if old[line - 1].strip()}


def _step(tree: ast.Module, line: int) -> range:
    """The lines of the outermost loop around a line, within its function; else of the function or program."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and line in _lines_of(node)]
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    home = max(functions, key=lambda node: node.lineno, default=None)
    loops: list[ast.stmt] = [node for node in around if isinstance(node, (ast.For, ast.While))]
    if home is not None:
        loops = [node for node in loops if node.lineno > home.lineno] or [home]
    return max(map(_lines_of, loops), key=len, default=range(1, (tree.body[-1].end_lineno or 0) + 1))


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def found(case: Case, lines: Collection[int | None]) -> bool:
    """Whether reports in these lines tell the fault of a case."""
    if not lines:
        return False
    steps = at_fault(case)
    return (
        steps is None
        or None in lines
        or any(line in step for line in lines if line is not None for step in steps)
    )


def kind(case: Case) -> str:
    """What a fault does: ``raises``, ``trains wrongly`` or ``wastes work``."""
    if case.raises is not None:
        return "raises"
    return "wastes work" if case.effect == "preserves" else "trains wrongly"


KINDS = ("raises", "trains wrongly", "wastes work")


# ---------------------------------------------------------------------------- the measurement


def measured(scan: Scan, environment: Path, counted: Sequence[Case]) -> dict[str, object]:
    """How many faults a tool finds, by kind, and how many traps it reports."""
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        # A name without "test", where some tools do not look.
        folder = Path(name).resolve() / "programs"
        corrections = shutil.ignore_patterns("*.fixed.py", "__pycache__", "README.md")
        shutil.copytree(ROOT / "tests" / "fixtures", folder, ignore=corrections)
        places = {folder / case.path.parent.name / case.path.name: case for case in counted}
        said: dict[str, set[int | None]] = {}
        for report in scan(environment, folder, list(places)):
            case = places.get((folder / report.path).resolve())
            if case is not None:
                said.setdefault(case.name, set()).add(report.line)
    faults = [case for case in counted if case.fault != "none" and found(case, said.get(case.name, ()))]
    traps = [case for case in counted if case.fault == "none" and case.name in said]
    return {
        "found": {each: sum(kind(case) == each for case in faults) for each in KINDS},
        "false alarms": len(traps),
    }


def main() -> None:
    """Measure, print and, if asked, keep."""
    parser = argparse.ArgumentParser(description="Compares gradfix with other tools on its own fixtures.")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help="names of packages")
    parser.add_argument("--python310", metavar="EXE", default="python3.10")
    parser.add_argument("--semgrep-rules", metavar="DIR", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rules = options.semgrep_rules.resolve() if options.semgrep_rules else None
    wrong = [case for case in CASES if case.fault != "none"]
    result: dict[str, object] = {
        "date": datetime.date.today().isoformat(),
        "revision": _git("rev-parse", "--short", "HEAD"),
        "python": platform.python_version(),
        "faults": {each: sum(kind(case) == each for case in wrong) for each in KINDS},
        "traps": len(CASES) - len(wrong),
        "tools": (tools := [{"name": "gradfix", "counted": "all", **measured(_gradfix, HERE, CASES)}]),
    }
    for peer in peers(rules):
        if options.only and peer.package not in options.only:
            continue
        row: dict[str, object] = {"name": peer.name, "version": peer.version, "counted": peer.counted}
        try:
            row.update(measured(peer.scan, _installed(peer, options.python310), CASES))
        except UnavailableError as error:
            row["unavailable"] = str(error)
        tools.append(row)
        print(json.dumps(row), file=sys.stderr)
    print(json.dumps(result, indent=2))
    if options.write:
        KEPT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
