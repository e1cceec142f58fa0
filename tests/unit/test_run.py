"""`gradfix run`: what the user sees of a script under watch, and what is said when autograd raises."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import ROOT, git

from gradfix.core.errors import WORDS
from gradfix.watch import running

FIXTURES = ROOT / "tests" / "fixtures"
RAISES = re.compile(r"^# raises: (E\d) at line (\d+)", re.MULTILINE)

GAN = """\
import torch
from torch import nn

torch.manual_seed(0)
painter = nn.Linear(4, 3)
critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_p = torch.optim.Adam(painter.parameters())
opt_c = torch.optim.Adam(critic.parameters())
for _ in range(3):
    picture = painter(torch.randn(5, 4)).tanh()
    verdict = critic(picture)
    loss_c = verdict.sigmoid().mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    loss_p = (1 - critic(picture)).pow(2).mean()
    opt_p.zero_grad()
    loss_p.backward()
    opt_p.step()
"""
STALE = GAN.replace("loss_c.backward()", "loss_c.backward(retain_graph=True)").replace(
    "critic(picture)).pow", "verdict).pow"
)
RNN = """\
import torch
from torch import nn

cell = nn.RNNCell(2, 4)
head = nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(1, 4)
for _ in range(3):
    h = cell(torch.randn(1, 2), h)
    loss = head(h).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
HELPER = """\
def train(loss):
    loss.backward()
"""
TWICE = """\
import torch
from helper import train

net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
features = net(torch.randn(2, 3))
first = (features * 2).pow(2).sum()
second = (features * 3).pow(2).sum()
train(first)
train(second)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`gradfix run`, as its user calls it."""
    return subprocess.run(
        [sys.executable, "-m", "gradfix", "run", *arguments],
        cwd=folder,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def plainly(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The same without gradfix."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def explanation(stderr: str) -> str:
    """What follows the traceback, with the number of the error for autograd's own words."""
    found = re.search(r"^(\S+:\d+:\d+: )\"(.*?)\"(: .*)", stderr, re.MULTILINE | re.DOTALL)
    if found is None:
        return ""
    (kind,) = (kind for kind, words in WORDS.items() if words == found[2])
    return found[1] + kind + found[3]


def marked(told: str) -> dict[int, str]:
    """The labels by the number of the line that they stand under."""
    labels: dict[int, str] = {}
    number = 0
    for row in told.splitlines():
        if line := re.match(r" *(\d+) \| ", row):
            number = int(line.group(1))
        elif label := re.match(r" *\| +[-^]+ (.+)", row):
            labels[number] = f"{labels.get(number, '')} {label.group(1)}".strip()
    return labels


# ---------------------------------------------------------------------------- explanations


def test_a_graph_that_the_other_loss_has_freed(tmp_path: Path) -> None:
    (tmp_path / "gan.py").write_text(GAN)
    done, plain = run(tmp_path, "gan.py"), plainly(tmp_path, "gan.py")
    assert done.returncode == plain.returncode == 1
    assert done.stderr.startswith(f"{plain.stderr}\n")
    told = explanation(done.stderr)
    assert told.startswith(
        "gan.py:18:5: E1: `loss_p.backward()` goes through `picture` into a graph that "
        "`loss_c.backward()` at line 14 has already freed\n"
    )
    labels = marked(told)
    assert "`picture` is computed here" in labels[10]
    assert labels.keys() >= {10, 14, 18}
    assert "= undetached-fake: " in told
    assert "= fix (repairs, safe): detach `picture`\n" in told
    assert "Prove and write it with: gradfix apply --select undetached-fake gan.py\n" in told


def test_the_patch_is_one_that_git_takes_and_the_script_then_runs(tmp_path: Path) -> None:
    (tmp_path / "gan.py").write_text(STALE)
    told = explanation(run(tmp_path, "gan.py").stderr)
    assert "needs `critic." in told
    assert "`opt_c.step()` at line 15 has modified it since" in told
    start, end = told.index("--- a/gan.py"), told.index("\nProve and write it with")
    (tmp_path / "fix.patch").write_text(told[start:end])
    git("init", "-q", ".", cwd=tmp_path)
    git("apply", "fix.patch", cwd=tmp_path)
    done = run(tmp_path, "gan.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_same_command_proves_the_patch(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "gan.py").write_text(GAN)
    (tmp_path / "gan.py").write_text(GAN)
    (tmp_path / "main.py").write_text("import nets.gan\n")
    path = os.path.join("nets", "gan.py")
    for command, proves in {
        ("gan.py", "--rate", "0 1"): "gan.py -- --rate '0 1'",
        ("-m", "nets.gan", "-x"): f"-m nets.gan {path} -- -x",
        ("main.py",): f"--script main.py {path}",
    }.items():
        told = explanation(run(tmp_path, *command).stderr)
        assert told.endswith(f"Prove and write it with: gradfix apply --select undetached-fake {proves}\n")


def test_a_state_that_is_carried_over(tmp_path: Path) -> None:
    (tmp_path / "rnn.py").write_text(RNN)
    # A module beside the script does not get into the process that explains.
    (tmp_path / "typer.py").write_text("raise SystemError")
    told = explanation(plainly(tmp_path, "-P", "-m", "gradfix", "run", "rnn.py").stderr)
    assert told.startswith("rnn.py:12:5: E1: ")
    assert "= carried-hidden-state: " in told
    assert "Prove and write it with: " in told


FRAMEWORK = """\
import torch


class LightningModule(torch.nn.Module):
    pass


def fit(module, batches):
    optimizer = module.configure_optimizers()
    for number, batch in enumerate(batches):
        loss = module.training_step(batch, number)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FITTED = """\
import lightning
import torch


class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn, self.h = torch.nn.GRU(3, 4), None

    def training_step(self, batch, number):
        out, self.h = self.rnn(batch, self.h)
        return torch.nn.functional.mse_loss(out[:, :3], batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


lightning.fit(Lit(), torch.randn(4, 2, 3))
"""


def test_a_state_that_is_carried_in_the_loop_of_a_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "lightning.py").write_text(FRAMEWORK)
    (tmp_path / "fitted.py").write_text(FITTED)
    monkeypatch.setitem(os.environ, "PYTHONPATH", f"{ROOT}{os.pathsep}{installed}")
    monkeypatch.setattr("test_run.environment", lambda: dict(os.environ))
    told = explanation(run(tmp_path, "fitted.py").stderr)
    assert told.startswith("fitted.py:18:1: E1: ")
    assert "= carried-hidden-state: " in told
    assert "self.h = self.h.detach()\n" in told


def test_a_state_that_the_model_cannot_follow(tmp_path: Path) -> None:
    code = RNN.replace("import torch\n", "import torch\n\nunknown = eval('lambda x: x')\n", 1)
    (tmp_path / "rnn.py").write_text(
        code.replace("h = cell(torch.randn(1, 2), h)", "h = unknown(cell(unknown(torch.randn(1, 2)), h))")
    )
    told = explanation(run(tmp_path, "rnn.py").stderr)
    assert told.startswith(
        "rnn.py:14:5: E1: `loss.backward()` goes through `h` into a graph "
        "that an earlier run of the same line has already freed\n"
    )
    assert marked(told)[11] == "the state of the previous iteration, which still has its graph"
    assert "= no automatic fix; by hand: " in told


@pytest.mark.parametrize(("freed_by", "known"), [(14, True), (13, False)])
def test_the_facts_overrule_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, freed_by: int, known: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "gan.py"
    path.write_text(GAN)
    facts = {"kind": "E1", "places": [[str(path), 18]], "earlier": [[str(path), freed_by]]}
    explained = running.explain(facts)
    assert explained is not None
    assert bool(explained.patch) == bool(explained.known) == known


def test_a_graph_used_twice_in_another_module(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "twice.py").write_text(TWICE)
    told = explanation(run(tmp_path, "twice.py").stderr)
    first, second = told.split("twice.py:9:1: ")
    assert first.startswith("helper.py:2:5: E1: `loss.backward()` goes through `features`")
    labels = marked(second)
    assert "`features` is computed here" in labels[5]
    assert "has freed the graph" in labels[8]
    assert "autograd raises" in labels[9]


def test_an_activation_that_was_changed_in_place(tmp_path: Path) -> None:
    code = "import torch\n\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()\n"
    (tmp_path / "inplace.py").write_text(code)
    told = explanation(run(tmp_path, "inplace.py").stderr)
    assert told.startswith("inplace.py:6:1: E2: ")
    assert "needs `y` as it was" in told
    assert "modified in place here" in marked(told)[5]
    assert "+y = y + 1\n" in told
    assert "Prove and write it with: gradfix apply --select inplace-on-saved inplace.py" in told


def test_a_change_in_place_that_the_model_cannot_follow(tmp_path: Path) -> None:
    code = "import torch\n\nw = torch.ones(3, requires_grad=True)\ny = eval('w.exp()')\n"
    code += "y += 1\ny.sum().backward()\n"
    (tmp_path / "inplace.py").write_text(code)
    told = explanation(run(tmp_path, "inplace.py").stderr)
    assert told.startswith("inplace.py:6:1: E2: ")
    assert "and `y += 1` at line 5 has modified it since" in told
    assert marked(told)[5] == "modified in place here"
    assert "by hand: `y = y + 1` makes a new tensor" in told
    assert "= no automatic fix; by hand: " in told
    assert "Prove and write it with" not in told


def test_a_loss_without_a_graph(tmp_path: Path) -> None:
    code = (
        "import torch\n\nnet = torch.nn.Linear(3, 1)\nscore = net(torch.ones(2, 3)).detach()\n"
        "loss = score.mean()\nloss.backward()\n"
    )
    (tmp_path / "cut.py").write_text(code)
    told = explanation(run(tmp_path, "cut.py").stderr)
    assert told.startswith("cut.py:6:1: E3: ")
    assert marked(told)[4] == "no gradient flows through `detach`"
    assert "`loss` is computed here" in marked(told)[5]


def test_a_leaf_that_is_changed_in_place(tmp_path: Path) -> None:
    (tmp_path / "leaf.py").write_text("import torch\n\nw = torch.ones(3, requires_grad=True)\nw += 1\n")
    told = explanation(run(tmp_path, "leaf.py").stderr)
    assert told.startswith("leaf.py:4:1: E4: `w += 1` modifies a leaf")
    assert "= no automatic fix; by hand: " in told


VIEWS = {"q *= 0.5": "+    q = q * 0.5\n", "q.mul_(0.5)": "+    q = q.mul(0.5)\n"}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("statement", VIEWS)
def test_one_of_several_views_that_is_changed_in_place(tmp_path: Path, statement: str) -> None:
    code = (
        "import torch\n\nnet = torch.nn.Linear(4, 12)\n\n\ndef attend(x):\n"
        f"    q, k, v = net(x).split(4, -1)\n    {statement}\n    return q * k + v\n\n\n"
        "attend(torch.ones(2, 4)).sum().backward()\n"
    )
    (tmp_path / "views.py").write_text(code)
    told = explanation(run(tmp_path, "views.py").stderr)
    assert told.startswith(f"views.py:8:5: E5: `{statement}` modifies in place one of several views")
    assert marked(told)[7] == "this returns several views of one tensor"
    assert VIEWS[statement] in told
    assert "Prove and write it with: gradfix apply --select view-written-in-place views.py" in told


def test_a_view_from_where_nothing_is_recorded(tmp_path: Path) -> None:
    code = (
        "import torch\n\nw = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    part = w[:2]\n"
        "part.mul_(2)\n"
    )
    (tmp_path / "part.py").write_text(code)
    told = explanation(run(tmp_path, "part.py").stderr)
    assert "modifies in place a view created under `no_grad`" in told
    assert "`part` is created here" in marked(told)[5]


def test_an_error_that_another_one_wraps_is_explained(tmp_path: Path) -> None:
    code = GAN.replace(
        "    loss_p.backward()\n",
        "    try:\n        loss_p.backward()\n"
        "    except RuntimeError as error:\n        raise ValueError('no luck') from error\n",
    )
    (tmp_path / "gan.py").write_text(code)
    done = run(tmp_path, "gan.py")
    assert "ValueError: no luck" in done.stderr
    assert explanation(done.stderr).startswith("gan.py:19:9: E1: ")


UNSEEN = """\
import torch
from torch import nn

unseen = eval("lambda x: x")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
"""What goes through ``unseen`` no static model follows: what can be said of it shows in the run alone."""

ADVICE = {
    "a loss that is differentiated twice": (
        """
loss = unseen(net)(torch.randn(4, 3)).square().mean()
for _ in range(2):
    loss.backward()
    opt.step()
""",
        "compute `loss` again before the second backward: each backward frees the graph that it goes through",
    ),
    "a detached prediction would train nothing": (
        """
before = unseen(net)(torch.randn(3))
for _ in range(3):
    now = unseen(net)(torch.randn(3))
    loss = (0.9 * now.detach() - before).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    before = now
""",
        "compute `before` again after `opt.step()` at line 15, with the new weights; detaching it would "
        "leave `net.2` and `net.0` without a gradient",
    ),
    "a constant, or a part that is to be trained": (
        """
before = unseen(net)(torch.randn(3))
for _ in range(3):
    loss = (unseen(net)(torch.randn(3)) - before).square().mean()
    opt.zero_grad()
    loss.backward()
""",
        "`before = before.detach()` if this loss should not train it; compute it again in every iteration if "
        "it should: either way, every parameter gets a gradient",
    ),
    "a state in a dict": (
        """
cell = nn.GRUCell(3, 3)
state = {"h": torch.zeros(2, 3)}
for _ in range(3):
    state = {"h": unseen(cell)(torch.randn(2, 3), state["h"])}
    loss = unseen(net)(state["h"]).square().mean()
    loss.backward()
""",
        "detach `state['h']` before the next iteration uses it: the gradient then stops there, and every "
        "parameter still gets one",
    ),
    "two losses for one step": (
        """
shared = unseen(net)[:2](torch.randn(4, 3))
one, other = net[2](shared).mean(), net[2](2 * shared).square().mean()
opt.zero_grad()
one.backward()
other.backward()
opt.step()
""",
        "call backward once, on the sum of this loss and that of `one.backward()` at line 12",
    ),
    "two losses, and a step between them": (
        """
shared = unseen(net)[:2](torch.randn(4, 3))
one, other = net[2](shared).mean(), net[2](2 * shared).square().mean()
one.backward()
opt.step()
other.backward()
""",
        "compute `shared`, and what is computed from it, again after `opt.step()` at line 12",
    ),
    "a gradient that was to be differentiated": (
        """
x = torch.randn(4, 3, requires_grad=True)
y = unseen(net)(x)
(slope,) = torch.autograd.grad(y.sum(), x)
loss = y.square().mean() + slope.square().mean()
loss.backward()
""",
        "",
    ),
    "labels are no cut": (
        """
labels = [0.0, 1.0]
loss = (torch.sign(unseen(net)(torch.randn(2, 3)).argmax(1)) - torch.tensor(labels)).square().mean()
loss.backward()
""",
        "compute the loss from what goes into `argmax`, with operations that have a gradient",
    ),
    "no optimizer trains the network": (
        """
del opt
net.requires_grad_(False)
picture = torch.randn(2, 3)
unseen(net)(picture).sum().backward()
""",
        "",
    ),
    "a weight is no other tensor": (
        """
class Masked(nn.Linear):
    def forward(self, x):
        self.weight *= unseen(self.weight) > 0
        return super().forward(x)

Masked(3, 3)(torch.randn(2, 3))
""",
        "modify it under `with torch.no_grad():`",
    ),
    "what is assigned in a loop and called in a function": (
        """
def halved(h):
    for _ in range(2):
        h = torch.relu(h)
    return h

def again(h): return halved(h)
def once_more(h): return again(h)
def at_last(h): return once_more(h)

at_last(torch.randn(4)).mean().backward()
""",
        "",
    ),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("case", ADVICE)
def test_what_can_be_done_is_said_where_the_run_bears_it_out(tmp_path: Path, case: str) -> None:
    code, advice = ADVICE[case]
    (tmp_path / "train.py").write_text(UNSEEN + code)
    told = run(tmp_path, "train.py").stderr
    assert explanation(told), told
    assert re.findall(r"= no automatic fix(?:; by hand: (.*))?$", told, re.MULTILINE) == [advice]


LOOP = """\
import copy

import torch
from torch import nn

encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    z = encoder(torch.randn(6, 4))
    loss = head(z).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    loss.backward()\n", "", "`opt` had no gradient to use: `backward()` was never called"),
        ("    opt.step()", "    opt.zero_grad()\n    opt.step()", "= misplaced-zero-grad: "),
        ("head(z)", "head(z.detach())", "`encoder` had no gradient in all 3 steps of `opt`"),
        ("opt =", "encoder.requires_grad_(False)\nopt =", None),
        ("z = encoder(torch.randn(6, 4))", "z = torch.randn(6, 8)", None),
        (
            "loss.backward()",
            "(0 * loss).backward()",
            "every gradient that `opt` had at its first steps is zero",
        ),
        (
            "for _ in",
            "encoder, head = copy.deepcopy(encoder), copy.deepcopy(head)\nfor _ in",
            "its parameters do not belong to the networks in use (`encoder` and `head`)",
        ),
        ("", "", None),
    ],
)
def test_what_never_learns_is_told_at_the_end(tmp_path: Path, old: str, new: str, told: str | None) -> None:
    (tmp_path / "train.py").write_text(LOOP.replace(old, new, 1))
    done = run(tmp_path, "train.py")
    assert (done.returncode, done.stdout) == (0, "")
    if told is None:
        assert done.stderr == ""
    else:
        assert told in done.stderr
        assert done.stderr.count("no gradient: ") == 1
        assert "= fix (" in done.stderr or "= no automatic fix; by hand: " in done.stderr


@pytest.mark.parametrize("name", ["gradient_hook", "infogan_overlap"])
def test_what_learns_by_other_ways_is_not_told(name: str) -> None:
    """A hook that clears gradients at the end of a step; two optimizers that share a network's parts."""
    assert run(FIXTURES / "traps", f"{name}.py").stderr == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    [path for path in sorted(FIXTURES.glob("*/*.py")) if ".fixed" not in path.name],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_every_fixture_that_raises_is_explained(path: Path) -> None:
    header = RAISES.search(path.read_text(encoding="utf-8"))
    if header is None:
        pytest.skip("raises nothing")
    told = explanation(run(path.parent, path.name).stderr)
    assert re.match(rf"{re.escape(path.name)}:{header[2]}:\d+: {header[1]}: ", told)
    assert ("Prove and write it with: " in told) == path.with_suffix(".fixed.py").exists()


# ---------------------------------------------------------------------------- nothing else is changed

FACTS = """\
import inspect, os, pickle, sys
import torch

print(sys.argv, __name__, __file__, __spec__, __package__, sys.path[0], input())
print(sorted(name for name in globals() if name.startswith("__")))
print(sys.modules["__main__"].__dict__ is globals())
"""


def test_the_script_is_what_it_would_be(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "facts.py").write_text(FACTS)
    arguments = ("inner/facts.py", "--python", "x", "-m", "-h", "--", "--version")
    watched = run(tmp_path, *arguments, stdin="line\n")
    plain = plainly(tmp_path, *arguments, stdin="line\n")
    assert (watched.stdout, watched.stderr, watched.returncode) == (plain.stdout, plain.stderr, 0)


def test_torch_is_not_imported_for_a_script_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import sys\nprint('torch' in sys.modules)\n")
    assert run(tmp_path, "plain.py").stdout == "False\n"


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(7)",
        "raise SystemExit('said')",
        "import atexit\natexit.register(print, 'bye')\nraise KeyboardInterrupt",
        "def f():\n    return 1 / 0\n\nf()",
        "import sys\nsys.excepthook = lambda *told: print('mine', told[0])\n1 / 0",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
        "import os\nos._exit(3)",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError from error",
        "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()",
    ],
)
def test_the_end_is_what_it_would_be(tmp_path: Path, code: str) -> None:
    (tmp_path / "end.py").write_text(code + "\n")
    watched, plain = run(tmp_path, "end.py"), plainly(tmp_path, "end.py")
    assert watched.returncode == plain.returncode
    assert (watched.stdout, watched.stderr) == (plain.stdout, plain.stderr)


def test_an_error_that_the_script_catches_is_its_own_affair(tmp_path: Path) -> None:
    code = GAN.replace(
        "    loss_p.backward()\n",
        "    try:\n        loss_p.backward()\n    except RuntimeError:\n"
        "        traceback.print_exc(file=sys.stdout)\n",
    )
    (tmp_path / "gan.py").write_text(f"import sys\nimport traceback\n{code}")
    watched, plain = run(tmp_path, "gan.py"), plainly(tmp_path, "gan.py")
    assert "second time" in watched.stdout
    assert (watched.returncode, watched.stdout) == (0, plain.stdout)
    # Nothing is said of the error; that no step had a gradient is told at the end.
    assert "E1" not in watched.stderr
    assert "all 3 steps of `opt_p` had no gradient to use" in watched.stderr


def test_ctrl_c_reaches_the_script(tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text(
        "import time\nprint('ready', flush=True)\ntry:\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('stopped')\n    raise\n"
    )
    command = [sys.executable, "-m", "gradfix", "run", "wait.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=pipe,
        stderr=pipe,
        text=True,
        # Tests that run in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as started:
        assert started.stdout is not None and started.stdout.readline() == "ready\n"
        time.sleep(0.1)
        started.send_signal(signal.SIGINT)
        out, error = started.communicate(timeout=60)
    assert out == "stopped\n"
    assert error.endswith("KeyboardInterrupt\n")
    assert started.returncode == -signal.SIGINT


WORKERS = """\
import multiprocessing

import torch


def double(x):
    return 2 * x


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(double, [1, 2, 3]))
    data = torch.utils.data.DataLoader(torch.arange(4), batch_size=2, num_workers=1)
    print([batch.tolist() for batch in data])
"""


def test_worker_processes(tmp_path: Path) -> None:
    (tmp_path / "workers.py").write_text(WORKERS)
    done = run(tmp_path, "workers.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[2, 4, 6]\n[2, 4, 6]\n[[0, 1], [2, 3]]\n"


def test_a_module(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(f"import sys\nprint(sys.argv[1:], __package__)\n{GAN}")
    done = run(tmp_path, "-m", "package.train", "--epochs", "3")
    assert done.stdout == "['--epochs', '3'] package\n"
    assert explanation(done.stderr).startswith(os.path.join("package", "train.py") + ":20:5: E1: ")


# ---------------------------------------------------------------------------- what cannot be run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: nothing to run: name a script, or a module with -m\n"),
        (("missing.py",), "error: missing.py: does not exist\n"),
        (("folder",), "error: folder: is a folder\n"),
        (("picture.py",), "error: picture.py: syntax-error: "),
        (("broken.py",), "error: broken.py:2: syntax-error: "),
        (("--python", "no-such-python", "broken.py"), "error: broken.py: cannot be run: no-such-python "),
    ],
)
def test_what_cannot_be_run_is_one_message_and_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "picture.py").write_bytes(b"\x89PNG\r\n\x00\xff")
    (tmp_path / "broken.py").write_text("x = 1\nx = (\n")
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
