"""`pytest --gradfix`: what stands below the traceback of a test that autograd fails, and what does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import ROOT, gradfix
from test_run import GAN

TRAIN = "def train():\n" + "".join(f"    {line}\n" if line else "\n" for line in GAN.splitlines())
CACHED = """\
import torch

net = torch.nn.Linear(3, 1)
loss = net(torch.randn(2, 3)).square().sum()
loss.backward()
"""
HEADING = "what led to it, by gradfix"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest, as its user calls it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "FORCE_COLOR": ""}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def sections(printed: str) -> dict[str, str]:
    """The explanations by the name of the test."""
    parts = re.split(r"^_+ (.*) _+$", printed.split("= short test summary")[0], flags=re.MULTILINE)
    shown = {name: re.split(rf"^-+ {HEADING} -+$\n", part, flags=re.M) for name, part in pairs(parts[1:])}
    return {name: part[1] for name, part in shown.items() if len(part) == 2}


def pairs(parts: list[str]) -> list[tuple[str, str]]:
    return [*zip(parts[::2], parts[1::2])]


@pytest.fixture
def gan(tmp_path: Path) -> Path:
    """A module that is at fault, and tests that call it."""
    (tmp_path / "gan.py").write_text(TRAIN)
    (tmp_path / "test_gan.py").write_text(
        "import pytest\nfrom gan import train\n\n\n"
        '@pytest.mark.parametrize("number", [1, 2])\n'
        "def test_training(number):\n    train()\n\n\n"
        "def test_it_raises():\n    with pytest.raises(RuntimeError):\n        train()\n\n\n"
        "@pytest.mark.xfail\ndef test_it_may_raise():\n    train()\n\n\n"
        'def test_another_error():\n    raise RuntimeError("nothing of autograd")\n'
    )
    return tmp_path


def test_a_test_that_autograd_fails_gets_the_explanation_of_run(gan: Path) -> None:
    done = run(gan, "--gradfix")
    assert done.returncode == 1
    shown = sections(done.stdout)
    # The same for each number; neither where the error is expected, nor where it is another one.
    assert shown.keys() == {"test_training[1]", "test_training[2]"}
    assert len(set(shown.values())) == 1
    text = shown["test_training[1]"]
    assert text.startswith(
        'gan.py:19:9: "Trying to backward through the graph a second time": `loss_p.backward()`'
    )
    assert "called from here: autograd raises" in text
    assert "= fix (repairs, safe): detach `picture`\n" in text
    assert "\n-        verdict = critic(picture)\n+        verdict = critic(picture.detach())\n" in text
    # No command is known that runs a test, so nothing promises a proof.
    assert text.endswith("\nWrite it with: gradfix apply --select undetached-fake --unproved gan.py\n")


def test_the_command_that_is_told_writes_the_fix(gan: Path) -> None:
    command = re.findall(r"^Write it with: gradfix (.*)$", run(gan, "--gradfix", "-k", "1").stdout, re.M)[0]
    done = gradfix(*command.split(), cwd=gan)
    assert done.returncode == 0
    assert "critic(picture.detach())" in (gan / "gan.py").read_text()


def test_without_the_option_nothing_is_loaded_or_said(gan: Path) -> None:
    (gan / "test_gan.py").write_text(
        "import sys\n\nOURS = ('gradfix', 'libcst')\n"
        "LOADED = [name for name in sys.modules if name.split('.')[0] in OURS]\n\n\n"
        "def test_loaded():\n"
        "    assert sorted(LOADED) == ['gradfix', 'gradfix.watch', 'gradfix.watch.pytest_plugin']\n\n\n"
        "def test_training():\n    from gan import train\n\n    train()\n"
    )
    done = run(gan)
    assert "1 failed, 1 passed" in done.stdout
    assert "gradfix" not in done.stdout.replace("gradfix.watch", "").split("short test summary")[1]
    assert sections(done.stdout) == {}


def test_what_fails_in_a_fixture_and_in_a_class_is_explained(gan: Path) -> None:
    (gan / "test_gan.py").write_text(
        "import unittest\n\nimport pytest\nfrom gan import train\n\n\n"
        "@pytest.fixture\ndef trained():\n    train()\n\n\n"
        "def test_fixture(trained):\n    pass\n\n\n"
        "class Trained(unittest.TestCase):\n    def test_case(self):\n        train()\n"
    )
    shown = sections(run(gan, "--gradfix").stdout)
    assert [name.removeprefix("ERROR at setup of ") for name in shown] == [
        "test_fixture",
        "Trained.test_case",
    ]


def test_a_cause_in_an_earlier_test_is_found(tmp_path: Path) -> None:
    """What the tests of a module share outlives each of them."""
    (tmp_path / "shared.py").write_text(CACHED)
    (tmp_path / "test_shared.py").write_text(
        "def test_first():\n    import shared\n\n\n"
        "def test_second():\n    from shared import loss\n\n    loss.backward()\n"
    )
    (text,) = sections(run(tmp_path, "--gradfix").stdout).values()
    assert "a graph that `loss.backward()` at line 5 has already freed\n" in text
    assert "\nshared.py:5:1: " in text


def test_neither_what_a_test_replaces_nor_hidden_output_is_in_the_way(gan: Path) -> None:
    (gan / "test_gan.py").write_text(
        "import os\nimport subprocess\n\nfrom gan import train\n\n\n"
        "def test_training(monkeypatch, tmp_path):\n"
        "    monkeypatch.chdir(tmp_path)\n"
        "    monkeypatch.setenv('PYTHONHOME', '/nothing')\n"
        "    monkeypatch.setenv('PATH', '')\n"
        "    monkeypatch.setattr(subprocess, 'run', None)\n"
        "    monkeypatch.setattr(subprocess, 'Popen', None)\n"
        "    train()\n"
    )
    (text,) = sections(run(gan, "--gradfix", "--show-capture=no", "--tb=native").stdout).values()
    assert text.startswith("gan.py:19:9: ")


def test_reports_for_machines_and_other_processes_have_it(gan: Path) -> None:
    done = run(gan, "--gradfix", "--numprocesses", "2", "--tb=short", "--junit-xml", "report.xml")
    assert len(sections(done.stdout)) == 2
    assert (gan / "report.xml").read_text().count(HEADING) == 2


def test_run_explains_what_pytest_catches(gan: Path) -> None:
    done = gradfix("run", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "1", cwd=gan)
    assert done.returncode == 1
    assert list(sections(done.stdout.decode())) == ["test_training[1]"]


@pytest.mark.parametrize(("ends", "hint"), [("0", "`pytest --gradfix` explains it"), ("1", "")])
def test_run_says_who_explains_it_where_it_cannot(ends: str, hint: str, tmp_path: Path) -> None:
    """As with an interpreter beside which gradfix is not installed."""
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    assert {ends}\n")
    options = ["--min-severity", "info", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    done = gradfix("run", *options, cwd=tmp_path)
    assert done.returncode == int(bool(hint))
    assert hint in done.stderr.decode()
    assert bool(done.stderr) == bool(hint)
