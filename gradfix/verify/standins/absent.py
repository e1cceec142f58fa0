"""Data files that do not exist: readers of them get made-up content, downloads leave it to the readers.

What the name of a file says of its format is enough for some (``files.make_file``). The content of the
others, tables and pickles and arrays, is a :class:`~.content.Content`.
"""

from __future__ import annotations

import ast
import codecs
import csv
import gzip
import hashlib
import io
import itertools
import json
import os
import pickle
import re
import shutil
import sys
import tarfile
import types
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from . import content, context, files, library, linewise, media, plans
from .content import Content

SETTINGS = re.compile(r"conf|cfg|setting|param|option|\bargs?\b|hparam|opt\b|\.ya?ml$|\.toml$|\.ini$", re.I)
"""Files of settings are not made up: they say what a script does."""
KEPT = re.compile(r"resum|checkpoint|ckpt|pretrain|load|restore|snapshot|weight|start_from|continue", re.I)
"""Places of what an earlier run has left: scripts do without."""
WEIGHTS = re.compile(
    r"model|weight|ckpt|checkpoint|state|gen|disc|net|best|last|pretrain|vgg|param|actor|critic|\.ckpt$|optim|"
    r"epoch|enc|dec|\bae\b|vae|gan|policy",
    re.I,
)
TABLES = (".csv", ".tsv", ".tab")
STRUCTURED = (
    ".json",
    ".jsonl",
    ".pkl",
    ".pickle",
    ".p",
    ".npy",
    ".npz",
    ".pt",
    ".pth",
    ".mat",
    ".h5",
    ".hdf5",
)
MARK = b"gradfix: made-up content\n"
"""What a download that did not happen leaves in the file that it is written to."""


def install(run: context.Run) -> None:
    """Let the readers of Python and numpy take absent files, and downloads do nothing."""
    readers(run)
    archives(run)
    downloads(run)
    hashes(run)
    if "numpy" in sys.modules:
        arrays(run, sys.modules["numpy"])


ASKED = 64
"""Times that all of an absent file is asked for before it ends."""


LARGE = 1 << 16
"""Bytes that nobody asks for who reads a header."""


def letters(run: context.Run, name: str, count: int) -> bytes:
    """So many bytes of a text."""
    generator = run.generator("letters", os.path.basename(name))
    return torch.randint(97, 123, (count,), dtype=torch.uint8, generator=generator).numpy().tobytes()


class AbsentFile(io.StringIO):
    """A file whose content nobody knows, opened for reading."""

    def __init__(self, run: context.Run, path: str, binary: bool) -> None:
        super().__init__()
        self.run = run
        self.name = path
        self.binary = binary
        self.told = 0

    def content(self) -> Any:
        """All of it."""
        return content.absent(self.run, self.name)

    def line(self) -> str:
        """A text that stands for a part of it."""
        self.told += 1
        text = AbsentText("")
        text.part = self.content()[self.told - 1]
        return text

    def read(self, size: Any = -1) -> Any:
        self.told += 1
        if self.told > ASKED:
            return b"" if self.binary else ""  # Whoever asks again and again asks until it ends.
        if self.binary:
            large = isinstance(size, int) and size >= LARGE
            data = AbsentBytes(letters(self.run, self.name, size) if large else MARK)
            data.part = self.content()
            return data
        text = AbsentText("")
        text.part = self.content()
        return text

    def seek(self, *place: Any) -> int:
        """Wherever it is read from, it is made up."""
        return 0

    def readlines(self, hint: Any = -1) -> Any:
        return list(self)

    def readline(self, size: Any = -1) -> Any:
        return self.line()

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        self.told = 0
        for _ in range(content.SAMPLES):
            yield self.line()


def text_file(run: context.Run, path: str) -> io.StringIO:
    """An absent file of text: words, or what the plan says that its lines hold."""
    name = os.path.basename(path)
    text = text_of(run, name)
    run.used("file " + files.shown(run, path), "text of " + content.book.style(name))
    return io.StringIO(text)


def text_of(run: context.Run, name: str) -> str:
    """The lines of a text that is made up."""
    kind = content.unnumbered(name)
    parts = linewise.taken_apart(run)
    if parts is not None:
        content.book.parted[kind] = parts
    style = content.book.style(name, linewise.STYLE if parts is not None else kept_alone(run))
    if style == linewise.STYLE:
        return linewise.text(run, name, content.book.parted[kind])
    content.book.separators[content.unnumbered(name)] = separator_of(run)
    if any(BLANK.search(text) for text in library.texts(run)):
        content.book.blanks.add(content.unnumbered(name))
    if style == plans.LABELLED:
        return labelled(run, name)
    if style in ("common words", plans.SENTENCES):
        lines = media.text(run, name).splitlines()
        return "\n".join(in_sentences(lines) if style == plans.SENTENCES else lines) + "\n"
    if ":" in style:
        return rows_of(run, name, *style.split(":", 2))
    columns = content.book.sizes(kind, 2)[1]
    separator = content.book.planned(kind, "separator") or " "
    values = torch.randint(0, content.CLASSES, (200, columns), generator=run.generator("lines", name))
    alike = 1
    if style == "numbers" and columns <= RECORDED:
        # What is told in few numbers is told several times of each: what a user has seen, or who knows whom.
        alike = SENTENCE
        values[:, 1:2] = torch.randint(0, content.SAMPLES, (200, 1), generator=run.generator("others", name))
    rows = []
    for number, row in enumerate(values.tolist()):
        first = format(number, "03d") + ".png" if style == "names and numbers" else str(number // alike)
        rows.append(separator.join([first, *(str(one) for one in row[1:])]))
    return "\n".join(rows) + "\n"


SEPARATOR = re.compile(
    r"""(?:split\(\s*(?:sep\s*=\s*)?|\b(?:split|sep|delimiter|separator)\w*\s*=\s*)"""
    r"""(['"])(\\t|[|,;:#@]{1,3}|[|,;] )\1"""
)


def separator_of(run: context.Run) -> str:
    """What the code that opens a file takes its lines apart by, as far as its text says."""
    frame = run.caller()
    found = SEPARATOR.search(run.text(frame.f_code.co_filename)) if frame is not None else None
    return "" if found is None else found[2].replace("\\t", "\t")


def kept_alone(run: context.Run) -> str:
    """The style of lines with as many fields as the code insists on that opens a file: it leaves out all
    others (``if len(parts) != 40: continue``), or gives up on them."""
    frame = run.caller()
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno) if frame else []
    functions = [one for one in around if isinstance(one, ast.FunctionDef)]
    nodes = context.walk(functions[-1]) if functions and frame is not None else ()
    parted: dict[str, str] = {}
    for node in nodes:
        call = node.value if isinstance(node, ast.Assign) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "split":
            by = [one.value if isinstance(one, ast.Constant) else None for one in call.args] or [" "]
            if isinstance(node, ast.Assign) and isinstance(by[0], str):
                parted[ast.unparse(node.targets[0])] = by[0]
    for node in nodes:
        if not isinstance(node, ast.If) or frame is None:
            continue
        if not isinstance(node.body[-1], (ast.Continue, ast.Raise)):
            continue
        for test in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotEq, ast.Lt)):
                held = re.fullmatch(r"len\((.+)\)", ast.unparse(test.left))
                wanted = plans.whole_number(test.comparators[0], frame)
                if held and held[1] in parted and wanted and 1 < wanted <= MANY_FIELDS:
                    kind = "paths" if joined(nodes, held[1]) == {*range(wanted)} else "fields"
                    return f"{kind}:{wanted}:{parted[held[1]]}"
    return ""


def joined(nodes: Iterable[ast.AST], parts: str) -> set[int]:
    """The numbers of the parts of a line that code joins to paths: ``os.path.join(root, parts[1])``."""
    return {
        part.slice.value
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.path.join"
        for part in node.args[1:]
        if isinstance(part, ast.Subscript) and ast.unparse(part.value) == parts
        if isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, int)
    }


MANY_FIELDS = 500
"""Fields of the widest tables."""
BLANK = re.compile(
    r"""len\(\w+(\.r?strip\(\))?\)\s*(==|>|<)\s*[01]|(==|!=)\s*(''|""|'\\n'|"\\n")|\bnot line\b|"""
    r"""len\(line\)\s*>\s*2|\bline\.isspace\(\)"""
)
"""A question for lines that hold nothing: between the sentences of a text with a word on each line."""
SENTENCE = 8
"""Words of a sentence in such a text, on average."""
LENGTHS = (SENTENCE, SENTENCE - 3, SENTENCE + 1, SENTENCE - 1, SENTENCE + 3)
"""Words of sentences one after the other, for scripts that part them by how long they are."""
RECORDED = 4
"""Numbers in a line that records something of somebody: who, what, how much, when."""


def rows_of(run: context.Run, name: str, kind: str, count: str, separator: str) -> str:
    """Lines of ``count`` fields: the name of a file, numbers, and words, or one more number; ``counts`` begin
    with the number of their line; of ``paths``, the first is that of a picture, the others tell its classes.
    """
    ending = files.spoken_of(run) or ""
    sentences = asks_for_blanks(run) and separator == "\t" and int(count) > 2
    words = media.text(run, name).splitlines()
    classes = torch.randint(
        0, content.CLASSES, (len(words), int(count)), generator=run.generator("rows", name)
    )
    rows = []
    places = in_sentence(len(words))
    for number, (said, row) in enumerate(zip(words, classes.tolist())):
        if kind == "paths":
            rows.append(
                separator.join([f"{number:03d}.png", *[f"labels/{number:03d}.png"] * (int(count) - 1)])
            )
            continue
        last = said.rstrip(" .") if kind == "fields" else str(row[-1])
        last = last.partition(" ")[0] if separator == " " else last
        first, middle = str(number) if kind == "counts" else format(number, "03d") + ending, row[1:-1]
        if sentences:
            # What depends on another word of its sentence depends on the one before it.
            place = places[number]
            first, middle = str(place + 1), [place] * len(middle)
        rows.append(separator.join([first, *map(str, middle), last]))
    return "\n".join(in_sentences(rows) if sentences else rows) + "\n"


def labelled(run: context.Run, name: str) -> str:
    """A word and its class on each line, by which those of one thing begin with its first."""
    words = media.text(run, name).split()
    drawn = torch.randint(0, 2, (len(words),), generator=run.generator("classes", name)).tolist()
    lines = [word + (" B-ONE" if one else " O") for word, one in zip(words, drawn)]
    return "\n".join(in_sentences(lines[:LABELLED_WORDS])) + "\n"


LABELLED_WORDS = 400
"""Words in such a text."""


def in_sentences(lines: list[str]) -> list[str]:
    """Lines with one that holds nothing after each sentence."""
    found: list[str] = []
    for place, line in zip(in_sentence(len(lines)), lines):
        found += ["", line] if place == 0 and found else [line]
    return [*found, ""]


def in_sentence(count: int) -> list[int]:
    """The places in their sentences that so many words have."""
    places = (place for words in itertools.cycle(LENGTHS) for place in range(words))
    return list(itertools.islice(places, count))


def asks_for_blanks(run: context.Run) -> bool:
    """Whether the code that opens a file asks for lines that hold nothing."""
    frame = run.caller()
    return frame is not None and BLANK.search(run.text(frame.f_code.co_filename)) is not None


class TableFile(io.StringIO):
    """A table that is not there: as text, numbers of rows and small whole numbers under names."""

    def __init__(self, run: context.Run, path: str) -> None:
        self.run = run
        self.name = path
        found = self.content()
        rows, columns = (*content.book.sizes(found._place, 2),)[:2]
        separator = "," if path.lower().endswith(".csv") else "\t"
        values = torch.randint(
            0, content.CLASSES, (rows, columns), generator=run.generator("table", found._place)
        )
        lines = [separator.join("column_" + str(i) for i in range(columns))]
        for number, row in enumerate(values.tolist()):
            lines.append(separator.join(str(one) for one in [number, *row[1:]]))
        if content.book.planned(found._place, "headless"):
            lines = lines[1:]
        super().__init__("\n".join(lines) + "\n")

    def content(self) -> Any:
        """All of it, for a reader that knows tables."""
        return content.absent(self.run, self.name)


class AbsentText(str):
    """A text that nobody knows, to be parsed by ``json.loads`` or its like."""

    part: Content

    def strip(self, *args: Any) -> Any:
        return self

    rstrip = strip


class AbsentBytes(bytes):
    """Bytes that nobody knows."""

    part: Content


def opened(run: context.Run, path: str, mode: str) -> Any:
    """An absent file of data for reading; ``None`` if it may not be made up, or the script can do without."""
    name = os.path.basename(path)
    if SETTINGS.search(name) or name.endswith((".py", ".so", ".cpp", ".cu", ".log", ".lock")) or not name:
        return None
    if prepared(run) or os.path.abspath(path).startswith(("/proc/", "/sys/", "/dev/", "/etc/")):
        return None
    kind = os.path.splitext(name.lower())[1]
    if "b" not in mode and kind not in STRUCTURED:
        if kind in TABLES:
            return TableFile(run, path)
        return text_file(run, path)
    if kind not in STRUCTURED and through_codecs():
        return io.BytesIO(text_file(run, path).getvalue().encode())
    return AbsentFile(run, path, "b" in mode)


def through_codecs() -> bool:
    """Whether a file is opened by ``codecs.open``, which decodes what it reads."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(context.HERE):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in (codecs.__file__, "<frozen codecs>")


FILE_ERRORS = r"OSError|IOError|FileNotFound|Exception"


def prepared(run: context.Run, errors: str = FILE_ERRORS) -> bool:
    """Whether the user's code that asks for a file has another way ready if that is not there.

    ``errors`` are the names of those by which it learns that.
    """
    frame = run.caller()
    if frame is None or ready(run, frame, errors):
        return True
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    functions = [one for one in around if isinstance(one, ast.FunctionDef)]
    beyond = frame.f_back
    # What only reads a file leaves it to its caller what to do without.
    reads = bool(functions) and not any(isinstance(one, BRANCHES) for one in context.walk(functions[-1]))
    return reads and beyond is not None and run.owns(beyond) and ready(run, beyond, errors, makes=True)


BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.ClassDef)


def ready(run: context.Run, frame: types.FrameType, errors: str, makes: bool = False) -> bool:
    """Whether what a frame executes stands in a ``try`` that has another way ready, one that makes
    something in its place if it has to."""
    for node in context.walk(run.tree(frame.f_code.co_filename)):
        if isinstance(node, ast.Try) and any(
            child.lineno <= frame.f_lineno <= (child.end_lineno or 0) for child in node.body
        ):
            for handler in node.handlers:
                names = ast.unparse(handler.type) if handler.type else "Exception"
                inside = list(context.walk(handler))
                gives_up = any(isinstance(inner, ast.Raise) for inner in inside)
                made = any(isinstance(inner, (ast.Assign, ast.Return)) and inner.value for inner in inside)
                if re.search(errors, names) and not gives_up and (made or not makes):
                    return True
    return False


def is_absent(path: Any) -> bool:
    """Whether a path leads to nothing, or to what a download left that did not happen."""
    if isinstance(path, AbsentFile):
        return True
    if not isinstance(path, (str, os.PathLike)):
        return False
    if not os.path.exists(path):
        return True
    overlay = files.overlay_of_run
    if overlay is None:
        return False
    place = overlay.reading(os.fspath(path))
    # What is read as a file should not have been made as a folder.
    return marked(place) or os.path.abspath(place) in overlay.folders


def made_as_another(path: Any) -> bool:
    """Whether a file of a made-up folder is no array: the folder's name did not say what is in it."""
    overlay = files.overlay_of_run
    name = files.plain(path)
    if overlay is None or name is None:
        return False
    place = os.path.abspath(overlay.reading(name))
    return place in overlay.made and os.path.splitext(place)[1] in (*media.SEEN_OR_HEARD, *files.TEXT)


def spared(run: context.Run, source: Any) -> bool:
    """Whether a script can do without a file; not if it has downloaded it, and so expects it to be there."""
    path = files.plain(source)
    overlay = files.overlay_of_run
    return prepared(run) and not (path and overlay is not None and marked(overlay.reading(path)))


def marked(place: str) -> bool:
    """Whether a file holds nothing but what a download has left that did not happen."""
    try:
        if not os.path.isfile(place) or os.path.getsize(place) > len(MARK):
            return False
        with io.FileIO(place) as file:
            return file.read() == MARK
    except OSError:
        return False


def named(source: Any) -> str:
    """The path of a file, or of what was opened."""
    # Paths have a name too, which is only their last part.
    return str(os.fspath(source) if isinstance(source, (str, os.PathLike)) else source.name)


def reader(run: context.Run, owner: Any, name: str, tensors: bool = False) -> None:
    """Let ``owner.name(path or file)`` give made-up content for an absent file."""
    if not hasattr(owner, name):
        return
    real = getattr(owner, name)

    def read(*args: Any, **kwargs: Any) -> Any:
        source = given(args, kwargs)
        if isinstance(source, (AbsentText, AbsentBytes)):
            return source.part
        if (
            not name.endswith("s")
            and is_absent(source)
            and run.caller() is not None
            and not spared(run, source)
        ):
            path = named(source)
            if not SETTINGS.search(os.path.basename(path)):
                return content.absent(run, path, tensors=tensors)
        return real(*args, **kwargs)

    context.replace(owner, name, read)


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The file that a reader is given, by whatever name: ``json.load(fp=file)``."""
    called = next((kwargs[name] for name in ("fp", "file", "fname", "s", "data") if name in kwargs), None)
    return args[0] if args else called


def readers(run: context.Run) -> None:
    """``pickle``, ``json``, ``csv``."""
    for name in ("load", "loads"):
        reader(run, pickle, name)
        reader(run, json, name)
    real_unpickler = pickle.Unpickler

    class Unpickler(real_unpickler):  # type: ignore[valid-type, misc]
        def __init__(self, file: Any, *args: Any, **kwargs: Any) -> None:
            self.absent = isinstance(file, AbsentFile)
            self.source = file
            if not self.absent:
                super().__init__(file, *args, **kwargs)

        def load(self) -> Any:
            return self.source.content() if self.absent else super().load()

    pickle.Unpickler = Unpickler  # type: ignore[misc]
    slow: Any = pickle
    real_slow = slow._Unpickler
    slow._Unpickler = lambda file, **kwargs: (
        Unpickler(file) if isinstance(file, AbsentFile) else real_slow(file, **kwargs)
    )
    for name in ("reader", "DictReader"):
        real = getattr(csv, name)

        def read(file: Any, *args: Any, _real: Any = real, **kwargs: Any) -> Any:
            if isinstance(file, (AbsentFile, TableFile)):
                return iter(file.content())
            return _real(file, *args, **kwargs)

        context.replace(csv, name, read)


def arrays(run: context.Run, numpy: Any) -> None:
    """Readers of numpy."""
    real_buffer = numpy.frombuffer

    def buffer(data: Any, dtype: Any = float, count: int = -1, *args: Any, **kwargs: Any) -> Any:
        if type(data) is AbsentBytes and data == MARK:
            kind, generator = numpy.dtype(dtype), run.generator("buffer", data.part._place)
            count = count if count > 0 else LARGE
            if kind.kind in "iub":
                values = torch.randint(0, content.CLASSES, (count,), generator=generator)
            else:
                values = torch.rand(count, generator=generator)
            return values.numpy().astype(kind)
        return real_buffer(data, dtype, count, *args, **kwargs)

    context.replace(numpy, "frombuffer", buffer)
    for name in ("load", "loadtxt", "genfromtxt", "fromfile", "memmap"):
        real = getattr(numpy, name)

        def read(*args: Any, _real: Any = real, _name: str = name, **kwargs: Any) -> Any:
            file = given(args, kwargs)
            other = _name == "load" and made_as_another(file)
            if not (other or is_absent(file)) or run.caller() is None or (spared(run, file) and not other):
                return _real(*from_where_it_lies(args), **kwargs)
            found = content.absent(run, named(file))
            if _name in ("load", "memmap"):
                return found
            flat = _name == "fromfile" or (
                kwargs.get("usecols") is not None and not hasattr(kwargs["usecols"], "__len__")
            )
            return table(
                numpy, found, 1 if flat else None, kwargs.get("dtype", args[1] if args[1:] else float), kwargs
            )

        if isinstance(real, type):
            continue
        context.replace(numpy, name, read)


def from_where_it_lies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the real path first: some readers of numpy's open files by no function of Python's."""
    path, overlay = files.plain(args[0]) if args else None, files.overlay_of_run
    if path is None or overlay is None or not overlay.exists(place := overlay.reading(path)):
        return args
    return place, *args[1:]


def table(numpy: Any, found: Content, count: int | None, kind: Any, kwargs: dict[str, Any]) -> Any:
    """An array of a table; one of texts and one of whole numbers begin with the numbers of the rows."""
    values = numpy.asarray(found._settled(count))
    kind = numpy.dtype(kind)
    if kind.kind in "USOiu":
        values = (values * content.CLASSES).astype(int)
        if values.ndim > 1:
            values[:, 0] = numpy.arange(len(values))
    values = values.astype(kind)
    return values.T if kwargs.get("unpack") else values


class AbsentArchive:
    """An archive that is not there: what it would have put into a folder is made up when it is asked for."""

    def __init__(self, run: context.Run, path: str) -> None:
        run.archives = True
        run.used("archive " + os.path.basename(path), "what it held is made up where it is read")

    def __enter__(self) -> AbsentArchive:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def namelist(self) -> list[str]:
        """Nobody knows."""
        return []

    getmembers = getnames = infolist = namelist

    def extractall(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is there to extract."""

    extract = close = extractall


def archives(run: context.Run) -> None:
    """``gzip``, ``tarfile``, ``zipfile`` of absent files."""
    real_gzip: Any = gzip.GzipFile
    real_open = gzip.open

    def unpacked(path: Any) -> Any:
        name = named(path)
        made = files.make_file(run, files.overlay_of_run, name) if files.overlay_of_run else None
        if made is not None:
            return made
        return AbsentFile(run, name[:-3] if name.endswith(".gz") else name, True)

    def open_gzip(filename: Any, *args: Any, **kwargs: Any) -> Any:
        writing = any(letter in str(args[:1]) + str(kwargs.get("mode", "")) for letter in "wax")
        if not writing and is_absent(filename) and not prepared(run):
            found = unpacked(filename)
            if isinstance(found, AbsentFile):
                return (
                    text_file(run, found.name)
                    if "t" in str(args[:1]) + str(kwargs.get("mode", ""))
                    else found
                )
            filename = found
        return real_open(filename, *args, **kwargs)

    class GzipFile(real_gzip):  # type: ignore[misc]
        def __new__(cls, filename: Any = None, mode: Any = None, *args: Any, **kwargs: Any) -> Any:
            source = kwargs.get("fileobj") if filename is None else filename
            if not any(letter in str(mode) for letter in "wax") and is_absent(source):
                found = unpacked(source)
                return found if isinstance(found, AbsentFile) else real_gzip(found)
            return super().__new__(cls)

    context.replace(gzip, "open", open_gzip)
    gzip.GzipFile = GzipFile  # type: ignore[misc]
    real_tar: Any = tarfile.open

    def open_tar(name: Any = None, mode: str = "r", fileobj: Any = None, **kwargs: Any) -> Any:
        source = fileobj if name is None else name
        if mode.startswith("r") and is_absent(source):
            return AbsentArchive(run, named(source))
        return real_tar(name, mode, fileobj, **kwargs)

    tarfile.open = open_tar  # type: ignore[assignment]
    real_zip: Any = zipfile.ZipFile

    class ZipFile(real_zip):  # type: ignore[misc]
        def __new__(cls, file: Any = None, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if mode == "r" and is_absent(file):
                return AbsentArchive(run, named(file))
            return super().__new__(cls)

    zipfile.ZipFile = ZipFile  # type: ignore[misc]
    real_unpack = shutil.unpack_archive

    def unpack(filename: Any, *args: Any, **kwargs: Any) -> None:
        if not is_absent(filename):
            real_unpack(filename, *args, **kwargs)

    context.replace(shutil, "unpack_archive", unpack)


class Unknown(str):
    """The hash of what nobody knows, which is as good as any other."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, str)

    __hash__ = str.__hash__

    def __getitem__(self, place: Any) -> Unknown:
        return Unknown(str.__getitem__(self, place))

    def startswith(self, *args: Any) -> bool:
        return True

    endswith = startswith

    def upper(self) -> Unknown:
        return self

    lower = upper


class Hash:
    """A hash of what is read, which may be the made-up content of a download."""

    def __init__(self, real: Any, run: context.Run, data: Any) -> None:
        self.real = real
        self.run = run
        self.absent = False
        self.update(data)

    def update(self, data: Any) -> None:
        """Take in more."""
        self.absent |= isinstance(data, AbsentBytes)
        self.real.update(data)

    def hexdigest(self, *length: int) -> str:
        """What is compared with the hash of the real file."""
        found = self.real.hexdigest(*length)
        if self.absent:
            self.run.used("hash of a download", "the one that is expected")
            return Unknown(found)
        return str(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def hashes(run: context.Run) -> None:
    """The hashes by which a script checks what it has downloaded."""
    for name in ("md5", "sha1", "sha256", "sha512", "new"):
        real = getattr(hashlib, name)

        def make(*args: Any, _real: Any = real, _named: bool = name == "new", **kwargs: Any) -> Any:
            data = args[_named] if len(args) > _named else kwargs.pop("data", kwargs.pop("string", b""))
            found = _real(*args[:_named], **kwargs)
            if context.caller_of_standins(run) is None:
                found.update(data)
                return found
            return Hash(found, run, data)

        context.replace(hashlib, name, make)


def downloads(run: context.Run) -> None:
    """Downloads: the file is there afterwards, and says that its content is not."""

    def retrieve(url: Any, filename: Any = None, *args: Any, **kwargs: Any) -> Any:
        return downloaded(run, str(url), filename), {}

    def urlopen(url: Any, *args: Any, **kwargs: Any) -> Any:
        return response(run, str(getattr(url, "full_url", url)))

    urllib.request.urlretrieve = retrieve
    urllib.request.urlopen = urlopen

    def to_file(url: str, dst: str, *args: Any, **kwargs: Any) -> None:
        downloaded(run, url, dst)

    torch.hub.download_url_to_file = to_file


def downloaded(run: context.Run, url: str, filename: Any = None) -> str:
    """Leave the file that a download would have made."""
    run.used("download of " + url.rstrip("/").rpartition("/")[2], "nothing: it is made up where it is read")
    place = os.fspath(filename) if filename else os.path.join(run.cwd, url.rstrip("/").rpartition("/")[2])
    if files.overlay_of_run is not None:
        made = files.make_file(run, files.overlay_of_run, place)
        if made is not None:
            return place
    with open(place, "wb") as file:
        file.write(MARK)
    return place


def response(run: context.Run, url: str) -> AbsentFile:
    """What the answer of a server is read from."""
    run.used("download of " + url.rstrip("/").rpartition("/")[2], "nothing: it is made up where it is read")
    found = AbsentFile(run, url.rstrip("/").rpartition("/")[2] or "page", True)
    found.status = found.code = 200  # type: ignore[attr-defined]
    found.headers = {"content-length": str(len(MARK))}  # type: ignore[attr-defined]
    return found


def looks_like_weights(path: str) -> bool:
    """Whether a file that ``torch.load`` reads holds the weights of a network, not data."""
    name = os.path.basename(path)
    folder = os.path.basename(os.path.dirname(path))
    if re.search(r"train|test|val|data|sample|set|corpus|vocab|feature|image", name, re.I) and not re.search(
        r"model|ckpt|checkpoint|net|weight|pretrain", name, re.I
    ):
        return False
    return bool(WEIGHTS.search(name) or WEIGHTS.search(folder)) or not re.search(
        r"data|processed|raw", folder, re.I
    )
