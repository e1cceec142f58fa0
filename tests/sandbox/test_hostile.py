"""What a run leaves behind is read and removed as something hostile."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from redteam import LEVEL, SECRET, Attack, bubblewrap

from gradfix.runtime.sandbox import levels, removal
from gradfix.system import hostile
from gradfix.verify.recording import loading, records
from gradfix.verify.recording.loading import load

pytest_plugins = ("redteam",)

NOTHING = {"script": None, "inner": None, "tensor": False}
TENSOR = [[2], "torch.float32", "00", "1.0", "1.0", True, 0, None]
START = {"event": "start", "torch": "2.13", "python": "3.11", "exact": 10000, "sketch": 16}
OPTIMIZER = {"event": "optimizer", "kind": "SGD", "at": NOTHING, "parameters": ["w"], "settings": "lr=0.1"}
OPTIMIZER |= {"shapes": [[2]]}
STEP = {"event": "step", "optimizer": 0, "at": NOTHING, "parameters": [[TENSOR, TENSOR, []]]}
STEP |= {"random": ["0a", "0b", None], "buffers": {"net.mean": TENSOR}}
BACKWARD = {"event": "backward", "at": NOTHING, "value": TENSOR, "retain": False, "saved": 8}
BACKWARD |= {"reached": [[0, 0]], "shares": [], "leaves": {}}
END = {"event": "end", "how": "finished", "raised": None, "leaves": {}, "seconds": 0.5}
ERROR = {"event": "error", "kind": "other", "type": "ValueError", "message": "x", "missing": ""}
ERROR |= {"during": "script", "at": NOTHING}
HONEST = [START, OPTIMIZER, BACKWARD, STEP, END]


def written(folder: Path, events: list[Any], values: bytes = bytes(16)) -> records.Recording:
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (folder / "values.bin").write_bytes(values)
    return load(folder, "", 0, ("died", "it left"))


def test_an_honest_record_is_read(tmp_path: Path) -> None:
    found = written(tmp_path, HONEST)
    assert (found.ending, len(found.backwards), len(found.steps), found.torch) == ("finished", 1, 1, "2.13")


FORGED: dict[str, list[Any]] = {
    "no object": [START, 7, END],
    "a list": [[START], END],
    "no event": [{"torch": "2"}],
    "an unknown event": [{"event": "raised"}],
    "a number for a text": [{**START, "torch": 7}, END],
    "an object for a text": [START, {**ERROR, "message": {"a": 1}}, END],
    "an unknown ending": [START, {**END, "how": "proved"}],
    "an ending that cannot be": [START, {**END, "how": []}],
    "an error that is not there": [START, {**END, "raised": 5}],
    "an error before the first": [START, ERROR, {**END, "raised": "0"}],
    "endless time": [START, {**END, "seconds": 1e999}],
    "no time": [START, {**END, "seconds": "now"}],
    "a step of nobody": [START, {**STEP, "optimizer": 5}, END],
    "a step of one before the first": [START, OPTIMIZER, {**STEP, "optimizer": -1}, END],
    "a step by name": [START, OPTIMIZER, {**STEP, "optimizer": "0"}, END],
    "gradients of the future": [START, OPTIMIZER, {**STEP, "parameters": [[TENSOR, TENSOR, [3]]]}, END],
    "no value": [START, OPTIMIZER, {**STEP, "parameters": [[TENSOR, None, []]]}, END],
    "parameters of nobody": [START, OPTIMIZER, {**BACKWARD, "reached": [[3, 0]]}, END],
    "a tensor beyond the file": [START, {**BACKWARD, "value": [[10**9], "f", "1", "1", "1", True, 0, None]}],
    "a tensor before the file": [START, {**BACKWARD, "value": [[1], "f", "1", "1", "1", True, -8, None]}],
    "a tensor of negative size": [START, {**BACKWARD, "value": [[-1], "f", "1", "1", "1", True, 8, None]}],
    "a tensor of texts": [START, {**BACKWARD, "value": [["a"], "f", "1", "1", "1", True, 0, None]}],
    "a huge number": [START, {**BACKWARD, "value": [[1], "f", "1", "1" * 5000, "x", True, None, []]}],
    "a place without a line": [START, {**BACKWARD, "at": {"script": [], "inner": None, "tensor": False}}],
    "a place of texts": [START, {**BACKWARD, "at": {"script": ["a", 1], "inner": None, "tensor": 1}}],
    "a graph of less than nothing": [START, OPTIMIZER, {**BACKWARD, "saved": -1}, END],
    "a graph of a text": [START, OPTIMIZER, {**BACKWARD, "saved": "8"}, END],
    "generators that are no texts": [START, OPTIMIZER, {**STEP, "random": [1, [], {}]}, END],
    "too few generators": [START, OPTIMIZER, {**STEP, "random": ["0a"]}, END],
    "a buffer without a value": [START, OPTIMIZER, {**STEP, "buffers": {"mean": None}}, END],
    "a buffer beyond the file": [
        START,
        OPTIMIZER,
        {**STEP, "buffers": {"mean": [[10**9], "f", "1", "1", "1", True, 0, None]}},
        END,
    ],
    "shapes of texts": [START, {**OPTIMIZER, "shapes": [["two"]]}, END],
    "shapes of lists": [START, {**OPTIMIZER, "shapes": [[[2]]]}, END],
    "other weights without a value": [START, OPTIMIZER, {**STEP, "others": {"mean": None}}, END],
    "settings that are no texts": [START, OPTIMIZER, {**STEP, "modules": {"net": {"p": 1}}}, END],
    "a list of settings": [START, OPTIMIZER, {**STEP, "modules": ["net"]}, END],
    "draws that did not happen": [
        START,
        OPTIMIZER,
        {**STEP, "draws": [["0a", 2]], "drawn": {"0a": 2}},
        END,
    ],
    "draws without a number": [START, OPTIMIZER, {**STEP, "draws": [["0a", "0"]], "drawn": {"0a": 2}}, END],
    "draws that are no pairs": [START, OPTIMIZER, {**STEP, "draws": [["0a"]]}, END],
    "more draws than can be": [START, OPTIMIZER, {**STEP, "drawn": {"0a": 10**12}}, END],
    "clips that are no texts": [START, OPTIMIZER, {**STEP, "clips": [[1, 0.5]]}, END],
    "clips by what is no number": [START, OPTIMIZER, {**STEP, "clips": [["max_norm=1", "half"]]}, END],
    "clips that turn round": [START, OPTIMIZER, {**STEP, "clips": [["max_norm=1", -1.0]]}, END],
    "clips without end": [START, OPTIMIZER, {**STEP, "clips": [["max_norm=1", 1e999]]}, END],
    "a list of buffers": [START, OPTIMIZER, {**STEP, "buffers": [TENSOR]}, END],
    "a file that is a number": [START, {**ERROR, "missing": 3}, END],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_no_record(name: str, tmp_path: Path) -> None:
    found = written(tmp_path, FORGED[name])
    assert found.ending == "trouble" and found.events == ()
    assert found.detail.startswith("the record of the run makes no sense")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"event": "end", "seconds": ' + "1" * 10_000 + "}", "\0\xff", '{"event": NaN}']
)
def test_text_that_is_no_event_ends_the_record(text: str, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(text + "\n", encoding="latin-1")
    assert load(tmp_path, "", 0, ("died", "it left")).ending in ("died", "trouble")


def test_a_file_larger_than_any_real_one_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "NUMBERS", 3)
    found = written(tmp_path, [START, *[ERROR] * 1000])
    assert len(found.events) == 2
    with (tmp_path / "big").open("wb") as file:
        file.truncate(1 << 40)  # It takes no room on the disk.
    assert (
        len(hostile.read(tmp_path / "big", 1000))
        == len(hostile.read(tmp_path / "big", 1000, tail=True))
        == 1000
    )


def test_what_a_script_says_cannot_rule_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "stdout.txt").write_text("\x1b[2J\x1b]0;title\x07ok\x9b31m\n")
    found = written(tmp_path, [START, {**ERROR, "message": "\x1b[31mred"}, {**END, "raised": 0}])
    assert found.uncaught is not None
    assert found.uncaught.message == "?[31mred" and found.output == "?[2J?]0;title?ok?31m\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_only_plain_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("plain")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert (
        hostile.read(tmp_path / "plain", 3) == b"pla"
        and hostile.read(tmp_path / "plain", 3, tail=True) == b"ain"
    )
    assert [hostile.read(tmp_path / name, 10) for name in ("link", "pipe", "folder", "absent")] == [b""] * 4


@pytest.mark.skipif(os.name != "posix", reason="it is about POSIX folders")
def test_anything_is_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(kept)
    (folder / "file-link").symlink_to(kept / "file")
    (folder / "dark").mkdir()
    (folder / "dark" / "inner").mkdir()
    (folder / "dark" / "inner" / "file").write_text("x")
    (folder / "dark" / "inner").chmod(0)
    (folder / "dark").chmod(0)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(3000):  # Deeper than any path can say, and than Python recurses.
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    removal.remove(folder)
    assert not folder.exists() and (kept / "file").read_text() == "kept"
    (tmp_path / "way").symlink_to(kept)
    removal.remove(tmp_path / "way")
    assert (kept / "file").exists()


PLANT = """
import tempfile
libc = ctypes.CDLL(None)  # Python's own functions are led into the layer.
folder = os.path.dirname(tempfile.gettempdir())
for name in ("events.jsonl", "values.bin", "stdout.txt", "stderr.txt"):
    path = os.path.join(folder, name)
    if libc.rename(path.encode(), (path + ".old").encode()) == 0:
        libc.symlink((HOME + "/documents/diary.txt").encode(), path.encode())
os.chdir(tempfile.gettempdir())
os.symlink(OUTSIDE, "cwd-link")
os.mkdir("dark", 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="written for Linux")
@pytest.mark.parametrize("mode", ["here", "without", pytest.param("bubblewrap", marks=pytest.mark.long)])
def test_links_in_the_place_of_results_are_not_followed(mode: str, yard: Any, attack: Attack) -> None:
    level = {"here": LEVEL, "without": levels.UNSANDBOXED, "bubblewrap": bubblewrap()}[mode]
    if level is None or isinstance(level, str):
        pytest.skip(f"no sandbox here: {level}")
    found = attack(level, PLANT)
    assert SECRET not in repr(found) and SECRET not in found.output
    # In the sandbox they cannot even be planted; without it nothing is left of the record.
    assert (found.ending == "finished") == (mode == "here"), found
    assert (yard.outside / "precious.txt").read_text() == "precious"
