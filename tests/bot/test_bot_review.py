"""Suggestions on a person's pull request, and the list of the bot's own."""

from __future__ import annotations

import re

import pytest
from forge_server import Fault, ForgeServer, Pull, Request
from hypothesis import given, strategies
from world import BRANCH, REPOSITORY, RETAINED, World

from gradfix.bot import review, status
from gradfix.bot.errors import UsageError
from gradfix.bot.plan import PlanFile
from gradfix.bot.publish import Done
from gradfix.bot.review import places_of

KINDS = ("github", "gitlab", "gitea")
SELECT = ("undetached-fake", "needless-retain-graph")


def person(lab: World, files: dict[str, bytes | None]) -> Pull:
    """A person's pull request with ``files``."""
    lab.forge.git(REPOSITORY, "branch", "-f", "topic", "main")
    lab.forge.commit(REPOSITORY, "topic", files)
    made = lab.forge.open(REPOSITORY, REPOSITORY, {"title": "my work"}, "", "topic", "main")
    assert isinstance(made, Pull)
    return made


def reviewed(lab: World, plan: PlanFile, number: int, **options: bool) -> list[Done]:
    with lab.connected() as (served, git, token):
        return review.review(plan, number, served, git, token, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fix_on_changed_lines_is_suggested_once(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    pull = person(lab, {"new.py": RETAINED})
    plan = lab.plan("topic", select=SELECT)
    assert [(done.branch, done.what) for done in reviewed(lab, plan, pull.number)] == [
        ("new.py", "suggested"),
        ("models/gan.py", "not suggested"),
    ]
    (comment,) = pull.line_comments
    assert (comment.get("path") or comment["new_path"]) == "new.py"
    line = comment.get("line") or comment.get("new_line") or comment["new_position"]
    assert line == RETAINED.splitlines().index(b"    loss.backward(retain_graph=True)") + 1
    fence = {"github": "suggestion", "gitlab": "suggestion:-0+0", "gitea": "python"}[kind]
    assert f"```{fence}\n    loss.backward()\n```" in comment["body"]
    assert "`needless-retain-graph`" in comment["body"] and "Proved" in comment["body"]
    forge.requests.clear()
    assert [done.what for done in reviewed(lab, plan, pull.number)] == ["unchanged", "not suggested"]
    assert lab.writes() == []
    assert pull.state == "open" and lab.branches == {}


def test_a_plan_for_another_commit_is_refused(lab: World) -> None:
    pull = person(lab, {"new.py": RETAINED})
    with pytest.raises(UsageError, match="is for commit"):
        reviewed(lab, lab.plan("main", select=SELECT), pull.number)


def test_the_pull_requests_own_configuration_counts_for_nothing(lab: World) -> None:
    strict = b'[tool.gradfix]\nignore = ["needless-retain-graph"]\n'
    lab.forge.commit(REPOSITORY, "main", {"pyproject.toml": strict})
    pull = person(lab, {"new.py": RETAINED, "pyproject.toml": b""})
    (done,) = reviewed(lab, lab.plan("topic", select=("needless-retain-graph",)), pull.number)
    assert done.what == "refused"
    assert pull.line_comments == []


def test_a_dry_review_says_nothing(lab: World) -> None:
    pull = person(lab, {"new.py": RETAINED})
    plan = lab.plan("topic", select=("needless-retain-graph",))
    assert [done.what for done in reviewed(lab, plan, pull.number, dry_run=True)] == ["would be suggested"]
    assert pull.line_comments == []


def test_what_cannot_be_shown_is_not_suggested(lab: World) -> None:
    hidden = RETAINED.replace(b"retain_graph=True)", "retain_graph=True)  # \u202e x".encode())
    pull = person(lab, {"new.py": hidden})
    plan = lab.plan("topic", select=("needless-retain-graph",))
    (done,) = reviewed(lab, plan, pull.number)
    assert (done.what, pull.line_comments) == ("not suggested", [])


@pytest.mark.parametrize("fault", [Fault(after=True), Fault(), Fault(502, after=True)])
def test_a_suggestion_whose_answer_is_lost_is_there_once(lab: World, fault: Fault) -> None:
    pull = person(lab, {"new.py": RETAINED})
    plan = lab.plan("topic", select=("needless-retain-graph",))
    posts: list[int] = []

    def lose(number: int, request: Request) -> Fault | None:
        if request.method == "POST" and request.path.endswith("/reviews"):
            posts.append(number)
            return fault if len(posts) == 1 else None
        return None

    lab.forge.fault = lose
    assert [done.what for done in reviewed(lab, plan, pull.number)] == ["suggested"]
    assert len(pull.line_comments) == 1
    assert len(posts) == (1 if fault.after else 2)


lines = strategies.lists(strategies.sampled_from(["a", "b", "    c", ""]), max_size=8)


@given(lines, lines)
def test_places_make_the_one_text_of_the_other(before: list[str], after: list[str]) -> None:
    old, new = "\n".join(["first", *before]), "\n".join(["first", *after])
    result = old.split("\n")
    for place in reversed(places_of(old, new)):
        assert 1 <= place.start <= place.end
        result[place.start - 1 : place.end] = place.replacement.split("\n") if place.replacement else []
    # A place that replaces lines by nothing and one that replaces them by an empty line look the same.
    assert [line for line in result if line] == [line for line in new.split("\n") if line]


# ---------------------------------------------------------------------------- status


@pytest.mark.parametrize("kind", KINDS)
def test_status_tells_who_has_touched_what(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    lab.publish(lab.plan())
    forge.commit(REPOSITORY, BRANCH, {"mine.md": b"by hand\n"})
    forge.git(REPOSITORY, "branch", "gradfix/alone", "main")
    forge.requests.clear()
    with lab.connected() as (served, git, token):
        told = {done.branch: done.what for done in status.status(served, git, token)}
    assert told == {
        "gradfix/carried-hidden-state": "open",
        "gradfix/undetached-fake": "left alone, a person has pushed to it",
        "gradfix/alone": "no open pull request",
    }
    assert lab.writes() == []
    assert not re.search("--", " ".join(told))
