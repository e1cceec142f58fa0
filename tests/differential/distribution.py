"""Distributes straight-line training code over functions and methods without changing what it does."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from choices import Choices
from vocabulary import GLOBAL

Lines = list[str]


def indented(lines: Lines) -> Lines:
    """The lines one level deeper."""
    return ["    " + line for line in lines]


def outlined(c: Choices, lines: Lines, *, method: bool = False) -> tuple[Lines, Lines]:
    """Move a stretch of a loop's body to a function with arguments and results.

    Returns the code that is left and the function's definition.
    """
    tree = ast.parse("\n".join(lines))
    found = _loop(tree)
    if found is None:
        return lines, []
    suite, known = found
    start = c.below(len(suite))
    end = start + 1 + c.below(len(suite) - start)
    part = suite[start:end]
    if _diverts(part):
        return lines, []
    for statement in suite[:start]:
        known |= _certainly(statement)
    stored = _stored(part)
    parameters = sorted((_names(part) & known) - GLOBAL)
    certain = {n for statement in part for n in _certainly(statement)}
    results = sorted((stored & certain) | (stored & set(parameters)))
    self_ = ["self"] if method else []
    definition = [f"def run_part({', '.join(self_ + parameters)}):", *indented(_written(part))]
    call = f"{'self.' if method else ''}run_part({', '.join(parameters)})"
    if results:
        as_list = len(results) > 1 and c.chance(20)
        text = ", ".join(results)
        definition.append(f"    return [{text}]" if as_list else f"    return {text}")
        call = f"{text} = {call}"
    suite[start:end] = ast.parse(call).body
    return ast.unparse(tree).splitlines(), definition


def split_methods(c: Choices, lines: Lines) -> tuple[Lines, Lines]:
    """Cut the body of the outermost loop into methods that share attributes.

    Returns the code that is left and the methods. Only names that are no attributes (counters, data)
    have to be handed over.
    """
    tree = ast.parse("\n".join(lines))
    found = _loop(tree)
    if found is None:
        return lines, []
    suite, known = found
    methods: Lines = []
    calls: list[ast.stmt] = []
    at = 0
    while at < len(suite):
        size = len(suite) if c.chance(12) else 1 + c.below(4)
        part, rest = suite[at : at + size], suite[at + size :]
        at += size
        lost = _stored(part) & (_names(rest) | known)
        if _diverts(part) or lost or c.chance(30):
            calls += part
        else:
            name = f"part{len(calls)}"
            parameters = sorted((_names(part) & known) - GLOBAL)
            methods += [f"def {name}({', '.join(['self', *parameters])}):", *indented(_written(part)), ""]
            calls += ast.parse(f"self.{name}({', '.join(parameters)})").body
        for statement in part:
            known |= _certainly(statement)
    suite[:] = calls
    return ast.unparse(tree).splitlines(), methods


def split_functions(c: Choices, lines: Lines, keyword: str) -> tuple[Lines, Lines, list[str]]:
    """Cut the body of the outermost loop into functions that share variables, by ``global`` or ``nonlocal``.

    Returns the code that is left, the functions, and the names that they assign.
    """
    tree = ast.parse("\n".join(lines))
    found = _loop(tree)
    if found is None:
        return lines, [], []
    suite, _ = found
    functions: Lines = []
    names: set[str] = set()
    calls: list[ast.stmt] = []
    at = 0
    while at < len(suite):
        size = 1 + c.below(4)
        part = suite[at : at + size]
        at += size
        if _diverts(part) or c.chance(30):
            calls += part
            continue
        stored = sorted(_stored(part))
        names.update(stored)
        head = [f"    {keyword} {', '.join(stored)}"] if stored else []
        functions += [f"def part{len(calls)}():", *head, *indented(_written(part)), ""]
        calls += ast.parse(f"part{len(calls)}()").body
    suite[:] = calls
    return ast.unparse(tree).splitlines(), functions, sorted(names)


def renamed(line: str, names: dict[str, str]) -> str:
    """One assignment with other names for what it assigns and uses."""

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(names[node.id], mode="eval").body if node.id in names else node

    return ast.unparse(Rename().visit(ast.parse(line)))


def _loop(tree: ast.Module) -> tuple[list[ast.stmt], set[str]] | None:
    """The body of the first loop with at least two statements, and the names that are known in it."""
    known: set[str] = set()
    work = list(tree.body)
    for statement in work:
        if isinstance(statement, (ast.For, ast.While)) and statement is not None:
            if isinstance(statement, ast.For):
                known |= _stored([statement.target])
            if len(statement.body) >= 2 and any("backward" in ast.unparse(s) for s in statement.body):
                return statement.body, known
            if len(statement.body) == 1 and isinstance(statement.body[0], (ast.For, ast.While)):
                work.append(statement.body[0])
                continue
        known |= _certainly(statement)
    return None


def _diverts(statements: Iterable[ast.stmt]) -> bool:
    return any(isinstance(n, (ast.Continue, ast.Break, ast.Return)) for s in statements for n in ast.walk(s))


def _names(statements: Iterable[ast.AST]) -> set[str]:
    found = {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)}
    return found - {n for s in statements for n in _scoped(s)}


def _stored(statements: Iterable[ast.AST]) -> set[str]:
    found = {
        n.id
        for s in statements
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return found - {n for s in statements for n in _scoped(s)}


def _scoped(tree: ast.AST) -> set[str]:
    """Names of comprehensions and lambdas, and of functions' own variables."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Lambda):
            found |= {a.arg for a in node.args.args}
    return found


def _certainly(statement: ast.stmt) -> set[str]:
    """The names that a statement surely binds."""
    if isinstance(statement, (ast.If, ast.For, ast.While)):
        return set()
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.With):
        return {n for s in statement.body for n in _certainly(s)}
    return _stored([statement])


def _written(part: list[ast.stmt]) -> Lines:
    return [line for statement in part for line in ast.unparse(statement).splitlines()]
