"""Repairs by others, held against what is known to be right (see :mod:`gradfix.verify.judging`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradfix.core.codemod import Claim, Effect, Finding, Fix
from gradfix.pipeline.analysis import Analysis, FindingKey, analyse, by_key
from gradfix.pipeline.choosing import resolve
from gradfix.pipeline.options import Options, Refusal
from gradfix.pipeline.proving import command_for, limits_of, servers_kept, time_budget, with_environments
from gradfix.pipeline.results import Judged
from gradfix.project import source
from gradfix.project.source import Problem, Source

if TYPE_CHECKING:
    from gradfix.verify.command import Command

REPAIRS = 12
"""At most this many reference repairs are made of an original to judge a repair by."""


def judge(before: str, after: str, options: Options) -> Iterator[Judged]:
    """What is to be said of each mistake in ``before``, a file or a folder, if ``after`` is its repair.

    In folders, files go together that have the same path in them; those that are equal are passed over.
    """
    pairs = list(_pairs(before, after, options))
    equipped = iter(
        with_environments([(one.old.path, one.options) for one in pairs if isinstance(one, _Pair)])
    )
    with servers_kept():
        for pair in pairs:
            if isinstance(pair, _Pair):
                own = next(equipped)
                with time_budget(own):
                    judged = _judge(pair._replace(options=own))
                yield judged
            else:
                yield Judged(before, after, problems=pair)


class _Pair(NamedTuple):
    old: Source
    new: Source
    options: Options
    """Those under the configuration of the old version."""
    folders: tuple[str, str] | None = None
    """Those that are compared, if they are."""


def _pairs(before: str, after: str, options: Options) -> Iterator[_Pair | tuple[Problem, ...]]:
    """The versions that go together, or what keeps two from being compared."""
    if os.path.isdir(before) != os.path.isdir(after):
        message = "two files or two folders can be compared, not a file and a folder"
        yield Problem(after, message), Problem(before, message)
        return
    if not os.path.isdir(before):
        yield _pair(before, after, options)
        return
    under = {one.settings: options.under(one.settings) for one in options.files([before]).files}
    for listed in options.files([before]).files:
        mate = os.path.join(after, os.path.relpath(listed.path, before))
        old = source.load(listed.path)
        if isinstance(old, Problem) or not source.can_matter(old):
            continue
        new = source.load(mate)
        if isinstance(new, Problem) or new != old:
            own = under[listed.settings]
            yield (
                (Problem(listed.path, own.message),)
                if isinstance(own, Refusal)
                else _pair(listed.path, mate, own)
            )


def _pair(
    before: str, after: str, options: Options, folders: tuple[str, str] | None = None
) -> _Pair | tuple[Problem, ...]:
    old, new = (source.read(path, options.settings.max_file_size) for path in (before, after))
    if isinstance(old, Problem) or isinstance(new, Problem):
        return tuple(one for one in (old, new) if isinstance(one, Problem))
    return _Pair(old, new, options, folders)


def _commands(pair: _Pair) -> tuple[Command, Command]:
    """How the user runs the old version, and how the new one: what lies in the old folder, or is the old file
    itself, has its counterpart."""
    command = command_for(pair.old.path, pair.options)

    def counterpart(path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.resolve() == Path(pair.old.path).resolve():
            return Path(pair.new.path)
        old, new = (Path(one).resolve() for one in pair.folders or ("", ""))
        if pair.folders is None or not path.resolve().is_relative_to(old):
            return path
        moved = new / path.resolve().relative_to(old)
        return moved if moved.exists() else path

    return command, replace(command, entry=counterpart(command.entry), cwd=counterpart(command.cwd))


def _judge(pair: _Pair) -> Judged:
    from gradfix.verify.judging import results, verdicts

    old, new, options, _ = pair
    before, after = analyse(old, options), analyse(new, options)
    problems = (*before.problems, *after.problems)
    keyed = by_key(before, options)
    if problems or not keyed:
        return Judged(old.path, new.path, problems=problems)
    made = sorted(_repairs(before, options), key=lambda made: -len(made.gone))
    repairs = [
        results.Repair(
            one.analysis.source.text,
            frozenset(number for number, key in enumerate(keyed) if key in one.gone),
            f"with this fix: {', then '.join(one.fixes)}",
            one.choice,
        )
        for one in made
    ]
    mistakes = [
        results.Mistake(
            next((fix.claim for fix in finding.fixes), Claim()),
            carried=finding.code == "carried-hidden-state",
            for_later=finding.for_later,
            entries=finding.code in _ENTRIES,
            kept=finding.code in (*_ENTRIES, "stale-forward", "undetached-fake"),
            still_there=_still_there(key, keyed, by_key(after, options)),
        )
        for key, finding in keyed.items()
    ]
    command, command_after = _commands(pair)
    judgement = verdicts.judge(
        (Path(old.path), old.text),
        (Path(new.path), new.text),
        mistakes,
        repairs,
        python=options.interpreter,
        command=command,
        command_after=command_after,
        limits=limits_of(options),
        allow_unsandboxed=options.allow_unsandboxed,
    )
    judgement = judgement.reworded(old.layout.reworded, new.layout.reworded)
    return Judged(old.path, new.path, old.text, tuple(keyed.values()), judgement)


_ENTRIES = ("graph-used-twice", "loss-backpropagated-twice")
"""The mistakes that are only about which loss is given to whom, and how often."""


def _still_there(
    key: FindingKey, before: Mapping[FindingKey, Finding], after: Mapping[FindingKey, Finding]
) -> str | None:
    """What the model says of a mistake in the new version, if it is there yet, or a worse one is.

    Where nothing remains of it but wasted work, runs tell whether gradients are right.
    """
    if any(fix.effect is not Effect.PRESERVES for fix in before[key].fixes):
        after = {
            other: finding
            for other, finding in after.items()
            if not finding.fixes or any(fix.effect is not Effect.PRESERVES for fix in finding.fixes)
        }
    if key in after:
        return after[key].message
    counts = Counter(code for code, _, _ in after)
    for code, count in Counter(code for code, _, _ in before).items():
        # Its line has another text now, and it is as wrong as it was.
        if code == key[0] and counts[code] >= count:
            return next(finding.message for finding in after.values() if finding.code == code)
    for finding in after.values():
        new = counts[finding.code] > sum(code == finding.code for code, _, _ in before)
        if new and all(fix.effect is not Effect.PRESERVES for fix in finding.fixes):
            return f"it turned into another mistake: {finding.message}"
    return None


class _Made(NamedTuple):
    """The original after some fixes."""

    analysis: Analysis
    gone: frozenset[FindingKey]
    """The findings of the original that it does not have."""
    fixes: tuple[str, ...]
    choice: bool = False
    """Whether one of them is a choice between losses that only the author can make."""


def _repairs(before: Analysis, options: Options) -> Iterator[_Made]:
    """What gradfix's own fixes make of the original, for each choice of a fix, or none, for each finding."""
    every = frozenset(by_key(before, options))
    work = [(_Made(before, frozenset(), ()), every)]
    seen = {before.source.text}
    while work and len(seen) <= REPAIRS:
        made, open_ = work.pop()
        keyed = by_key(made.analysis, options)
        key = next((key for key in keyed if key in open_), None)
        if key is None:
            continue
        work.append((made, open_ - {key}))
        for fix in reversed(_certain(keyed[key].fixes)):
            after = resolve(made.analysis, keyed[key], fix, options)
            if after is None or after.source.text in seen:
                continue
            seen.add(after.source.text)
            gone = every - by_key(after, options).keys()
            choice = fix.effect is Effect.CHANGES and keyed[key].code in _ENTRIES
            child = _Made(after, gone, (*made.fixes, fix.message), made.choice or choice)
            yield child
            # What could not be mended before may be now that another mistake is.
            work.append((child, every - gone))


def _certain(fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
    """Those that need no decision, if there are any: what is a choice cannot be the standard for others."""
    return tuple(fix for fix in fixes if fix.effect is not Effect.CHANGES) or fixes
