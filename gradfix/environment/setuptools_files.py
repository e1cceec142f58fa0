"""Requirements in setup.py and setup.cfg, which are read and never executed."""

from __future__ import annotations

import ast
import configparser
from collections.abc import Mapping
from pathlib import Path

from gradfix.core.syntax import last_name
from gradfix.environment.reading import Collected, Project, Stated


def of_setup_cfg(path: Path, project: Project) -> Stated:
    """What ``[options]`` of setup.cfg says."""
    collected = Collected(project.named(path))
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(project.text(path, collected))
    except configparser.Error:
        collected.leave_out(collected.origin, "it cannot be read", matters=False)
        return collected.stated(path)
    stated = parser.get("options", "install_requires", fallback="")
    if not stated.strip().startswith(("file:", "attr:")):
        lines = (line.split(" #")[0].strip() for line in stated.splitlines())
        collected.add_all(line for line in lines if not line.startswith("#"))
    python = parser.get("options", "python_requires", fallback="").strip()
    return collected.stated(path, python_requires=python)


def of_setup_py(path: Path, project: Project) -> Stated:
    """What setup.py hands to ``setup``, as far as it is written out: in place, or under a module's name."""
    collected = Collected(project.named(path))
    try:
        tree = ast.parse(project.text(path, collected))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return collected.stated(path)
    names = _assigned(tree)
    python = ""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or last_name(call) != "setup":
            continue
        for keyword in call.keywords:
            if keyword.arg == "install_requires":
                strings = _strings(keyword.value, names)
                collected.add_all(strings)
                if strings is None:
                    why = "install_requires is computed, and setup.py is not executed"
                    collected.leave_out(collected.origin, why, matters=False)
            elif keyword.arg == "python_requires":
                python = next(iter(_strings(keyword.value, names) or [""]))
    return collected.stated(path, python_requires=python)


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """What names stand for at the top level; one that is assigned twice, for nothing."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in tree.body:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets, value = [node.target], node.value
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                if target.id in found or isinstance(node, ast.AugAssign):
                    twice.add(target.id)
                found[target.id] = value
    return {name: value for name, value in found.items() if name not in twice}


def _strings(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> list[str] | None:
    """The strings that an expression says outright, or ``None``."""
    if depth > 8:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [line.strip() for line in node.value.splitlines() if line.strip()]
    if isinstance(node, ast.Name) and node.id in names:
        return _strings(names[node.id], names, depth + 1)
    parts: list[ast.expr]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        parts = [part.value if isinstance(part, ast.Starred) else part for part in node.elts]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    else:
        return None
    found = [_strings(part, names, depth + 1) for part in parts]
    # What is written out still counts where something beside it is computed.
    known = [string for strings in found if strings is not None for string in strings]
    return known if known or all(strings is not None for strings in found) else None
