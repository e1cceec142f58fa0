"""The same program in an odd layout: what a formatter would undo, and Python does not mind.

Each function takes a source of chance and the text of a program with newlines ``\\n``, and gives another text
with the same meaning, but for :func:`named`, :func:`walrus` and :func:`printed`.
"""

from __future__ import annotations

import ast
import io
import itertools
import random
import re
import tokenize
import warnings
from collections.abc import Callable, Iterator

SIMPLE = (
    *(ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Pass, ast.Return, ast.Delete, ast.Assert),
    *(ast.Import, ast.ImportFrom, ast.Raise, ast.Break, ast.Continue),
)


def blocks(tree: ast.AST) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    for owner in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(owner, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield owner, name, block


def first_lines(text: str) -> list[int]:
    """The lines on which statements begin."""
    return sorted({one.lineno for _, _, block in blocks(ast.parse(text)) for one in block})


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def offsets(text: str) -> list[int]:
    """Where each line begins, in bytes."""
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def put(text: str, insertions: list[tuple[int, bytes]]) -> str:
    data = text.encode()
    for at, code in sorted(insertions, reverse=True):
        data = data[:at] + code + data[at:]
    return data.decode()


def spaced(chance: random.Random, text: str) -> str:
    """Blanks, continuations, newlines and comments between tokens."""
    out: list[str] = []
    lines, depth, row, column = text.split("\n"), 0, 1, 0
    previous: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.ENDMARKER:
            break
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            continue
        line, start = token.start
        between = lines[row - 1][column:start]
        if line != row:
            skipped = [*lines[row : line - 1], lines[line - 1][:start]]
            between = "\n".join([lines[row - 1][column:], *skipped])
        ended = (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT)
        inside = previous is not None and previous.type not in ended and token.type not in ended
        if inside and "\n" not in between and chance.random() < 0.15:
            more = [" ", "\t", "\f", " \\\n", " \\\n     "]
            more += ["\n", "  # c (\n", "\n\n  # ü\n    "] if depth else []
            between += chance.choice(more)
        elif token.type == tokenize.NEWLINE and chance.random() < 0.15:
            if previous is not None and previous.type != tokenize.COMMENT and previous.string != ":":
                between += chance.choice([" ", "\f", "  # c;)", ";", " ; "])
        out += between, token.string
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        row, column = token.end
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            row, column = line + 1, 0
        previous = token
    return "".join(out)


def joined(chance: random.Random, text: str) -> str:
    """Statements on one line, and suites on the line of their header."""
    lines = text.split("\n")
    cuts: dict[int, str] = {}
    for owner, name, block in blocks(ast.parse(text)):
        for one, two in itertools.pairwise(block):
            rest = lines[(one.end_lineno or 1) - 1].encode()[one.end_col_offset :].strip()
            beside = two.lineno == (one.end_lineno or 0) + 1 and not rest
            if isinstance(one, SIMPLE) and isinstance(two, SIMPLE) and beside and chance.random() < 0.3:
                cuts[one.end_lineno or 1] = "; "
        header = lines[block[0].lineno - 2].rstrip() if block[0].lineno > 1 else ""
        compound = name == "body" and isinstance(owner, (ast.If, ast.For, ast.While, ast.With))
        if compound and header.endswith(":") and isinstance(block[0], SIMPLE) and len(block) == 1:
            cuts[block[0].lineno - 1] = " "
    for number in sorted(cuts, reverse=True):
        lines[number - 1] = lines[number - 1].rstrip() + cuts[number] + lines[number].lstrip()
        del lines[number]
    return "\n".join(lines)


def fed(chance: random.Random, text: str) -> str:
    """Form feeds before the first tokens of lines; the tokenizer counts columns anew there."""
    lines = text.split("\n")
    for number in first_lines(text):
        if chance.random() < 0.15:
            line = lines[number - 1]
            own = f"{indentation(line)}\f{line}"
            lines[number - 1] = chance.choice([f"\f{line}", f"\f\f{line}", own, f"  \f{line}"])
    return "\n".join(lines)


def indented(chance: random.Random, text: str) -> str:
    """Another indentation, by tabs, blanks, or both."""
    unit = chance.choice(["\t", " ", "   ", "  \t", "        "])
    kept = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Constant, ast.JoinedStr))
        for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)
    }
    out = []
    for number, line in enumerate(text.split("\n"), 1):
        depth = len(line) - len(line.lstrip(" "))
        same = number in kept
        out.append(line if same else unit * (depth // 4) + " " * (depth % 4) + line[depth:])
    return "\n".join(out)


def commented(chance: random.Random, text: str) -> str:
    """Comments and blank lines above statements."""
    lines = text.split("\n")
    for number in first_lines(text):
        if chance.random() < 0.1:
            line = lines[number - 1]
            blanks = indentation(line)
            above = ["\n", "\f\n", "# é\n", f"{blanks}# c\n", f"{blanks}# a\n\n{blanks}# b\n"]
            lines[number - 1] = chance.choice(above) + line
    return "\n".join(lines)


def enclosed(chance: random.Random, text: str) -> str:
    """Parentheses around expressions."""
    starts = offsets(text)
    found: list[tuple[int, bytes]] = []
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.JoinedStr):
                continue
            waiting.append(child)
            stored = not isinstance(getattr(child, "ctx", ast.Load()), ast.Load) or isinstance(node, ast.Expr)
            kinds = (ast.Name, ast.Attribute, ast.Call, ast.BinOp, ast.Constant)
            if isinstance(child, kinds) and not stored and chance.random() < 0.05:
                found.append((starts[child.lineno - 1] + child.col_offset, chance.choice([b"(", b"( "])))
                found.append((starts[(child.end_lineno or 1) - 1] + (child.end_col_offset or 0), b")"))
    return put(text, found)


def trailing(chance: random.Random, text: str) -> str:
    """Commas and blanks behind the last arguments of calls."""
    starts, data = offsets(text), text.encode()
    found: dict[int, bytes] = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or any(isinstance(one, ast.GeneratorExp) for one in node.args):
            continue
        end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0) - 1
        if data[:end].rstrip()[-1:] not in (b",", b"(") and data[end : end + 1] == b")":
            if chance.random() < 0.3:
                found[end] = chance.choice([b",", b" , ", b" "])
    return put(text, list(found.items()))


def named(chance: random.Random, text: str) -> str:
    """Other names for variables, whose characters are several bytes."""
    names = {
        n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for name in sorted(names):
        elsewhere = rf"\b{name}\s*=[^=].*\)|\.{name}\b|['\"]{name}['\"]"
        if len(name) > 2 and chance.random() < 0.5 and not re.search(elsewhere, text):
            text = re.sub(rf"(?<![\w.]){name}\b", f"ñ{name}", text)
    return text


def walrus(chance: random.Random, text: str) -> str:
    """Assignments as expressions."""
    pattern = re.compile(r"(?m)^(\s*)(\w+) = ([^#\n]*\))$")
    return pattern.sub(lambda m: f"{m[1]}({m[2]} := {m[3]})" if chance.random() < 0.3 else m[0], text)


def printed(chance: random.Random, text: str) -> str:
    """F-strings within f-strings, behind assignments."""
    pattern = re.compile(r"(?m)^( *)(\w+) = [^#\n;]*\)$")
    shown = "{0}\n{1}print(f\"{{{{1}}}} {{f'{{type({2})}}'}} é\", '\\f')"
    return pattern.sub(lambda m: shown.format(m[0], m[1], m[2]) if chance.random() < 0.2 else m[0], text)


LAYOUTS: tuple[Callable[[random.Random, str], str], ...] = (
    *(spaced, joined, fed, indented, commented, enclosed, trailing, named, walrus, printed),
)
CHANGING = (named, walrus, printed)


def odd(chance: random.Random, text: str) -> tuple[bytes, list[str]]:
    """A program in an odd layout, as bytes, and what was done to it."""
    done: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for layout in chance.sample(LAYOUTS, chance.randint(1, 3)):
            try:
                other = layout(chance, text)
                same = layout in CHANGING or ast.dump(ast.parse(other)) == ast.dump(ast.parse(text))
                ast.parse(other)
            except (SyntaxError, tokenize.TokenError):
                continue  # Two layouts that do not go together.
            assert same, layout.__name__
            text = other
            done.append(layout.__name__)
    newline = chance.choice(["\n", "\n", "\n", "\r\n", "\r", "mixed"])
    parts = text.split("\n")
    ends = [chance.choice(["\n", "\r\n", "\r"]) if newline == "mixed" else newline for _ in parts]
    text = "".join(map("".join, zip(parts, ends))).removesuffix(ends[-1])
    end = chance.choice(["", "", "", "unended", "\n\n\n", "   ", "\f", "    # end", "\f\n"])
    text = text.rstrip("\r\n") if end == "unended" else text + end
    encoding = chance.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1"])
    if encoding == "latin-1" and max(text, default="") > "\xff":
        encoding = "utf-8"
    if encoding == "latin-1":
        text = f"# -*- coding: latin-1 -*-\n{text}"
    return text.encode(encoding), [*done, repr(newline), repr(end), encoding]
