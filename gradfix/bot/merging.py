"""Merges of the base branch into a branch of the bot: those that people have made, and the next one.

They are made again, file by file. A branch is no more than ours if every commit on top of our own is what git
by itself makes of it and of a commit of the base branch; what a person has added, or solved by hand, is a
person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gradfix.bot import state
from gradfix.bot.git import Git

MERGES = 50
"""Most merges that are followed."""


def is_ours(git: Git, commit: str) -> bool:
    """Whether a commit is exactly as the bot has made it."""
    return state.is_sealed(git.raw_commit(commit))


def own_commit(git: Git, head: str, tip: str, deepen: Callable[[], None]) -> str | None:
    """Our commit at the bottom of ``head``, if a person has done nothing there but merge the base.

    Args:
        git: It has both commits.
        head: The last commit of a branch.
        tip: That of the base branch.
        deepen: Fetches more of the history of both.
    """
    if is_ours(git, head):
        return head
    if len(git.parents(head)) != 2:
        return None
    deepen()
    merges: list[tuple[str, str]] = []
    commit = head
    while not is_ours(git, commit):
        parents = git.parents(commit)
        merged = [parent for parent in parents if git.is_ancestor(parent, tip)]
        others = [parent for parent in parents if parent not in merged]
        if len(merged) != 1 or len(others) != 1 or not git.has(others[0]) or len(merges) == MERGES:
            return None
        merges.append((commit, merged[0]))
        commit = others[0]
    below = git.parents(commit)
    if len(below) != 1 or not git.has(below[0]):
        return None
    ours, base = commit, below[0]
    paths = _differing(git, base, ours)
    for merge, theirs in reversed(merges):
        renamed = {} if paths <= git.tree(theirs).keys() else git.renames(base, theirs)
        if not _is_plain(git, merge, base, ours, theirs, {path: renamed.get(path, path) for path in paths}):
            return None
        paths = {renamed.get(path, path) for path in paths}
        ours, base = merge, theirs
    return commit


def _differing(git: Git, one: str, other: str) -> set[str]:
    """The files that two commits do not have alike."""
    first, second = git.tree(one), git.tree(other)
    return {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}


def _is_plain(git: Git, merge: str, base: str, ours: str, theirs: str, places: Mapping[str, str]) -> bool:
    """Whether ``merge`` is what git makes of two commits.

    ``places`` are the files in which ``ours`` differs from ``base``, with the names that they have in
    ``theirs``.
    """
    if not _differing(git, theirs, merge) <= set(places.values()):
        return False
    for path, place in places.items():
        found = _content(git, merge, place)
        if found is None or found != merge_of(git, (base, path), (ours, path), (theirs, place)):
            return False
    return True


Place = tuple[str, str]
"""A commit, and the path of a file in it."""


def merge_of(git: Git, base: Place, ours: Place, theirs: Place) -> bytes | None:
    """What git makes of two versions of a file; ``None`` if one is missing, or they are in conflict."""
    contents = [_content(git, *place) for place in (base, ours, theirs)]
    if any(content is None for content in contents):
        return None
    return git.merged(*contents)  # type: ignore[arg-type]


def _content(git: Git, commit: str, path: str) -> bytes | None:
    entry = git.tree(commit).get(path)
    return git.blobs([entry.blob])[entry.blob] if entry is not None else None


def gives(git: Git, head: str, tip: str, wanted: Iterable[tuple[str, bytes]]) -> bool:
    """Whether merging ``head``, a commit of ours, into the base branch gives the ``wanted`` files as they are
    to be: then it is as good as one that is built anew."""
    below = git.parents(head)
    if len(below) != 1 or not git.has(below[0]):
        return False
    merged = (
        merge_of(git, (below[0], path), (head, path), (tip, path)) == content for path, content in wanted
    )
    return all(merged)
