"""What concerns nobody is not said: what a run writes, and what it asks for."""

from __future__ import annotations

import pytest
from forge_server import ForgeServer, Request
from world import BRANCH, FIXED_GAN, GAN, REPOSITORY, RETAINED, TOUCHED_GAN, World

from gradfix.bot.plan import PlanFile

KINDS = ("github", "gitlab", "gitea")
SELECT = ("undetached-fake",)


def whats(lab: World, plan: PlanFile, **wanted: object) -> dict[str, str]:
    """What a run does with each branch."""
    return {one.branch.removeprefix("gradfix/"): one.what for one in lab.publish(plan, **wanted)}


def test_a_commit_that_has_nothing_to_do_with_it_writes_nothing(lab: World) -> None:
    forge = lab.forge
    forge.commit(REPOSITORY, "main", {"pyproject.toml": b'[tool.gradfix.bot]\nlabels = ["gradients"]\n'})
    lab.publish(lab.plan())
    seen = [(pull.title, pull.body, pull.edits, pull.labels) for pull in forge.pulls], lab.branches
    forge.requests.clear()
    for files in ({"notes.md": b"more\n"}, {"notes.md": None, "new.py": b"x = 1\n"}):
        forge.commit(REPOSITORY, "main", files)  # type: ignore[arg-type]
        assert set(whats(lab, lab.plan()).values()) == {"unchanged"}
    # Nor does one in the same file, as long as git can merge the two, and it comes to the same.
    forge.commit(REPOSITORY, "main", {"models/gan.py": b"# a title\n\n" + GAN})
    assert set(whats(lab, lab.plan()).values()) == {"unchanged"}
    assert lab.writes() == []
    assert seen == (
        [(pull.title, pull.body, pull.edits, pull.labels) for pull in forge.pulls],
        lab.branches,
    )


def test_a_branch_is_built_anew_where_git_could_not_merge_it(lab: World) -> None:
    lab.publish(lab.plan(select=SELECT))
    tip = lab.forge.commit(REPOSITORY, "main", {"models/gan.py": TOUCHED_GAN})
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "updated"}
    assert lab.forge.git(REPOSITORY, "rev-parse", f"{BRANCH}^") == tip
    assert f"git checkout {tip}\n" in lab.forge.pulls[0].body
    assert len(lab.forge.pulls) == 1


def test_a_branch_is_built_anew_where_its_change_is_another(lab: World) -> None:
    """Git could merge it, and a second mistake on the same line of code would be left."""
    lab.forge.commit(REPOSITORY, "main", {"kept.py": RETAINED})
    lab.publish(lab.plan(select=("needless-retain-graph",)))
    loop = RETAINED[RETAINED.index(b"for _ in") :]
    lab.forge.commit(REPOSITORY, "main", {"kept.py": RETAINED + b"#\n" * 9 + loop})
    plan = lab.plan(select=("needless-retain-graph",))
    assert len(plan.changes[0].rewrites) == 2
    assert whats(lab, plan) == {"needless-retain-graph": "updated"}
    assert b"retain_graph" not in lab.forge.content(REPOSITORY, "gradfix/needless-retain-graph", "kept.py")


def test_a_branch_follows_the_base_where_that_is_configured(lab: World) -> None:
    settings = b'[tool.gradfix.bot]\nrebase = "always"\n'
    lab.forge.commit(REPOSITORY, "main", {"pyproject.toml": settings})
    lab.publish(lab.plan(select=SELECT))
    tip = lab.forge.commit(REPOSITORY, "main", {"notes.md": b"more\n"})
    plan = lab.plan(select=SELECT)
    assert whats(lab, plan) == {"undetached-fake": "updated"}
    assert lab.forge.git(REPOSITORY, "rev-parse", f"{BRANCH}^") == tip
    lab.forge.requests.clear()
    assert whats(lab, plan) == {"undetached-fake": "unchanged"}
    assert lab.writes() == []


def lists(requests: list[Request]) -> list[str]:
    """The requests for lists of pull requests."""
    paths = [request.path for request in requests if request.method == "GET" and not request.is_git]
    return [path for path in paths if path.split("?")[0].endswith(("/pulls", "/merge_requests"))]


@pytest.mark.parametrize("kind", KINDS)
def test_one_list_tells_of_all_branches(forge: ForgeServer, kind: str) -> None:
    """One is open, a person has said no to another, one is new, and one has been merged."""
    lab = World(forge, kind)
    forge.page = 100
    forge.commit(REPOSITORY, "main", {"kept.py": RETAINED})
    lab.publish(lab.plan(select=("undetached-fake", "carried-hidden-state", "needless-retain-graph")))
    numbers = {pull.branch.removeprefix("gradfix/"): pull.number for pull in forge.pulls}
    forge.close(numbers["carried-hidden-state"])
    forge.merge(numbers["needless-retain-graph"])
    forge.requests.clear()
    assert whats(lab, lab.plan()) == {
        "undetached-fake": "unchanged",
        "carried-hidden-state": "declined",
        "needless-retain-graph": "deleted",
    }
    assert len(lists(forge.requests)) == 1


def test_where_the_list_is_long_only_what_has_to_be_known_is_asked_for(lab: World) -> None:
    """On a page there are two; other people's pull requests fill a dozen."""
    tip = lab.forge.branches(REPOSITORY)["main"]
    lab.publish(lab.plan())
    lab.forge.close(next(pull.number for pull in lab.forge.pulls if pull.branch == BRANCH))
    for number in range(24):
        lab.forge.commit_entries(REPOSITORY, f"topic-{number}", [], f"work {number}", tip)
        made = lab.forge.open(REPOSITORY, REPOSITORY, {"title": "work"}, "", f"topic-{number}", "main")
        assert not isinstance(made, str)
        made.state = "closed"
    lab.forge.requests.clear()
    plan = lab.plan()
    assert whats(lab, plan) == {"undetached-fake": "declined", "carried-hidden-state": "unchanged"}
    assert len(lists(lab.forge.requests)) <= 5


def test_a_comment_is_made_once_and_only_when_something_ends(lab: World) -> None:
    lab.publish(lab.plan(select=SELECT))
    for files in ({"notes.md": b"more\n"}, {"models/gan.py": TOUCHED_GAN}):
        lab.forge.commit(REPOSITORY, "main", files)  # type: ignore[arg-type]
        lab.publish(lab.plan(select=SELECT))
    assert lab.forge.pulls[0].comments == []
    lab.forge.commit(REPOSITORY, "main", {"models/gan.py": FIXED_GAN})
    lab.publish(lab.plan(select=SELECT))
    assert len(lab.forge.pulls[0].comments) == 1
