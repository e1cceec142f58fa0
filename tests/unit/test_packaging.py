"""What is installed: the codemods are found from a wheel and from the source tree, under no name but ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fakes import ROOT

NAMES = sorted(path.stem.replace("_", "-") for path in (ROOT / "codemods").glob("[a-z]*.py"))
EXAMPLE = ROOT / "examples" / "workshop" / "glyph_forge.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source tree without an environment of its own, so without network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed in it; what it depends on is already here."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)
    return folder


def run(home: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``gradfix`` as it is in ``home``."""
    environment = {**os.environ, "PYTHONPATH": str(home)}
    code = "import sys, gradfix; sys.stderr.write(gradfix.__file__); "
    code += "from gradfix.cli.commands import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ran.stderr.startswith(str(home)), ran.stderr
    return ran


def test_the_wheel_holds_the_package_and_its_codemods_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gradfix"}
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gradfix").rglob("*.py")}
    codemods = {f"gradfix/codemods/{path.name}" for path in (ROOT / "codemods").glob("*.py")}
    assert {name for name in names if name.endswith(".py")} == ours | codemods
    assert "gradfix/py.typed" in names
    schemas = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gradfix" / "schemas").iterdir()}
    assert len(schemas) == 4
    assert schemas <= set(names)


def test_no_name_but_ours_is_installed(installed: Path) -> None:
    assert {path.name.split("-")[0] for path in installed.iterdir()} <= {"gradfix", "bin", "__pycache__"}


def test_torch_is_not_required(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    required = [line for line in archive.read(metadata).decode().splitlines() if "Requires-Dist" in line]
    assert any("libcst" in line for line in required)
    assert not [line for line in required if "torch" in line and "extra ==" not in line]


@pytest.mark.parametrize("origin", ["wheel", "source tree"])
def test_the_codemods_are_found(origin: str, installed: Path, tmp_path: Path) -> None:
    listed = run(installed if origin == "wheel" else ROOT, "list", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == NAMES


@pytest.mark.parametrize("origin", ["wheel", "source tree"])
def test_they_find_something(origin: str, installed: Path, tmp_path: Path) -> None:
    home = installed if origin == "wheel" else ROOT
    checked = run(home, "check", "--output-format", "json", str(EXAMPLE), cwd=tmp_path)
    assert checked.returncode == 1, checked.stderr
    finding, coverage = json.loads(checked.stdout)
    assert coverage["code"] == "training-steps"
    assert finding["code"] == "undetached-fake"
    assert finding["fix"]["applicability"] == "safe"


def test_the_plugin_of_pytest_is_installed(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "pytest", "--help"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert re.search(r"^gradfix:\n  --gradfix +explain errors", ran.stdout, re.MULTILINE)
    (metadata,) = installed.glob("gradfix-*.dist-info/entry_points.txt")
    assert "[pytest11]\ngradfix = gradfix.watch.pytest_plugin\n" in metadata.read_text()


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    script = installed / "bin" / "gradfix"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    ran = subprocess.run([script, "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.stdout.startswith("gradfix ")
