"""What the bot says of the base branch is so: nothing is mended because nobody can see it, nothing is dropped
because nobody looked, and what people did is known under whatever name it goes by now."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from forge_server import ForgeServer
from world import (
    BRANCH,
    FIXED_GAN,
    GAN,
    REPOSITORY,
    RETAINED,
    World,
)

from gradfix.autograd import program as program_module
from gradfix.bot import status
from gradfix.bot.plan import PlanFile

KINDS = ("github", "gitlab", "gitea")
SELECT = ("undetached-fake",)
BAD = {
    "a merge left its marks": b"<<<<<<< HEAD\n" + GAN + b"=======\n" + FIXED_GAN + b">>>>>>> topic\n",
    "and nothing else": b"<<<<<<< HEAD\n=======\n>>>>>>> topic\n",
    "Latin-1": GAN + b"# d\xe9j\xe0 vu\n",
    "Python 2": GAN + b"print 'done'\n",
    "UTF-16": GAN.decode().encode("utf-16"),
    "UTF-16, unmarked": GAN.decode().encode("utf-16-le"),
    "a pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n",
    "too large": FIXED_GAN + b"#" * (4 << 20) + b"\n",
}
"""What a file may be for a while. Nobody can say of it that its mistake is gone."""


def whats(lab: World, plan: PlanFile, **wanted: object) -> dict[str, str]:
    """What a run does with each branch."""
    return {one.branch.removeprefix("gradfix/"): one.what for one in lab.publish(plan, **wanted)}


def commit(lab: World, **files: bytes | None) -> str:
    """Change files on the base branch, by their names without ``.py``."""
    named = {f"{name.replace('__', '/')}.py": data for name, data in files.items()}
    return lab.forge.commit(REPOSITORY, "main", named)


def settings(lab: World, text: str) -> None:
    lab.forge.commit(REPOSITORY, "main", {"pyproject.toml": f"[tool.gradfix.bot]\n{text}\n".encode()})


def assert_left(lab: World, plan: PlanFile, why: str, branch: str = "undetached-fake") -> None:
    """A run with ``plan`` says ``why`` it leaves the pull request alone, and changes nothing."""
    lab.forge.requests.clear()
    (done,) = [one for one in lab.publish(plan) if one.branch == f"gradfix/{branch}"]
    assert (done.what, done.code) == ("left alone", 0)
    assert why in done.why
    assert lab.writes() == []


# ---------------------------------------------------------------------------- what cannot be looked at


def test_what_cannot_be_analysed_is_not_mended(lab: World) -> None:
    lab.publish(lab.plan(select=SELECT))
    for name, data in BAD.items():
        commit(lab, models__gan=data)
        assert_left(lab, lab.plan(select=SELECT), "models/gan.py"), name
    with lab.connected() as (served, repository, token):
        (told,) = status.status(served, repository, token)
    assert told.what == "open" and "cannot be analysed: models/gan.py" in told.why
    commit(lab, models__gan=FIXED_GAN)
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "closed"}


def test_a_file_that_cannot_be_analysed_takes_no_fix_out_of_a_pull_request(lab: World) -> None:
    commit(lab, other=GAN)
    lab.publish(lab.plan(select=SELECT))
    head = lab.branches[BRANCH]
    commit(lab, models__gan=BAD["Python 2"], third=GAN)
    assert_left(lab, lab.plan(select=SELECT), "models/gan.py, line 19: looks like Python 2")
    assert lab.branches == {BRANCH: head}


def test_where_the_analysis_crashes_or_gives_up_nothing_is_gone(
    lab: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.publish(lab.plan(select=SELECT))
    analyze = program_module.analyze

    def failing(tree, text, path, ways=None):  # type: ignore[no-untyped-def]
        if "# crash" in text:
            raise AssertionError("an invariant")
        program = analyze(tree, text, path, ways)
        if "# endless" in text:
            program.reported.append("analysis of <module> stopped: more than 10 statements")
        return program

    monkeypatch.setattr(program_module, "analyze", failing)
    commit(lab, models__gan=GAN + b"# crash\n")
    assert_left(lab, lab.plan(select=SELECT), "the analysis failed: AssertionError")
    commit(lab, models__gan=RETAINED + b"# endless\n")
    assert_left(lab, lab.plan(select=SELECT), "more than 10 statements")


def test_what_a_file_is_used_with_cannot_be_analysed(lab: World) -> None:
    """Its mistake shows only through what it imports."""
    learn = b"def learn(opt, loss):\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    lines = b"    scorn.backward()\n    critic_opt.step()\n"
    importing = b"from parts import learn\n" + GAN.replace(lines, b"    learn(critic_opt, scorn)\n")
    commit(lab, models__gan=importing, models__parts=learn)
    lab.publish(lab.plan(select=SELECT))
    commit(lab, models__parts=b"<<<<<<< HEAD\n" + learn)
    plan = lab.plan(select=SELECT)
    assert plan.changes == ()
    assert_left(lab, plan, "parts, which models/gan.py imports: ")
    # So in a file that somebody has changed besides.
    commit(lab, models__gan=importing + b"# more\n")
    assert_left(lab, lab.plan(select=SELECT), "parts, which models/gan.py imports: ")


def test_what_uses_a_file_cannot_be_analysed(lab: World) -> None:
    """Its mistake shows only through a script that imports it."""
    lines = GAN.decode().split("for _ in range(3):\n")
    names = "painter, critic, painter_opt, critic_opt"
    head = f"class Duel:\n    def fight(self, {names}):\n        for _ in range(3):\n"
    duel = "import torch\n\n" + head + "".join(f"        {line}\n" for line in lines[1].splitlines())
    script = lines[0] + "from duel import Duel\n" + f"Duel().fight({names})\n"
    commit(lab, models__gan=None, duel=duel.encode(), main=script.encode())
    lab.publish(lab.plan(select=SELECT))
    assert lab.forge.git(REPOSITORY, "diff", "--name-only", "main", BRANCH) == "duel.py"
    commit(lab, main=b"<<<<<<< HEAD\n" + script.encode())
    plan = lab.plan(select=SELECT)
    assert plan.changes == ()
    assert_left(lab, plan, "main.py")


def test_a_branch_that_waits_for_its_pull_request_is_kept_as_well(lab: World) -> None:
    """A run was ended before it opened one, and nobody can say today whether it is still wanted."""
    lab.publish(lab.plan(select=SELECT))
    head = lab.branches[BRANCH]
    lab.forge.pulls.clear()
    commit(lab, models__gan=BAD["Latin-1"])
    assert whats(lab, lab.plan(select=SELECT)) == {}
    assert lab.branches == {BRANCH: head}
    commit(lab, models__gan=FIXED_GAN)
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "deleted"}


# ---------------------------------------------------------------------------- what a plan is not about


def test_a_plan_of_one_file_takes_no_other_out_of_a_pull_request(lab: World) -> None:
    commit(lab, other=GAN)
    lab.publish(lab.plan(select=SELECT))
    assert_left(lab, lab.plan("main", "other.py"), "a fix for models/gan.py, which this plan is not about")
    # Not even if it is mended there: another plan will say so.
    commit(lab, models__gan=FIXED_GAN)
    assert_left(lab, lab.plan("main", "other.py"), "which this plan is not about")
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "updated"}
    assert lab.forge.git(REPOSITORY, "diff", "--name-only", "main", BRANCH) == "other.py"


def test_a_plan_closes_only_what_it_is_about(lab: World) -> None:
    settings(lab, 'group = "file"')
    lab.publish(lab.plan())
    commit(lab, models__gan=FIXED_GAN)
    lab.forge.requests.clear()
    assert set(whats(lab, lab.plan("main", "rnn.py")).values()) == {"unchanged"}
    assert lab.writes() == []
    assert sorted(whats(lab, lab.plan("main", "models")).values()) == ["closed"]
    assert whats(lab, lab.plan("main", "rnn.py")).keys() == {
        name.removeprefix("gradfix/") for name in lab.branches
    }


def test_a_plan_of_one_codemod_takes_no_other_out_of_a_pull_request(lab: World) -> None:
    settings(lab, 'group = "all"')
    lab.publish(lab.plan())
    assert_left(lab, lab.plan(select=SELECT), "a fix for rnn.py, which this plan is not about", "all")


def test_a_plan_without_leave_takes_nothing_out_that_needs_it(lab: World) -> None:
    settings(lab, 'group = "all"')
    stale = RETAINED.replace(b"    opt.zero_grad()\n", b"").replace(b"retain_graph=True", b"")
    commit(lab, stale=stale)
    lab.publish(lab.plan(unsafe_fixes=True), unsafe_fixes=True)
    assert_left(lab, lab.plan(), "a fix for stale.py, which this plan is not about", "all")


def test_what_could_not_be_run_today_was_proved_before(lab: World) -> None:
    commit(lab, other=GAN)
    plan = lab.plan(select=SELECT)
    lab.publish(plan)
    first, second = plan.changes
    doubted = replace(second.rewrites[0], outcome=lab.plan(proved=False).changes[0].rewrites[0].outcome)
    today = replace(plan, changes=(first, replace(second, rewrites=(doubted,))))
    assert_left(lab, today, "could not be verified this time")


def test_what_was_looked_at_and_is_not_to_be_is_taken_out(lab: World) -> None:
    """A run has refuted it, say: the plan speaks of the file, and proposes nothing for it."""
    commit(lab, other=GAN)
    plan = lab.plan(select=SELECT)
    lab.publish(plan)
    assert whats(lab, replace(plan, changes=plan.changes[1:])) == {"undetached-fake": "updated"}
    assert lab.forge.git(REPOSITORY, "diff", "--name-only", "main", BRANCH) == plan.changes[1].path


# ---------------------------------------------------------------------------- what people merge and rename


def merge(lab: World, into: str, ref: str) -> str:
    """Merge ``ref`` into a branch, as a button on the forge does."""
    tree = lab.forge.git(REPOSITORY, "merge-tree", "--write-tree", into, ref)
    made = lab.forge.git(REPOSITORY, "commit-tree", tree, "-p", into, "-p", ref, "-m", f"Merge {ref}")
    lab.forge.git(REPOSITORY, "update-ref", f"refs/heads/{into}", made)
    return made


def test_a_branch_with_the_base_merged_in_is_closed_when_its_fix_has_landed(lab: World) -> None:
    lab.publish(lab.plan(select=SELECT))
    for number in range(3):
        commit(lab, other=b"x = %d\n" % number, models__gan=GAN + b"# %d\n" % number)
        mine = merge(lab, BRANCH, "main")
        commit(lab, models__gan=GAN + b"# %d\n" % number + b"# more\n")
    # As long as it is not there, nothing of a person's is touched.
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "left alone"}
    assert lab.branches == {BRANCH: mine}
    commit(lab, models__gan=FIXED_GAN)
    for number in range(3):
        commit(lab, other=b"y = %d\n" % number)
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "closed"}
    assert (lab.branches, [pull.state for pull in lab.forge.pulls]) == ({}, ["closed"])


@pytest.mark.parametrize("what", ["own file", "same file", "other branch", "commit"])
def test_one_with_anything_of_a_persons_is_not(lab: World, what: str) -> None:
    lab.publish(lab.plan(select=SELECT))
    commit(lab, other=b"x = 1\n")
    if what == "other branch":
        lab.forge.git(REPOSITORY, "branch", "topic", "main~1")
        lab.forge.commit(REPOSITORY, "topic", {"mine.py": b"by_hand = True\n"})
        mine = merge(lab, BRANCH, "topic")
    elif what == "commit":
        lab.forge.commit(REPOSITORY, BRANCH, {"mine.py": b"by_hand = True\n"})
        mine = merge(lab, BRANCH, "main")
    else:
        # Within the merge itself.
        path = "mine.py" if what == "own file" else "models/gan.py"
        merge(lab, BRANCH, "main")
        tip = lab.forge.commit(REPOSITORY, BRANCH, {path: FIXED_GAN + b"by_hand = True\n"})
        raw = lab.forge.git(REPOSITORY, "rev-parse", f"{tip}^1^1", f"{tip}^1^2", f"{tip}^{{tree}}").split()
        mine = lab.forge.git(
            REPOSITORY, "commit-tree", raw[2], "-p", raw[0], "-p", raw[1], "-m", "Merge main"
        )
        lab.forge.git(REPOSITORY, "update-ref", f"refs/heads/{BRANCH}", mine)
    commit(lab, models__gan=FIXED_GAN)
    lab.forge.requests.clear()
    assert whats(lab, lab.plan(select=SELECT)) == {}
    assert (lab.branches, lab.writes()) == ({BRANCH: mine}, [])


def test_one_that_was_closed_and_not_deleted_is_deleted_by_the_next_run(lab: World) -> None:
    lab.publish(lab.plan(select=SELECT))
    commit(lab, other=b"x = 1\n")
    mine = merge(lab, BRANCH, "main")
    commit(lab, models__gan=FIXED_GAN)
    lab.publish(lab.plan(select=SELECT))
    assert lab.forge.pulls[0].state == "closed"
    lab.forge.git(REPOSITORY, "update-ref", f"refs/heads/{BRANCH}", mine)
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "deleted"}
    assert lab.branches == {}


def test_what_was_merged_and_taken_back_is_proposed_on_a_new_branch(lab: World) -> None:
    """The old one is part of the base branch: from it nothing can be merged any more."""
    lab.publish(lab.plan(select=SELECT))
    merge(lab, "main", BRANCH)
    lab.forge.pulls[0].state, lab.forge.pulls[0].merged = "closed", True
    commit(lab, models__gan=GAN)
    assert whats(lab, lab.plan(select=SELECT)) == {"undetached-fake": "created"}
    assert lab.forge.content(REPOSITORY, BRANCH, "models/gan.py") == FIXED_GAN


@pytest.mark.parametrize("group", ["codemod", "file"])
def test_a_file_that_is_renamed_keeps_its_pull_request(lab: World, group: str) -> None:
    forge = lab.forge
    settings(lab, f'group = "{group}"')
    lab.publish(lab.plan(select=SELECT))
    commit(lab, models__gan=None, nets__painter=b"# moved\n" + GAN)
    assert list(whats(lab, lab.plan(select=SELECT)).values()) == ["updated"]
    (pull,) = forge.pulls
    assert (pull.state, pull.comments, len(lab.branches)) == ("open", [], 1)
    assert forge.git(REPOSITORY, "diff", "--name-only", "main", pull.branch) == "nets/painter.py"
    assert "`nets/painter.py`" in pull.body
    commit(lab, nets__painter=None, nets__artist=FIXED_GAN)
    assert list(whats(lab, lab.plan(select=SELECT)).values()) == ["closed"]


@pytest.mark.parametrize(("group", "kind"), [("file", "github"), *(("codemod", kind) for kind in KINDS)])
def test_a_no_holds_for_a_file_that_is_renamed(forge: ForgeServer, group: str, kind: str) -> None:
    lab = World(forge, kind)
    settings(lab, f'group = "{group}"')
    lab.publish(lab.plan(select=SELECT))
    (branch,) = lab.branches
    forge.close(1)
    if group == "codemod":  # Whose branch somebody has deleted.
        forge.git(REPOSITORY, "update-ref", "-d", f"refs/heads/{branch}")
    commit(lab, models__gan=None, nets__painter=b"# moved\n" + GAN)
    forge.requests.clear()
    assert list(whats(lab, lab.plan(select=SELECT)).values()) == ["declined"]
    assert lab.writes() == []
    # It was said of that file, and not of another one with the same line.
    commit(lab, other=GAN)
    assert "created" in whats(lab, lab.plan(select=SELECT)).values()
    assert forge.git(REPOSITORY, "diff", "--name-only", "main", forge.pulls[1].branch) == "other.py"


# ---------------------------------------------------------------------------- how sure it is


def told(lab: World, standins: list[str], version: str = "after") -> str:
    """The body of a pull request whose proof had to do with ``standins``."""
    plan = lab.plan(select=SELECT)
    certificate = json.loads(json.dumps(plan.changes[0].rewrites[0].certificate))
    certificate["standins"] = standins
    certificate["runs"][-1]["version"] = version
    rewrite = replace(plan.changes[0].rewrites[0], certificate=certificate)
    change = replace(plan.changes[0], rewrites=(rewrite,))
    (done,) = lab.publish(replace(plan, changes=(change, *plan.changes[1:])), dry_run=True)
    assert done.words is not None
    return done.words.body


def test_what_was_made_up_stands_beside_proved(lab: World) -> None:
    assert "**Proved:**" in told(lab, [])
    made_up = told(
        lab, ["file data/train.csv: a made-up table", "batches of 256: batches of 8, to be done in time"]
    )
    assert "when it is run with made-up data and smaller batches:" in made_up
    assert "**Proved with made-up data and smaller batches:**" in made_up
    assert (
        "\n- file data/train.csv: a made-up table\n- batches of 256: batches of 8"
        in made_up.split("<details>")[0]
    )
    assert "**Proved with replacements:**" in told(lab, ["an accelerator: the CPU"])
    assert "**Proved with no values computed:**" in told(lab, [], "after, without data")


def test_every_row_of_the_table_says_so(lab: World) -> None:
    commit(lab, other=GAN)
    body = told(lab, ["file data/train.csv: a made-up table"])
    assert body.startswith(
        "This fixes 2 gradient mistakes in 2 files: **1 proved with made-up data, 1 proved**."
    )
    rows = [row for row in body.splitlines() if row.startswith("| `")]
    assert [row.rsplit("| ", 1)[1] for row in rows] == ["proved with made-up data |", "proved |"]


def test_a_choice_is_named_with_the_other_one(lab: World) -> None:
    (done,) = lab.publish(lab.plan(select=("carried-hidden-state",)), dry_run=True)
    assert done.words is not None
    assert "**This is a choice.**" in done.words.body and "truncated backpropagation" in done.words.body
    assert "losses of several iterations" in done.words.body
    (done,) = lab.publish(lab.plan(select=SELECT), dry_run=True)
    assert done.words is not None and "choice" not in done.words.body
