"""Files: where a script's relative paths lead, where its writing goes, and data that is not there.

The working directory of a run is an empty temporary folder. A relative path that does not exist there
is looked for in the folders of the project; what is written outside the temporary folder goes into it,
and is found there again. Data that does not exist is made, where its kind is known from its name:
pictures, sounds, text. For tables, arrays and pickles see ``absent``.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import fnmatch
import functools
import gzip
import io
import itertools
import os
import pathlib
import re
import shutil
import stat
import sys
import types
from collections.abc import Iterable
from typing import Any

import torch

from . import absent, content, context, formats, media, plans

TEXT = (".txt", ".text", ".tokens", ".raw", ".en", ".de", ".fr", ".src", ".tgt")


class Overlay:
    """Maps the paths of a script to those that are really used."""

    def __init__(self, run: context.Run) -> None:
        self.run = run
        self.inside = os.path.join(run.cwd, "")
        self.layer = os.path.join(run.cwd, ".outside")
        self.stat = os.stat
        self.mkdir = os.makedirs
        self.made: set[str] = set()
        """The files of the folders that were made up."""
        self.empty: set[str] = set()
        """Folders that are insisted on, of which nothing has said yet what is in them."""
        self.folders: set[str] = set()
        """Folders that were made up, as a path said no more than that."""
        self.beside: dict[str, str] = {}
        """Files that are seen in a folder of the project, by their paths there, and where they lie."""
        self.places: dict[str, str] = {}
        """Where folders of the project really are."""
        self.busy = False
        """While a path is being mapped, what that needs of the functions here is the real thing."""

    def exists(self, path: str) -> bool:
        """Whether there really is something at ``path``."""
        try:
            self.stat(path)
        except (OSError, ValueError):
            return False
        return True

    def lacks(self, path: str) -> bool:
        """Whether there is nothing at ``path``, or only a folder that keeps a place for something."""
        return not self.exists(path) or os.path.abspath(path) in self.empty or self.hollow(path)

    def hollow(self, path: str) -> bool:
        """Whether a folder of the project only keeps a place for what is not there: ``data/.gitkeep``."""
        if self.held(path) or absent.KEPT.search(os.path.basename(path)):
            return False
        try:
            names = real_list(path)
        except OSError:
            return False
        return bool(names) and all(name[0] == "." for name in names)

    def held(self, path: str) -> bool:
        """Whether a path lies in the temporary folder, or is no ordinary place to write."""
        real = self.real(path)
        return (real + os.sep).startswith(self.inside) or real.startswith("/dev/")

    def real(self, path: str) -> str:
        """``os.path.realpath``; those of the project's folders, in which nothing changes, are kept."""
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or not os.path.isabs(folder):
            return os.path.realpath(path)
        known = self.places.get(folder)
        if known is None:
            if not folder.startswith(self.run.root) or folder.startswith(self.inside[:-1]):
                return os.path.realpath(path)
            known = self.places[folder] = os.path.realpath(folder)
        place = os.path.join(known, name)
        try:
            linked = stat.S_ISLNK(real_lstat(place).st_mode)
        except (OSError, ValueError):
            return place  # There is nothing.
        return os.path.realpath(place) if linked else place

    def folder_for_file(self, place: str) -> bool:
        """Whether a folder was made up at ``place``, which is opened as a file, and is gone with that."""
        place = os.path.abspath(place)
        if place not in self.folders:
            return False
        self.folders.discard(place)
        self.empty.discard(place)
        self.made = {one for one in self.made if not one.startswith(place + os.sep)}
        real_rmtree(place, ignore_errors=True)
        return True

    def under(self, path: str) -> str:
        """Where in the temporary folder what is written to ``path`` goes."""
        return os.path.join(self.layer, os.path.abspath(path).lstrip(os.sep).replace(":", ""))

    def reading(self, path: str) -> str:
        """The place to read ``path`` from."""
        if self.busy:
            return path
        self.busy = True
        try:
            return self._reading(path)
        finally:
            self.busy = False

    def writing(self, path: str) -> str:
        """The place to write ``path`` to, whose folder exists if the script could think that it does."""
        if self.busy:
            return path
        self.busy = True
        try:
            return self._writing(path)
        finally:
            self.busy = False

    def _reading(self, path: str) -> str:
        if not os.path.isabs(path):
            here = os.path.join(self.run.cwd, path)
            if os.getcwd() == self.run.cwd and not self.exists(here):
                for folder in self.run.folders():
                    candidate = os.path.join(folder, path)
                    if self.exists(candidate):
                        return candidate
                    if self.beside and os.path.normpath(candidate) in self.beside:
                        return self.beside[os.path.normpath(candidate)]
            elif self.exists(path):
                return path
        if self.held(path):
            return path
        if self.beside and os.path.normpath(path) in self.beside:
            return self.beside[os.path.normpath(path)]
        layer = self.under(path)
        return layer if self.exists(layer) or not self.exists(path) else path

    def _writing(self, path: str) -> str:
        place = path if self.held(path) else self.under(path)
        parent = os.path.dirname(os.path.abspath(place))
        if not self.exists(parent) and (self.exists(self._reading(os.path.dirname(path) or "."))):
            self._make(parent)
        return place

    def _make(self, folder: str) -> None:
        missing = []
        while folder and not self.exists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for one in reversed(missing):
            self._mkdir(one)

    _mkdir = staticmethod(os.mkdir)


overlay_of_run: Overlay | None = None
"""That of this process's run."""


def install(run: context.Run) -> None:
    """Put the overlay on the functions by which Python gets at files."""
    global overlay_of_run
    overlay = overlay_of_run = Overlay(run)
    opening(run, overlay)
    looking(run, overlay)
    changing(run, overlay)
    filtering(run)


def plain(path: Any) -> str | None:
    """A path as text, ``None`` for a descriptor and the like."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        return text if isinstance(text, str) else None
    return None


def opening(run: context.Run, overlay: Overlay) -> None:
    """``open`` and ``torch.save``."""
    real = io.open

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        path = plain(file)
        if path is None:
            return real(file, mode, *args, **kwargs)
        if any(letter in mode for letter in "wax+"):
            return real(room_for(run, overlay, path), mode, *args, **kwargs)
        place = overlay.reading(path)
        there = overlay.exists(place) and not overlay.folder_for_file(place)
        if there and absent.marked(place):
            return absent.AbsentFile(run, path, "b" in mode)
        if not there and asked_by_user(run):
            made = make_file(run, overlay, path) or namesake(run, overlay, path)
            if made is None:
                found = absent.opened(run, path, mode)
                if found is not None:
                    return found
            place = made or path
        return real(place, mode, *args, **kwargs)

    builtins.open = opened
    io.open = opened
    real_save = torch.save

    def save(value: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        path = plain(f)
        real_save(value, f if path is None else room_for(run, overlay, path), *args, **kwargs)

    context.replace(torch, "save", save)


def namesake(run: context.Run, overlay: Overlay, path: str) -> str | None:
    """The file of settings beside an absent one whose name is almost the same, or that the script fits."""
    folder, name = os.path.split(path)
    ending = os.path.splitext(name)[1]
    beside = overlay.reading(folder or ".")
    if ending not in OF_SETTINGS:
        return None
    if (elsewhere := same_name(run, path)) is not None:
        return elsewhere
    from . import arguments

    inside = os.listdir(beside) if os.path.isdir(beside) else []
    names = [one for one in sorted(inside) if one.endswith(ending)]
    close = difflib.get_close_matches(name, names, 5, 0.8)
    if absent.prepared(run):
        return None
    others = difflib.get_close_matches(name, names, 5, 0.7) if close else []
    near = [os.path.join(beside, one) for one in dict.fromkeys([*close, *others])]
    near = near or arguments.settings(run, NAMES_ALIKE)
    alike = SETTINGS_ALIKE.get(ending, (ending,))
    found = content.book.turn("settings", [one for one in near if os.path.splitext(one)[1] in alike])
    if found is None:
        return None
    run.used("settings " + name, "the project's " + (os.path.basename(found) if close else shown(run, found)))
    return str(found)


def same_name(run: context.Run, path: str) -> str | None:
    """The file of settings that another of the project's folders has under an absent one's name, as each of
    several experiments may have one."""
    from . import arguments

    name = os.path.basename(path)
    if not name.endswith(OF_SETTINGS) or absent.KEPT.search(path) or absent.prepared(run):
        return None
    asked = set().union(*(arguments.names_asked(run.tree(one)) for one in [*asking(run), run.entry]))
    near = named_alike(run.folders()[-1], name)
    near = [one for one in near if len(asked & arguments.keys(one)) >= NAMES_ALIKE]
    found = content.book.turn("settings " + name, near)
    if found is not None:
        run.used("settings " + name, "the project's " + shown(run, found))
    return None if found is None else str(found)


@functools.cache
def named_alike(root: str, name: str) -> list[str]:
    """The files of a name in a project's folders."""
    found = []
    for above, inner, names in itertools.islice(context.folders(root), FOLDERS_SEEN):
        inner[:] = sorted(one for one in inner if one[0] != ".")[:50]
        if name in names:
            found.append(os.path.join(above, name))
    return found


OF_SETTINGS = (".yaml", ".yml", ".json", ".toml", ".ini")
"""How the names of files end that may hold settings."""
FOLDERS_SEEN = 500
"""Folders of a project in which a file is looked for by its name."""
NAMES_ALIKE = 3
"""Names that the script asks for and a file of settings must have, if its own name says nothing."""
SETTINGS_ALIKE = {".yaml": (".yaml", ".yml"), ".yml": (".yaml", ".yml")}


def room_for(run: context.Run, overlay: Overlay, path: str) -> str:
    """The place to write a file to, with the folder that it goes into."""
    place = overlay.writing(path)
    folder = os.path.dirname(os.path.abspath(place))
    if not overlay.exists(folder):
        run.used("folder " + shown(run, os.path.dirname(path)), "an empty one to write to")
        overlay._make(folder)
    return place


def looking(run: context.Run, overlay: Overlay) -> None:
    """Functions that ask for what is there."""

    def elsewhere(name: str) -> None:
        real = getattr(os, name)

        def look(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            text = plain(path)
            if text is None:
                return real(path, *args, **kwargs)
            place = overlay.reading(text)
            if name == "stat" and not overlay.busy and not overlay.exists(place):
                if insists(run):
                    place = make_anything(run, overlay, text) or place
                elif asks_for(run, "isdir"):
                    content.book.asked = True
                    if content.book.planned("folders", "asked"):
                        place = make_folder(run, overlay, text, within=False) or place
                elif of_data(text) and asks_for(run, "isfile", "exists"):
                    content.book.asked_file = True
                    if content.book.planned("files", "asked"):
                        place = make_anything(run, overlay, text) or place
                elif not os.path.splitext(text)[1] and asks_for(run, "exists"):
                    content.book.asked_place = True
                    if content.book.planned("folders", "there"):
                        place = make_folder(run, overlay, text, within=False) or place
            return real(place, *args, **kwargs)

        context.replace(os, name, look)

    for name in ("stat", "lstat", "access", "readlink"):
        if hasattr(os, name):
            elsewhere(name)

    for name in ("listdir", "scandir"):
        real = getattr(os, name)

        def listed(path: Any = ".", _real: Any = real, _names: bool = name == "listdir") -> Any:
            text = plain(path)
            if text is None:
                return _real(path)
            place = overlay.reading(text)
            through = ("os.py", "glob.py", "pathlib.py", "pathlib/", "<frozen os>")
            if os.path.abspath(place) in overlay.made and asked_by_user(run, through):
                # Made as a file, and it should have been a folder.
                kind = os.path.splitext(place)[1]
                real_remove(place)
                overlay.made.discard(os.path.abspath(place))
                make_folder(run, overlay, text, kind)
            elif overlay.lacks(place) and asked_by_user(run, through):
                made = make_folder(run, overlay, text)
                place = text if made is None else made
            found = _real(place)
            return found + begun(run, overlay, os.path.abspath(place), found) if _names else found

        context.replace(os, name, listed)

    def searched(name: str) -> None:
        real = getattr(pathlib.Path, name)

        def search(self: Any, pattern: str = "*", *args: Any, **kwargs: Any) -> Any:
            # It asks whether the folder is there, and is content if it is not.
            place = overlay.reading(str(self))
            if overlay.lacks(place) and asked_by_user(run):
                make_folder(run, overlay, str(self), asked_by(os.path.basename(str(pattern))))
            return real(self, pattern, *args, **kwargs)

        context.replace(pathlib.Path, name, search)

    searched("glob")
    searched("rglob")


def changing(run: context.Run, overlay: Overlay) -> None:
    """Functions that write."""

    def written(name: str, count: int) -> None:
        real = getattr(os, name)

        def change(*args: Any, **kwargs: Any) -> Any:
            places = [
                overlay.writing(text) if (text := plain(path)) is not None else path for path in args[:count]
            ]
            if name in ("remove", "unlink") and run.archives and not overlay.exists(places[0]):
                return None  # It would have come out of an archive that is not there.
            return real(*places, *args[count:], **kwargs)

        context.replace(os, name, change)

    real_mkdir = os.mkdir

    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        text = plain(path)
        if text is None:
            real_mkdir(path, *args, **kwargs)
            return
        place = overlay.writing(text)
        overlay._make(os.path.dirname(os.path.abspath(place)))
        real_mkdir(place, *args, **kwargs)

    context.replace(os, "mkdir", mkdir)
    for name, count in (
        ("remove", 1),
        ("unlink", 1),
        ("rmdir", 1),
        ("rename", 2),
        ("replace", 2),
        ("chmod", 1),
        ("utime", 1),
    ):
        written(name, count)

    def copied(source: Any, target: Any, **kwargs: Any) -> Any:
        # Whoever logs makes a folder for it, but for a stand-in.
        folder = (
            not os.path.exists(target) and os.path.splitext(source)[1] and not os.path.splitext(target)[1]
        )
        inside = os.path.join(target, os.path.basename(source)) if folder or os.path.isdir(target) else target
        return shutil.copyfile(source, inside, **kwargs)

    for name in ("copy", "copy2"):
        context.replace(shutil, name, copied)
    context.replace(shutil, "rmtree", lambda *args, **kwargs: None)

    def system(command: str) -> int:
        run.used("command " + command.split(" ")[0], "nothing was run")
        return 0

    def popen(command: str, *args: Any, **kwargs: Any) -> Any:
        run.used("command " + command.split(" ")[0], "nothing was run")
        # The size of the terminal is what scripts ask for.
        return io.StringIO("24 80" if "stty" in command else "")

    context.replace(os, "system", system)
    context.replace(os, "popen", popen)


READERS = (
    "PIL",
    "numpy",
    "torch",
    "pathlib",
    "codecs",
    "gzip.py",
    "tarfile.py",
    "zipfile.py",
    "fileinput.py",
    "ElementTree.py",
    "expatbuilder.py",
)
"""Parts of the names of the files of libraries that open a file because they were told to."""


def asked_by_user(run: context.Run, through: tuple[str, ...] = ()) -> bool:
    """Whether the user's code asks, itself or through functions that do as they are told."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if run.owns(frame):
            return True
        if not name.startswith(context.HERE) and not any(one in name for one in (*READERS, *through)):
            return False
        frame = frame.f_back
    return False


def insists(run: context.Run) -> bool:
    """Whether the user's code gives up if the file or folder is not there that it asks for."""
    asking = sys._getframe(2)
    frame = asking.f_back
    if "pathlib" in asking.f_code.co_filename:
        # ``Path.exists`` asks ``Path.stat``.
        if frame is None or frame.f_code.co_name not in ("exists", "is_dir", "is_file"):
            return False
        frame = frame.f_back
    elif "genericpath" not in asking.f_code.co_filename:
        return False
    if asking.f_code.co_name == "getsize":
        return frame is not None and run.owns(frame) and not absent.prepared(run)
    start = frame
    while frame is not None and run.owns(frame):
        asked = condition_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
        if isinstance(asked, ast.Assert):
            return True
        if isinstance(asked, ast.If):
            # ``if exists(output): raise`` wants it not to be there.
            lacking = frame is not start or ABSENCE.search(ast.unparse(asked.test)) is not None
            # What stands within another condition or a loop is not always reached.
            always = [inner for inner in asked.body if isinstance(inner, (ast.Raise, ast.Expr))]
            return lacking and context.gives_up([*always])
        if asked is None:
            return False
        # Whoever called the function that only answers whether the file is there decides.
        frame = frame.f_back
    return False


@functools.cache
def condition_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The statement that decides by what a line asks, or returns it; one line may ask for many files."""
    found = None
    for node in context.walk(tree):
        if isinstance(node, ast.If) and node.lineno <= line <= (node.test.end_lineno or line):
            return node
        if isinstance(node, (ast.Assert, ast.Return)) and node.lineno <= line <= (node.end_lineno or line):
            if isinstance(node, ast.Assert):
                return node
            found = node
    return found


ABSENCE = re.compile(r"\bnot\b|\bFalse\b|== 0\b|< ")
"""In conditions that hold where something is not there."""


def asks_for(run: context.Run, *functions: str) -> bool:
    """Whether the user's code asks by one of these functions if there is something, and does something else
    if not."""
    asking = sys._getframe(2)
    frame = asking.f_back
    if asking.f_code.co_name not in functions or frame is None or not run.owns(frame):
        return False
    # One that looks for a name that is free would look for ever.
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    if around and isinstance(around[-1], ast.If):
        test = ast.unparse(around[-1].test)
        if absent.KEPT.search(test):
            return False  # It goes on with what an earlier run has left, if that is there.
        refuses = any(isinstance(one, ast.Raise) for node in around[-1].body for one in context.walk(node))
        if refuses and not ABSENCE.search(test):
            return False  # What it is to write must not be there.
    return not (around and isinstance(around[-1], ast.While))


def of_data(path: str) -> bool:
    """Whether a path is that of a file of data, not of settings or of what an earlier run has left."""
    name = os.path.basename(path)
    kind = os.path.splitext(name.lower())[1]
    known = (*absent.STRUCTURED, *absent.TABLES, *TEXT, *media.PICTURES, *media.FIELDS)
    return kind in known and not absent.SETTINGS.search(name) and not absent.KEPT.search(path)


def make_anything(run: context.Run, overlay: Overlay, path: str) -> str | None:
    """Make the file or folder that is insisted on; if its content is unknown, a mark that says so."""
    if os.path.splitext(path)[1].strip(".0123456789") == "":
        return make_folder(run, overlay, path) or make_empty(run, overlay, path)
    made = make_file(run, overlay, path) or same_name(run, path)
    if made is None and not absent.SETTINGS.search(os.path.basename(path)):
        made = os.path.abspath(path) if overlay.held(path) else overlay.under(path)
        overlay._make(os.path.dirname(made))
        with real_open(made, "wb") as file:
            file.write(absent.MARK)
    return made


def make_empty(run: context.Run, overlay: Overlay, path: str) -> str:
    """Make a folder without files, which are made when it is listed by code that says what they are."""
    place = os.path.abspath(path) if overlay.held(path) else overlay.under(path)
    overlay._make(place)
    overlay.empty.add(place)
    overlay.folders.add(place)
    run.used("folder " + alike(shown(run, path)), "an empty one")
    return place


def make_file(run: context.Run, overlay: Overlay, path: str) -> str | None:
    """Make the file that ``path`` names, if its name says what it holds."""
    lower = path.lower()
    place = os.path.abspath(path) if overlay.held(path) else overlay.under(path)
    kind = os.path.splitext(lower)[1]
    known = formats.known(run, os.path.basename(lower))
    if known is not None:
        data = known
    elif kind == ".gz" and os.path.splitext(lower[:-3])[1] in TEXT:
        data = gzip.compress(absent.text_of(run, os.path.basename(path)).encode())
    elif kind in TEXT:
        data = absent.text_of(run, os.path.basename(path)).encode()
    elif kind == ".bin":
        data = media.small_numbers(run, os.path.basename(path))
    elif kind == ".xml" and media.of_labels(told(run, path)):
        data = formats.boxes(run, os.path.basename(path))
    elif kind in media.SEEN_OR_HEARD:
        data = media.one_of_few(run, kind, one_of_four(os.path.basename(path)), told(run, path))
    else:
        return None
    overlay._make(os.path.dirname(place))
    with real_open(place, "wb") as file:
        file.write(data)
    style = content.book.style(os.path.basename(path))
    what = "made-up samples in the format of the real ones" if known is not None else "text of " + style
    what = "boxes as those of Pascal VOC" if kind == ".xml" else what
    if kind in media.PICTURES:
        what = f"a picture of {media.side(run)} x {media.side(run)}"
        what += " of classes" if media.of_labels(told(run, path)) else ""
    run.used("file " + alike(shown(run, path)), media.KINDS.get(kind, what))
    return place


def one_of_four(name: str) -> str:
    """What a picture or a sound is made by: numbered files have one of four, as those of a folder do."""
    numbers = re.findall(r"\d+", name)
    return alike(name) + (str(int(numbers[-1]) % 4) if numbers else "")


real_open = open


real_remove = os.remove
real_rmtree = shutil.rmtree
real_list = os.listdir
real_link = os.link
real_lstat = os.lstat


def make_folder(
    run: context.Run, overlay: Overlay, path: str, kind: str | None = None, *, within: bool = True
) -> str | None:
    """Make a folder of data with a few files in it, of the kind that the script speaks of.

    They lie in folders ``within`` it where the script looks for such.
    """
    missed = content.book.planned("folders", "endings")
    kind = (
        kind
        or asked_of_glob()
        or ending_given(run)
        or spoken_of(run)
        or listed_for(run)
        or (".txt" if reads_text(run) else None)
    )
    if (kind is None or left_by_training(run, kind)) and not missed:
        return None
    place = os.path.abspath(path) if overlay.held(path) else overlay.under(path)
    overlay.empty.discard(place)
    overlay.folders.add(place)
    folders = [place]
    if within and wants_folders(run):
        content.book.within = int(content.book.planned("folders", "count") or media.FOLDERS)
        form = "{:02d}" if content.book.planned("folders", "numbered") else "class_{:02d}"
        folders = [os.path.join(place, form.format(index)) for index in range(content.book.within)]
    endings = [str(one) for one in dict.fromkeys([*([kind] if kind else []), *(missed or [])])]
    count = media.FILES
    people = "celeba" in path.lower() or any("list_attr_celeba" in context.read(one) for one in asking(run))
    if people and folders == [place]:
        # CelebA's readers keep the last two thousand pictures for tests, and look for its table.
        count += 2000
        overlay._make(place)
        with real_open(os.path.join(place, "list_attr_celeba.txt"), "wb") as file:
            file.write(formats.attributes(run, count, endings[0]))
    busy, overlay.busy = overlay.busy, True  # Every file that is made is looked at by the sandbox, too.
    for ending in endings:
        fill(run, overlay, folders, ending, count, told(run, path))
    overlay.busy = busy
    content.book.folders = True
    inner = f"{len(folders)} folders of " if len(folders) > 1 else ""
    said = " ".join(one if "*" in one else "*" + one for one in endings)
    run.used("folder " + alike(shown(run, path)), f"{inner}{count} files {said}")
    return place


OF_PEOPLE = r"_c(\d"
"""In the pattern for the names of pictures of people by which cameras took them, ``0002_c1s1_000451_03.jpg``,
as those of Market-1501 and the sets after it have them (https://zheng-lab.cecs.anu.edu.au/Project/project_reid.html)."""


WEIGHTS = (".pth", ".pt", ".ckpt", ".tar")


def left_by_training(run: context.Run, kind: str) -> bool:
    """Whether files are looked for that an earlier run would have left: a first one finds none."""
    frame = run.caller()
    if frame is None or not kind.endswith(WEIGHTS):
        return False
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    function = next((one for one in reversed(around) if isinstance(one, ast.FunctionDef)), None)
    return function is not None and "load_state_dict" in ast.unparse(function)


FORMS = ("{:03d}", "it.{:03d}", "it_{:03d}", "{:03d}_0")
"""What files are called, without their ending; the next one if the run failed for the number in it."""
NO_NUMBER = re.compile(r"invalid literal for int\(\) with base 10: '(.*)'$")


def named_otherwise(error: BaseException) -> str | None:
    """A plan by which files or their folders have other names, from which the script gets its number."""
    found = NO_NUMBER.match(str(error))
    if found is None or not content.book.folders:
        return None
    if re.search(r"class_\d\d$", found[1]):
        return content.planned_with("folders", "numbered", True)
    form = content.book.planned("folders", "named") or 0
    if re.search(r"(?:^|/|it[._])\d{3}(?:_0)?(?:\.\w+)?$|^it$", found[1]) and form + 1 < len(FORMS):
        return content.planned_with("folders", "named", form + 1)
    return None


def fill(run: context.Run, overlay: Overlay, folders: list[str], ending: str, count: int, name: str) -> None:
    """Make ``count`` files with an ending in each of several folders of a data set called ``name``."""
    kind = "." + ending.rpartition(".")[2].lower()
    known = kind in (*media.SEEN_OR_HEARD, *TEXT)
    people = OF_PEOPLE in "".join(context.read(one) for one in asking(context.run()))
    form = FORMS[content.book.planned("folders", "named") or 0]
    named = [f"{i // 4:04d}_c{i % 4 + 1}s1_{i:06d}_00" if people else form.format(i) for i in range(count)]
    contents = [media.file_of(run, kind, str(index), name) if known else absent.MARK for index in range(4)]
    for folder in folders:
        overlay._make(folder)
        for index in range(count):
            place = os.path.join(folder, called(named[index], ending))
            if index < 4:
                with real_open(place, "wb") as file:
                    file.write(contents[index])
            else:
                real_link(os.path.join(folder, called(named[index % 4], ending)), place)
            overlay.made.add(place)


def called(number: str, ending: str) -> str:
    """The name of a file with an ending, or of one that fits a pattern: ``train_*.h5``."""
    return ending.replace("*", number, 1).replace("*", "0") if "*" in ending else number + ending


PATTERN = re.compile(r"[\w.*-]*\*[\w-]*\.[A-Za-z]\w{0,6}")
"""A pattern for the names of files that says how they end, and perhaps what else is in them."""


def asked_by(pattern: str) -> str | None:
    """How the names of files end that are looked for by a pattern, or the pattern if it says more of them."""
    if not PATTERN.fullmatch(pattern):
        return None
    return pattern[1:] if pattern.rfind("*") == 0 else pattern


STRUCTURED = re.compile(r"^\*?(\.(?:npy|npz|h5|hdf5|pkl|pickle|pt|pth|mat|json|csv))$")


def asked_of_glob() -> str | None:
    """The ending of the files that the code is looking for by a pattern, if it is."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(context.HERE):
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.endswith("glob.py"):
        found = asked_by(str(frame.f_locals.get("pattern", frame.f_locals.get("basename", ""))))
        if found is not None:
            return found
        frame = frame.f_back
    return None


def ending_given(run: context.Run) -> str | None:
    """The ending of the files that a function is looking for which was given it: ``name.endswith(kind)``."""
    frame = run.caller()
    if frame is None:
        return None
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    text = next((ast.unparse(one) for one in reversed(around) if isinstance(one, ast.FunctionDef)), "")
    for name in re.findall(r"\.endswith\((\w+)\)", text):
        given = frame.f_locals.get(name)
        given = given[0] if isinstance(given, (tuple, list)) and given else given
        if isinstance(given, str) and re.fullmatch(r"\.?[A-Za-z]\w{1,5}", given):
            return "." + given.lstrip(".")
    return None


def listed_for(run: context.Run) -> str | None:
    """The ending of the files of data that the function speaks of that lists a folder."""
    frame = run.caller()
    codes = [frame.f_code] if frame is not None else []
    for code in codes:
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                codes.append(constant)
            elif isinstance(constant, str) and (found := STRUCTURED.match(constant)):
                return found[1]
    return None


BEGINNING = re.compile(r"\w*[A-Za-z][_-]")
"""What the names of numbered files begin with."""


def begun(run: context.Run, overlay: Overlay, folder: str, names: list[str]) -> list[str]:
    """Files beside the ``names`` in a folder that begin as the code asks that lists it: ``step_000``.

    There are such only where the run has failed without them: most code is content if there is none.
    """
    frame = run.caller()
    if frame is None or context.caller_of_standins(run) is None:
        return []
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    function = next((one for one in reversed(around) if isinstance(one, ast.FunctionDef)), None)
    asked = [
        node.args[0].value
        for node in context.walk(function or ast.Module(around[-1:], []))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "startswith"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
        and BEGINNING.fullmatch(node.args[0].value)
    ]
    missed = [one for one in asked if not any(name.startswith(one) for name in names)]
    content.book.begun |= bool(missed)
    if not content.book.planned("folders", "begun"):
        return []
    made = []
    for one in missed:
        name = one + "000" + (ending_given(run) or listed_for(run) or ".pt")
        place = os.path.join(folder, name)
        where = overlay.beside[place] = os.path.join(overlay.layer, "beside", str(len(overlay.beside)))
        overlay._make(os.path.dirname(where))
        with real_open(where, "wb") as file:
            file.write(absent.MARK)
        run.used("file " + alike(shown(run, place)), "one, of unknown content")
        made.append(name)
    return made


def filtering(run: context.Run) -> None:
    """Remember what patterns none of the files of a folder that was made up fits."""
    real = fnmatch.filter

    def names_like(names: Any, pat: Any) -> Any:
        names = list(names)
        found = real(names, pat)
        wanted = asked_by(str(pat))
        if names and not found and wanted is not None and content.book.folders and run.caller() is not None:
            content.book.missed.append(wanted)
        return found

    context.replace(fnmatch, "filter", names_like)


NOTHING_FOUND = re.compile(
    r"\bno\b|\bnot\b.*\bfound|empty|num_samples|division by zero|out of range|at least one|"
    r"greater than 0|(?<!index )\b0 ",
    re.I,
)
"""Messages where a script has found no files."""


NOTHING_READ = re.compile(
    r"empty|num_samples|division by zero|list index out of range|at least one|greater than 0"
)
"""Messages where a script has read nothing."""
REAL_LENGTH = re.compile(r"\b[1-6]0000\b")
"""In messages about as many samples as the files of known data sets hold."""


def advise(error: BaseException) -> str | None:
    """A plan by which folders are there that were asked for, and hold files with the endings it wants."""
    book = content.book
    if book.shortened and REAL_LENGTH.search(str(error)):
        return content.planned_with("files", "whole", True)
    if (otherwise := named_otherwise(error)) is not None:
        return otherwise
    found = NOTHING_FOUND.search(str(error)) and not plans.TOO_FEW.search(str(error))
    if not isinstance(error, AssertionError) and not found:
        return None
    known = book.planned("folders", "endings") or []
    missed = [one for one in dict.fromkeys(book.missed) if one not in known]
    if missed:
        return content.planned_with("folders", "endings", [*known, *missed])
    if book.asked and not book.planned("folders", "asked"):
        return content.planned_with("folders", "asked", True)
    insisted = isinstance(error, AssertionError) and plans.insisted(error) is None
    if book.asked_file and (insisted or NOTHING_READ.search(str(error))):
        if (asked := content.planned_with("files", "asked", True)) is not None:
            return asked
    if book.begun and not book.planned("folders", "begun"):
        return content.planned_with("folders", "begun", True)
    if book.asked_place and isinstance(error, FileNotFoundError) and error.errno is None:
        # The script itself raises it, for a folder that it has asked for as it asks for any place.
        return content.planned_with("folders", "there", True)
    return None


def wants_folders(run: context.Run) -> bool:
    """Whether the code that lists a folder looks for folders in it."""
    frame = run.caller()
    # A comprehension has a frame of its own.
    codes = [one.f_code for one in (frame, frame.f_back if frame else None) if one is not None]
    inner = [
        constant for code in codes for constant in code.co_consts if isinstance(constant, types.CodeType)
    ]
    return any("isdir" in code.co_names for code in [*codes, *inner])


def reads_text(run: context.Run) -> bool:
    """Whether the code that lists a folder reads text."""
    frame = run.caller()
    text = run.text(frame.f_code.co_filename) if frame else ""
    return "open(" in text and (".split(" in text or "readlines" in text)


def asking(run: context.Run) -> list[str]:
    """The files of the project whose code is running now, the innermost first."""
    frame = run.caller()
    names: dict[str, None] = {}
    while frame is not None:
        if run.owns(frame):
            names[frame.f_code.co_filename] = None
        frame = frame.f_back
    return list(names)


def spoken_of(run: context.Run) -> str | None:
    """The kind of file that the code speaks of that is running now, and then the script."""
    for name in [*asking(run), run.script]:
        text = run.text(name).lower()
        for kind in (".png", ".jpg", ".jpeg", ".wav", ".txt"):
            if kind in text:
                return kind
        if "image.open" in text or "imread" in text or "default_loader" in text:
            return ".png"
    return None


def alike(name: str) -> str:
    """A name without its numbers: files that are numbered are of one kind."""
    folder, base = os.path.split(name)
    return os.path.join(folder, content.unnumbered(base))


def shown(run: context.Run, path: str) -> str:
    """A path as it is recorded: without what belongs to this machine."""
    return within_run(run, path) or os.path.basename(os.path.abspath(path))


def within_run(run: context.Run, path: str) -> str | None:
    """A path from the run's folder or the project's, ``None`` if it leads elsewhere."""
    absolute = os.path.abspath(path)
    for folder in (run.cwd, os.path.abspath(run.root)):
        if absolute.startswith(folder + os.sep):
            return os.path.relpath(absolute, folder)
    return None


def told(run: context.Run, path: str) -> str:
    """A path as far as the script says it, whose folders tell what lies there."""
    return within_run(run, path) or os.path.abspath(path)


def first(values: Iterable[Any]) -> Any:
    """The first value, ``None`` of none."""
    return next(iter(values), None)
