"""Lines of an absent text as the code takes them apart that opens it: parts within parts.

``label, rest = line.split("\\t")`` and ``[one.split(":") for one in rest.split(" ")]`` say what a line looks
like: two fields, of which the second one is a list of pairs. Where numbers are made of parts within parts,
such lines are made; of others the messages of the run tell more (see ``plans``).
"""

from __future__ import annotations

import ast
import types
from typing import Any

import torch

from . import content, context, files, media

SHORTEST, LONGEST = 3, 8
"""Elements of a list in a line: as many in all lists of one line."""
HIGHEST = 9
"""The highest number in such a list, the lowest of which is 1: 0 often stands for nothing."""
LINES = 200
STYLE = "parts within parts"
"""How such a text is called."""
SAME = ("strip", "rstrip", "lstrip", "lower", "upper", "replace", "decode", "encode")
"""Methods that give a text which is taken apart as the one that it was."""
ITSELF = ("list", "tuple", "iter", "tqdm", "reversed", "sorted", "set", "enumerate")


OF_NAMES = ("/", "\\", ".", "_", "-")
"""What stands between the parts of a name."""


class Part:
    """A text, and what it is taken apart into."""

    def __init__(self) -> None:
        self.by: str | None = None
        """What it is taken apart by; nothing if it is whole."""
        self.fields: dict[int, Part] = {}
        """Those of its parts that are asked for by their places."""
        self.each: Part | None = None
        """What all others are, if it is a list."""
        self.number = ""
        """``int`` or ``float``, if a number is made of it."""
        self.known = ""
        """What it is, if that is known."""

    def inner(self) -> list[Part]:
        """Its parts."""
        return [*self.fields.values(), *([self.each] if self.each is not None else [])]

    def numbered(self) -> bool:
        """Whether numbers are made of it, or of its parts."""
        return bool(self.number) or any(one.numbered() for one in self.inner())

    def nested(self) -> bool:
        """Whether one of its parts is taken apart into numbers."""
        return any(one.nested() or (one.by is not None and one.numbered()) for one in self.inner())

    def names(self) -> bool:
        """Whether the name of a file, or one that is put together of others, is taken apart."""
        return (self.by or " ") in OF_NAMES or any(one.names() for one in self.inner())

    def element(self) -> Part:
        """One of a list."""
        self.each = self.each or Part()
        return self.each

    def field(self, place: int) -> Part:
        """The one at a place."""
        return self.fields.setdefault(place, Part())


class Text:
    """All lines of a file, or some: what is gone through in it is a line."""

    def __init__(self, line: Part) -> None:
        self.line = line


class Parts:
    """What a text was taken apart into, from a place on."""

    def __init__(self, of: Part, start: int = 0) -> None:
        self.of = of
        self.start = start


class Each:
    """A list that was made of another one: its elements."""

    def __init__(self, element: Any) -> None:
        self.element = element


def taken_apart(run: context.Run) -> Part | None:
    """What the lines of the file are that is being opened, if they are taken apart twice or more."""
    frame = run.caller()
    if frame is None:
        return None
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    functions = [one for one in around if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    body = functions[-1].body if functions else run.tree(frame.f_code.co_filename).body
    reader = Reader(frame)
    reader.statements(body)
    return reader.line if reader.line.nested() and not reader.line.names() else None


class Reader:
    """Follows the lines of one file through the statements of a function."""

    def __init__(self, frame: types.FrameType) -> None:
        self.opened_at = frame.f_lineno
        self.line = Part()
        self.held: dict[str, Any] = {}

    def statements(self, body: list[ast.stmt]) -> None:
        """Read one after the other."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                continue
            if isinstance(node, ast.With):
                for item in node.items:
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, self.read(item.context_expr))
            elif isinstance(node, ast.Assign):
                found = self.read(node.value)
                for target in node.targets:
                    self.bind(target, found)
            elif isinstance(node, ast.For):
                self.bind(node.target, self.one_of(self.read(node.iter)))
            else:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.read(child)
            for name in ("body", "orelse", "handlers", "finalbody"):
                inner = getattr(node, name, [])
                self.statements([one for one in inner if isinstance(one, ast.stmt)])

    def bind(self, target: ast.expr, value: Any) -> None:
        """Give a value to a name, or its parts to several."""
        if isinstance(target, ast.Name):
            self.held[target.id] = value
        elif isinstance(target, ast.Subscript):
            self.read(target.slice)
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = any(isinstance(one, ast.Starred) for one in target.elts)
            for place, one in enumerate(target.elts):
                if isinstance(value, Parts) and not starred:
                    self.bind(one, value.of.field(value.start + place))
                else:
                    self.bind(one, value[place] if isinstance(value, tuple) and place < len(value) else None)

    def one_of(self, value: Any) -> Any:
        """What a loop over a value gives."""
        if isinstance(value, Text):
            return value.line
        if isinstance(value, Parts):
            return value.of.element()
        return value.element if isinstance(value, Each) else None

    def read(self, node: ast.expr | None) -> Any:
        """What an expression is of a line."""
        if isinstance(node, ast.Name):
            return self.held.get(node.id)
        if isinstance(node, ast.Tuple):
            return tuple(self.read(one) for one in node.elts)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.comprehended(node)
        if isinstance(node, ast.Subscript):
            return self.taken(self.read(node.value), node.slice)
        if isinstance(node, ast.Call):
            return self.called(node)
        for child in ast.iter_child_nodes(node) if node is not None else ():
            if isinstance(child, ast.expr):
                self.read(child)
        return None

    def comprehended(self, node: Any) -> Any:
        """A list of what is made of each element; names that it binds are its own."""
        before = dict(self.held)
        for loop in node.generators:
            self.bind(loop.target, self.one_of(self.read(loop.iter)))
        found = Each(self.read(node.elt))
        self.held = before
        return found

    def taken(self, value: Any, key: ast.expr) -> Any:
        """One of several parts, or those from a place on; a piece of a text is taken apart as the text is."""
        if isinstance(key, ast.Slice):
            start = key.lower.value if isinstance(key.lower, ast.Constant) else 0
            if isinstance(value, Parts):
                return Parts(value.of, value.start + start) if type(start) is int and start >= 0 else None
            return value
        if isinstance(value, Parts) and isinstance(key, ast.Constant) and type(key.value) is int:
            return value.of.field(value.start + key.value)
        return self.one_of(value) if isinstance(value, (Text, Each)) else None

    def called(self, node: ast.Call) -> Any:
        """What a call gives; a call of a text's method mostly the text, or its parts."""
        given = [self.read(one.value if isinstance(one, ast.Starred) else one) for one in node.args]
        for word in node.keywords:
            self.read(word.value)
        if isinstance(node.func, ast.Attribute):
            value = self.read(node.func.value)
            name = node.func.attr
            if isinstance(value, Text):
                return value if name in ("read", "readlines", "split", "splitlines", *SAME) else None
            if isinstance(value, Part) and name == "split":
                return self.split(value, node)
            if isinstance(value, Part) and name in SAME:
                return value
        name = ast.unparse(node.func)
        if name.rpartition(".")[2] == "open" and node.lineno <= self.opened_at <= (node.end_lineno or 0):
            return Text(self.line)
        if name in ("int", "float") and given and isinstance(given[0], Part):
            given[0].number = name
        if name == "map" and len(node.args) == 2:
            element, made = self.one_of(given[1]), ast.unparse(node.args[0])
            if made in ("int", "float") and isinstance(element, Part):
                element.number = made
                return Each(None)
            return given[1] if made in ("str", "str.strip") else None
        if name == "enumerate" and given:
            return Each((None, self.one_of(given[0])))
        return given[0] if name in ITSELF and given else None

    def split(self, value: Part, node: ast.Call) -> Any:
        """A text taken apart: lines by their ends, one line by what stands between its parts."""
        by = node.args[0] if node.args else None
        text = by.value if isinstance(by, ast.Constant) else None if by is not None else " "
        if value is self.line and (text == "\n" or (by is not None and "\\n" in ast.unparse(by))):
            return Text(value)
        if not isinstance(text, str) or value.by not in (None, text) or len(node.args) > 1:
            return None
        value.by = text
        return Parts(value)


def text(run: context.Run, name: str, line: Part) -> str:
    """The lines of such a text; they begin with the names of files if the code speaks of such."""
    generator, ending = run.generator("parts", name), files.spoken_of(run)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (LINES,), generator=generator).tolist()
    first = line.fields.get(0)
    named = bool(ending) and first is not None and first.by is None and not first.number
    rows = []
    for number, length in enumerate(lengths):
        if first is not None and named:
            first.known = f"{number:03d}{ending}"
        rows.append(made(line, length, generator, False))
    return "\n".join(rows) + "\n"


def made(part: Part, length: int, generator: torch.Generator, listed: bool) -> str:
    """A text of such parts, whose lists have ``length`` elements; one that is ``listed`` is one word."""

    def drawn(count: int) -> int:
        return int(torch.randint(0, count, (), generator=generator))

    if part.known:
        return part.known
    if part.by is None:
        if part.number:
            number = 1 + drawn(HIGHEST) if listed else drawn(content.CLASSES)
            return str(number) if part.number == "int" else f"{number + drawn(100) / 100:.2f}"
        return " ".join(media.WORDS[drawn(len(media.WORDS))] for _ in range(1 if listed else length))
    count = max(part.fields, default=-1) + 1
    inner = [part.fields.get(place) or Part() for place in range(count)]
    if part.each is not None or not inner:
        inner += [part.each or Part()] * length
    return part.by.join(made(one, length, generator, listed or part.each is not None) for one in inner)
