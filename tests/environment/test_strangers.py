"""What a wheel brings along runs in the sandbox and nowhere else: neither while it is installed nor later.

The wheels here try to leave a canary and to learn secrets whenever an interpreter of theirs starts,
by a ``.pth`` file. What they have learnt they tell in the error of a torch that cannot be imported.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from wheels import Index

from gradfix.cli import environment as cli
from gradfix.cli.commands import app
from gradfix.environment import build
from gradfix.environment.build import ensure
from gradfix.environment.errors import EnvironmentFailure
from gradfix.runtime import sandbox
from gradfix.verify import jobs, runner, sandboxes, untrusted_environments
from gradfix.verify.interpreter import Interpreter, choose_interpreter

SECRET = "open-sesame-4711"
CURIOUS = """\
import os
learnt = []
def leave(place):
    try:
        open(os.path.join(place, "canary"), "w").close()
        learnt.append("wrote to " + place)
    except OSError:
        pass
def read(path):
    try:
        learnt.append(open(path, "rb").read().decode("utf-8", "replace"))
    except OSError:
        pass
leave({canaries!r})
leave(os.path.dirname(__file__))
read({secret!r})
for number in range(1, 5):
    read("/proc/%d/environ" % number)
read("/proc/%d/environ" % os.getppid())
learnt += os.environ.values()
"""
TORCH = """\
import curious
learnt = "all" if {secret!r} in str(curious.learnt) else str(
    [one for one in curious.learnt if one.startswith("wrote to ")] or "nothing")
raise ImportError("it has learnt " + learnt)
"""
SCRIPT = """\
import torch
w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    opt.step()
"""

needs_sandbox = pytest.mark.skipif(
    "GRADFIX_TESTS_WITHOUT" in os.environ, reason="what the sandbox refuses is seen where there is one"
)


@pytest.fixture
def canaries(tmp_path: Path) -> Path:
    (tmp_path / "canaries").mkdir()
    return tmp_path / "canaries"


@pytest.fixture
def planted(index: Index, canaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index with such wheels, and secrets where users have them."""
    (tmp_path / "secret.txt").write_text(SECRET)
    for name in ("GRADFIX_TOKEN", "HF_TOKEN", "UV_INDEX_PRIVATE_PASSWORD", "UNSUSPICIOUS"):
        monkeypatch.setenv(name, SECRET)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    curious = CURIOUS.format(canaries=str(canaries), secret=str(tmp_path / "secret.txt"))
    files = {"curious.pth": "import curious\n", "curious.py": curious}
    index.wheel("torch", modules={**files, "torch/__init__.py": TORCH.format(secret=SECRET)})
    return index


@needs_sandbox
def test_a_pth_file_runs_in_the_sandbox_only(planted: Index, project: Path, canaries: Path) -> None:
    (project / "train.py").write_text(SCRIPT)
    with pytest.raises(SystemExit):
        cli.run([str(project / "train.py")])
    (environment,) = build.cache.home().glob("*/" + untrusted_environments.MANIFEST)
    packages = [path.name for path in environment.parent.glob("lib/*/site-packages/__pycache__/*")]
    assert any(name.startswith("curious.") for name in packages), "it was not compiled"
    done = CliRunner().invoke(app, ["verify", "--env", "auto", str(project / "train.py")])
    assert "torch cannot be imported: ImportError: it has learnt nothing" in done.output, done.output
    executable = str(environment.parent / "bin/python")
    done = CliRunner().invoke(app, ["verify", "--python", executable, str(project / "train.py")])
    assert "torch cannot be imported: ImportError: it has learnt nothing" in done.output, done.output
    assert not list(canaries.iterdir())


def test_wishes_of_the_user_s_do_not_start_it(
    planted: Index, project: Path, canaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to compile at once, nor to take such an environment's interpreter for another one."""
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    (project / "train.py").write_text(SCRIPT)
    built = ensure([project / "train.py"])
    with pytest.raises(EnvironmentFailure, match="in an environment that gradfix has made"):
        ensure([project / "train.py"], python=built.executable, extra=["torch"])
    (project / ".venv").symlink_to(Path(built.executable).parent.parent)
    monkeypatch.setenv("VIRTUAL_ENV", str(project / ".venv"))
    chosen = choose_interpreter(project / "train.py")
    assert isinstance(chosen, Interpreter) and chosen.executable == str(project / ".venv/bin/python")
    cli.interpreters.lacking(chosen.executable, ["torch", "numpy"])
    assert not list(canaries.iterdir())


def test_a_wheel_does_not_say_what_its_environment_is(
    index: Index, project: Path, canaries: Path, tmp_path: Path
) -> None:
    """It may bring a manifest, by which runs would get to read a folder, and settings of an environment."""
    settings = f"home = {tmp_path}\n"
    index.wheel(
        "torch",
        modules={
            "torch/__init__.py": "",
            "torch-1.0.data/data/pyvenv.cfg": settings,
            f"torch-1.0.data/data/{untrusted_environments.MANIFEST}": json.dumps({"bases": [str(tmp_path)]}),
        },
    )
    (project / "train.py").write_text(SCRIPT)
    built = ensure([project / "train.py"])
    environment = untrusted_environments.environment_of(built.executable)
    assert environment is not None and environment.bases == untrusted_environments.bases_of_this()
    assert Path(environment.folder, "pyvenv.cfg").read_text() == settings, "this is no test"
    done = CliRunner().invoke(app, ["verify", "--python", built.executable, str(project / "train.py")])
    assert "not proved" in done.output or "unverified" in done.output, done.output
    assert not list(canaries.iterdir())


# -- a made environment that has torch --------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment that is marked as made by gradfix, with the packages of this one."""
    folder = tmp_path / "made"
    (folder / "bin").mkdir(parents=True)
    base = os.path.realpath(sys.executable)
    (folder / "bin/python").symlink_to(base)
    (folder / "lib").symlink_to(os.path.join(sys.prefix, "lib"))
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\n")
    (folder / untrusted_environments.MANIFEST).write_text(
        json.dumps({"bases": untrusted_environments.bases_of_this()})
    )
    return folder


@needs_sandbox
def test_scripts_run_in_it_as_in_any_other(
    environment: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    monkeypatch.setenv("UNSUSPICIOUS", SECRET)
    script = project / "train.py"
    script.write_text(SCRIPT)
    source = SCRIPT + (
        "import os\nprint('variables', sorted(os.environ.values()))\n"
        f"try: print(open({str(tmp_path / 'secret.txt')!r}).read())\nexcept OSError as error: print('no')\n"
    )
    with runner.Runner(str(environment / "bin/python")) as running:
        assert running.level.name in (sandbox.LANDLOCK, sandbox.BUBBLEWRAP)
        (recording,) = running.run([jobs.Job(script, source)])
    assert recording.ending == "finished", (recording.detail, recording.output)
    assert len(recording.steps) == 3 and recording.torch
    assert "variables" in recording.output and "\nno\n" in recording.output
    assert SECRET not in recording.output


@needs_sandbox
def test_it_has_no_more_than_any_run_while_it_starts(environment: Path, project: Path) -> None:
    """Before the limits of a run are set that go by what torch takes."""
    (environment / "lib").unlink()
    packages = environment / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (packages / "greedy.pth").write_text("import greedy\n")
    (packages / "greedy.py").write_text(
        "import time\nkept = [bytearray(1 << 26) for _ in range(40)]\ntime.sleep(60)\n"
    )
    script = project / "train.py"
    script.write_text(SCRIPT)
    executable = str(environment / "bin/python")
    level = sandboxes.choose_sandbox(executable)._replace(held=())
    limits = jobs.Limits(memory=1 << 29)
    with runner.Runner(executable, level=level) as running:
        (recording,) = running.run([jobs.Job(script, SCRIPT, limits=limits)])
    assert recording.ending == "killed" and "of memory" in recording.detail, recording
