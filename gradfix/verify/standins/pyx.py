"""Cython read as Python: a module of the project that would be compiled, and is not.

Most of a ``.pyx`` is Python with types of C in front of its names. Without them it does the same,
slower: numbers are of Python's kinds then, which hold more. What has no like in Python (pointers,
structures, code of C) is not read, nor is a division of whole numbers, which C cuts off.
"""

from __future__ import annotations

import ast
import importlib.abc
import re
from typing import Any

from . import context

WORD = r"[A-Za-z_]\w*"
TYPE = (
    rf"(?:(?:const|unsigned|signed|long|short|public|readonly)\s+)*{WORD}(?:\.{WORD})*"
    r"(?:\s+(?:int|long|char|double))*(?:\s*\[[^\]]*\])?"
)
WHOLE = re.compile(
    r"^(?:(?:unsigned|signed|long|short)\s+)*(?:int|long|short|char|Py_ssize_t|size_t|\w*int\d+_t)$"
)
"""Types of whole numbers, outside of arrays."""
CUT_OFF = (ast.Div, ast.FloorDiv, ast.Mod)
"""What C does otherwise with whole numbers."""
CLASS = re.compile(rf"^(?P<space>\s*)cdef\s+(?:public\s+)?class\s+(?P<rest>{WORD}.*)$", re.S)
FUNCTION = re.compile(
    rf"^(?P<space>\s*)(?:(?:cdef|cpdef)\s+(?:inline\s+)?(?:{TYPE}\s+)??(?:inline\s+)?|def\s+)"
    rf"(?P<name>{WORD})\s*\((?P<given>.*)\)\s*(?P<after>[^()=]*?(?:\bexcept\b[^:()]*)?):\s*(?P<body>[^:]*)$",
    re.S,
)
VARIABLES = re.compile(rf"^(?P<space>\s*)cdef\s+(?:public\s+|readonly\s+)?(?P<rest>{TYPE}\s+{WORD}.*)$", re.S)
DECLARED = re.compile(rf"^(?P<type>{TYPE})\s+(?P<rest>{WORD}\s*(?:[=,\[].*)?)$", re.S)
GROUP = re.compile(r"^(?P<space>\s*)cdef(?:\s+(?:public|readonly))?\s*:\s*$")
TYPED = re.compile(rf"^(?:{TYPE}\s+)?(?P<name>{WORD})(?:\s+(?:not|or)\s+None)?\s*(?P<value>=.*)?$", re.S)
CIMPORT = re.compile(r"^(?P<space>\s*)(?:from\s+(?P<module>[\w.]+)\s+)?cimport\s+(?P<rest>.*)$", re.S)
CAST = re.compile(r"<\s*(?P<type>float|double|int|long)\s*>\s*(?=\()")
OBJECT = re.compile(r"<\s*(?:list|dict|set|tuple|object|str|bytes)\s*>\s*(?=[\w(\[])")
NOT_READ = re.compile(
    r"^\s*(?:cdef\s+(?:extern|struct|enum|union|packed)|ctypedef\s+(?:struct|enum|union)|IF\s)"
)


class NotRead(Exception):
    """A text has something that Python has not."""


def as_python(text: str) -> ast.Module | None:
    """The Python that does what a text of Cython does, line by line; ``None`` where that is not known."""
    try:
        return Reading(text).tree()
    except NotRead:
        return None


class Reading:
    """The reading of one text."""

    def __init__(self, text: str) -> None:
        self.lines = logical(text)
        self.whole: set[str] = set()
        """Names of variables that are whole numbers of C."""
        self.arrays: set[str] = set()
        """Names of arrays of them."""
        self.classes: list[int] = []
        """The indentations of the classes around a line."""
        self.types: set[str] = set()
        """The names of classes of C, which are there from the beginning."""

    def tree(self) -> ast.Module:
        """The text as Python.

        Raises:
            NotRead: if it is not known.
        """
        try:
            tree = ast.parse(self.text())
        except (SyntaxError, ValueError):
            raise NotRead from None
        for node in ast.walk(tree):
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
            sides = (node.target, node.value) if isinstance(node, ast.AugAssign) else sides
            if (
                sides
                and isinstance(getattr(node, "op", None), CUT_OFF)
                and all(self.is_whole(side) for side in sides)
            ):
                raise NotRead
        early = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name in self.types]
        others = [one for one in tree.body if one not in early]
        first = next((i for i, one in enumerate(others) if isinstance(one, ast.ClassDef)), len(others))
        tree.body = [*others[:first], *early, *others[first:]]
        return tree

    def text(self) -> str:
        """The text with every line as Python has it.

        Raises:
            NotRead: if a line has something that Python has not.
        """
        found: list[str] = []
        group: int | None = None
        for line in self.lines:
            count = line.count("\n")
            code = line.strip()
            if not code or code[0] in "#\"'":
                found.append(line)
                continue
            indent = len(line) - len(line.lstrip())
            while self.classes and indent <= self.classes[-1] and not code.startswith(("@", ")")):
                self.classes.pop()
            if group is not None and indent <= group:
                group = None
            if NOT_READ.match(line):
                raise NotRead
            if GROUP.match(line):
                group, new = indent, " " * indent + "pass"
            elif group is not None:
                # Its lines stand as deep as what holds the group.
                new = " " * group + self.variables(code, group)
            else:
                new = self.line(line.rstrip(), indent)
            found.append(new + "\n" * (count - new.count("\n")))
        return "".join(found)

    def is_whole(self, node: ast.expr) -> bool:
        """Whether an expression is a whole number of C."""
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.BinOp):
            return self.is_whole(node.left) and self.is_whole(node.right)
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Name) and node.value.id in self.arrays
        return isinstance(node, ast.Name) and node.id in self.whole

    def line(self, line: str, indent: int) -> str:
        """One statement, or the head of one, as Python."""
        space = line[:indent]
        code = line[indent:]
        if (found := CIMPORT.match(line)) is not None:
            return space + imported(found["module"] or "", found["rest"])
        if code.startswith("ctypedef"):
            return space + "pass"
        if (found := re.match(r"DEF\s+(\w+\s*=.*)$", code, re.S)) is not None:
            return space + found[1]
        if re.match(r"with\s+(?:no)?gil\s*:", code):
            return space + re.sub(r"with\s+(?:no)?gil\s*:", "if True:", code)
        line = CAST.sub(
            lambda one: "int" if one["type"] in ("int", "long") else "float", OBJECT.sub("", line)
        )
        if (found := CLASS.match(line)) is not None:
            self.classes.append(indent)
            self.types.update(re.findall(WORD, found["rest"])[:1])
            return space + "class " + found["rest"]
        if code.startswith("class "):
            self.classes.append(indent)
            return line
        if (found := FUNCTION.match(line)) is not None:
            given = ", ".join(self.parameter(one) for one in parts(found["given"]))
            after = found["after"].strip()
            kept = after if after.startswith("->") else ""
            return f"{space}def {found['name']}({given}){kept}: {found['body']}".rstrip()
        if (found := VARIABLES.match(line)) is not None:
            return space + self.variables(found["rest"], indent)
        if code.startswith(("cdef ", "cpdef ")) or re.search(r"<\s*\w[\w .]*\*\s*>|&\w+\[", code):
            raise NotRead
        return line

    def parameter(self, given: str) -> str:
        """A parameter without its type."""
        given = given.strip()
        if not given or given[0] == "*" or re.match(rf"{WORD}\s*:", given):
            return given
        found = TYPED.match(given)
        if found is None:
            raise NotRead
        self.note(given[: found.start("name")], found["name"])
        return found["name"] + (found["value"] or "")

    def note(self, kind: str, name: str) -> None:
        """Keep that a name is that of a whole number, or of an array of them, if it is."""
        element, bracket, _ = kind.partition("[")
        if WHOLE.match(kind.strip()):
            self.whole.add(name)
        elif bracket and (WHOLE.match(element.strip()) or re.search(r"\[\s*[\w.]*int", kind)):
            self.arrays.add(name)

    def variables(self, code: str, indent: int) -> str:
        """The declaration of variables: what they begin with, and what a class holds."""
        code = re.sub(r"\s+#.*$", "", code)
        found = DECLARED.match(code)
        if found is None:
            raise NotRead
        said = []
        for one in parts(found["rest"]):
            name, given, value = one.partition("=")
            name = name.strip()
            if not re.fullmatch(WORD, name):
                raise NotRead
            self.note(found["type"], name)
            if given:
                said.append(f"{name} = {value.strip()}")
            elif self.classes and indent > self.classes[-1] and self.directly(indent):
                said.append(f"{name} = {0 if WHOLE.match(found['type']) else None}")
        return "; ".join(said) or "pass"

    def directly(self, indent: int) -> bool:
        """Whether a line of an indentation stands in a class, not in one of its methods."""
        return indent - self.classes[-1] <= 4


def logical(text: str) -> list[str]:
    """The lines of a text, with those in one that brackets, quotes or a backslash hold together."""
    found: list[str] = []
    held = ""
    for line in text.splitlines(keepends=True):
        held += line
        if complete(held):
            found.append(held)
            held = ""
    return [*found, held] if held else found


QUOTED = re.compile(
    r'"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*'
)


def complete(text: str) -> bool:
    """Whether a text ends where a statement, or a head of one, may end."""
    bare = QUOTED.sub("", text)
    opened = sum(bare.count(one) for one in "([{") - sum(bare.count(one) for one in ")]}")
    return opened <= 0 and '"""' not in bare and "'''" not in bare and not bare.rstrip().endswith("\\")


def parts(text: str) -> list[str]:
    """What stands between the commas of a text that are in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [one for one in found if one.strip()]


def imported(module: str, names: str) -> str:
    """An import at the time of compilation as one of Python."""
    if not module:
        return "pass" if names.startswith(("cpython", "libc", "libcpp")) else "import " + names
    if module.startswith(("cpython", "libcpp")) or module.endswith("numpy"):
        return "pass"
    if module.startswith("libc"):
        if module != "libc.math":
            raise NotRead
        return "from math import " + names
    return f"from {module} import {names}"


class Loader(importlib.abc.Loader):
    """Runs what was read of a module."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        module.__file__ = self.path
        exec(compile(self.tree, self.path, "exec"), module.__dict__)


def loader(path: str) -> Loader | None:
    """What loads the Cython of a file, if there is one that can be read."""
    text = context.read(path)
    read = as_python(text) if text else None
    return None if read is None else Loader(path, read)
