"""Files and folders that are not there: real ones, made up in the run's layer over the file system.

What a file holds follows from the ending of its name: pictures, texts and tables are written
in their own formats, so that any library reads them. What a pickle or a JSON file holds nobody knows; such a
file is a mark, and whoever loads it gets a value that its use gives a shape (see ``value.py``). Settings
(``config.json``, ``*.yaml``) are never made up, for they say what the script does.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import string
import sys
from typing import Any

import torch

from . import context, value
from .schema import Schema, with_entry

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".ppm")
TABLES = (".csv", ".tsv", ".tab", ".data")
ARRAYS = (".npy", ".npz", ".mat", ".h5", ".hdf5")
NESTED = (".json", ".jsonl", ".pkl", ".pickle", ".p", ".pt", ".pth", ".bin", ".ckpt", ".tar", ".joblib")
TEXTS = (".txt", ".text", ".tokens", ".raw", ".en", ".de", ".fr", ".src", ".tgt", ".train", ".valid", ".test")
DATA = (*PICTURES, *TABLES, *ARRAYS, *NESTED, ".txt")
SETTINGS = re.compile(r"conf|cfg|setting|param|option|\bargs?\b|hparam|\.ya?ml$|\.toml$|\.ini$", re.I)
CHECKPOINT = re.compile(
    r"resum|check_?point|ckpt|pretrain|snapshot|weight|\.pth?$|\.ckpt$|save|best|log|out", re.I
)
"""Names of what an earlier run of the script would have left: it does without that."""
MASKS = re.compile(r"mask|label|segm|annot|(?<![a-z])gt(?![a-z])|ground", re.I)
"""Names of pictures whose pixels are classes."""

COUNT = 64
"""Files in a folder that is made up; eight times as many where those were too few."""
LINES = 400
WORDS = (
    "the of and to in a is that it was for on are as with his they at be this from have or by one had not "
    "but what all were when we there can an your which their said if do will each about how up out them"
).split()


# -- what an error says is missing ---------------------------------------------------------------

BY_H5PY = re.compile(r"name = '([^']+)', errno = 2\b")
BY_NUMPY = re.compile(r"^(\S+) not found\.?$")
NO_FOLDER = re.compile(r"[Pp]arent directory (\S+) does not exist|non-existent directory: '([^']+)'")
"""What ``torch.save`` and pandas say where they are to write."""
NOTHING_FOUND = re.compile(
    r"num_samples=0|[Ff]ound 0|[Nn]o (?:such )?(?:files?|images?|data)|list index out of range|empty|"
    r"(?:division|modulo) by zero|not (?:found|exist)|can't find|could not find|[Dd]ownload|NoneType|"
    r"need at least one array|expected a non-empty|number sections|Cannot choose from|max\(\) arg|iterable",
)
"""What is said where a script has looked for data, found none, and gone on."""


def missing(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema with the file or folder that an error says is not there."""
    if isinstance(error, NotADirectoryError) and error.filename:
        return _below_a_file(run, os.path.abspath(os.fsdecode(error.filename)))
    path = _missing_path(error)
    if path is None:
        return None
    absolute = os.path.abspath(path)
    folder = os.path.dirname(absolute)
    wanted = _asking(error) or ("r" if BY_NUMPY.search(str(error)) else "")
    if os.path.isfile(folder) and (found := _below_a_file(run, absolute)) is not None:
        return found
    if folder in run.overlay.lacking or NO_FOLDER.search(str(error)):
        empty = absolute if folder not in run.overlay.lacking else folder
        return with_entry(run.schema, "files", run.shown(empty), {"kind": "empty folder"})
    return _with_path(run, absolute, wanted, "array" if BY_H5PY.search(str(error)) else None)


def _below_a_file(run: context.StandinRun, absolute: str) -> Schema | None:
    """The schema in which what was made up as a folder of files, and had to be one of folders, is one."""
    while (folder := os.path.dirname(absolute)) != absolute:
        if (found := _as_classes(run, folder)) is not None:
            return found
        absolute = folder
    return None


def _missing_path(error: BaseException) -> str | None:
    """The path that an error says is not there."""
    absent = isinstance(error, FileNotFoundError) or getattr(error, "errno", None) == errno.ENOENT
    name = getattr(error, "filename", None)
    if absent and isinstance(name, (str, bytes)) and name:
        return os.fsdecode(name)
    for pattern in (BY_H5PY, BY_NUMPY, NO_FOLDER):
        if (found := pattern.search(str(error))) is not None:
            # What opens a file in C names the one in the layer.
            return str(found[found.lastindex or 1]).replace(context.run().overlay.upper + os.sep, os.sep)
    return None


def _asking(error: BaseException) -> str:
    """Whether a folder was to be listed (``folder``), or a file to be opened (its mode)."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        if os.path.basename(trace.tb_frame.f_code.co_filename) == "overlay.py":
            name = trace.tb_frame.f_code.co_name
            found = "folder" if name in ("listdir", "scandir") else trace.tb_frame.f_locals.get("mode", "")
        trace = trace.tb_next
    return str(found)


def _with_path(
    run: context.StandinRun, absolute: str, wanted: str = "", kind: str | None = None
) -> Schema | None:
    """The schema with a file or a folder at ``absolute``, if any is made there."""
    ending = os.path.splitext(absolute)[1].lower()
    name = run.shown(absolute)
    held: dict[str, Any] = run.schema.get("files", {})
    if os.path.exists(absolute) and not _is_hollow(absolute):
        return None
    if wanted == "folder" or (not ending and not wanted):
        if held.get(name, {}).get("kind") == "folder":
            return None
        return with_entry(
            run.schema, "files", name, {"kind": "folder", "of": _ending_in(run), "count": COUNT}
        )
    if name in held or SETTINGS.search(os.path.basename(absolute)) or run.overlay.is_withheld(absolute):
        return None
    kind = kind or _kind(ending, wanted)
    if kind is None:
        return None
    return with_entry(run.schema, "files", name, {"kind": kind})


def _is_hollow(absolute: str) -> bool:
    """Whether a folder only keeps a place for what is not there: it holds hidden files, or none."""
    return os.path.isdir(absolute) and all(name[:1] == "." for name in os.listdir(absolute))


def _kind(ending: str, mode: str = "") -> str | None:
    for kind, endings in (
        ("picture", PICTURES),
        ("table", TABLES),
        ("array", ARRAYS),
        ("nested", NESTED),
        ("text", TEXTS),
    ):
        if ending in endings:
            return kind
    # A name that says nothing, opened as text.
    return "text" if mode and "b" not in mode else None


PATTERN = re.compile(r"""['"][^'"\n]*\*(\.\w+)['"]""")
ENDING = re.compile(r"""['"][^'"\n]*?(\.[a-z]\w{1,5})['"]""")
BARE = re.compile(r"""['"](png|jpe?g|npy|wav|txt)['"]""")


READS_PICTURES = re.compile(r"\b(?:PIL|cv2|imread|imageio|skimage|torchvision)\b")


def _ending_in(run: context.StandinRun) -> str:
    """The ending of the files that the project's code looks for: in a pattern, else in any text of it.

    Where it reads pictures, the name of another file is about something else.
    """
    texts = [run.recorder.job["source"]]
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if name and os.path.isabs(name) and name.endswith(".py") and run.recorder.places.in_project(name):
            with contextlib.suppress(OSError), open(name, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
    whole = "\n".join(texts)
    endings = (".npy", ".npz", ".txt", ".csv", ".json")
    for pattern, kinds in (
        (PATTERN, (*PICTURES, *endings)),
        (ENDING, PICTURES),
        (BARE, PICTURES),
        *(() if READS_PICTURES.search(whole) else ((ENDING, endings), (BARE, endings))),
    ):
        for found in pattern.findall(whole):
            if (ending := "." + found.lstrip(".")).lower() in kinds:
                return str(ending)
    return ".png"


def _as_classes(run: context.StandinRun, folder: str) -> Schema | None:
    """The schema in which the files of a folder that was made up lie in a folder for each class."""
    name = run.shown(folder)
    entry = run.schema.get("files", {}).get(name)
    if entry is None or entry["kind"] != "folder" or entry.get("classes"):
        return None
    return with_entry(run.schema, "files", name, {**entry, "classes": 2})


def asked_for(run: context.StandinRun) -> Schema | None:
    """The schema with the last path that the script asked for and went on without, but for checkpoints."""
    if run.recorder.steps or run.recorder.backwards:
        return None  # It trains without.
    for absolute in reversed(run.overlay.asked()):
        name = run.shown(absolute)
        inside = absolute.startswith((os.path.join(run.root, ""), os.path.join(run.cwd, "")))
        if (
            name in run.schema.get("files", {})
            or CHECKPOINT.search(name)
            or not (inside or _is_data(absolute))
        ):
            continue
        if (found := _with_path(run, absolute)) is not None:
            return found
    return None


def _is_data(absolute: str) -> bool:
    return (
        os.path.splitext(absolute)[1].lower() in DATA or re.search(r"data|image|corpus", absolute) is not None
    )


def advise(run: context.StandinRun, error: BaseException) -> Schema | None:
    """The schema of a run that finds what it looked for, where an error says that it did not."""
    message, trace = str(error), run.raised_in(error)
    if "find any class folder" in message or "no classes" in message.lower():
        return _classes_in_last(run)
    line = context.statement(trace) if trace is not None else ""
    gives_up = isinstance(error, (AssertionError, SystemExit)) or re.match(r"\s*raise\b", line) is not None
    if gives_up or isinstance(error, StopIteration) or NOTHING_FOUND.search(message):
        return asked_for(run) or _classes_in_last(run) or more(run)
    return None


def _classes_in_last(run: context.StandinRun) -> Schema | None:
    """The schema in which the folder that was made up last has a folder for each class."""
    for name in reversed(list(run.schema.get("files", {}))):
        if (found := _as_classes(run, os.path.join(run.root, name))) is not None:
            return found
    return None


def more(run: context.StandinRun) -> Schema | None:
    """The schema with more files in each folder: a batch may need more than there were."""
    files: dict[str, Any] = run.schema.get("files", {})
    few = {name: entry for name, entry in files.items() if entry.get("count") == COUNT}
    if not few:
        return None
    return {**run.schema, "files": {**files, **{name: {**e, "count": 8 * COUNT} for name, e in few.items()}}}


# -- making them ---------------------------------------------------------------------------------


def install(run: context.StandinRun) -> None:
    """Make what the schema names."""
    for name, entry in run.schema.get("files", {}).items():
        _make(run, os.path.join(run.root, name), entry)


def _make(run: context.StandinRun, absolute: str, entry: dict[str, Any]) -> None:
    place = run.overlay.upper_path(absolute)
    if entry["kind"] in ("folder", "empty folder"):
        run.overlay.make_folders(place)
        if entry["kind"] == "folder":
            _fill(run, absolute, entry)
            classes = f" in {entry['classes']} folders" if entry.get("classes") else ""
            run.used(
                f"folder {run.shown(absolute)}", f"{entry['count']} made-up {entry['of']} files{classes}"
            )
        else:
            run.used(f"folder {run.shown(absolute)}", "an empty one to write to")
        return
    run.overlay.make_folders(os.path.dirname(place))
    _write(place, _content(run, absolute, entry["kind"]))
    run.used(f"file {run.shown(absolute)}", f"a made-up {WORD[entry['kind']]}")


WORD = {"nested": "value, shaped by its use", "array": "array", "text": "text of common words"}
WORD.update(picture="picture", table="table")


def _fill(run: context.StandinRun, absolute: str, entry: dict[str, Any]) -> None:
    """Put files into a folder that is made up."""
    kind, classes = _kind(entry["of"].lower()) or "text", entry.get("classes", 0)
    data = [_content(run, f"{absolute} {number}{entry['of']}", kind) for number in range(8)]
    for number in range(entry["count"]):
        inner = f"class_{number % classes}" if classes else ""
        place = os.path.join(run.overlay.upper_path(absolute), inner)
        run.overlay.make_folders(place)
        # Eight different ones are enough to tell samples from each other, and soon made.
        _write(os.path.join(place, f"{number:04d}{entry['of']}"), data[number % len(data)])


def _write(place: str, data: bytes) -> None:
    with open(place, "wb") as file:
        file.write(data)


@context.quietly
def _content(run: context.StandinRun, absolute: str, kind: str) -> bytes:
    name = run.shown(absolute)
    if kind == "picture":
        return picture(run, name)
    if kind == "table":
        return value.table(run, name).encode()
    if kind == "text":
        return _text(name).encode()
    return value.MARK + name.encode()


def picture(run: context.StandinRun, name: str) -> bytes:
    """The file of a picture: by the schema, or with classes 0 and 1 where its name speaks of masks."""
    chosen = {"side": 64, "channels": 3, **run.schema.get("pictures", {})}
    masks, side = MASKS.search("/".join(name.split("/")[-2:])), chosen["side"]
    channels = 1 if masks else chosen["channels"]
    pixels = torch.randint(0, 2 if masks else 256, (side, side, channels), generator=context.generator(name))
    run.sizes["pictures"] = [side, side, channels]
    return encoded(pixels.to(torch.uint8), name.lower())


def encoded(pixels: torch.Tensor, name: str) -> bytes:
    """The file of a picture, in the format that its name says; where no library writes one, the run ends."""
    held, ending = b"", os.path.splitext(name)[1]
    with contextlib.suppress(ImportError, KeyError):
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(pixels.numpy().squeeze()).save(file, Image.registered_extensions()[ending])
        held = file.getvalue()
    if not held:
        with contextlib.suppress(ImportError):
            import cv2

            held = bytes(cv2.imencode(ending, pixels.numpy())[1])
    if not held:
        context.run().stop(f"{name} is not there, and neither PIL nor cv2 is installed to make it up")
    return held


def _text(name: str) -> str:
    chosen = torch.randint(0, len(WORDS), (LINES, 9), generator=context.generator(name)).tolist()
    lines = [" ".join(WORDS[number] for number in line).capitalize() + ".\n" for line in chosen]
    # Who asks for a letter later on has seen it.
    return "".join([*lines, string.ascii_letters + string.digits + string.punctuation + "\n"])
