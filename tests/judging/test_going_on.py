"""Repairs that are right in their first steps, or at the weights that a run begins with, and wrong later."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.test_judging import GAN, HEAD, JUDGE, MAKER, RNN, Original, judged

OLD_GAN = GAN + JUDGE.format(fake="fake") + MAKER
RIGHT_GAN = GAN + JUDGE.format(fake="fake.detach()") + MAKER
LOOP = "for step in range(4):"

CONSTANT = (
    HEAD
    + """
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
batch, wanted = torch.randn(6, 3), torch.randn(6, 1)
"""
)
TWICE = """
for step in range(6):
    said = net(batch)
    size, error = said.pow(2).mean(), (said - wanted).abs().mean()
    opt.zero_grad()
    size.backward()
    error.backward()
    opt.step()
"""
SUMMED = TWICE.replace("size.backward()\n    error.backward()", "(size + error).backward()")

STATE = """
h = torch.zeros(4, 5)
for t in range(8):
    h = cell(torch.randn(4, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SEGMENTS = """
h, total = torch.zeros(4, 5), 0
for t in range(8):
    h = cell(torch.randn(4, 3), h)
    total = total + head(h).pow(2).mean()
    if t % 2 == 1:
        opt.zero_grad()
        total.backward()
        opt.step()
        h, total = h.detach(), 0
"""

HAND = (
    HEAD
    + """
w, b = torch.randn(3, 1, requires_grad=True), torch.ones(1, requires_grad=True)
batch, wanted = torch.randn(6, 3), torch.randn(6, 1)
for step in range({steps}):
    error = (batch @ w + b).exp()
    loss, size = (error - wanted).pow(2).mean(), error.mean()
    loss.backward()
    size.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad.zero_()
"""
)
HAND_RIGHT = HAND.replace("    loss.backward()\n    size.backward()", "    (loss + size).backward()")


OPT_MAKER = "opt_maker = torch.optim.SGD(maker.parameters(), lr=0.05)\n"
KEPT = (
    GAN.replace("nn.Linear(4, 12), nn.ReLU()", "nn.Linear(4, 12), nn.BatchNorm1d(12), nn.Dropout(0.2)")
    .replace("range(4)", "range(40)")
    .replace(
        LOOP.replace("range(4)", "range(40)"),
        "import copy\nmean = copy.deepcopy(maker)\n" + LOOP.replace("range(4)", "range(40)"),
    )
)
TAKE = """
    with torch.no_grad():
        for slow, fast in zip(mean.parameters(), maker.parameters()):
            slow.mul_(0.9).add_(fast, alpha=0.1)
"""
OF_JUDGE = KEPT.replace("deepcopy(maker)", "deepcopy(judge)")
OLD_KEPT = KEPT + JUDGE.format(fake="fake") + MAKER + TAKE
RIGHT_KEPT = KEPT + JUDGE.format(fake="fake.detach()") + MAKER + TAKE
MAKER_FIRST_KEPT = KEPT + MAKER + JUDGE.format(fake="fake.detach()") + TAKE


# As a trainer keeps it: out of sight of the code that steps.
HIDDEN = """
class Mean:
    def __init__(self, net):
        self.net = copy.deepcopy(net)

    @torch.no_grad()
    def take(self, net):
        for slow, fast in zip(self.net.parameters(), net.parameters()):
            slow.lerp_(fast, 0.1)
"""
LISTED = """
class Mean:
    def __init__(self, net):
        self.kept = {name: p.detach().clone() for name, p in net.named_parameters()}

    def take(self, net):
        for name, p in net.named_parameters():
            self.kept[name] = 0.9 * self.kept[name] + 0.1 * p.detach()
"""


ANEW = """
averages = [p.detach().clone() for p in maker.parameters()]

def take():
    global averages
    averages = [0.9 * slow + 0.1 * p.detach() for slow, p in zip(averages, maker.parameters())]

Mean = id
"""
ROW = """
row = nn.utils.parameters_to_vector(maker.parameters()).detach().clone()
Mean = id
"""
TAKE_ROW = "    row.lerp_(nn.utils.parameters_to_vector(maker.parameters()).detach(), 0.1)\n"


def outcomes(before: Path, after: str, folder: Path) -> set[str]:
    """What judging says of the mistakes in one program, given another one."""
    return {found for found, _ in judged(before, after, folder)}


def averaged(mean: str, text: str, take: str = "    average.take(maker)\n") -> str:
    loop = "average = Mean(maker)\n" + LOOP.replace("range(4)", "range(12)")
    return text.replace(LOOP, f"import copy\n{mean}\n{loop}") + take


SEVERAL = """
    for turn in range(3):
        opt_judge.zero_grad()
        loss_j = F.binary_cross_entropy_with_logits(judge(real), ones)
        loss_j = loss_j + F.binary_cross_entropy_with_logits(judge({fake}), zeros)
        loss_j.backward()
        opt_judge.step()
"""
SEVERAL_AT_ONCE = """
    opt_judge.zero_grad()
    loss_j = F.binary_cross_entropy_with_logits(judge(real), ones)
    loss_j = loss_j + F.binary_cross_entropy_with_logits(judge(fake.detach()), zeros)
    loss_j.backward()
    for turn in range(3):
        opt_judge.step()
"""
CLIP = "nn.utils.clip_grad_norm_(judge.parameters(), 100.0)\n    opt_judge.step()"
CLIP_ALL = "nn.utils.clip_grad_norm_([*cell.parameters(), *head.parameters()], 0.01)\n    opt.step()"
LATE = "last = nn.Linear(1, 1)\nopt_last = torch.optim.SGD(last.parameters(), lr=0.1)\n"
FINALLY = """
for step in range(4):
    loss = last(net(batch).detach()).pow(2).mean()
    opt_last.zero_grad()
    loss.backward()
    opt_last.step()
"""
SCHEDULE = "sched = torch.optim.lr_scheduler.StepLR(opt, 1, 0.9)\n"
FOLLOWED = """
h = torch.zeros(4, 5)
for t in range(12):
    x = torch.randn(4, 3)
    with torch.no_grad():
        wanted = head(cell(x, h.detach())) + 1
    h = cell(x, h)
    loss = (head(h) - wanted).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FOLLOWED_SEGMENTS = """
h, total = torch.zeros(4, 5), 0
for t in range(12):
    x = torch.randn(4, 3)
    with torch.no_grad():
        wanted = head(cell(x, h.detach())) + 1
    h = cell(x, h)
    total = total + (head(h) - wanted).pow(2).mean()
    if t % 2 == 1:
        opt.zero_grad()
        total.backward()
        opt.step()
        h, total = h.detach(), 0
"""
FIRST = "import copy\nfirst = copy.deepcopy(cell)\nh, total"


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


CASES = {
    "a copy of the first judge": (
        OLD_GAN,
        changed(
            RIGHT_GAN,
            (LOOP, f"import copy\nfirst = copy.deepcopy(judge)\n{LOOP}"),
            ("judge(fake), ones", "first(fake), ones"),
        ),
        "refuted",
    ),
    "fakes of the first maker": (
        OLD_GAN,
        changed(
            GAN + MAKER.replace("judge(fake)", "judge(fake)") + JUDGE.format(fake="past"),
            (LOOP, f"import copy\nfirst = copy.deepcopy(maker)\n{LOOP}"),
            (
                "    fake = maker(torch.randn(8, 4))",
                "    noise = torch.randn(8, 4)\n    fake, past = maker(noise), first(noise).detach()",
            ),
        ),
        "refuted",
    ),
    "a maker that stops": (
        OLD_GAN,
        changed(
            GAN + MAKER + JUDGE.format(fake="fake.detach()"),
            ("range(4)", "range(40)"),
            ("opt_maker.step()", "if step < 2: opt_maker.step()"),
        ),
        "refuted",
    ),
    "a maker that stops after many passes": (
        OLD_GAN.replace("range(4)", "range(40)"),
        changed(
            GAN + MAKER + JUDGE.format(fake="fake.detach()"),
            ("range(4)", "range(40)"),
            ("opt_maker.step()", "if step < 9: opt_maker.step()"),
        ),
        "refuted",
    ),
    "a rate that falls": (
        OLD_GAN,
        changed(
            RIGHT_GAN,
            ("    opt_maker.step()", "    opt_maker.param_groups[0]['lr'] *= 0.999999\n    opt_maker.step()"),
        ),
        "refuted",
    ),
    "an end after two passes": (
        OLD_GAN.replace("range(4)", "range(40)"),
        RIGHT_GAN.replace("range(4)", "range(2)"),
        "refuted",
    ),
    "the generator first, to the end of the budget": (
        OLD_GAN.replace("range(4)", "range(40)"),
        (GAN + MAKER + JUDGE.format(fake="fake.detach()")).replace("range(4)", "range(40)"),
        "accepted",
    ),
    "optimizers in another order": (
        OLD_GAN,
        changed(RIGHT_GAN, (OPT_MAKER, ""), ("ones, zeros", OPT_MAKER + "ones, zeros")),
        "accepted",
    ),
    "optimizers in another order, with other settings": (
        OLD_GAN,
        changed(
            RIGHT_GAN,
            (OPT_MAKER, ""),
            ("ones, zeros", OPT_MAKER.replace("0.05", "0.01") + "ones, zeros"),
        ),
        "refuted",
    ),
    "an average beside it": (OLD_KEPT, RIGHT_KEPT, "accepted"),
    "an average, the generator first": (OLD_KEPT, MAKER_FIRST_KEPT, "accepted"),
    "an average that is not taken": (OLD_KEPT, changed(RIGHT_KEPT, (TAKE, "")), "refuted"),
    "no average, the generator first": (OLD_KEPT, changed(MAKER_FIRST_KEPT, (TAKE, "")), "refuted"),
    "another average": (OLD_KEPT, changed(RIGHT_KEPT, ("mul_(0.9)", "mul_(0.95)")), "refuted"),
    "another average, the generator first": (
        OLD_KEPT,
        changed(MAKER_FIRST_KEPT, ("mul_(0.9)", "mul_(0.95)")),
        "refuted",
    ),
    "statistics that are not taken": (
        OLD_KEPT,
        changed(RIGHT_KEPT, ("import copy", "import copy\nmaker[1].momentum = 0.0")),
        "refuted",
    ),
    "another mode later on": (
        OLD_KEPT,
        changed(RIGHT_KEPT, ("    real =", "    maker.train(step < 15)\n    real =")),
        "refuted",
    ),
    "an average out of sight": (
        averaged(HIDDEN, OLD_GAN),
        averaged(HIDDEN, GAN + MAKER + JUDGE.format(fake="fake.detach()")),
        "accepted",
    ),
    "an average out of sight that is not taken": (
        averaged(HIDDEN, OLD_GAN),
        averaged(HIDDEN, RIGHT_GAN, take=""),
        "refuted",
    ),
    "an average in a dictionary": (averaged(LISTED, OLD_GAN), averaged(LISTED, RIGHT_GAN), "accepted"),
    "an average in a dictionary that is not taken": (
        averaged(LISTED, OLD_GAN),
        averaged(LISTED, RIGHT_GAN, take=""),
        "refuted",
    ),
    "an average in a list that is made anew": (
        averaged(ANEW, OLD_GAN, take="    take()\n"),
        averaged(ANEW, RIGHT_GAN, take="    take()\n"),
        "accepted",
    ),
    "an average in a list that is not made anew": (
        averaged(ANEW, OLD_GAN, take="    take()\n"),
        averaged(ANEW, RIGHT_GAN, take=""),
        "refuted",
    ),
    "an average in a row": (
        averaged(ROW, OLD_GAN, take=TAKE_ROW),
        averaged(ROW, RIGHT_GAN, take=TAKE_ROW),
        "accepted",
    ),
    "another average in a row": (
        averaged(ROW, OLD_GAN, take=TAKE_ROW),
        averaged(ROW, RIGHT_GAN, take=TAKE_ROW.replace("0.1", "0.2")),
        "refuted",
    ),
    "a judge that was copied after the first pass": (
        OLD_GAN.replace("range(4)", "range(12)"),
        changed(
            RIGHT_GAN.replace("range(4)", "range(12)"),
            (
                "    opt_maker.zero_grad()",
                "    if step == 0: past = copy.deepcopy(judge)\n    opt_maker.zero_grad()",
            ),
            ("ones, zeros = ", "import copy\nones, zeros = "),
            ("judge(fake), ones", "past(fake), ones"),
        ),
        "refuted",
    ),
    "a judge that is copied in every other pass": (
        OLD_GAN.replace("range(4)", "range(40)"),
        changed(
            RIGHT_GAN.replace("range(4)", "range(40)"),
            (
                "    opt_maker.zero_grad()",
                "    if step == 0 or step % 2: past = copy.deepcopy(judge)\n    opt_maker.zero_grad()",
            ),
            ("ones, zeros = ", "import copy\nones, zeros = "),
            ("judge(fake), ones", "past(fake), ones"),
        ),
        "refuted",
    ),
    "an average of the judge that is taken at once": (
        OF_JUDGE + JUDGE.format(fake="fake") + MAKER + TAKE.replace("maker", "judge"),
        OF_JUDGE + JUDGE.format(fake="fake.detach()") + TAKE.replace("maker", "judge") + MAKER,
        "accepted",
    ),
    "an average in one operation": (
        OLD_KEPT,
        changed(RIGHT_KEPT, ("slow.mul_(0.9).add_(fast, alpha=0.1)", "slow.lerp_(fast, 0.1)")),
        "accepted",
    ),
    "a judge from the beginning in every other pass": (
        OLD_GAN.replace("range(4)", "range(12)"),
        changed(
            RIGHT_GAN.replace("range(4)", "range(12)"),
            ("ones, zeros = ", "import copy\npast = copy.deepcopy(judge)\nones, zeros = "),
            ("judge(fake), ones", "(judge if step % 2 else past)(fake), ones"),
        ),
        "refuted",
    ),
    "a copy of the judge as it is": (
        averaged(HIDDEN, OLD_GAN),
        averaged(
            HIDDEN,
            changed(
                RIGHT_GAN,
                (
                    "ones, zeros = ",
                    "import copy\nnow = copy.deepcopy(judge).requires_grad_(False)\nones, zeros = ",
                ),
                (
                    "    opt_maker.zero_grad()",
                    "    now.load_state_dict(judge.state_dict())\n    opt_maker.zero_grad()",
                ),
                ("judge(fake), ones", "now(fake), ones"),
            ),
        ),
        "accepted",
    ),
    "another average by another name": (
        OLD_KEPT,
        changed(
            RIGHT_KEPT,
            ("mean", "slowly"),
            ("mul_(0.9)", "mul_(0.95)"),
        ),
        "refuted",
    ),
    "an average that is no longer taken after a while": (
        OLD_KEPT,
        changed(RIGHT_KEPT, ("slow.mul_(0.9).add_(fast, alpha=0.1)", "slow.lerp_(fast, 0.1 * (step < 4))")),
        "refuted",
    ),
    "an average that is not in training mode": (
        OLD_KEPT,
        changed(RIGHT_KEPT, ("mean = copy.deepcopy(maker)", "mean = copy.deepcopy(maker).eval()")),
        "accepted",
    ),
    "clipped by a whole number": (
        OLD_GAN.replace("opt_judge.step()", CLIP),
        RIGHT_GAN.replace("opt_judge.step()", CLIP.replace("100.0", "100")),
        "accepted",
    ),
    "segments, and a schedule": (
        RNN + SCHEDULE + STATE + "    sched.step()\n",
        RNN + SCHEDULE + SEGMENTS + "        sched.step()\n",
        "accepted",
    ),
    "segments without the schedule": (
        RNN + SCHEDULE + STATE + "    sched.step()\n",
        RNN + SCHEDULE + SEGMENTS,
        "refuted",
    ),
    "a step that no run gets to": (
        CONSTANT + LATE + TWICE.replace("range(6)", "range(1999)") + FINALLY,
        CONSTANT + LATE + SUMMED.replace("range(6)", "range(1999)") + FINALLY.replace("loss =", "loss = -"),
        "not run",
    ),
    "a step that comes late": (
        CONSTANT + LATE + TWICE.replace("range(6)", "range(99)") + FINALLY,
        CONSTANT + LATE + SUMMED.replace("range(6)", "range(99)") + FINALLY.replace("loss =", "loss = -"),
        "refuted",
    ),
    "several steps, the generator first": (
        GAN + SEVERAL.format(fake="fake") + MAKER,
        GAN + MAKER + SEVERAL.format(fake="fake.detach()"),
        "accepted",
    ),
    "several steps with one gradient": (
        GAN + SEVERAL.format(fake="fake") + MAKER,
        GAN + SEVERAL_AT_ONCE + MAKER,
        "refuted",
    ),
    "gradients that are no longer clipped": (
        OLD_GAN.replace("opt_judge.step()", CLIP),
        RIGHT_GAN,
        "refuted",
    ),
    "clipped as before": (
        OLD_GAN.replace("opt_judge.step()", CLIP),
        RIGHT_GAN.replace("opt_judge.step()", CLIP),
        "accepted",
    ),
    "segments of which each is clipped": (
        RNN + STATE.replace("opt.step()", CLIP_ALL),
        RNN + SEGMENTS.replace("    opt.step()", "    " + CLIP_ALL.replace("\n", "\n    ")),
        "accepted",
    ),
    "segments that are no longer clipped": (
        RNN + STATE.replace("opt.step()", CLIP_ALL),
        RNN + SEGMENTS,
        "refuted",
    ),
    "segments with a target that follows": (RNN + FOLLOWED, RNN + FOLLOWED_SEGMENTS, "accepted"),
    "segments with a target that does not follow": (
        RNN + FOLLOWED,
        RNN
        + changed(FOLLOWED_SEGMENTS, ("h, total = torch", FIRST + " = torch"), ("head(cell(", "head(first(")),
        "refuted",
    ),
    "a rate that is a tensor": (
        CONSTANT + TWICE,
        changed(CONSTANT, ("lr=0.1", "lr=torch.tensor(0.1)")) + SUMMED,
        "accepted",
    ),
    "another rate, as a tensor": (
        CONSTANT + TWICE,
        changed(CONSTANT, ("lr=0.1", "lr=torch.tensor(0.100001)")) + SUMMED,
        "refuted",
    ),
    "a hook that shrinks weights": (
        CONSTANT + TWICE,
        CONSTANT
        + "opt.register_step_post_hook(lambda *_: [p.data.mul_(0.99999) for p in net.parameters()])\n"
        + changed(TWICE, ("size.backward()", "size.backward(retain_graph=True)")),
        "refuted",
    ),
    "losses in one": (CONSTANT + TWICE, CONSTANT + SUMMED, "accepted"),
    "the first gradient for ever": (
        CONSTANT + TWICE,
        CONSTANT
        + changed(
            SUMMED,
            (
                "for step",
                "said = net(batch)\nsize, error = said.pow(2).mean(), (said - wanted).abs().mean()\n"
                "(size + error).backward()\nfor step",
            ),
            (
                "    said = net(batch)\n    size, error = said.pow(2).mean(), (said - wanted).abs().mean()\n",
                "",
            ),
            ("    opt.zero_grad()\n", ""),
            ("    (size + error).backward()\n", ""),
        ),
        "refuted",
    ),
    "every other step": (
        CONSTANT + TWICE,
        CONSTANT
        + changed(SUMMED, ("range(6)", "range(12)"), ("    opt.step()", "    if step % 2: opt.step()")),
        "refuted",
    ),
    "two steps for one": (
        CONSTANT + TWICE,
        CONSTANT
        + changed(SUMMED, ("range(6)", "range(3)"), ("    opt.step()", "    opt.step()\n    opt.step()")),
        "refuted",
    ),
    "segments of two passes": (RNN + STATE, RNN + SEGMENTS, "accepted"),
    "segments of which later ones learn the contrary": (
        RNN + STATE,
        RNN + changed(SEGMENTS, ("total.backward()", "(total if t < 2 else -total).backward()")),
        "refuted",
    ),
    "segments of which later ones forget": (
        RNN + STATE,
        RNN + changed(SEGMENTS, ("h, total = h.detach(), 0", "h, total = torch.zeros(4, 5), 0")),
        "refuted",
    ),
    "segments of which only the first steps": (
        RNN + STATE,
        RNN
        + changed(
            SEGMENTS, ("h, total = h.detach(), 0", "h, total = h.detach(), 0\n        if t > 2: break")
        ),
        "refuted",
    ),
    "segments of which later ones leave out the cell": (
        RNN + STATE,
        RNN + changed(SEGMENTS, ("head(h)", "head(h if t < 2 else h.detach())")),
        "refuted",
    ),
    "all of a long time": (
        RNN + STATE.replace("range(8)", "range(20)"),
        RNN + changed(SEGMENTS, ("range(8)", "range(20)"), ("t % 2 == 1", "t == 19")),
        "accepted",
    ),
    "by hand": (HAND.format(steps=4), HAND_RIGHT.format(steps=4), "accepted"),
    "by hand, for long": (HAND.format(steps=100), HAND_RIGHT.format(steps=100), "accepted"),
    "by hand, without a loss": (
        HAND.format(steps=4),
        changed(HAND_RIGHT, ("(loss + size)", "loss")).format(steps=4),
        "refuted",
    ),
    "by hand, more slowly": (
        HAND.format(steps=4),
        changed(HAND_RIGHT, ("0.1 * p.grad", "0.09 * p.grad")).format(steps=4),
        "refuted",
    ),
    "by hand, never": (
        HAND.format(steps=4),
        changed(HAND_RIGHT, ("p -= 0.1 * p.grad", "pass")).format(steps=4),
        "refuted",
    ),
}


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", CASES)
def test_what_is_right_at_first_is_followed_on(name: str, original: Original, tmp_path: Path) -> None:
    before, after, expected = CASES[name]
    assert outcomes(original(before), after, tmp_path) == {expected}
