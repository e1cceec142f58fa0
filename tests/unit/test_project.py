"""Which files are meant (git is the oracle for what it ignores), configuration, and writing back."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import git

from gradfix.project.configuration import Settings, Verification, find_files, replace, save, settings_for
from gradfix.project.source import Problem


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("x.backward()\n")


DEFAULT = Settings()


def shown(*paths: str, settings: Settings = DEFAULT) -> list[str]:
    return [listed.path for listed in find_files(paths, settings).files]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------------------- which files


def test_folders_are_walked_for_python_files_in_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.py", "a/z.py", "a/a.py", "c.txt", "d.pyi", "e.py/inside.py", ".hidden.py")
    assert shown(".") == [".hidden.py", "a/a.py", "a/z.py", "b.py", "e.py/inside.py"]
    assert shown("a") == shown("a/") == shown("./a") == ["a/a.py", "a/z.py"]
    assert shown(str(tmp_path / "a")) == [str(tmp_path / "a" / "a.py"), str(tmp_path / "a" / "z.py")]


def test_a_file_is_listed_once_however_it_is_reached(tmp_path: Path) -> None:
    tree(tmp_path, "a/a.py", "b.py")
    (tmp_path / "link.py").symlink_to("b.py")
    assert shown(".", "a", "./a/a.py", str(tmp_path / "a" / "a.py"), "link.py") == ["a/a.py", "link.py"]
    assert shown(".", "a", str(tmp_path / "a")) == ["a/a.py", "b.py"]


def test_a_link_in_a_tree_is_reported_by_its_target(tmp_path: Path) -> None:
    tree(tmp_path, "real/a.py", "elsewhere/script", ".git/HEAD")
    (tmp_path / "real" / "link.py").symlink_to("a.py")
    (tmp_path / "real" / "tool.py").symlink_to("../elsewhere/script")
    assert shown("real") == ["elsewhere/script", "real/a.py"]


@pytest.mark.parametrize("mark", [None, ".git/HEAD", "pyproject.toml"])
def test_a_link_that_leads_out_of_the_project_is_left_alone_in_a_walk(
    mark: str | None, tmp_path: Path
) -> None:
    tree(tmp_path, "project/a.py", "project/inner/b.py", "project2/theirs.py", "theirs.py", ".git/HEAD")
    if mark == "pyproject.toml":
        (tmp_path / "project" / mark).write_text("[tool.gradfix]\n")
    elif mark is not None:
        tree(tmp_path, f"project/{mark}")
    else:
        (tmp_path / ".git" / "HEAD").unlink()
        (tmp_path / ".git").rmdir()
    for number, target in enumerate(("../theirs.py", "../project2/theirs.py", "/etc/passwd", "inner/b.py")):
        (tmp_path / "project" / f"link{number}.py").symlink_to(target)
    (tmp_path / "project" / "folder").symlink_to("../project2")
    settings = settings_for(["project"])
    assert isinstance(settings, Settings)
    assert shown("project", settings=settings) == ["project/a.py", "project/inner/b.py"]


def test_a_link_that_is_named_has_the_configuration_of_what_it_leads_to(tmp_path: Path) -> None:
    tree(tmp_path, "ours/a.py", "theirs/b.py")
    (tmp_path / "ours" / "pyproject.toml").write_text("[tool.gradfix]\nunsafe-fixes = true\n")
    (tmp_path / "ours" / "link.py").symlink_to("../theirs/b.py")
    (tmp_path / "ours" / "folder").symlink_to("../theirs")
    for named in ("ours/link.py", "ours/folder"):
        settings = settings_for([named])
        assert settings == Settings()
        assert len(find_files([named], settings).files) == 1
    assert settings_for(["ours/a.py", "ours/link.py"]) == Settings()


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, "a/a.py")
    (tmp_path / "a" / "loop").symlink_to("..")
    (tmp_path / "a" / "loop.py").symlink_to("..")
    assert shown(".") == ["a/a.py"]


def test_a_dangling_link_is_listed_but_a_lock_of_emacs_is_not(tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to("nowhere.py")
    (tmp_path / ".#train.py").symlink_to("me@host.1234")
    assert shown(".") == ["gone.py"]


def test_folders_that_hold_no_source_are_skipped_unless_they_are_named(tmp_path: Path) -> None:
    tree(tmp_path, "env/lib/site-packages/torch/nn.py", "env/tool.py", "node_modules/x.py", "build/y.py")
    tree(tmp_path, "conda/conda-meta/history", "conda/z.py", "src/__pycache__/q.py", "src/a.py", ".tox/t.py")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert shown(".") == ["src/a.py"]
    assert shown("env") == ["env/tool.py"]
    assert shown("env/lib/site-packages/torch") == ["env/lib/site-packages/torch/nn.py"]
    assert shown("build", "node_modules/x.py") == ["build/y.py", "node_modules/x.py"]


def test_a_missing_argument_and_an_empty_folder_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    listing = find_files(["empty", "missing"])
    assert listing.empty == ("empty",)
    assert [str(problem) for problem in listing.problems] == ["missing: io-error: no such file or directory"]


IGNORES = {
    ".gitignore": "*.gen.py\n/root_only.py\nout/\n!keep.gen.py\n# a comment\n\\#hash.py\n"
    "deep/**/x.py\n[ab].py\n\n",
    "src/.gitignore": "!again.gen.py\nlocal.py\n/sub/\n",
    "src/pkg/.gitignore": "*\n!wanted.py\n!.gitignore\n",
    "crlf/.gitignore": "one.py\r\ntwo.py\r\n",
    "bom/.gitignore": "\ufefffirst.py\nsecond.py\n",
}
FILES = [
    *("a.py", "b.py", "c.py", "root_only.py", "x.gen.py", "keep.gen.py", "#hash.py", "out/x.py"),
    *("src/out/y.py", "src/root_only.py", "src/again.gen.py", "src/other.gen.py", "src/local.py"),
    *("src/deeper/local.py", "src/sub/z.py", "src/deeper/sub/z.py", "src/pkg/wanted.py"),
    *("src/pkg/unwanted.py", "src/pkg/inner/wanted.py", "deep/x.py", "deep/1/x.py", "deep/1/2/x.py"),
    *("deep/1/2/y.py", "crlf/one.py", "crlf/two.py", "crlf/three.py", "bom/first.py", "bom/second.py"),
    *("bom/third.py", "excluded.py"),
]


def as_git_sees_it(root: Path) -> list[str]:
    listed = (
        git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=root).decode().split("\0")
    )
    return sorted(name for name in listed if name.endswith(".py"))


@pytest.fixture
def ignoring(tmp_path: Path) -> Path:
    git("init", "-q", ".", cwd=tmp_path)
    tree(tmp_path, *FILES)
    for name, patterns in IGNORES.items():
        (tmp_path / name).write_bytes(patterns.encode())
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("excluded.py\n")
    return tmp_path


def test_what_git_ignores_is_left_out(ignoring: Path) -> None:
    assert "src/other.gen.py" not in as_git_sees_it(ignoring)
    assert shown(".") == as_git_sees_it(ignoring)


@pytest.mark.parametrize("below", ["src", "src/pkg", "deep/1", "crlf"])
def test_the_rules_of_the_folders_above_count(
    ignoring: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [name for name in as_git_sees_it(ignoring) if name.startswith(f"{below}/")]
    assert shown(below) == expected
    monkeypatch.chdir(ignoring / below)
    assert [f"{below}/{name}" for name in shown(".")] == expected


def test_an_ignored_folder_or_file_can_be_named(ignoring: Path) -> None:
    assert shown("out") == ["out/x.py"]
    assert shown("x.gen.py") == ["x.gen.py"]
    assert shown("src/sub") == ["src/sub/z.py"]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(8 << 30)


HOSTILE = pytest.mark.parametrize(
    ("make", "message"),
    [
        (pipe, "is not a regular file but a named pipe"),
        (zeros, "is not a regular file but a device"),
        (sparse, "is too large to be read: 8192.0 MiB"),
        (Path.mkdir, "is not a regular file but a folder"),
    ],
)


@HOSTILE
@pytest.mark.parametrize("name", [".gitignore", "src/.gitignore", ".git/info/exclude"])
def test_a_list_of_what_is_ignored_that_is_no_plain_file_is_one_problem(
    name: str, make: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    tree(tmp_path, ".git/info/attributes", "src/a.py", "src/b.py")
    make(tmp_path / name)
    listing = find_files(["src", "src/"])
    assert [listed.path for listed in listing.files] == ["src/a.py", "src/b.py"]
    assert [str(problem) for problem in listing.problems] == [f"{name}: io-error: {message}"]


@HOSTILE
def test_a_configuration_that_is_no_plain_file_is_a_problem(
    make: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    make(tmp_path / "pyproject.toml")
    assert settings_for(["."]) == Problem("pyproject.toml", message)


def test_malformed_patterns_are_skipped(tmp_path: Path) -> None:
    git("init", "-q", ".", cwd=tmp_path)
    tree(tmp_path, "a.py", "b.py")
    (tmp_path / ".gitignore").write_bytes(b"!\n///\n\xff\xfe\na.py\n")
    assert shown(".") == ["b.py"]


def test_names_that_are_not_text_are_walked(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.py"), "wb"):
        pass
    (tmp_path / ".gitignore").write_text("*.txt\n")
    assert [os.fsencode(name) for name in shown(".")] == [b"\xff.py"]


# ---------------------------------------------------------------------------- configuration


def configure(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)


def settings(*paths: str) -> Settings:
    found = settings_for(paths)
    assert isinstance(found, Settings), found
    return found


def test_the_nearest_configuration_counts(tmp_path: Path) -> None:
    configure(tmp_path, '[tool.gradfix]\nselect = ["outer"]\n')
    configure(
        tmp_path / "inner", '[tool.gradfix]\nselect = ["inner"]\nunsafe-fixes = true\nmax-file-size = 9\n'
    )
    configure(tmp_path / "inner" / "other", "[tool.ruff]\n# gradfix is elsewhere\n")
    tree(tmp_path, "inner/other/a.py", "b.py")
    assert settings(".").select == ("outer",)
    assert settings("inner/other/a.py").select == ("inner",)
    assert settings("inner/other/a.py", "b.py").select == ("outer",)
    assert settings("inner").unsafe_fixes
    assert settings("inner").max_file_size == 9


def test_configuration_above_the_repository_belongs_to_somebody_else(tmp_path: Path) -> None:
    configure(tmp_path, "[tool.gradfix]\nunsafe-fixes = true\n")
    git("init", "-q", "repository", cwd=tmp_path)
    assert settings("repository") == Settings()


def test_how_scripts_are_run(tmp_path: Path) -> None:
    configure(
        tmp_path / "a",
        """
        [tool.gradfix.verify]
        command = {"train.py" = "python train.py --epochs 1", "nets/*.py" = "python -m nets.train"}
        cwd = "work"
        readable = ["../data", "/srv/pictures"]
        env = ["DATA_ROOT"]
        python = "env/bin/python"
        seconds = 60
        """,
    )
    configure(tmp_path / "b", "[tool.gradfix.verify]\npython = 'python3.12'\ncommand = 'python main.py'\n")
    assert settings("a").verify == Verification(
        command=(("train.py", "python train.py --epochs 1"), ("nets/*.py", "python -m nets.train")),
        cwd=str(tmp_path / "a" / "work"),
        readable=(str(tmp_path / "data"), "/srv/pictures"),
        env=("DATA_ROOT",),
        python=str(tmp_path / "a" / "env" / "bin" / "python"),
        seconds=60.0,
    )
    assert settings("b").verify == Verification(command=(("*", "python main.py"),), python="python3.12")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.gradfix]\nselct = []\n", "unknown key 'selct' in [tool.gradfix]; did you mean 'select'?"),
        ("[tool.gradfix]\nfile = 'x'\n", "unknown key 'file'"),
        ("[tool.gradfix]\nselect = 'x'\n", "tool.gradfix.select must be a list of strings"),
        ("[tool.gradfix]\nignore = [1]\n", "tool.gradfix.ignore must be a list of strings"),
        ("[tool.gradfix]\nunsafe-fixes = 1\n", "tool.gradfix.unsafe-fixes must be true or false"),
        ("[tool.gradfix]\npython = 'x'\n", "write it as tool.gradfix.verify.python"),
        ("[tool.gradfix]\nverify = 1\n", "tool.gradfix.verify must be a table"),
        (
            "[tool.gradfix.verify]\ncomand = 'x'\n",
            "unknown key 'comand' in [tool.gradfix.verify]; did you mean",
        ),
        ("[tool.gradfix.verify]\npython = true\n", "tool.gradfix.verify.python must be a string"),
        ("[tool.gradfix.verify]\nreadable = 'x'\n", "tool.gradfix.verify.readable must be a list of strings"),
        ("[tool.gradfix.verify]\nseconds = 0\n", "tool.gradfix.verify.seconds must be a number of seconds"),
        ("[tool.gradfix.verify]\ncommand = [1]\n", "must be a command, or a table of patterns and commands"),
        ("[tool.gradfix]\nmax-file-size = '4M'\n", "tool.gradfix.max-file-size must be a number of bytes"),
        ("[tool.gradfix\n", "is not valid TOML"),
        ("tool = 1 # gradfix\n", "is not valid TOML"),
        ("[tool]\ngradfix = 1\n", "tool.gradfix must be a table"),
    ],
)
def test_a_mistake_in_the_configuration_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    configure(tmp_path, text)
    problem = settings_for(["."])
    assert isinstance(problem, Problem)
    assert problem.path == "pyproject.toml"
    assert message in problem.message


def test_excluded_files_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    configure(tmp_path, '[tool.gradfix]\nexclude = ["third_party/", "*_pb2.py", "!good_pb2.py"]\n')
    tree(tmp_path, "a.py", "third_party/b.py", "src/x_pb2.py", "src/good_pb2.py")
    assert shown(".", settings=settings(".")) == ["a.py", "src/good_pb2.py"]
    assert shown("src/x_pb2.py", settings=settings(".")) == ["src/x_pb2.py"]


# ---------------------------------------------------------------------------- writing


def test_writing_keeps_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"before\r\n")
    path.chmod(0o754)
    assert replace("a.py", b"before\r\n", b"after\r\n") is None
    assert path.read_bytes() == b"after\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser gives files away"
)
def test_writing_keeps_the_owner(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"before")
    os.chown("a.py", 12345, 23456)
    assert replace("a.py", b"before", b"after") is None
    status = os.stat("a.py")
    assert (status.st_uid, status.st_gid) == (12345, 23456)


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    tree(tmp_path, "real/a.py")
    (tmp_path / "link.py").symlink_to("real/a.py")
    assert replace("link.py", b"x.backward()\n", b"after") is None
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real" / "a.py").read_bytes() == b"after"
    assert os.listdir(tmp_path / "real") == ["a.py"]


def test_a_file_that_has_changed_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"edited meanwhile")
    problem = replace("a.py", b"as it was read", b"after")
    assert isinstance(problem, Problem)
    assert "has changed since it was read" in problem.message
    assert (tmp_path / "a.py").read_bytes() == b"edited meanwhile"
    assert os.listdir(tmp_path) == ["a.py"]


def test_what_may_not_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"before")
    (tmp_path / "a.py").chmod(0o444)
    for path, message in [("a.py", "it is read-only"), ("gone.py", "No such file")]:
        problem = replace(path, b"before", b"after")
        assert isinstance(problem, Problem)
        assert problem.path == path
        assert message in problem.message
    assert (tmp_path / "a.py").read_bytes() == b"before"


def test_a_folder_in_which_nothing_can_be_made_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if flags & os.O_WRONLY:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *rest, dir_fd=dir_fd)

    (tmp_path / "a.py").write_bytes(b"before")
    monkeypatch.setattr("os.open", refuse)
    problem = replace("a.py", b"before", b"after")
    assert isinstance(problem, Problem)
    assert "Permission denied" in problem.message


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.py").write_bytes(b"before")
    monkeypatch.setattr("os.fsync", full)
    problem = replace("a.py", b"before", b"after")
    assert isinstance(problem, Problem)
    assert "No space left" in problem.message
    assert (tmp_path / "a.py").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a.py"]


def test_saving_makes_the_folders_that_it_needs(tmp_path: Path) -> None:
    assert save("a/b/c.json", b"{}") is None
    assert (tmp_path / "a" / "b" / "c.json").read_bytes() == b"{}"
    problem = save("a/b/c.json/d", b"{}")
    assert isinstance(problem, Problem)
    assert "cannot be written" in problem.message
