"""Whether a mistake is still on the base branch: present, gone, or not decidable.

Gone is said only of what was looked at whole. A file that could not be analysed today (a merge left its
marks, it is of another Python, it has become too large, the analysis gave up on it) is not mended by that,
nor is one whose imports are in such a state.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gradfix.bot import git
from gradfix.bot.replay import Base
from gradfix.bot.state import Key
from gradfix.core.codemod import Effect
from gradfix.pipeline import driver
from gradfix.project import source
from gradfix.project.source import Problem, Source

MODULES = 100
"""Most modules of the project that are looked at behind one file."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where mistakes stand; those that are in neither are gone."""

    there: dict[Key, frozenset[Effect]] = field(default_factory=dict)
    """With the effects of the fixes that there are."""
    unknown: dict[Key, str] = field(default_factory=dict)
    """With the reason, which names the file."""

    def __bool__(self) -> bool:
        return bool(self.there or self.unknown)


def standing(base: Base, keys: Iterable[Key], proposed: str | None = None) -> Standing:
    """Where the mistakes of ``keys`` stand.

    Args:
        base: The base branch. A file that it has under another name (``base.moved``) is looked for there.
        keys: What was proposed.
        proposed: The commit that proposes to mend them.
    """
    found = Standing()
    wanted = set(keys)
    for path in sorted({key.path for key in wanted}):
        _look(base, path, {key for key in wanted if key.path == path}, proposed, found)
    return found


def _look(base: Base, path: str, wanted: set[Key], proposed: str | None, found: Standing) -> None:
    place = base.moved.get(path, path)
    entry = base.entries.get(place)
    codemods = frozenset(key.codemod for key in wanted) & base.options.selected
    if entry is None or entry.mode not in git.REGULAR or not codemods:
        return  # The file is not there any more, or such mistakes are not to be reported.
    after = None if proposed is None else base.repository.tree(proposed).get(path)
    if after is not None and after.blob == entry.blob:
        return  # It is as it was proposed.
    parsed = base.parse(place) if git.is_safe(place) else Problem(place, "its name is not safe")
    if isinstance(parsed, Problem):
        where = f", line {parsed.line}" if parsed.line else ""
        found.unknown.update(dict.fromkeys(wanted, f"{place}{where}: {parsed.message}"))
        return
    if not source.can_matter(parsed.data):
        return
    known, trouble = _keys(base, parsed, path, codemods)
    found.there.update({key: known[key] for key in wanted & known.keys()})
    rest = wanted - known.keys()
    if rest:
        trouble = trouble or _beside(base, parsed, place) or _unchanged(base, path, place, proposed)
    if rest and trouble:
        found.unknown.update(dict.fromkeys(rest, trouble))


def _keys(
    base: Base, parsed: Source, path: str, codemods: frozenset[str]
) -> tuple[Mapping[Key, frozenset[Effect]], str]:
    """The keys of all findings in a file, as it is and after every fix that applies to it, with the effects
    of their fixes; and what kept the analysis from seeing all of it.

    A fix may be for a line that the one before it has made. What is found under an assumption is left out:
    the bot proposes no fix for it, and what it has proposed has been certain.
    """
    options = replace(base.options, selected=codemods, unsafe_fixes=True, certain=True)
    report = driver.file_report(parsed, options)
    keys = {
        Key.of(one.finding, parsed, path): frozenset(fix.effect for fix in one.finding.fixes)
        for one in report.findings
    }
    for attempt in driver.repair(parsed, options).attempts:
        before = parsed.with_text(attempt.before)
        if isinstance(before, Source):
            keys.setdefault(Key.of(attempt.finding, before, path), frozenset({attempt.fix.effect}))
    reported = [*(problem.message for problem in report.problems), *report.messages]
    return keys, f"{path}: {reported[0]}" if reported else ""


def _beside(base: Base, parsed: Source, place: str) -> str:
    """A module of the project that the file imports, directly or not, and that cannot be parsed."""
    from gradfix.autograd.imports import locate

    seen: set[str] = set()
    work = [(base.place(place), parsed.tree)]
    while work and len(seen) < MODULES:
        origin, tree = work.pop()
        for name in _imported(tree):
            module = locate(name, origin)
            if module is None or module in seen:
                continue
            seen.add(module)
            read = source.read(module)
            if isinstance(read, Problem):
                return f"{name.lstrip('.')}, which {place} imports: {read.message}"
            work.append((module, read.tree))
    return ""


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            yield package
            dot = "." if node.module else ""
            yield from (f"{package}{dot}{alias.name}" for alias in node.names if alias.name != "*")


def _unchanged(base: Base, path: str, place: str, proposed: str | None) -> str:
    """Where nobody has touched the file itself: another one that has changed, and cannot be parsed.

    What calls the file decides whether its mistake shows.
    """
    built_on = base.repository.parents(proposed) if proposed is not None else ()
    if len(built_on) != 1 or not base.repository.has(built_on[0]):
        return ""
    before = base.repository.tree(built_on[0])
    if path not in before or before[path].blob != base.entries[place].blob:
        return ""
    for other, entry in base.entries.items():
        changed = other not in before or before[other].blob != entry.blob
        if changed and other.endswith(".py") and entry.mode in git.REGULAR and git.is_safe(other):
            read = base.parse(other)
            if isinstance(read, Problem):
                return f"{other}: {read.message}"
    return ""
