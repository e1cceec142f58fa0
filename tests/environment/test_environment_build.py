"""Environments are made, relaxed, reused and removed; with uv, and an index that is a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from wheels import Index

from gradfix.cli import environment as cli
from gradfix.environment import build, cache, uv
from gradfix.environment.build import Built, ensure
from gradfix.environment.errors import EnvironmentFailure


def script(project: Path, text: str, requirements: str = "") -> Path:
    path = project / "train.py"
    path.write_text(text)
    if requirements:
        (project / "requirements.txt").write_text(requirements)
    return path


def missing(built: Built) -> dict[str, str]:
    return {one.text: one.why for one in built.missing}


def relaxed(built: Built) -> list[tuple[str, str]]:
    return [(one.stated, one.installed) for one in built.relaxed]


def python(built: Built, program: str) -> str:
    command = [built.executable, "-I", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.run(arguments)
    return int(str(ended.value.code))


def test_makes_what_is_stated_and_what_is_imported_beside_it(index: Index, project: Path) -> None:
    index.wheel("tqdm", "4.1", requires=["colorama"])
    index.wheel("colorama")
    index.wheel("einops", "0.8")
    built = ensure([script(project, "import tqdm, einops", "tqdm==4.1\n")])
    assert python(built, "import tqdm, einops, colorama; print(tqdm.version)") == "4.1"
    assert built.installed == ("colorama==1.0", "einops==0.8", "tqdm==4.1")
    assert not built.missing and not built.relaxed and not built.reused
    assert built.size > 0


def test_pins_without_a_wheel_are_relaxed_one_by_one(index: Index, project: Path) -> None:
    index.wheel("numpy", "1.16.2", tag="cp27-cp27m-manylinux1_x86_64")
    index.wheel("numpy", "1.26.4")
    index.wheel("numpy", "2.4.0")
    index.wheel("torch", "2.13.0")
    index.wheel("tqdm", "4.1")
    stated = "torch==1.4.0+cu92\nnumpy==1.16.2\ntqdm==4.1\n"
    said: list[str] = []
    built = ensure([script(project, "", stated)], progress=said.append)
    # The same major number of numpy is near enough; of torch it is always the newest.
    assert relaxed(built) == [("torch==1.4.0+cu92", "torch 2.13.0"), ("numpy==1.16.2", "numpy 1.26.4")]
    assert "tqdm==4.1" in built.installed
    assert any(line.startswith("numpy==1.16.2 cannot be had") for line in said)


def test_of_pins_at_odds_the_one_that_helps_is_relaxed(index: Index, project: Path) -> None:
    index.wheel("numpy", "1.23.5")
    index.wheel("numpy", "1.26.0")
    index.wheel("scipy", "1.17", requires=["numpy>=1.26"])
    index.wheel("tqdm", "4.1")
    built = ensure([script(project, "", "tqdm==4.1\nscipy==1.17\nnumpy==1.23.5\n")])
    assert relaxed(built) == [("numpy==1.23.5", "numpy 1.26.0")]


def test_of_files_that_disagree_what_is_tied_to_old_versions_is_relaxed(index: Index, project: Path) -> None:
    index.wheel("torch", "2.5")
    index.wheel("torch", "2.8")
    index.wheel("torchdata", "0.9", requires=["torch==2.5"])
    index.wheel("torchdata", "0.10", requires=["torch>=2.7"])
    stated = {"a": "torch>=2.6", "b": "torch<2.6", "c": "torch>=2.7\ntorch>=2.6", "d": "torchdata==0.9"}
    for folder, lines in stated.items():
        (project / folder).mkdir()
        (project / folder / "requirements.txt").write_text(lines)
        (project / folder / "train.py").write_text("loss.backward()")
    built = ensure([project])
    assert relaxed(built) == [("torch<2.6", "torch 2.8"), ("torchdata==0.9", "torchdata 0.10")]
    assert built.relaxed[0].why.startswith("at odds with torch>=2.")


def test_what_cannot_be_had_is_named_and_the_rest_is_installed(index: Index, project: Path) -> None:
    index.wheel("tqdm")
    index.wheel("gym", "0.1", tag="cp27-cp27m-manylinux1_x86_64")
    index.wheel("timm", requires=["safetensors"])
    stated = "gym==0.1\nno-such-thing\ntimm\ntqdm\ngit+https://example.org/x.git\n"
    built = ensure([script(project, "import tqdm, gym, apex, foobar", stated)])
    named = missing(built)
    assert set(named) == {
        "gym==0.1",
        "no-such-thing",
        "timm",
        "git+https://example.org/x.git",
        "import apex",
        "import foobar",
    }
    assert named["gym==0.1"].startswith("no wheel for Python")
    assert "safetensors" in named["timm"]
    assert "not on PyPI" in named["import apex"]
    assert "requirements.txt" in named["import foobar"]
    assert built.installed == ("tqdm==1.0",)


def test_an_import_that_a_stated_distribution_of_another_name_supplies(index: Index, project: Path) -> None:
    index.wheel("odd-name", modules={"foobar/__init__.py": ""})
    built = ensure([script(project, "import foobar", "odd-name\n")])
    assert not built.missing


def test_a_distribution_of_an_unknown_name_is_never_guessed(index: Index, project: Path) -> None:
    index.wheel("foobar", modules={"foobar.py": "raise SystemExit('typosquatted')"})
    index.wheel("tqdm")
    built = ensure([script(project, "import foobar, tqdm")])
    assert built.installed == ("tqdm==1.0",)
    assert list(missing(built)) == ["import foobar"]
    assert "foobar==1.0" in ensure([project / "train.py"], extra=["foobar"]).installed


def test_nothing_of_a_source_distribution_is_run(index: Index, project: Path, tmp_path: Path) -> None:
    proof = tmp_path / "it-ran"
    index.sdist(
        "evil", "1.0", f"open({str(proof)!r}, 'w')\nfrom setuptools import setup\nsetup(name='evil')\n"
    )
    index.wheel("tqdm", requires=[])
    index.wheel("needs-evil", requires=["evil"])
    (project / "setup.py").write_text(f"open({str(proof)!r}, 'w')\n")
    built = ensure([script(project, "", "evil\nneeds-evil\ntqdm\n-e .\n")])
    assert not proof.exists()
    assert set(missing(built)) == {"evil", "needs-evil"}


def test_a_users_wish_for_source_distributions_does_not_hold_here(
    index: Index, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "it-ran"
    index.sdist("tqdm", "2.0", f"open({str(proof)!r}, 'w')\n")
    index.wheel("tqdm", "1.0")
    monkeypatch.setenv("UV_NO_BINARY", "1")
    assert ensure([script(project, "import tqdm")]).installed == ("tqdm==1.0",)
    assert not proof.exists()


def test_options_of_a_project_do_not_reach_uv(
    index: Index, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("tqdm", "1.0")
    other = tmp_path / "evil"
    other.mkdir()
    Index(other).wheel("tqdm", "6.6.6")
    (project / "uv.toml").write_text(f"find-links = [{str(other)!r}]\n")
    (project / "pyproject.toml").write_text(f"[tool.uv]\nfind-links = [{str(other)!r}]\n")
    stated = f"--find-links {other}\n-f {other}\n--extra-index-url http://evil.test/simple\n"
    stated += f"tqdm --find-links={other}\n"
    path = script(project, "import tqdm", stated + f"tqdm ; python_version > '3' --find-links {other}\n")
    monkeypatch.chdir(project)
    built = ensure([path])
    assert built.installed == ("tqdm==1.0",)
    reported = build.plan([path]).left_out
    assert [one.text.split()[0] for one in reported] == ["--find-links", "-f", "--extra-index-url"]


def test_the_users_own_configuration_holds(index: Index, project: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("UV_FIND_LINKS")
    own = tmp_path / "config" / "uv"
    own.mkdir(parents=True)
    (own / "uv.toml").write_text(f"find-links = [{str(index.folder)!r}]\n")
    index.wheel("tqdm", "3.0")
    assert ensure([script(project, "import tqdm")]).installed == ("tqdm==3.0",)


def test_the_same_is_used_again_at_once_and_without_uv(
    index: Index, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("tqdm", "1.0")
    path = script(project, "import tqdm, foobar")
    first = ensure([path])
    monkeypatch.setattr(uv, "find", lambda: pytest.fail("uv was called"))
    began = time.monotonic()
    again = ensure([path])
    assert time.monotonic() - began < 1
    assert again.reused and again.executable == first.executable
    assert again.missing == first.missing and again.size == first.size
    # Another script that needs the same shares it, and has its own imports looked up.
    other = project / "other.py"
    other.write_text("import tqdm")
    assert ensure([other]).executable == first.executable
    assert not ensure([other]).missing


def test_other_requirements_or_settings_are_another_environment(
    index: Index, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("tqdm", "1.0")
    index.wheel("tqdm", "2.0")
    path = script(project, "import tqdm")
    first = ensure([path])
    assert ensure([script(project, "import tqdm", "tqdm==1.0\n")]).executable != first.executable
    (project / "requirements.txt").unlink()
    constraint = tmp_path / "constraints.txt"
    constraint.write_text("tqdm<2\n")
    monkeypatch.setenv("UV_CONSTRAINT", str(constraint))
    assert ensure([path]).installed == ("tqdm==1.0",)
    constraint.write_text("tqdm<3\n")
    assert ensure([path]).installed == ("tqdm==2.0",)


def test_refresh_makes_it_anew(index: Index, project: Path) -> None:
    index.wheel("tqdm", "1.0")
    path = script(project, "import tqdm")
    first = ensure([path])
    index.wheel("tqdm", "2.0")
    assert ensure([path]).installed == ("tqdm==1.0",)
    new = ensure([path], refresh=True)
    assert new.installed == ("tqdm==2.0",) and not new.reused
    assert new.executable == first.executable
    assert python(new, "import tqdm; print(tqdm.version)") == "2.0"


def test_an_interrupted_building_is_not_taken_for_an_environment(
    index: Index, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("tqdm")
    path = script(project, "import tqdm")
    with monkeypatch.context() as patched:
        patched.setattr(build, "_install", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ensure([path])
    assert [one.suffix for one in cache.home().iterdir()] == [".lock"]
    # One that was killed leaves its folder, which is no environment and in nobody's way.
    leftover = cache.home() / (next(iter(cache.home().iterdir())).stem + cache.BUILDING)
    (leftover / "bin").mkdir(parents=True)
    assert not ensure([path]).reused
    assert not leftover.exists()


@pytest.mark.parametrize("harm", ["no manifest", "half a manifest", "no interpreter"])
def test_a_damaged_environment_is_made_anew(index: Index, project: Path, harm: str) -> None:
    index.wheel("tqdm")
    path = script(project, "import tqdm")
    executable = Path(ensure([path]).executable)
    manifest = executable.parent.parent / cache.MANIFEST
    if harm == "no manifest":
        manifest.unlink()
    elif harm == "half a manifest":
        manifest.write_text(manifest.read_text()[:40])
    else:
        executable.unlink()
    built = ensure([path])
    assert not built.reused
    assert python(built, "import tqdm; print(1)") == "1"


def test_two_at_a_time_make_one(index: Index, project: Path) -> None:
    index.wheel("tqdm")
    path = script(project, "import tqdm")
    program = (
        "import sys, pathlib; from gradfix.environment.build import ensure\n"
        "built = ensure([pathlib.Path(sys.argv[1])]); print(built.executable, built.reused)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(build.__file__).parents[2]), "PATH": _path_with_uv()}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    reported = [one.communicate(timeout=60)[0].split() for one in running]
    assert reported[0][0] == reported[1][0]
    assert sorted(reused for _, reused in reported) == ["False", "True"]


def _path_with_uv() -> str:
    return os.pathsep.join([os.path.dirname(uv.find()), os.environ.get("PATH", "")])


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser gives files away"
)
def test_the_superuser_makes_no_environments_in_somebody_elses_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs" / "cache"))
    with pytest.raises(EnvironmentFailure, match="theirs belongs to somebody else"):
        cache.home()
    assert list((tmp_path / "theirs").iterdir()) == []


def test_the_folder_of_environments_is_the_users_alone(index: Index, project: Path, tmp_path: Path) -> None:
    index.wheel("tqdm")
    path = script(project, "import tqdm")
    ensure([path])
    assert cache.home().stat().st_mode & 0o777 == 0o700
    cache.home().chmod(0o777)
    with pytest.raises(EnvironmentFailure, match="only you can write"):
        ensure([path])


def test_nothing_that_can_be_installed_is_a_failure_that_names_it(index: Index, project: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"nothing of what is needed .*tqdm"):
        ensure([script(project, "import tqdm")])
    with pytest.raises(EnvironmentFailure, match="nothing to install"):
        ensure([script(project, "import os")])


def test_requirements_that_uv_cannot_read_are_relaxed(index: Index, project: Path) -> None:
    index.wheel("tqdm", "1.0")
    index.wheel("einops", "1.0")
    built = ensure([script(project, "", "tqdm==1.x.y.z\neinops>=0.1.*\n")])
    assert [line.split("==")[0] for line in built.installed] == ["einops", "tqdm"]
    assert [one.stated for one in built.relaxed] == ["tqdm==1.x.y.z", "einops>=0.1.*"]


linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyPI has builds for the CPU")


@linux
def test_a_cpu_build_is_preferred_to_a_newer_one_with_cuda(index: Index, project: Path) -> None:
    index.wheel("torch", "2.15.0", requires=["nvidia-cudnn-cu13"])
    index.wheel("torch", "2.13.0+cpu")
    index.wheel("nvidia-cudnn-cu13", "9.0")
    assert ensure([script(project, "import torch")]).installed == ("torch==2.13.0+cpu",)
    # But not to the version that is asked for.
    built = ensure([script(project, "import torch", "torch==2.15.0\n")])
    assert "torch==2.15.0" in built.installed
    assert any("no CPU build" in note for note in built.notes)


@linux
def test_an_extension_of_torch_for_gpus_is_not_put_beside_a_cpu_build(index: Index, project: Path) -> None:
    index.wheel("torch", "2.13.0+cpu")
    index.wheel("torchvision", "0.28.0", requires=["torch==2.13.0"])
    index.wheel("timm", requires=["torchvision"])
    built = ensure([script(project, "import torch, timm")])
    assert built.installed == ("timm==1.0", "torch==2.13.0+cpu")
    assert list(missing(built)) == ["torchvision"]


def test_an_index_that_does_not_answer_is_a_failure(
    index: Index, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("UV_NO_INDEX", "UV_OFFLINE", "UV_FIND_LINKS"):
        monkeypatch.delenv(name)
    # Nothing listens on the port of the discard protocol.
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(EnvironmentFailure, match="the index cannot be reached"):
        ensure([script(project, "import tqdm")])


# ---------------------------------------------------------------------------- the command


def test_the_command_reports_and_makes(
    index: Index, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("opencv-python-headless", "4.9", modules={"cv2/__init__.py": ""})
    index.wheel("einops", "2.0")
    script(project, "import cv2, einops, json", "einops==1.0\n")
    monkeypatch.chdir(project)
    assert run(["train.py"]) == 0
    printed = capsys.readouterr()
    assert "stated in: requirements.txt" in printed.out
    assert "interpreter without this environment: " in printed.out
    assert "opencv-python-headless (imported in train.py, line 1)" in printed.out
    assert "relaxed: einops==1.0 -> einops 2.0: there is no such version" in printed.out
    assert "resolving 2 requirements\n" in printed.err and "\r" not in printed.err
    assert run(["train.py", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert run([]) == 0
    assert "used again" in capsys.readouterr().out
    assert run(["--clean"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 environment (")
    assert run(["--clean"]) == 0
    assert capsys.readouterr().out == "removed 0 environments (0 B)\n"
    assert list(cache.home().iterdir()) == []


def test_a_dry_run_makes_nothing(index: Index, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--dry-run", str(script(project, "import gym"))]) == 0
    assert "gym (imported in" in capsys.readouterr().out
    assert not (Path(os.environ["XDG_CACHE_HOME"]) / "gradfix").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "reported"),
    [
        (["no-such-file.py"], 2, "no such file"),
        (["--python", "no-such-python", "train.py"], 2, "not an interpreter"),
        (["--with", "git+https://x.test/y", "train.py"], 2, "only wheels"),
        (["--with", "--index-url=x", "train.py"], 2, "options are not passed on"),
        (["--clean", "train.py"], 2, "--clean removes all"),
        (["train.py"], 1, "missing: gym"),
        (["--with", "gym", "train.py"], 1, "missing: gym"),
    ],
)
def test_exit_codes(
    index: Index,
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    reported: str,
) -> None:
    index.wheel("tqdm")
    script(project, "import tqdm, gym")
    monkeypatch.chdir(project)
    assert run(arguments) == code
    assert reported in "".join(capsys.readouterr())


def test_without_uv(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "uv", None)
    assert run([str(script(project, "import tqdm"))]) == 2
    assert "pip install uv" in capsys.readouterr().err


def test_nothing_is_needed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(script(project, "import json"))]) == 0
    assert "nothing beyond the standard library" in capsys.readouterr().out


def test_control_sequences_of_a_project_are_not_printed(
    index: Index, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index.wheel("tqdm")
    run([str(script(project, "import tqdm", "tqdm\n\x1b[2Jevil line\n"))])
    assert "\x1b" not in capsys.readouterr().out


def test_the_manifest_is_plain(index: Index, project: Path) -> None:
    index.wheel("tqdm", "2.0")
    built = ensure([script(project, "import tqdm", "tqdm==1.0\n")])
    manifest = json.loads((Path(built.executable).parent.parent / cache.MANIFEST).read_text())
    assert manifest["requirements"] == ["tqdm==1.0"]
    assert manifest["relaxed"] == [
        {"stated": "tqdm==1.0", "installed": "tqdm 2.0", "why": "there is no such version"}
    ]
    assert manifest["schema"] == cache.SCHEMA and manifest["size"] == built.size
