"""Publishing, from the first pull request to the last: what is opened, updated, left alone and closed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from forge_server import TOKEN, ForgeServer
from world import (
    BRANCH,
    FIXED_GAN,
    GAN,
    REPOSITORY,
    RETAINED,
    RNN,
    TOUCHED_GAN,
    World,
    as_proved,
    create,
    git,
)

from gradfix.bot import planning, state
from gradfix.bot.errors import UsageError
from gradfix.bot.plan import PlanFile
from gradfix.core.errors import quoted
from gradfix.pipeline.driver import RequestedOptions

KINDS = ("github", "gitlab", "gitea")


def whats(lab: World, plan: PlanFile, **wanted: object) -> dict[str, str]:
    """What a run does with each branch."""
    return {one.branch.removeprefix("gradfix/"): one.what for one in lab.publish(plan, **wanted)}


def settings(lab: World, text: str) -> None:
    lab.forge.commit(REPOSITORY, "main", {"pyproject.toml": f"[tool.gradfix.bot]\n{text}\n".encode()})


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_request_for_each_codemod(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    settings(lab, 'labels = ["gradients"]')
    assert whats(lab, lab.plan()) == {"carried-hidden-state": "created", "undetached-fake": "created"}
    by_branch = {pull.branch: pull for pull in forge.pulls}
    gan = by_branch[BRANCH]
    assert gan.title == "fix(gan): detach painting"
    assert gan.labels == ["gradients"]
    assert forge.content(REPOSITORY, BRANCH, "models/gan.py") == FIXED_GAN
    assert forge.content(REPOSITORY, BRANCH, "rnn.py") == RNN
    assert forge.git(REPOSITORY, "diff", "--name-only", "main", BRANCH) == "models/gan.py"
    assert forge.git(REPOSITORY, "rev-parse", f"{BRANCH}^") == forge.branches(REPOSITORY)["main"]
    message = forge.git(REPOSITORY, "log", "-1", "--format=%B", BRANCH)
    assert message.startswith(
        "fix(gan): detach painting\n\nmodels/gan.py, line 12: painting is not detached: scorn also"
    )
    assert "\nGradfix-Key: " in message
    assert "Signed-off-by" not in message


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_changes_nothing(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    plan = lab.plan()
    lab.publish(plan)
    forge.requests.clear()
    assert set(whats(lab, plan).values()) == {"unchanged"}
    assert lab.writes() == []


def test_the_same_proof_in_other_words_edits_nothing(lab: World) -> None:
    plan = lab.plan(select=("undetached-fake",))
    lab.publish(plan)
    certificate = json.loads(json.dumps(plan.changes[0].rewrites[0].certificate))
    certificate["checks"][0]["detail"] = (
        'the original raises "Trying to backward through the graph a second time", as was predicted'
    )
    certificate["torch"] = "9.9"
    lab.forge.requests.clear()
    assert whats(lab, tampered(plan, certificate=certificate)) == {"undetached-fake": "unchanged"}
    assert lab.writes() == []
    certificate["checks"][2]["verdict"] = "holds"
    assert whats(lab, tampered(plan, certificate=certificate)) == {"undetached-fake": "updated"}
    assert "torch `9.9`" in lab.forge.pulls[0].body


def test_the_body_tells_what_a_reviewer_wants_to_know(lab: World) -> None:
    lab.publish(lab.plan(select=("undetached-fake",)))
    body = lab.forge.pulls[0].body
    # First what everybody knows, in autograd's own words, and without its hints.
    assert body.startswith(
        "`models/gan.py` stops with this error when it is run:\n\n> `RuntimeError: Trying to "
    )
    assert "have already been freed)`\n" in body and "Saved intermediate" not in body
    shown, folded = body.split("<details>", 1)
    assert "12 |     scorn = critic(painting).sigmoid()" in shown
    assert "**Severity:** error (`undetached-fake`)." in shown
    assert "**The fix:** detach `painting`. Up to the point where it fails today" in shown
    assert "**Proved:** the script was run before and after" in shown
    # The forge shows the change.
    assert "painting.detach()" not in body
    assert f"| before | raised {quoted('E1')} at line 17 in envy.backward() |" in folded
    assert "- holds: the fixed program ran 6 steps" in folded
    assert "- **not checked**: nothing to compare `opt` with" in folded
    assert f"git checkout {lab.forge.branches(REPOSITORY)['main']}\n" in folded
    assert "gradfix apply --select undetached-fake models/gan.py\n" in folded
    assert 'before_l1["scorn"]' in folded and "before_l1 -.-> before_o0" in folded
    assert "after_l1 -.-> after_o0" not in folded
    last = folded.split("\n---\n")[1].split("<!--")[0].strip()
    assert last.startswith("Opened by **gradfix**") and "\n" not in last
    assert "is installed, into any environment, with `pip install .` in a clone of it. Two commands" in folded
    assert "Close this" in last and "# gradfix: ignore[undetached-fake]" in last


def test_a_pull_request_says_where_gradfix_is_to_be_had(lab: World) -> None:
    url = "https://forge.example/lab/gradfix.git"
    plan = lab.plan(select=("undetached-fake",))
    lab.publish(plan, gradfix_url=url)
    body = lab.forge.pulls[0].body
    assert (
        f"is installed, into any environment, with `pip install 'gradfix @ git+{url}'`. Two commands" in body
    )
    (script,) = re.findall(r"^```sh\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)
    assert [line.split()[:2] for line in script.splitlines()] == [["git", "checkout"], ["gradfix", "apply"]]
    assert f"Opened by **[gradfix]({url})**, which looks" in body
    # It is no reason to edit what is there.
    assert whats(lab, plan, gradfix_url="https://elsewhere.example/gradfix") == {
        "undetached-fake": "unchanged"
    }


@pytest.mark.parametrize(
    "url",
    [
        "forge.example/lab/gradfix",
        "http://forge.example/lab/gradfix",
        "https://forge.example",
        "https://user:secret@forge.example/lab/gradfix",
        "https://forge.example/lab/gradfix'; evil",
        "https://forge.example/lab)gradfix",
        "https://forge.example/lab/gradfix\n",
        "file:///home/me/gradfix",
    ],
)
def test_what_pip_cannot_install_from_is_no_place_to_have_it_from(lab: World, url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        lab.publish(lab.plan(select=("undetached-fake",)), gradfix_url=url)
    assert lab.writes() == []


def test_the_labels_the_author_and_the_sign_off_are_configured(lab: World) -> None:
    settings(lab, 'author = "Ada <ada@example.org>"\nsign-off = true\ndraft = true')
    lab.publish(lab.plan(select=("undetached-fake",)))
    told = lab.forge.git(REPOSITORY, "log", "-1", "--format=%an %ae %cn%n%B", BRANCH)
    assert told.startswith("Ada ada@example.org Ada\n")
    assert "\nSigned-off-by: Ada <ada@example.org>\nGradfix-Key: " in told
    assert lab.forge.pulls[0].draft


@pytest.mark.parametrize(("group", "branches"), [("all", 1), ("file", 2)])
def test_other_groups(lab: World, group: str, branches: int) -> None:
    settings(lab, f'group = "{group}"')
    lab.publish(lab.plan())
    assert len(lab.branches) == len(lab.forge.open_pulls()) == branches
    if group == "all":
        assert lab.forge.pulls[0].title == "fix: 2 gradient mistakes in 2 files"
        assert "| `rnn.py:12` |" in lab.forge.pulls[0].body
    else:
        assert sorted(branch.split("-")[0] for branch in lab.branches) == ["gradfix/models", "gradfix/rnn"]


def test_no_more_than_the_limit_are_open(lab: World) -> None:
    lab.forge.commit(REPOSITORY, "main", {"kept.py": RETAINED})
    settings(lab, "max-open = 2")
    plan = lab.plan()
    assert sorted(whats(lab, plan).values()) == ["created", "created", "waiting"]
    assert len(lab.branches) == 2
    lab.forge.merge(1)
    done = whats(lab, lab.plan())
    assert sorted(done.values()) == ["created", "deleted", "unchanged"]
    assert len(lab.forge.open_pulls()) == 2


def test_what_was_not_verified_is_not_proposed_unless_configured(lab: World) -> None:
    plan = lab.plan(proved=False)
    assert set(whats(lab, plan).values()) == {"not proposed"}
    assert lab.writes() == []
    settings(lab, "unverified = true")
    lab.publish(lab.plan(proved=False))
    assert len(lab.forge.pulls) == 2
    body = lab.forge.pulls[0].body
    assert "**Not verified by running the code**" in body and "will raise this error" in body
    assert "proved" not in body.lower().replace("--unproved", "")


def test_fixes_that_change_what_is_learned_need_leave_on_both_sides(lab: World) -> None:
    stale = RETAINED.replace(b"    opt.zero_grad()\n", b"").replace(b"retain_graph=True", b"")
    lab.forge.commit(REPOSITORY, "main", {"stale.py": stale})
    plan = lab.plan(select=("missing-zero-grad",), unsafe_fixes=True)
    assert [change.path for change in plan.changes] == ["stale.py"]
    assert whats(lab, plan) == {"missing-zero-grad": "refused"}
    assert whats(lab, plan, unsafe_fixes=True) == {"missing-zero-grad": "created"}
    assert "**This changes what the script learns:**" in lab.forge.pulls[0].body


# ---------------------------------------------------------------------------- the base branch moves


def test_a_plan_of_an_older_base_serves_as_long_as_the_file_is_the_same(lab: World) -> None:
    plan = lab.plan(select=("undetached-fake",))
    tip = lab.forge.commit(REPOSITORY, "main", {"notes.md": b"more\n"})
    lab.publish(plan)
    assert lab.forge.git(REPOSITORY, "rev-parse", f"{BRANCH}^") == tip
    assert f"git checkout {plan.base}\n" in lab.forge.pulls[0].body
    assert f"This branch is built on {tip}; merged into {plan.base}, it" in lab.forge.pulls[0].body
    lab.forge.commit(REPOSITORY, "main", {"models/gan.py": b"# here\n" + GAN})
    lab.forge.requests.clear()
    (done,) = lab.publish(plan)
    assert (done.what, done.code) == ("refused", 1)
    assert "changed since the plan was made" in done.why
    assert lab.writes() == []


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", KINDS)
def test_when_the_base_is_fixed_the_pull_request_is_closed(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    lab.publish(lab.plan(select=("undetached-fake",)))
    forge.commit(REPOSITORY, "main", {"models/gan.py": FIXED_GAN})
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "closed"}
    (pull,) = forge.pulls
    assert (pull.state, len(pull.comments), lab.branches) == ("closed", 1, {})
    assert "nothing left to merge" in pull.comments[0]
    # It was not a person who said no: should the mistake come back, so does the pull request.
    forge.commit(REPOSITORY, "main", {"models/gan.py": GAN})
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "created"}


def test_a_plan_for_other_files_closes_nothing(lab: World) -> None:
    lab.publish(lab.plan())
    lab.forge.requests.clear()
    assert whats(lab, lab.plan(select=("carried-hidden-state",))) == {"carried-hidden-state": "unchanged"}
    assert lab.writes() == []


def test_a_merged_branch_is_tidied_up(lab: World) -> None:
    lab.publish(lab.plan())
    lab.forge.merge(next(pull.number for pull in lab.forge.pulls if pull.branch == BRANCH))
    assert whats(lab, lab.plan()) == {"carried-hidden-state": "unchanged", "undetached-fake": "deleted"}
    assert BRANCH not in lab.branches


# ---------------------------------------------------------------------------- what people do


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_person_has_closed_is_not_opened_again(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    plan = lab.plan(select=("undetached-fake",))
    lab.publish(plan)
    forge.close(1)
    forge.requests.clear()
    assert whats(lab, plan) == {"undetached-fake": "declined"}
    forge.commit(REPOSITORY, "main", {"models/gan.py": b"# moved down\n\n" + GAN})
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "declined"}
    assert lab.writes() == []
    assert whats(lab, lab.plan(select=("undetached-fake",)), again=True) == {"undetached-fake": "created"}


def test_a_no_is_for_what_was_there_and_not_for_what_comes_later(lab: World) -> None:
    lab.publish(lab.plan(select=("undetached-fake",)))
    lab.forge.close(1)
    lab.forge.commit(REPOSITORY, "main", {"other.py": GAN})
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "created"}
    assert lab.forge.git(REPOSITORY, "diff", "--name-only", "main", BRANCH) == "other.py"


def test_another_grouping_proposes_nothing_twice_and_forgets_no_no(lab: World) -> None:
    lab.publish(lab.plan())
    lab.forge.close(next(pull.number for pull in lab.forge.pulls if pull.branch == BRANCH))
    settings(lab, 'group = "all"')
    plan = lab.plan()
    assert whats(lab, plan) == {"all": "declined"}
    lab.forge.commit(REPOSITORY, "main", {"other.py": GAN})
    assert whats(lab, lab.plan()) == {"all": "created"}
    assert lab.forge.git(REPOSITORY, "diff", "--name-only", "main", "gradfix/all") == "other.py"
    settings(lab, 'group = "file"')
    done = whats(lab, lab.plan())
    assert sorted(done.values()) == ["declined", "not proposed", "not proposed"]
    assert len(lab.forge.open_pulls()) == 2


def test_a_closed_pull_request_without_its_marker_is_a_no_to_all(lab: World) -> None:
    lab.publish(lab.plan(select=("undetached-fake",)))
    lab.forge.pulls[0].body = "I do not want this."
    lab.forge.close(1)
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "declined"}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_that_a_person_has_pushed_to_is_left_alone_until_it_is_labelled(
    forge: ForgeServer, kind: str
) -> None:
    lab = World(forge, kind)
    lab.publish(lab.plan(select=("undetached-fake",)))
    mine = forge.commit(REPOSITORY, BRANCH, {"mine.md": b"by hand\n"})
    forge.commit(REPOSITORY, "main", {"notes.md": b"more\n"})
    forge.requests.clear()
    plan = lab.plan(select=("undetached-fake",))
    assert whats(lab, plan) == {"undetached-fake": "left alone"}
    assert lab.writes() == []
    forge.labels["gradfix-rebuild"] = 1
    forge.pulls[0].labels.append("gradfix-rebuild")
    assert whats(lab, plan) == {"undetached-fake": "updated"}
    assert forge.git(REPOSITORY, "rev-parse", f"{BRANCH}^") == forge.branches(REPOSITORY)["main"]
    assert forge.pulls[0].labels == []
    # What was replaced can be found again.
    assert [mine in comment for comment in forge.pulls[0].comments] == [True]
    forge.requests.clear()
    assert whats(lab, plan) == {"undetached-fake": "unchanged"}
    assert lab.writes() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"\ncommitter gradfix", b"\ncommitter person"),
        lambda raw: raw.replace(b"detach painting", b"detach the painting", 1),
        lambda raw: raw.replace(b"Gradfix-Key", b"Co-authored-by: P <p@example.org>\nGradfix-Key"),
        lambda raw: raw + b"\nAnd I say so.\n",
        lambda raw: raw.split(b"\n\n", 1)[0] + b"\n\nreworded\n",
    ],
    ids=["committer", "subject", "trailer", "end", "message"],
)
def test_an_amended_commit_is_a_persons(lab: World, change) -> None:  # type: ignore[no-untyped-def]
    lab.publish(lab.plan(select=("undetached-fake",)))
    raw = lab.forge.git(REPOSITORY, "cat-file", "commit", BRANCH).encode() + b"\n"
    assert state.is_sealed(raw)
    amended = change(raw)
    assert amended != raw
    oid = lab.forge.git(REPOSITORY, "hash-object", "-w", "-t", "commit", "--stdin", stdin=amended)
    lab.forge.git(REPOSITORY, "update-ref", f"refs/heads/{BRANCH}", oid)
    lab.forge.commit(REPOSITORY, "main", {"notes.md": b"more\n"})
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "left alone"}
    assert lab.branches[BRANCH] == oid


def test_a_branch_of_that_name_that_was_never_ours_is_left_alone(lab: World) -> None:
    mine = lab.forge.commit(REPOSITORY, "topic", {"mine.md": b"by hand\n"})
    lab.forge.git(REPOSITORY, "update-ref", f"refs/heads/{BRANCH}", mine)
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "left alone"}
    assert lab.branches == {BRANCH: mine}


def test_what_a_person_has_edited_stays(lab: World) -> None:
    plan = lab.plan(select=("undetached-fake",))
    lab.publish(plan)
    pull = lab.forge.pulls[0]
    pull.title = "detach the painting, please"
    pull.body = pull.body.replace("**The fix:**", "I have tried it.\n\n**The fix:**").replace("\n", "\r\n")
    edited = pull.body
    lab.forge.commit(REPOSITORY, "main", {"models/gan.py": TOUCHED_GAN})
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "updated"}
    assert (pull.title, pull.body) == ("detach the painting, please", edited)


def test_a_pull_request_that_a_person_sends_elsewhere_is_left_alone(lab: World) -> None:
    plan = lab.plan(select=("undetached-fake",))
    lab.publish(plan)
    lab.forge.git(REPOSITORY, "branch", "develop", "main")
    lab.forge.pulls[0].base = "develop"
    assert whats(lab, plan) == {"undetached-fake": "left alone"}
    assert len(lab.forge.pulls) == 1


def test_a_strangers_fork_with_a_branch_of_our_name_is_none_of_ours(lab: World) -> None:
    create(lab.forge.root, "stranger/nets")
    lab.forge.commit("stranger/nets", BRANCH, {"x.py": b"x\n"})
    made = lab.forge.open(REPOSITORY, "stranger/nets", {"title": "mine"}, "no marker", BRANCH, "main")
    assert not isinstance(made, str)
    assert whats(lab, lab.plan(select=("undetached-fake",))) == {"undetached-fake": "created"}
    assert (made.title, made.state, made.edits) == ("mine", "open", 0)


# ---------------------------------------------------------------------------- what the forge does


@pytest.mark.parametrize("kind", KINDS)
def test_a_protected_branch_is_told_and_nothing_is_opened(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    forge.protect(REPOSITORY, "refs/heads/gradfix/*")
    done = lab.publish(lab.plan(select=("undetached-fake",)))
    assert [(one.what, one.code) for one in done] == [("failed", 3)]
    assert "refuses the push" in done[0].why
    assert forge.pulls == []


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_is_made_once_and_pushed_to(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    plan = lab.plan(select=("undetached-fake",))
    assert whats(lab, plan, fork=True) == {"undetached-fake": "created"}
    assert forge.forks == {"gradfix-bot/nets": REPOSITORY}
    assert lab.branches == {}
    assert BRANCH in forge.branches("gradfix-bot/nets")
    # The fork stays behind, and takes commits on top of what it does not have.
    settings(lab, 'rebase = "always"')
    assert whats(lab, lab.plan(select=("undetached-fake",)), fork=True) == {"undetached-fake": "updated"}
    forge.requests.clear()
    assert whats(lab, lab.plan(select=("undetached-fake",)), fork=True) == {"undetached-fake": "unchanged"}
    assert lab.writes() == []


def test_lists_are_read_to_the_end(lab: World) -> None:
    for number in range(5):
        branch = f"topic-{number}"
        lab.forge.commit_entries(
            REPOSITORY, branch, [], f"work {number}", lab.forge.branches(REPOSITORY)["main"]
        )
        made = lab.forge.open(REPOSITORY, REPOSITORY, {"title": branch}, "", branch, "main")
        assert not isinstance(made, str)
    plan = lab.plan(select=("undetached-fake",))
    lab.publish(plan)
    lab.forge.pulls.insert(0, lab.forge.pulls.pop())  # the oldest, on the last page
    lab.forge.requests.clear()
    assert whats(lab, plan) == {"undetached-fake": "unchanged"}
    assert sum("&page=" in request.path for request in lab.forge.requests) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_needs_no_token_where_anybody_can_read(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind, token=None)
    plan = lab.plan()
    assert lab.exit_code(plan, dry_run=True) == 3
    assert "there is no token" in lab.log[-1]
    forge.is_public = True
    forge.requests.clear()
    dry = {"base": None, "dry_run": True}
    assert whats(lab, plan, **dry) == dict.fromkeys(
        ("carried-hidden-state", "undetached-fake"), "would create"
    )
    lab.token = TOKEN
    lab.publish(plan)
    forge.commit(REPOSITORY, "main", {"models/gan.py": FIXED_GAN})
    lab.token = None
    forge.requests.clear()
    after = {"carried-hidden-state": "unchanged", "undetached-fake": "would close"}
    assert whats(lab, lab.plan(), **dry) == after
    assert lab.writes() == []
    assert not [request for request in forge.requests if "Authorization" in request.headers]


@pytest.mark.parametrize("wanted", [{}, {"fork": True}, {"dry_run": True, "fork": True}])
def test_nothing_else_goes_without_a_token(forge: ForgeServer, wanted: dict[str, bool]) -> None:
    forge.is_public = True
    lab = World(forge, token=None)
    assert lab.exit_code(lab.plan(), **wanted) == 2
    assert forge.requests == []


def test_a_dry_run_changes_nothing_and_shows_everything(lab: World) -> None:
    (done,) = lab.publish(lab.plan(select=("undetached-fake",)), dry_run=True)
    assert done.what == "would create"
    assert done.words is not None and "**Proved:**" in done.words.body
    assert "+    scorn = critic(painting.detach())" in done.words.patch
    assert lab.writes() == []
    lab.publish(lab.plan(select=("undetached-fake",)))
    lab.forge.commit(REPOSITORY, "main", {"models/gan.py": FIXED_GAN})
    lab.forge.requests.clear()
    assert whats(lab, lab.plan(select=("undetached-fake",)), dry_run=True) == {
        "undetached-fake": "would close"
    }
    assert lab.writes() == []


# ---------------------------------------------------------------------------- the plan is not believed


def tampered(plan: PlanFile, **changes: object) -> PlanFile:
    """The plan with its only rewrite changed."""
    (change,) = plan.changes
    rewrite = replace(change.rewrites[0], **{k: v for k, v in changes.items() if k != "path"})  # type: ignore[arg-type]
    path = str(changes.get("path", change.path))
    return replace(plan, changes=(replace(change, rewrites=(rewrite,), path=path),))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: tampered(p, diff=p.changes[0].rewrites[0].diff.replace("detach()", "evil()")),
        lambda p: tampered(p, diff=p.changes[0].rewrites[0].diff + " \n"),
        lambda p: tampered(p, codemod="stale-forward"),
        lambda p: tampered(p, codemod="no-such-codemod"),
        lambda p: tampered(p, path="rnn.py"),
        lambda p: tampered(p, path="nowhere.py"),
        lambda p: replace(p, changes=(replace(p.changes[0], blob="0" * 40),)),
    ],
    ids=["diff", "end", "codemod", "unknown", "path", "missing", "blob"],
)
def test_any_difference_from_the_plan_is_refused(lab: World, change) -> None:  # type: ignore[no-untyped-def]
    (done,) = lab.publish(change(lab.plan(select=("undetached-fake",))))
    assert (done.what, done.code) == ("refused", 1)
    assert lab.writes() == []


def test_what_the_base_branch_does_not_select_is_refused(lab: World) -> None:
    plan = lab.plan(select=("undetached-fake",))
    ignoring = b'[tool.gradfix]\nignore = ["undetached-fake"]\n'
    lab.forge.commit(REPOSITORY, "main", {"pyproject.toml": ignoring})
    (done,) = lab.publish(plan)
    assert done.what == "refused"


def test_the_configuration_of_another_branch_counts_for_nothing(lab: World) -> None:
    lab.forge.git(REPOSITORY, "branch", "topic", "main")
    lab.forge.commit(REPOSITORY, "topic", {"pyproject.toml": b'[tool.gradfix.bot]\ngroup = "all"\n'})
    plan = lab.plan("topic")
    assert plan.group == "all"
    with pytest.raises(UsageError, match="grouped by all"):
        lab.publish(plan)
    assert lab.writes() == []


def test_nothing_of_the_repository_is_executed(
    lab: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not its files, not what its configuration names, not what its attributes say."""
    witness = tmp_path / "executed"
    spy = f"open({str(witness)!r}, 'w')\n"
    lab.forge.commit(
        REPOSITORY,
        "main",
        {
            "sitecustomize.py": spy.encode(),
            "conftest.py": spy.encode(),
            "models/__init__.py": spy.encode(),
            "models/parts.py": spy.encode() + b"def mean(x):\n    return x.mean()\n",
            "models/gan.py": b"from models.parts import mean\n" + GAN,
            ".gitattributes": b"*.py filter=evil diff=evil merge=evil\n",
            ".lfsconfig": b"[lfs]\n\turl = http://127.0.0.1:1/\n",
            ".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = http://127.0.0.1:1/x.git\n',
            "pyproject.toml": b'[tool.gradfix.verify]\npython = "false"\n',
        },
    )
    plan = lab.plan(select=("undetached-fake",))
    witness.unlink(missing_ok=True)
    monkeypatch.setitem(sys.modules, "gradfix.verify.runner", None)  # To import it raises.
    assert whats(lab, plan) == {"undetached-fake": "created"}
    assert not witness.exists()


def test_the_plan_survives_its_file(lab: World, tmp_path: Path) -> None:
    from gradfix.bot.plan import load

    plan = lab.plan()
    file = tmp_path / "plan.json"
    file.write_text(plan.dump())
    assert load(str(file)) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"scope": {"paths": ["."], "codemods": [], "found": []}},
        {"command": {"script": 1, "module": None, "arguments": []}},
        {"gradfix": "0.0.0"},
        {"base": "HEAD"},
        {"base": "--upload-pack=x"},
        {"group": "none"},
        {"group": "file"},
        {"group": "all"},
        {"changes": [{}]},
        {"changes": {}},
        {"path": "../x.py"},
        {"path": "/etc/x.py"},
        {"path": "a/../../x.py"},
        {"path": ".git/hooks/x.py"},
        {"path": "a\nb.py"},
        {"path": "a\\..\\b.py"},
        {"blob": "x"},
        {"rewrites": []},
        {"outcome": "refuted"},
        {"outcome": "sure"},
        {"certificate": []},
        {"certificate": None},
        {"codemod": "Name with blanks"},
    ],
    ids=lambda change: json.dumps(change),
)
def test_what_is_no_plan_is_refused(lab: World, tmp_path: Path, change: dict[str, object]) -> None:
    from gradfix.bot.plan import load

    content = json.loads(lab.plan().dump())
    first = content["changes"][0]
    for key, value in change.items():
        places = [content, first, first["rewrites"][0]]
        holder = next((place for place in places if key in place), content)
        holder[key] = value
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(content))
    with pytest.raises(UsageError):
        load(str(file))


def test_a_certificate_that_does_not_prove_is_no_proof(lab: World, tmp_path: Path) -> None:
    """Whoever can write to the plan cannot have the bot call what failed a proof."""
    from gradfix.bot.plan import load

    fails = {"name": "original", "verdict": "fails", "detail": "the original ran", "subject": ""}
    unreached = {"name": "reached", "verdict": "not checked", "detail": "it was not executed", "subject": ""}
    for change in (
        lambda certificate: certificate["checks"].insert(0, fails),
        lambda certificate: certificate["checks"].append(unreached),
        lambda certificate: certificate["checks"].pop(),
        lambda certificate: certificate.update(checks=[]),
        lambda certificate: certificate.update(outcome="refuted"),
        lambda certificate: certificate.pop("checks"),
        lambda certificate: certificate["checks"][0].update(verdict="Holds"),
        lambda certificate: certificate["checks"][0].update(verdict=["holds"]),
    ):
        content = json.loads(lab.plan().dump())
        change(content["changes"][0]["rewrites"][0]["certificate"])
        file = tmp_path / "plan.json"
        file.write_text(json.dumps(content))
        with pytest.raises(UsageError):
            load(str(file))


@pytest.mark.parametrize("told", ["sha256", None])
def test_repositories_may_use_the_other_hash(tmp_path: Path, told: str | None) -> None:
    source = tmp_path / "source"
    git_init = ["git", "init", "-q", "--object-format=sha256", "-b", "main", str(source)]
    subprocess.run(git_init, check=True)
    (source / "rnn.py").write_bytes(RNN)
    git("add", "-A", cwd=source)
    git("commit", "-q", "-m", "work", cwd=source)
    (tmp_path / "forge" / "lab").mkdir(parents=True)
    target = tmp_path / "forge" / "lab" / "nets.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(source), str(target)], check=True)
    subprocess.run(["git", f"--git-dir={target}", "config", "http.receivepack", "true"], check=True)
    plan = as_proved(planning.make([str(source)], RequestedOptions(verify=False)).plan)
    assert len(plan.base) == 64
    with ForgeServer(tmp_path / "forge") as forge:
        lab = World(forge, object_format=told)
        assert whats(lab, plan) == {"carried-hidden-state": "created"}
        assert whats(lab, plan) == {"carried-hidden-state": "unchanged"}


def test_a_notebook_is_proposed_like_a_script_by_cell_and_line(forge: ForgeServer) -> None:
    lab = World(forge, "github")
    set_up, train = GAN.decode().split("\n\n", 2)[:2], GAN.decode().split("\n\n", 2)[2]
    sources = ["\n\n".join(set_up), f"%matplotlib inline\n{train}"]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1} for _ in sources]
    for cell, text in zip(cells, sources):
        cell["source"] = text.splitlines(True)
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)
    files = {"models/gan.py": b"", "rnn.py": b"", "gan.ipynb": text.encode()}
    lab.forge.commit(REPOSITORY, "main", files)
    assert whats(lab, lab.plan()) == {"undetached-fake": "created"}
    (pull,) = forge.pulls
    fixed = text.replace(
        "critic(painting).sigmoid().mean() - ", "critic(painting.detach()).sigmoid().mean() - "
    )
    assert forge.content(REPOSITORY, BRANCH, "gan.ipynb") == fixed.encode()
    message = forge.git(REPOSITORY, "log", "-1", "--format=%B", BRANCH)
    assert "gan.ipynb, cell 2, line 5: painting is not detached" in message
    assert "cell 2:5 |     scorn = critic(painting)" in pull.body
    assert set(whats(lab, lab.plan()).values()) == {"unchanged"}
