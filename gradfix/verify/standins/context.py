"""What all stand-ins of one run share: its seed, its folders, its log, and a look at who calls."""

from __future__ import annotations

import ast
import bisect
import contextlib
import dis
import functools
import hashlib
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


class NeedsValues(Exception):
    """The run needs values that no stand-in can know; the message says whose."""


SMALLER = re.compile(
    r"(constant|argument|setting|batches|pictures of|transitions|an? |the |indexing|torch\.)|cuda$"
)
"""What is said of sizes that are reduced, of the CPU, and of older versions: nothing is missing then."""


class Run:
    """One run of one script, as its stand-ins see it."""

    def __init__(self, recorder: Any, job: dict[str, Any]) -> None:
        self.recorder = recorder
        self.seed: int = job["seed"]
        self.medium: bool = job["manner"] == "medium"
        """Whether sizes are reduced, but not those that a network's own shapes may be made for."""
        self.small: bool = self.medium or job["manner"] == "small"
        self.root: str = job["root"]
        self.script: str = job["path"]
        self.source: str = job["source"]
        self.entry = self.script
        """The script that was started: the run's own, or one of the project that imports it."""
        self.cwd: str = os.path.join(os.path.realpath(job["folder"]), "cwd")
        self.folder = os.path.realpath(job["folder"])
        self.modern_gym = False
        """Whether environments answer as gymnasium's do: a reset gives two values, a step five."""
        self.devices = 1
        """Processes of a distributed training: as many as there are accelerators for a script that demands
        several."""
        self.shortened = False
        """Whether a data set has been made up with fewer samples than the real one has."""
        self.fewer = False
        """Whether such a one is known by its name: how many the real one has."""
        self.without = False
        """Whether the script has been told that there is no accelerator."""
        self.shown: BaseException | None = None
        """The last error that the script has shown, and gone on."""
        self.archives = False
        """Whether the script has unpacked an archive that is not there."""
        self.lacking = False
        """Whether anything that the script needs is not there, and has a stand-in."""
        self.examples: dict[str, str] = {}
        """Programs that stand in other texts of the project, by the files of these."""
        self._told: set[str] = set()

    def used(self, what: str, gave: str) -> None:
        """Record, once for each ``what``, that a stand-in was used and what it gave."""
        if what not in self._told:
            self._told.add(what)
            self.lacking |= not SMALLER.match(what)
            self.recorder.emit("standin", what=what, gave=gave)

    def stop(self, message: str, line: int | None = None, final: bool = False) -> NoReturn:
        """End the run on the spot, which no ``except:`` of the script can prevent.

        It is told of the line that runs, or of ``line`` of the script. What is ``final`` is not gone on from
        with what is made up for data. In a process that the script
        forked there is nothing to end but that process.
        """
        error = NeedsValues(message)
        if line is None and not final and (undo := self.unless(message)) is not None:
            raise undo
        if os.getpid() == self.recorder.pid:
            place = {"script": [line, None, None, None], "inner": None, "tensor": False}
            at = self.recorder.here() if line is None else place
            self.recorder.finish("error", self.recorder.failed(error, "script", at))
        raise error

    def unless(self, message: str) -> Exception | None:
        """The error that code which only prepares data is to go on from; else how it might is advised."""
        from . import guards

        if guards.stopping():
            return LookupError(message)
        plan = guards.advise_here()
        if plan is not None and os.getpid() == self.recorder.pid:
            self.recorder.emit("plan", text=plan)
        return None

    def generator(self, *about: object) -> torch.Generator:
        """A generator whose numbers depend on the seed of the run and on ``about`` only."""
        text = repr((self.seed, *about)).encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")
        return torch.Generator(device="cpu").manual_seed(number)

    def owns(self, frame: types.FrameType) -> bool:
        """Whether a frame belongs to the script or to its project."""
        return self.owns_file(frame.f_code.co_filename)

    def owns_file(self, name: str) -> bool:
        """Whether a file is the script's or of its project."""
        return name == self.script or bool(self.recorder.in_project(name))

    def caller(self) -> types.FrameType | None:
        """The innermost frame of the user's code."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and not self.owns(frame):
            frame = frame.f_back
        return frame

    def folders(self) -> list[str]:
        """The project's folders from the script's own up to its root, nearest first."""
        found = [os.path.dirname(self.script)]
        root = os.path.abspath(self.root)
        while found[-1] != root and found[-1].startswith(root + os.sep):
            found.append(os.path.dirname(found[-1]))
        return found

    def text(self, filename: str) -> str:
        """The text of a file of the project; the script's is the one that runs."""
        if filename == self.script:
            return self.source
        return self.examples[filename] if filename in self.examples else read(filename)

    def tree(self, filename: str) -> ast.Module:
        """The parsed text of a file of the project, empty if it does not parse."""
        return parse(self.text(filename))


current: Run | None = None
"""The run of this process (a process runs one job)."""


def run() -> Run:
    """The run of this process."""
    assert current is not None
    return current


@functools.cache
def read(filename: str) -> str:
    """The text of a source file, empty if it cannot be read."""
    try:
        with open(filename, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


@functools.cache
def parse(text: str) -> ast.Module:
    """The tree of a source text, as it is written today if it is older; empty if it does not parse then."""
    from . import library

    tree = ast.Module([], [])
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        with contextlib.suppress(SyntaxError, ValueError):
            tree = ast.parse(library.as_today(text))
    _NODES[tree] = []
    return tree


_NODES: dict[ast.AST, list[ast.AST]] = {}
"""The nodes of parsed texts, which nobody changes; none as long as nobody has asked for them."""


def walk(node: ast.AST) -> Sequence[ast.AST]:
    """What ``ast.walk`` gives, in its order and in less time."""
    kept = _NODES.get(node)
    if kept:
        return kept
    found = [node]
    for one in found:
        for name in one._fields:
            value = getattr(one, name, None)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    if kept is not None:
        _NODES[node] = found
    return found


_SCANDIR = os.scandir


def folders(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """What ``os.walk`` gives of a folder of the project, from the top, as it lies on the disk.

    Once a run has begun, ``os.walk`` looks through what maps the script's paths.
    """
    inner: list[str] = []
    names: list[str] = []
    links: set[str] = set()
    with contextlib.suppress(OSError), _SCANDIR(root) as entries:
        for entry in entries:
            (inner if entry.is_dir() else names).append(entry.name)
            if entry.is_symlink():
                links.add(entry.name)
    yield root, inner, names
    for name in inner:
        if name not in links:
            yield from folders(os.path.join(root, name))


def gives_up(body: list[ast.stmt]) -> bool:
    """Whether statements only complain: they raise or exit."""
    for node in walk(ast.Module(body, [])):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call):
            if ast.unparse(node.func) in ("exit", "quit", "sys.exit", "os._exit"):
                return True
    return False


@functools.cache
def statements_at(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The statements that a line belongs to, outermost first; one line may ask again and again."""
    return [
        node
        for node in walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]


def caller_of_standins(run: Run) -> types.FrameType | None:
    """The frame that called into the stand-ins, if it is the user's code."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame if frame is not None and run.owns(frame) else None


def following(frame: types.FrameType, offset: int = 1) -> dis.Instruction | None:
    """The instruction that comes ``offset`` after the one that a frame executes."""
    found, offsets = instructions(frame.f_code)
    # During a call the frame may point behind the call itself, at what the interpreter keeps there.
    done = bisect.bisect_right(offsets, frame.f_lasti)
    wanted = done - 1 + offset if done else len(found)
    return found[wanted] if wanted < len(found) else None


_INSTRUCTIONS: dict[int, tuple[types.CodeType, list[dis.Instruction], list[int]]] = {}


def instructions(code: types.CodeType) -> tuple[list[dis.Instruction], list[int]]:
    """What code executes, and where that stands; loops over what is made up ask for it again and again."""
    held = _INSTRUCTIONS.get(id(code))
    if held is None:
        found = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
        # With the code itself, so that no other gets its number.
        held = _INSTRUCTIONS[id(code)] = code, found, [i.offset for i in found]
    return held[1:]


def unpacked(frame: types.FrameType | None) -> int | None:
    """Into how many names the value is unpacked that the call in ``frame`` returns, if it is.

    A function that only returns the value is looked through.
    """
    while frame is not None:
        instruction = following(frame)
        if instruction is None:
            return None
        if instruction.opname == "UNPACK_SEQUENCE":
            return int(instruction.argval)
        if instruction.opname != "RETURN_VALUE":
            return None
        frame = frame.f_back
    return None


def raised_in(error: BaseException) -> types.FrameType | None:
    """The frame, outside the stand-ins, in which an error was raised."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(HERE):
            found = trace.tb_frame
        trace = trace.tb_next
    return found


def unpacking(frame: types.FrameType) -> int | None:
    """Into how many names ``frame`` is unpacking a value at this moment, if it is."""
    instruction = following(frame, 0)
    if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
        return int(instruction.argval)
    return None


def replace(owner: Any, name: str, wrapper: Any) -> Any:
    """Put ``wrapper`` in the place of ``owner.name`` and return what was there."""
    original = getattr(owner, name)
    functools.update_wrapper(wrapper, original)
    # Whoever asks for the source of a function would otherwise find something built in.
    del wrapper.__wrapped__
    setattr(owner, name, wrapper)
    return original
