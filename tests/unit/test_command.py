"""How a script is run: the command, its working directory, the project that it belongs to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradfix.cli.commands import app
from gradfix.pipeline import driver, proving
from gradfix.pipeline.driver import Options, Refusal, RequestedOptions
from gradfix.project import trust
from gradfix.verify.command import PLAIN, Command, CommandError, of_module, parse
from gradfix.verify.runner import Job
from gradfix.verify.sandbox import data_folders


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "nets").mkdir(parents=True)
    for name in ("pyproject.toml", "train.py", "nets/gan.py", "nets/__main__.py"):
        (folder / name).touch()
    monkeypatch.chdir(folder)
    return folder


def test_commands_as_they_are_typed(project: Path) -> None:
    assert parse("python train.py --epochs 1 'a b'", project) == Command(
        ("--epochs", "1", "a b"), entry=project / "train.py"
    )
    assert parse("/usr/bin/python3.11 -m nets.gan -x", project) == Command(
        ("-x",), module="nets.gan", entry=project / "nets/gan.py", cwd=project
    )
    assert of_module("nets", project).entry == project / "nets/__main__.py"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sh train.sh", "is not `python SCRIPT"),
        ("", "is not `python SCRIPT"),
        ("python", "names no script"),
        ("python -c pass", "names no script"),
        ("python nothing.py", "there is no file"),
        ("python -m nets.nothing", "there is no module nets.nothing"),
        ("python 'train.py", "is no command"),
    ],
)
def test_what_is_no_command_of_a_script(text: str, why: str, project: Path) -> None:
    with pytest.raises(CommandError, match=why):
        parse(text, project)


def test_the_working_directory(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = project / "nets" / "gan.py"
    assert PLAIN.working_directory(script) == project
    monkeypatch.chdir(project / "nets")
    assert PLAIN.working_directory(project / "train.py") == project / "nets"
    monkeypatch.chdir(tmp_path)  # Outside the project nothing may be read.
    assert PLAIN.working_directory(script) == project / "nets"
    assert Command(cwd=project).working_directory(script) == project


def test_variables_that_are_passed_on(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setenv("DATA_ROOT", "/data")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    command = Command(env=("DATA_ROOT", "AWS_SECRET_ACCESS_KEY", "NOT_SET"))
    assert command.payload(project / "train.py")["env"] == {"DATA_ROOT": "/data"}


def test_folders_that_may_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / "pictures").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    wanted = ["data", "home", "home/.ssh", "home/pictures", "nothing"]
    for name in (
        "a.txt",
        ".env",
        "key.pem",
        "with/b.txt",
        "with/.git/config",
        "with/in/c.txt",
        "plain/in/d.txt",
    ):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).touch()
    (tmp_path / "data" / "plain" / ".DS_Store").touch()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    refused = ["/", "/etc", "/etc/shadow", "/etc/ssl", str(tmp_path / "link")]
    found = data_folders([*(str(tmp_path / one) for one in wanted), *refused])
    listed = [tmp_path / "data", tmp_path / "data/with", tmp_path / "home/pictures"]
    assert found.listed == [str(one) for one in listed]
    whole = {os.path.relpath(one, tmp_path / "data") for one in found.whole}
    # What is hidden is hidden at every depth; what holds nothing hidden is open as a whole.
    assert whole == {"a.txt", "plain", "with/b.txt", "with/in"}


def test_a_file_is_run_in_the_project_of_its_script(project: Path) -> None:
    job = Job(project / "nets" / "gan.py", "", Command(entry=project / "train.py"))
    assert job.root() == project


# -- what the command line and the configuration say ----------------------------------------------


def options(
    project: Path, table: str = "", paths: tuple[str, ...] = ("train.py",), **requested: object
) -> Options:
    (project / "pyproject.toml").write_text(table)
    found = driver.prepare(list(paths), RequestedOptions(**requested))  # type: ignore[arg-type]
    assert isinstance(found, Options), found
    return found


def test_arguments_after_the_dashes_win_over_the_configuration(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project.parent / "config"))
    (project.parent / "data").mkdir()
    trust.allow(str(project.parent / "data"))
    table = """
        [tool.gradfix.verify]
        command = {"train.py" = "python train.py --epochs 1", "nets/*.py" = "python -m nets.gan"}
        readable = ["../data"]
        env = ["DATA_ROOT"]
    """
    common = {"readable": (project.parent / "data",), "env": ("DATA_ROOT",)}
    chosen = options(project, table)
    assert proving.command_for("train.py", chosen) == Command(
        ("--epochs", "1"), entry=project / "train.py", cwd=project, **common
    )
    assert proving.command_for("nets/other.py", chosen).module == "nets.gan"
    chosen = options(project, table, arguments=("-x",))
    assert proving.command_for("train.py", chosen) == Command(("-x",), cwd=project, **common)
    chosen = options(project, table, paths=("nets/gan.py",), script="train.py", arguments=("-x",))
    assert proving.command_for("nets/gan.py", chosen).entry == Path("train.py")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("command = 'python gone.py'", "there is no file"),
        ("command = 'python ../tool.py'", "outside of"),
        ("command = 'python tool.py'\ncwd = '..'", "outside of"),
        ("cwd = 'nowhere'", "there is no folder"),
        ("command = 'torchrun train.py'", "is not `python SCRIPT"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_refused(table: str, why: str, project: Path) -> None:
    (project.parent / "tool.py").touch()
    (project / "pyproject.toml").write_text(f"[tool.gradfix.verify]\n{table}\n")
    found = driver.prepare(["train.py"], RequestedOptions())
    assert isinstance(found, Refusal) and why in found.message
    assert found.message.startswith("pyproject.toml: tool.gradfix.verify")


def test_arguments_are_for_one_script(project: Path) -> None:
    for paths in (["."], ["train.py", "nets/gan.py"]):
        found = driver.prepare(paths, RequestedOptions(arguments=("-x",)))
        assert isinstance(found, Refusal) and "is for one script" in found.message
    found = driver.prepare(["train.py"], RequestedOptions(script="nothing.py"))
    assert isinstance(found, Refusal) and "there is no such script" in found.message
    found = driver.prepare(["train.py"], RequestedOptions(script="nets"))
    assert isinstance(found, Refusal) and found.message == "nets: is a folder"
    found = driver.prepare(["train.py"], RequestedOptions(module="train.py"))
    assert isinstance(found, Refusal) and "a script is named without -m" in found.message
    found = driver.prepare(["train.py"], RequestedOptions(module="nets.nothing"))
    assert isinstance(found, Refusal) and "there is no module" in found.message


@pytest.mark.parametrize("command", ["apply", "verify"])
def test_the_command_line_takes_them_apart(
    command: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], RequestedOptions]] = []

    def prepare(paths: list[str], requested: RequestedOptions, **_: object) -> Refusal:
        asked.append((list(paths), requested))
        return Refusal("enough")

    monkeypatch.setattr(driver, "prepare", prepare)
    CliRunner().invoke(app, [command, "train.py", "--", "--dry-run", "x", "--", "y"])
    CliRunner().invoke(app, [command, "-m", "nets.gan"])
    assert [paths for paths, _ in asked] == [["train.py"], [os.path.join("nets", "gan.py")]]
    assert [requested.arguments for _, requested in asked] == [("--dry-run", "x", "--", "y"), ()]
    assert [requested.module for _, requested in asked] == [None, "nets.gan"]
