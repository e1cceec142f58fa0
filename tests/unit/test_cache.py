"""The cache of ``check``: what it gives is what looking again would give, whatever has changed or broken."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple
from unittest.mock import patch

import pytest
from fakes import ROOT, gradfix, write_codemod
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradfix.pipeline import analysis, driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.pipeline.results import Report
from gradfix.project import source, traces
from gradfix.rules import catalog
from gradfix.system import store

TRAINER = """
class Trainer:
    def __init__(self, generator, discriminator, g_optimizer, d_optimizer):
        self.G, self.D = generator, discriminator
        self.g_optimizer, self.d_optimizer = g_optimizer, d_optimizer

    def epoch(self, batches):
        for real in batches:
            d_loss = self.D(self.G(real).detach()).mean() - self.D(real).mean()
            {clears}
            d_loss.backward()
            self.d_optimizer.step(){comment}
"""
FAULTY = TRAINER.format(clears="pass", comment="")
RIGHT = TRAINER.format(clears="self.d_optimizer.zero_grad()", comment="")
SILENCED = TRAINER.format(clears="pass", comment="  # gradfix: ignore")

MAIN = """
import torch
from networks import network
from trainer import Trainer

if __name__ == "__main__":
    G, D = network(), network()
    trainer = Trainer(G, D, torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters()))
    for _ in range(10):
        trainer.epoch(torch.randn(5, 3, 2))
"""
NETWORKS = """
from torch import nn

def network():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)){how}
"""
LOOP = """
import torch
from losses import loss_of

w = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(w.parameters(), lr=0.1)
for x in torch.randn(10, 2):
    loss = loss_of(w(x))
    loss.backward()
    optimizer.step()
"""
LOSSES = """
def loss_of(y):
    return {value}
"""

PROJECT = {
    "trainer.py": FAULTY,
    "main.py": MAIN,
    "networks.py": NETWORKS.format(how=""),
    "loop.py": LOOP,
    "losses.py": LOSSES.format(value="y.sum()"),
    "pyproject.toml": "",
}


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    """Make the files be there, or, where they hold ``None``, not be there."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project", PROJECT)
    return tmp_path / "project"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache."""
    monkeypatch.setenv("GRADFIX_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept" / "check"


@pytest.fixture(autouse=True)
def nothing_analysed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: what other tests asked of the file system is no part of a trace."""
    for name in ("_asked", "_followed", "_lines"):
        monkeypatch.setattr(traces, name, {})


class Looked(NamedTuple):
    report: Report
    at: list[str]
    """The files that were analysed, by name."""


def _check(folder: str, requested: RequestedOptions, answer: Callable[[object], None]) -> None:
    at: list[str] = []

    def look(file: driver._Loaded, *, with_fixes: bool) -> object:
        at.append(os.path.basename(file.path))
        return real(file, with_fixes=with_fixes)

    real = driver._look
    known = catalog.load if requested.codemods else lambda _: OURS
    with patch.object(driver, "_look", look), patch.object(catalog, "load", known):
        options = driver.prepare([folder], requested)
        assert isinstance(options, Options)
        answer(Looked(driver.check([folder], options), at))


OURS = catalog.load()
"""Loaded before processes are forked, with the model."""
CACHED, UNCACHED = RequestedOptions(cached=True), RequestedOptions()


def check(folder: Path, requested: RequestedOptions = CACHED) -> Looked:
    """Check a folder, in a process that has not seen it before."""
    assert all(codemod.summary for codemod in OURS.codemods)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_check, args=(str(folder), requested, sender.send))
    child.start()
    sender.close()
    found: Looked = receiver.recv()
    child.join()
    return found


def entries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_look_takes_everything_from_the_cache(project: Path, kept: Path) -> None:
    first = check(project)
    assert sorted(first.at) == ["loop.py", "trainer.py"]
    codes = [one.finding.code for one in first.report.findings]
    assert codes == ["missing-zero-grad", "missing-zero-grad"]
    assert check(project) == Looked(first.report, [])
    assert first.report == check(project, UNCACHED).report


@pytest.mark.parametrize(
    ("name", "text", "looked_at"),
    [
        ("loop.py", LOOP.replace("step()", "step()  # gradfix: ignore"), ["loop.py"]),
        ("losses.py", LOSSES.format(value="y.detach().sum()"), ["loop.py"]),
        ("losses.py", f"import trainer\n{LOSSES}", ["loop.py", "trainer.py"]),
        ("losses.py", None, ["loop.py", "trainer.py"]),
        ("losses/__init__.py", "x = 1\n", ["trainer.py"]),
        ("main.py", None, ["trainer.py"]),
        ("networks.py", NETWORKS.format(how=".eval()"), ["trainer.py"]),
        ("below/other.py", "from trainer import Trainer\nTrainer(1, 2, 3, 4)\n", ["trainer.py"]),
        ("notes.txt", "x", []),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_what_has_changed_is_looked_at_again(
    project: Path, kept: Path, name: str, text: str | None, looked_at: list[str]
) -> None:
    check(project)
    write(project, {name: text})
    again = check(project)
    assert sorted(again.at) == looked_at
    assert again.report == check(project, UNCACHED).report


def test_a_module_that_comes_before_another_counts(tmp_path: Path, kept: Path) -> None:
    # In the folder above, which is looked into after the script's own.
    write(tmp_path / "project", {"scripts/loop.py": LOOP, "losses.py": PROJECT["losses.py"]})
    folder = tmp_path / "project" / "scripts"
    assert len(check(folder).report.findings) == 1
    write(folder, {"losses.py": LOSSES.format(value="y.detach().sum()")})
    again = check(folder)
    assert (again.at, again.report) == (["loop.py"], check(folder, UNCACHED).report)
    write(folder, {"losses.py": None})
    back = check(folder)
    assert (back.at, len(back.report.findings)) == (["loop.py"], 1)


def test_what_two_files_import_is_noted_for_both(tmp_path: Path, kept: Path) -> None:
    # The second finds the module loaded, and what it leads to looked for, when it comes to it.
    folder = tmp_path / "project"
    write(folder, {f"{name}.py": LOOP for name in ("first", "second")})
    write(folder, {"losses.py": "from deeper import loss_of\n", "deeper.py": PROJECT["losses.py"]})
    check(folder)
    write(folder, {"deeper.py": LOSSES.format(value="y.detach().sum()")})
    again = check(folder)
    assert sorted(again.at) == ["first.py", "second.py"]
    assert again.report == check(folder, UNCACHED).report


def test_what_is_asked_for_counts(project: Path, kept: Path) -> None:
    everything = check(project).report
    assert len(check(project, RequestedOptions(cached=True, ignore=("missing-zero-grad",))).at) == 2
    write(project, {"pyproject.toml": '[tool.gradfix]\nignore = ["missing-zero-grad"]\n'})
    assert check(project).report.findings == ()
    write(project, {"pyproject.toml": "[tool.gradfix]\nmax-file-size = 10\n"})
    assert len(check(project).report.all_problems) == 2
    write(project, {"pyproject.toml": ""})
    # Not by what it is read from: what is set is the same.
    assert check(project) == Looked(everything, [])


def test_codemods_count_by_what_they_hold(project: Path, kept: Path, tmp_path: Path) -> None:
    requested = RequestedOptions(cached=True, codemods=(str(tmp_path / "codemods"),))
    write_codemod(tmp_path / "codemods", "bad-word", "loss")
    found = check(project, requested)
    assert "bad-word" in {one.finding.code for one in found.report.findings}
    assert check(project, requested) == Looked(found.report, [])
    write_codemod(tmp_path / "codemods", "bad-word", "losses")
    again = check(project, requested)
    assert len(again.at) == 2
    assert "bad-word" not in {one.finding.code for one in again.report.findings}
    write(tmp_path / "codemods", {"_helper.py": "x = 1\n"})
    assert len(check(project, requested).at) == 2


def test_another_gradfix_takes_nothing(project: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(project)
    monkeypatch.setattr("gradfix.pipeline.cache.__version__", "0.0.0")
    assert len(check(project).at) == 2
    monkeypatch.undo()
    monkeypatch.setenv("GRADFIX_CACHE_DIR", str(kept.parent))
    assert check(project).at == []
    monkeypatch.setattr(sys, "version", "4.0")
    assert len(check(project).at) == 2


def test_a_changed_file_of_our_own_is_noticed(project: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(ROOT / "gradfix", site / "gradfix", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "codemods", site / "gradfix" / "codemods")
    found = gradfix("check", cwd=project, env={**keeping(tmp_path), "PYTHONPATH": str(site)})
    assert found.stdout.count(b"missing-zero-grad") == 2
    changed = site / "gradfix" / "codemods" / "missing_zero_grad.py"
    changed.write_text('"""Finds nothing."""\ndef find(program): return []\n')
    again = gradfix("check", cwd=project, env={**keeping(tmp_path), "PYTHONPATH": str(site)})
    assert b"missing-zero-grad" not in again.stdout


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "random": lambda data: os.urandom(len(data)),
    "large": lambda data: data + b" " * store.LARGEST,
    "signed": lambda data: signed(b"[1, 2]"),
    "no list": lambda data: signed(b"7"),
    "too deep": lambda data: signed(b"[" * 100_000),
    "of another type": lambda data: signed(json.dumps([key_in(data), [], {"Span": [1, 2, 3, 4]}]).encode()),
    "of no type": lambda data: signed(json.dumps([key_in(data), [], {"system": ["true"]}]).encode()),
    "no trace": lambda data: signed(json.dumps([key_in(data), [7, "../../x"], None]).encode()),
}


def signed(entry: bytes) -> bytes:
    return traces.digest(entry).encode() + b"\n" + entry


def key_in(data: bytes) -> str:
    with suppress(ValueError, IndexError):
        return str(json.loads(data.split(b"\n", 1)[1])[0])
    return "none"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_replaced(project: Path, kept: Path, damage: str) -> None:
    report = check(project).report
    whole = entries(kept)
    for name, data in whole.items():
        (kept / name).write_bytes(DAMAGES[damage](data))
    again = check(project)
    assert sorted(again.at) == ["loop.py", "trainer.py"]
    assert again.report == report
    assert entries(kept) == whole


def test_an_entry_under_the_name_of_another_is_none(project: Path, kept: Path) -> None:
    report = check(project).report
    whole = entries(kept)
    ours = [name for name, data in whole.items() if b"FileReport" in data]
    assert len(ours) == 2
    (kept / ours[0]).write_bytes(whole[ours[1]])
    (kept / ours[1]).write_bytes(whole[ours[0]])
    assert check(project) == Looked(report, ["loop.py", "trainer.py"])
    assert entries(kept) == whole


def test_what_is_no_regular_file_is_no_entry(project: Path, kept: Path, tmp_path: Path) -> None:
    report = check(project).report
    (tmp_path / "elsewhere").mkdir()
    for number, (name, data) in enumerate(entries(kept).items()):
        (kept / name).unlink()
        if number % 3 == 0:
            os.mkfifo(kept / name)
        elif number % 3 == 1:
            (kept / name).mkdir()
        else:
            (tmp_path / "elsewhere" / name).write_bytes(data)
            (kept / name).symlink_to(tmp_path / "elsewhere" / name)
    assert check(project).report == report


def test_what_went_wrong_is_not_kept(project: Path, kept: Path) -> None:
    write(project, {"loop.py": "loss.backward(\n"})
    for _ in range(2):
        found = check(project)
        assert "loop.py" in found.at
        assert [problem.code for problem in found.report.all_problems] == ["syntax-error"]


def keeping(folder: Path) -> dict[str, str]:
    """The environment of a command that has a cache, below a folder."""
    return {"GRADFIX_NO_CACHE": "", "GRADFIX_CACHE_DIR": str(folder / "kept")}


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_output_is_the_same_to_the_byte(project: Path, tmp_path: Path, form: str) -> None:
    (project / "crlf.py").write_bytes(LOOP.replace("\n", "\r\n").encode())
    (project / "latin.py").write_bytes(b"# coding: latin-1\n# \xe9" + LOOP.encode())
    with open(os.path.join(os.fsencode(project), b"\xff.py"), "w") as stream:
        stream.write(LOOP)
    arguments = ("check", "--output-format", form, ".", "missing.py")
    told = [gradfix(*arguments, cwd=project, env=keeping(tmp_path)) for _ in range(2)]
    told.append(gradfix(*arguments, "--no-cache", cwd=project, env=keeping(tmp_path)))
    assert told[0].stdout.count(b"missing-zero-grad") >= 5
    assert told[0].stderr.count(b"missing.py") == 1
    assert len({(one.returncode, one.stdout, one.stderr) for one in told}) == 1


def test_a_dry_run_is_the_same_too(project: Path, tmp_path: Path) -> None:
    arguments = ("apply", "--dry-run", "--no-verify", "--unsafe-fixes")
    told = [gradfix(*arguments, cwd=project, env=keeping(tmp_path)) for _ in range(2)]
    told.append(gradfix(*arguments, "--no-cache", cwd=project, env=keeping(tmp_path)))
    assert b"zero_grad" in told[0].stdout
    assert len({(one.returncode, one.stdout, one.stderr) for one in told}) == 1
    assert entries(project).keys() == PROJECT.keys()


def test_no_cache_neither_reads_nor_writes(project: Path, tmp_path: Path) -> None:
    for arguments, off in [(["--no-cache"], ""), ([], "1")]:
        env = {**keeping(tmp_path), "GRADFIX_NO_CACHE": off}
        assert gradfix("check", *arguments, cwd=project, env=env).returncode == 1
        assert not (tmp_path / "kept").exists()


def test_a_second_run_imports_no_model(project: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom gradfix.cli.commands import main\nsys.argv = ['gradfix', 'check', '-q']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    print(*sorted(sys.modules))"
    )
    env = {**os.environ, **keeping(tmp_path), "PYTHONPATH": str(ROOT)}
    imported = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=project, env=env, capture_output=True, check=True
        )
        imported.append(set(done.stdout.decode().splitlines()[-1].split()))
    first, second = imported
    heavy = {"gradfix.autograd", "gradfix.codemods.missing_zero_grad"}
    assert heavy <= first
    assert not {*heavy, "gradfix.rewriting.rewrite", "libcst"} & second


def test_the_cache_says_where_it_is_and_is_cleaned(project: Path, tmp_path: Path) -> None:
    env = keeping(tmp_path)
    gradfix("check", cwd=project, env=env)
    folder = Path(gradfix("cache", "dir", cwd=project, env=env).stdout.decode().rstrip("\n"))
    assert folder == tmp_path / "kept" / "check"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "mine.txt").write_text("x")
    files = len(list(folder.iterdir())) - 1
    done = gradfix("cache", "clean", cwd=project, env=env)
    assert done.stdout.startswith(f"Removed {files} files (".encode())
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_two_at_once_do_not_meet(project: Path, kept: Path) -> None:
    for number in range(6):
        write(project, {f"loop_{number}.py": LOOP})
    report = check(project, UNCACHED).report
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(4)]
    children = [
        context.Process(target=_check, args=(str(project), CACHED, sender.send)) for _, sender in pipes
    ]
    for child in children:
        child.start()
    assert all(receiver.recv().report == report for receiver, _ in pipes)
    for child in children:
        child.join()
    assert check(project) == Looked(report, [])
    assert not [name for name in entries(kept) if name.startswith(store._TEMPORARY)]


# ---------------------------------------------------------------------------- what is noted

WIDE = {
    "tools/train.py": """
        import importlib, sys
        import torch
        sys.path.append("../lib")
        import yaml
        import bundle.part
        from added import loss_of
        from . import near
        from loop import step
        chosen = importlib.import_module("chosen")
        w = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(w.parameters(), lr=0.1)
        for x in torch.randn(10, 2):
            loss = bundle.part.halved(chosen.doubled(loss_of(w(x)))) + near.zero + bundle.absent.thing
            loss.backward()
            step(optimizer)
        """,
    "tools/near.py": "zero = 0\n",
    "tools/yaml2.py": "import yaml\n",
    "lib/added.py": "from deep import absent, loss_of\n",
    "lib/deep.py": "def loss_of(y):\n    return y.sum()\n",
    "chosen.py": "def doubled(x):\n    return x * 2\n",
    "bundle/part.py": "from .inner import halved\n",
    "bundle/inner/__init__.py": "def halved(x):\n    return x / 2\n",
    "loop.py": """
        from tools import near
        def step(optimizer):
            optimizer.step()
        def train(network, optimizer, batches):
            for x in batches:
                network(x).sum().backward()
                step(optimizer)
        """,
    "main.py": """
        import nowhere
        import torch
        from tools.near import zero
        from loop import train
        w = torch.nn.Linear(2, 2)
        train(w, torch.optim.SGD(w.parameters(), lr=0.1), torch.randn(3, 2))
        """,
}


def _asked(file: str, answer: Callable[[object], None]) -> None:
    """What the analysis of a file asks of the file system, and does not note."""
    root = file[: file.index("/project/") + len("/project")]
    looked: set[tuple[str, str]] = set()

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event in {"open", "os.scandir", "os.listdir"} and isinstance(arguments[0], str | Path):
            looked.add((event, os.path.abspath(arguments[0])))

    def stated(path: str, **more: object) -> os.stat_result:
        looked.add(("stat", os.path.abspath(path)))
        return real(path, **more)

    real = os.stat
    parsed = source.read(file)
    options = driver.prepare([file], UNCACHED)
    assert isinstance(options, Options) and isinstance(parsed, source.Source)
    sys.addaudithook(note)
    with patch.object(os, "stat", stated), traces.on_behalf_of(file):
        analysis.analyse(parsed, options)
    questions = {
        (kind, os.path.join(folder, name))
        for line in traces.trace(file)
        for folder, groups in json.loads(line).items()
        for kind, _, *names in groups
        for name in names
    }

    def noted(event: str, path: str) -> bool:
        listed = {(kind, path) for kind in (traces.SOURCES, traces.NAMES, traces.FOLDERS)} & questions
        if event in {"os.scandir", "os.listdir"}:
            return bool(listed)
        stems = {path.removesuffix(ending) for ending in traces.ENDINGS} - {path}
        modules = {(traces.MODULE, stem) for stem in stems}
        exact = {(kind, path) for kind in (traces.IS_FILE, traces.IS_FOLDER, traces.EXISTS, traces.CONTENT)}
        within = {(traces.SOURCES, os.path.dirname(path))} if path.endswith(".py") else set()
        return bool((exact | within | (modules if event == "stat" else set())) & questions)

    asked = {one for one in looked if one[1].startswith(root) and one[1] != file}
    answer((sorted(one for one in asked if not noted(*one)), len(asked)))


@pytest.mark.parametrize(("name", "least"), [("tools/train.py", 30), ("loop.py", 20)])
def test_all_that_is_asked_of_the_file_system_is_noted(tmp_path: Path, name: str, least: int) -> None:
    write(tmp_path / "project", {path: dedent(text) for path, text in WIDE.items()})
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    file = str(tmp_path / "project" / name)
    child = multiprocessing.get_context("fork").Process(target=_asked, args=(file, sender.send))
    child.start()
    sender.close()
    unnoted, asked = receiver.recv()
    child.join()
    assert unnoted == []
    assert asked >= least


# ---------------------------------------------------------------------------- the folder


def as_nobody(function: Callable[[], bool]) -> bool:
    """What a function says in a process without rights."""
    if not hasattr(os, "fork") or os.getuid():
        pytest.skip("needs root, to become somebody else")
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        with suppress(BaseException):
            os._exit(0 if function() else 1)
        os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_folder_that_cannot_be_written_is_no_error(project: Path, kept: Path) -> None:
    report = check(project, UNCACHED).report
    kept.parent.write_text("a file")
    assert check(project).report == report
    assert check(project).at != []


def test_a_folder_that_may_only_be_read_still_serves(project: Path, kept: Path) -> None:
    check(project)
    with patch("os.open", side_effect=refuses_to_write(os.open)):
        assert check(project).at == []
        write(project, {"loop.py": LOOP + "\n"})
        assert check(project).at == ["loop.py"]
        assert check(project).at == ["loop.py"]


def refuses_to_write(real: Callable[..., int]) -> Callable[..., int]:
    def opened(path: str, flags: int, *others: int, **more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return real(path, flags, *others, **more)

    return opened


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    for name in ("GRADFIX_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert store.place("check") is None
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert store.place("check") is None
    assert len(check(project).at) == 2


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can come to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_folder_of_somebody_else_is_not_used(public: Path) -> None:
    theirs = public / "kept"
    theirs.mkdir(mode=0o777)
    theirs.chmod(0o777)
    assert not as_nobody(lambda: store.own(str(theirs)))
    mine = public / "mine"
    mine.mkdir()
    os.chown(mine, 65534, 65534)
    assert not as_nobody(lambda: store.own(str(mine)))  # Others may look into it.
    mine.chmod(0o700)
    assert as_nobody(lambda: store.own(str(mine)))
    (public / "link").symlink_to(mine)
    os.lchown(public / "link", 65533, 65533)
    assert not as_nobody(lambda: store.own(str(public / "link")))
    os.lchown(public / "link", 65534, 65534)
    assert as_nobody(lambda: store.own(str(public / "link")))
    (mine / ("a" * 32)).write_bytes(b"of root")
    (mine / ("a" * 32)).chmod(0o644)
    assert as_nobody(lambda: store.read(str(mine), "a" * 32) == b"")


def test_what_a_repository_brings_along_is_not_used(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (project / ".git").mkdir()
    monkeypatch.setenv("GRADFIX_CACHE_DIR", str(project / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [check(project).at for _ in range(2)] == [["loop.py", "trainer.py"]] * 2
    assert not (project / "cache").exists()
    # Whose home is a repository keeps things in it.
    monkeypatch.setenv("HOME", str(project))
    assert [len(check(project).at) for _ in range(2)] == [2, 0]


def test_the_folder_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SIZE", 10 * store.ROOM)
    folder = str(tmp_path)
    names = [f"{number + 1:032x}" for number in range(20)]
    for number, name in enumerate(names):
        store.write(folder, name, b"x")
        when = time.time() - number
        os.utime(tmp_path / name, (when, when))
    old, ahead, new, odd = (f"{number:032x}" for number in range(100, 104))
    for name, when in [(old, time.time() - 40 * store.DAY), (ahead, time.time() + 40 * store.DAY)]:
        store.write(folder, name, b"x")
        os.utime(tmp_path / name, (when, when))
    (tmp_path / f"{store._TEMPORARY}1-{new}").write_bytes(b"is being written")
    (tmp_path / "notes").write_bytes(b"not ours")
    store.sweep(folder)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[:9], f"{store._TEMPORARY}1-{new}", "notes"}
    # Of many that are written, one sweeps: nobody else has to.
    monkeypatch.setattr(store, "SWEEP", 1)
    store.write(folder, odd, b"x" * 5 * store.ROOM)
    assert len(list(tmp_path.iterdir())) == 2 + 5


def test_what_is_used_stays_young(tmp_path: Path) -> None:
    store.write(str(tmp_path), "a" * 32, b"x")
    when = time.time() - 20 * store.DAY
    os.utime(tmp_path / ("a" * 32), (when, when))
    assert store.read(str(tmp_path), "a" * 32) == b"x"
    assert (tmp_path / ("a" * 32)).stat().st_mtime > when + store.DAY


# ---------------------------------------------------------------------------- whatever happens

STATES: dict[str, tuple[str | None, ...]] = {
    "trainer.py": (FAULTY, RIGHT, SILENCED),
    "main.py": (MAIN, None, MAIN.replace("networks", "package.networks"), "import trainer\n"),
    "networks.py": (NETWORKS.format(how=""), None, "from package.networks import network\n"),
    "package/networks.py": (None, NETWORKS.format(how=".requires_grad_(False)")),
    "package/__init__.py": (None, "from networks import *\n"),
    "loop.py": (LOOP, LOOP.replace("import torch\n", "import torch, sys\nsys.path.append('lib')\n", 1)),
    "losses.py": (LOSSES.format(value="y.sum()"), None, LOSSES.format(value="y.detach().sum()")),
    "losses/__init__.py": (None, "from .inner import loss_of\n"),
    "losses/inner.py": (None, LOSSES.format(value="y.detach().mean()")),
    "lib/losses.py": (None, LOSSES.format(value="y.mean()")),
    "other.py": (None, LOOP, MAIN.replace("trainer.epoch", "trainer.d_optimizer.zero_grad\n        #")),
    "setup.py": (None, ""),
}
EDITS = st.lists(
    st.sampled_from([(name, text) for name, texts in STATES.items() for text in texts]),
    min_size=1,
    max_size=3,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EDITS, min_size=2, max_size=4))
def test_findings_with_the_cache_are_those_without(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str | None]]]
) -> None:
    folder = tmp_path_factory.mktemp("edited")
    write(folder / "project", {name: texts[0] for name, texts in STATES.items()})
    with patch.dict(os.environ, {"GRADFIX_CACHE_DIR": str(folder / "kept")}):
        for edits in [[], *rounds]:
            write(folder / "project", dict(edits))
            expected = check(folder / "project", UNCACHED).report
            assert check(folder / "project").report == expected
