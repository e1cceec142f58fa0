"""The tool that plants faults: what its operators write, and what its judge says of our own programs."""

import ast
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutants"

GAN = """\
import argparse
import torch
from torch import nn
from a_library_that_nobody_has import Pictures

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
options = parser.parse_args()


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(100, 256), nn.ReLU(), nn.Linear(256, 784))

    def forward(self, z):
        return self.layers(z).view(z.size(0), 1, 28, 28)


G, D = Generator(), nn.Sequential(nn.Conv2d(1, 8, 4), nn.Flatten(), nn.Linear(800, 1))
opt_G, opt_D = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
loader = torch.utils.data.DataLoader(Pictures(options.data), batch_size=64)
for epoch in range(3):
    for pictures, labels in loader:
        pictures = pictures.cuda()
        fake = G(torch.randn(pictures.size(0), 100, device="cuda"))
        opt_D.zero_grad()
        verdict = D(fake.detach())
        d_loss = bce(D(pictures), torch.ones_like(verdict)) + bce(verdict, torch.zeros_like(verdict))
        d_loss.backward()
        opt_D.step()
        opt_G.zero_grad()
        verdict = D(fake)
        g_loss = bce(verdict, torch.ones_like(verdict))
        g_loss.backward()
        opt_G.step()
        print(f"{d_loss:.3f}")
"""


@pytest.fixture(scope="module")
def tool(sharing: Any) -> Iterator[ModuleType]:
    """The tool's modules, imported as the tool imports them; its judge runs all by one server."""
    sys.path.insert(0, str(TOOL))
    try:
        import faults
        import judge
        import score
    finally:
        sys.path.remove(str(TOOL))
    together = ModuleType("mutants")
    together.faults, together.judge, together.score = faults, judge, score  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "Runner", lambda python, **how: nullcontext(sharing))
        yield together


def planted(tool: ModuleType, operator: str) -> list[str]:
    """All mutants of one operator, as text."""
    return [m.text for m in tool.faults.plant(GAN, 99, "seed") if m.operator == operator]


def test_every_mutant_is_another_program_and_says_where_it_was_planted(tool: ModuleType) -> None:
    mutants = list(tool.faults.plant(GAN, 99, "seed"))
    assert {m.operator for m in mutants} >= {"detach-dropped", "forward-reused", "swapped", "retain-added"}
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(GAN))
        assert mutant.places and mutant.watched


def test_an_operator_changes_one_thing(tool: ModuleType) -> None:
    assert planted(tool, "detach-dropped") == [GAN.replace("fake.detach()", "fake")]
    assert planted(tool, "forward-reused") == [
        GAN.replace("fake.detach()", "fake").replace(
            "        verdict = D(fake)\n        g_loss", "        g_loss"
        )
    ]
    assert GAN.replace("        opt_D.zero_grad()\n", "") in planted(tool, "zero-removed")


def test_a_forward_of_something_else_is_no_repetition(tool: ModuleType) -> None:
    """``D(fake)`` after ``fake`` was made anew is another prediction."""
    anew = GAN.replace(
        "        verdict = D(fake)\n", "        fake = G(torch.randn(8, 100))\n        verdict = D(fake)\n"
    )
    assert anew != GAN
    assert not [m for m in tool.faults.plant(anew, 99, "seed") if m.operator == "forward-reused"]


def test_a_loss_that_is_handed_in_is_told(tool: ModuleType) -> None:
    """Who else goes through its graph is the caller's affair; of one that is computed here it is not."""
    code = """
def given(loss, optimizer):
    loss.backward()
    optimizer.step()

def scaled(loss, optimizer):
    loss = loss / 2
    loss.backward()
    optimizer.step()
"""
    mutants = [m for m in tool.faults.plant(code, 99, "seed") if m.operator == "retain-added"]
    assert {m.function: m.handed_in for m in mutants} == {"given": True, "scaled": False}


def test_zero_grad_may_stand_anywhere_before_what_minds(tool: ModuleType) -> None:
    line = "        opt_G.zero_grad()\n"
    moved = GAN.replace(line, "").replace("        g_loss.backward()\n", f"{line}        g_loss.backward()\n")
    after = GAN.replace(line, "").replace("        opt_G.step()\n", f"{line}        opt_G.step()\n")
    assert tool.score.settled(moved) == tool.score.settled(GAN)
    assert tool.score.settled(after) != tool.score.settled(GAN)


def test_the_judge_runs_code_without_its_data_and_tells_faults_from_changes(
    tool: ModuleType, tmp_path: Path
) -> None:
    doubled = GAN.replace(
        "        opt_D.zero_grad()\n", "        opt_D.zero_grad()\n        opt_D.zero_grad()\n"
    )
    leaking = GAN.replace("fake.detach()", "fake")
    without = GAN.replace("        opt_D.zero_grad()\n", "")
    jobs = [
        tool.judge.job(tmp_path / "gan.py", tmp_path, text, "", [30])
        for text in (GAN, doubled, leaking, without)
    ]
    original, *others = tool.judge.run(jobs, None)
    assert tool.judge.usable(original) is None
    assert tool.judge.ran(original) == {30}
    verdicts = [tool.judge.compare(original, other) for other in others]
    assert [v.kind for v in verdicts] == ["same", "raises", "differs"]
    assert verdicts[1].why == f"E1@{GAN.splitlines().index('        g_loss.backward()') + 1}"


def test_the_stage_has_no_memory_that_nobody_wrote(tool: ModuleType, tmp_path: Path) -> None:
    """Old code makes room in a tensor and fills it: that fills the tensor itself."""
    before = '        fake = G(torch.randn(pictures.size(0), 100, device="cuda"))\n'
    plain = "        z = torch.FloatTensor(4, 100)\n        z.normal_(0, 1)\n        fake = G(z)\n"
    roomy = plain.replace("z.normal_(0, 1)", "z.resize_(pictures.size(0), 100).normal_(0, 1)")
    codes = [GAN.replace(before, plain), GAN.replace(before, roomy)]
    assert GAN not in codes
    jobs = [tool.judge.job(tmp_path / "gan.py", tmp_path, code, "", []) for code in codes]
    one, other = tool.judge.run(jobs, None)
    assert tool.judge.usable(one) is None
    assert tool.judge.compare(one, other).kind == "same"


def test_a_mutant_that_has_consumed_other_gradients_is_faulty_wherever_it_stops(
    tool: ModuleType, tmp_path: Path
) -> None:
    without = GAN.replace("        opt_D.zero_grad()\n", "")
    stop = "\nraise SystemExit(1)\n"
    jobs = [
        tool.judge.job(tmp_path / "gan.py", tmp_path, text, "", [])
        for text in (GAN, GAN + stop, without + stop)
    ]
    original, *others = tool.judge.run(jobs, None)
    assert [tool.judge.compare(original, other).kind for other in others] == ["undecided", "differs"]


def test_an_optimizer_that_stays_idle_leaves_open_what_the_others_show(
    tool: ModuleType, tmp_path: Path
) -> None:
    """It may be idle on the stage alone; that it makes no difference to the others is told all the same."""
    idle = GAN.replace(
        "bce =", "spare = torch.nn.Linear(1, 1)\nidle = torch.optim.Adam(spare.parameters())\nbce ="
    ).replace("        opt_D.step()\n", "        opt_D.step()\n        idle.step()\n")
    codes = [
        idle,
        idle.replace("nn.ReLU()", "nn.ReLU(inplace=False)"),
        idle.replace("opt_D.zero_grad()", "pass"),
    ]
    jobs = [tool.judge.job(tmp_path / "gan.py", tmp_path, code, "", []) for code in codes]
    original, *others = tool.judge.run(jobs, None)
    verdicts = [tool.judge.compare(original, other) for other in others]
    assert [(v.kind, v.shows_no_difference) for v in verdicts] == [("undecided", True), ("differs", False)]


@pytest.mark.parametrize(
    ("line", "hands_over"),
    [("h = h.detach()", True), ("h = repackage(h)", True), ("h = h - gain * out.detach()", False)],
)
def test_what_is_added_to_is_no_state_that_is_handed_over(
    tool: ModuleType, line: str, hands_over: bool
) -> None:
    code = f"""
def train(net, h, gain, optimizer, batches):
    for batch in batches:
        {line}
        out, h = net(batch, h)
        out.mean().backward()
        optimizer.step()
"""
    operators = {m.operator for m in tool.faults.plant(code, 99, "seed")}
    assert ("state-detach-dropped" in operators) is hands_over


HELPERS = """\
from old import Storage


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class Agent:
    def __init__(self, config):
        self.network = config.network()
        self.optimizer = config.optimizer_of(self.network.parameters())
        self.storage = Storage()

    def learn(self, seen):
        self.storage.keep(seen)
        loss = self.network(seen).mean()
        self.network.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("entry", "clears"),
    [("update", "    optimizer.zero_grad()\n"), ("Agent.learn", "        self.network.zero_grad()\n")],
)
def test_optimizers_of_others_step_and_clear_on_the_stage(
    tool: ModuleType, tmp_path: Path, entry: str, clears: str
) -> None:
    """Those that a function is handed, and those that an unknown function makes of parameters."""
    # A module of the project in the Python of its day.
    (tmp_path / "old.py").write_text("class Storage:\n    def keep(self, seen):\n        print seen\n")
    codes = [HELPERS, HELPERS.replace(clears, clears * 2), HELPERS.replace(clears, "")]
    jobs = [tool.judge.job(tmp_path / "helpers.py", tmp_path, code, entry, []) for code in codes]
    original, *others = tool.judge.run(jobs, None)
    assert tool.judge.usable(original) is None
    assert [tool.judge.compare(original, other).kind for other in others] == ["same", "differs"]


def test_what_looks_like_a_module_may_be_a_base_or_a_function(tool: ModuleType, tmp_path: Path) -> None:
    code = GAN.replace(
        "class Generator",
        "import nowhere.kind as kind\nimport nowhere.made as made\n"
        "class Odd(kind):\n    pass\nmade()\nclass Generator",
    )
    (run,) = tool.judge.run([tool.judge.job(tmp_path / "gan.py", tmp_path, code, "", [])], None)
    assert tool.judge.usable(run) is None


def test_what_brings_the_original_back_has_found_it(tool: ModuleType) -> None:
    row = tool.score.Row("checkout", "train.py", "zero-after-other-step", 5, other="undetached-fake:9")
    row.restored = "another"
    tool.score.named(row)
    assert (row.found, row.other) == ("", "undetached-fake:9")
    row.restored = "gradients"
    tool.score.named(row)
    assert (row.found, row.other) == ("undetached-fake:9", "")


TRAINER = """\
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

net, critic = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters())
both = torch.optim.Adam(list(net.parameters()) + list(critic.parameters()))
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
scaler = torch.amp.GradScaler()


def train(loader, gamma):
    for epoch in range(3):
        for x, after, reward in loader:
            value = critic(after)
            target = reward + gamma * value.detach()
            error = (net(x) - target).pow(2).mean()
            penalty = net(x).abs().mean()
            loss = error + 0.1 * penalty
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        scheduler.step()


def plain(x):
    error = net(x).pow(2).mean()
    penalty = critic(x).abs().mean()
    loss = error + 0.1 * penalty
    optimizer.zero_grad()
    both.zero_grad()
    loss.backward()
    clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    both.step()
"""


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("unscale-removed", "            scaler.unscale_(optimizer)\n", ""),
        ("scaler-update-removed", "            scaler.update()\n", ""),
        ("target-detach-dropped", "gamma * value.detach()", "gamma * value"),
        ("optimizer-of-other", "Adam(net.parameters())", None),
        (
            "parameters-left-out",
            "list(net.parameters()) + list(critic.parameters())",
            "list(net.parameters())",
        ),
        ("step-of-other", "    optimizer.step()\n", "    both.step()\n"),
        ("backward-removed", "    loss.backward()\n", ""),
        ("term-left-out", "    loss.backward()\n", "    error.backward()\n"),
        (
            "clipping-late",
            "    clip_grad_norm_(net.parameters(), 1.0)\n    optimizer.step()\n    both.step()\n",
            "    optimizer.step()\n    both.step()\n    clip_grad_norm_(net.parameters(), 1.0)\n",
        ),
        (
            "clipping-early",
            "    loss.backward()\n    clip_grad_norm_(net.parameters(), 1.0)\n",
            "    clip_grad_norm_(net.parameters(), 1.0)\n    loss.backward()\n",
        ),
    ],
)
def test_what_the_operators_for_order_constants_and_wiring_write(
    tool: ModuleType, operator: str, old: str, new: str | None
) -> None:
    texts = [m.text for m in tool.faults.plant(TRAINER, 99, "seed") if m.operator == operator]
    if new is None:
        assert not texts  # The other optimizer owns two networks: which of them is meant, nobody knows.
        return
    assert TRAINER.count(old) == 1
    assert TRAINER.replace(old, new) in texts


def test_a_schedule_goes_before_the_loop_in_which_its_optimizer_steps(tool: ModuleType) -> None:
    (mutant,) = [m for m in tool.faults.plant(TRAINER, 99, "seed") if m.operator == "scheduler-early"]
    lines = mutant.text.splitlines()
    place = lines.index("        scheduler.step()")
    assert lines[place - 1] == "    for epoch in range(3):"
    assert lines[place + 1] == "        for x, after, reward in loader:"


def test_a_term_of_a_loss_loses_its_graph(tool: ModuleType) -> None:
    texts = [m.text for m in tool.faults.plant(TRAINER, 99, "seed") if m.operator == "term-cut"]
    cut = [line.strip() for text in texts for line in text.splitlines() if line not in TRAINER.splitlines()]
    assert len(cut) == 2
    assert all(any(way in line for way in (".detach()", ".item()", ".data")) for line in cut)
