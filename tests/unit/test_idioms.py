"""How real code is written: one training step in three hundred writings, with each of four mistakes or none.

The writings stand in ``tests/idioms``. Each gives parts of one program, the others are those of ``PARTS``;
or it gives the whole ``program``, in which ``CLEAR(optimizer)`` stands where gradients are to be cleared.
Blocks that are called ``*`` hold for a whole file. ``[silent: kept]`` behind a name says of which mistakes
the model says nothing in that writing: that is held fast too, so that it is noticed when it changes.
In ``adversarial.txt`` two networks take turns, and ``CUT(fake)`` stands where a graph is to be cut.
``near_misses.txt`` has whole programs, each of which needs some guard of a codemod: right ones that look like
a mistake, and mistakes that have another name, or another fix. Nothing is run by default.
"""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent

import pytest

from gradfix.core.codemod import Severity
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

FOLDER = Path(__file__).parent.parent / "idioms"

HEAD = """import torch
from torch import nn
import torch.nn.functional as F
from elsewhere import load, Thing, cfg
"""

PARTS = {
    "imports": "",
    "net": (
        "class Net(nn.Module):\n    def __init__(self, h=3):\n        super().__init__()\n"
        "        self.l = nn.Linear(h, h)\n    def forward(self, x):\n        return self.l(x)"
    ),
    "make": "net = Net()",
    "opt": "opt = torch.optim.SGD(net.parameters(), lr=.1)",
    "data": "batches = load()",
    "pre": "",
    "loop": "for batch in batches:",
    "fwd": "loss = net(batch).mean()",
    "back": "loss.backward()",
    "step": "opt.step()",
    "post": "",
}
"""The parts of a program, in their order; those from the forward to the step stand in the loop."""

MISTAKES = {
    "right": None,
    "uncleared": "missing-zero-grad",
    "kept": "needless-retain-graph",
    "early": "step-before-backward",
    "between": "misplaced-zero-grad",
}


@dataclass(frozen=True)
class Idiom:
    """A way to write a training step; ``CLEAR(...)`` stands where gradients are to be cleared."""

    name: str
    text: str
    silent: frozenset[str]
    """The mistakes of which nothing is said."""

    def written(self, mistake: str) -> str | None:
        """The program with a mistake, or ``right``; ``None`` where it cannot be made in this writing."""
        clear = re.compile(r"^( *)CLEAR\((.*)\)\n", re.MULTILINE)
        backward = re.compile(
            r"^( *)CLEAR\((.*)\)\n( *(?:self\.)?loss\.backward\(\)\n)( *\2\.step\(\)\n)", re.MULTILINE
        )
        if mistake == "uncleared":
            return clear.sub("", self.text)
        if mistake in ("early", "between"):
            order = r"\1\2.zero_grad()\n\4\3" if mistake == "early" else r"\3\1\2.zero_grad()\n\4"
            text, count = backward.subn(order, self.text)
            return text if count == 1 else None
        text = clear.sub(r"\1\2.zero_grad()\n", self.text)
        if mistake == "kept":
            text, count = re.subn(r"\bloss\.backward\(\)", "loss.backward(retain_graph=True)", text)
            return text if count == 1 else None
        return text


def blocks(path: Path) -> list[tuple[str, dict[str, str]]]:
    """The blocks of a file: names, and parts by their names."""
    found = []
    for block in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, *parts = re.split(r"^-- ", block, flags=re.MULTILINE)
        split = [part.partition("\n") for part in parts]
        found.append((name.strip(), {key: text.strip("\n") for key, _, text in split}))
    return found


def idioms() -> list[Idiom]:
    """All of them, named by file and block."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        if path.stem in ("adversarial", "near_misses"):
            continue
        common: dict[str, str] = {}
        for name, parts in blocks(path):
            if name == "*":
                common = parts
                continue
            assert parts.keys() <= {*PARTS, "program"}, name
            given = PARTS | common | parts
            text = given.get("program", "")
            if text:
                text = "\n".join([given["net"], text])
            else:
                loop = given["loop"].rpartition("\n")[2]
                deep = len(loop) - len(loop.lstrip()) + (4 if loop.endswith(":") else 0)
                body = "\n".join([given["fwd"], "CLEAR(opt)", given["back"], given["step"]])
                before = [given[key] for key in ("imports", "net", "make", "opt", "data", "pre")]
                text = "\n".join([*before, given["loop"], indent(body, " " * deep), given["post"]])
            plain, _, silent = name.removesuffix("]").partition("[silent:")
            mistakes = frozenset(silent.split())
            assert mistakes <= MISTAKES.keys(), name
            found.append(Idiom(f"{path.stem}: {plain.strip()}", HEAD + text + "\n", mistakes))
    return found


IDIOMS = idioms()


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: idiom.name)
def test_a_mistake_is_found_however_the_step_is_written(idiom: Idiom, mistake: str, options: Options) -> None:
    code = idiom.written(mistake)
    if code is None:
        return
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source), parsed
    found = [finding.code for finding in driver.findings(parsed, options)]
    kind = MISTAKES[mistake]
    assert found == ([] if kind is None or mistake in idiom.silent else [kind])


def test_there_are_as_many_as_is_said() -> None:
    assert len(IDIOMS) > 280
    assert sum(bool(idiom.silent) for idiom in IDIOMS) < len(IDIOMS) / 20
    made = {m: sum(idiom.written(m) is not None for idiom in IDIOMS) for m in MISTAKES}
    assert all(count > 180 for count in made.values()), made


# -- programs that need a guard -------------------------------------------------------------------

NEAR_MISSES_HEAD = """import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.trunk(x).tanh())

def train(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = torch.randn(3, 8, 3)
batch = batches[0]
loader = torch.utils.data.DataLoader(torch.randn(24, 3), batch_size=8)

"""


UNSEEN = re.compile(r"^from (elsewhere|accelerate) import", re.MULTILINE)


def near_misses() -> dict[str, tuple[str, list[str]]]:
    """The programs of ``near_misses.txt``, by what they nearly are, with what is found in them.

    Behind what has a fix there is a star.
    """
    text = (FOLDER / "near_misses.txt").read_text()
    found = {}
    for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, _, program = block.partition("\n")
        plain, _, codes = name.removesuffix("]").partition(" [")
        found[plain] = f"{NEAR_MISSES_HEAD}{program.rstrip()}\n", codes.split()
    return found


def reported(text: str, options: Options) -> list[str]:
    """What is found in a program, with a star behind what has a fix."""
    everything = replace(options, min_severity=Severity.INFO)
    report = driver.check_text("script.py", text.encode(), everything)
    assert report.problems == ()
    found = report.findings
    return [f"{one.finding.code}{'*' if one.fix is not None else ''}" for one in found]


@pytest.mark.parametrize("name", near_misses())
def test_what_nearly_is_a_mistake_is_told_from_it(name: str, options: Options) -> None:
    text, expected = near_misses()[name]
    assert reported(text, options) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n, (text, _) in near_misses().items() if not UNSEEN.search(text)])
def test_what_is_no_mistake_runs(name: str) -> None:
    text, expected = near_misses()[name]
    with nullcontext() if not expected else suppress(RuntimeError):
        exec(compile(text, name, "exec"), {"__name__": "__main__"})


# -- two networks in turn ------------------------------------------------------------------------

TURNS_HEAD = """import itertools
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.autograd import Variable
from elsewhere import load, cfg, Gen, Disc

class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
    def forward(self, z):
        return torch.tanh(self.l(z))

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 1)
    def forward(self, x):
        return self.l(torch.relu(x)).sigmoid()
"""

TURNS = {
    "make": "a = G(); b = D()",
    "opt": "oa = optim.Adam(a.parameters()); ob = optim.Adam(b.parameters())",
    "pre": "",
    "loop": "for real in load():",
    "fake": "fake = a(torch.randn(4, 3))",
    "judge": (
        "ld = F.binary_cross_entropy(b(real), torch.ones(4, 1))"
        " + F.binary_cross_entropy(b(CUT(fake)), torch.zeros(4, 1))"
    ),
    "learn": "CLEAR(ob)\nld.backward()\nob.step()",
    "persuade": "lg = F.binary_cross_entropy(b(fake), torch.ones(4, 1))",
    "improve": "CLEAR(oa)\nlg.backward()\noa.step()",
}
"""A generator ``a`` and a critic ``b``, which take turns in a loop from ``fake`` on."""

CLEARS = re.compile(r"CLEAR\((\w+)\)")
CUTS = re.compile(r"CUT\((\w+)\)")


def turns() -> dict[str, dict[str, str]]:
    """The parts of each writing, by its name."""
    found = {}
    for name, parts in blocks(FOLDER / "adversarial.txt"):
        assert parts.keys() <= TURNS.keys(), name
        found[name] = TURNS | parts
    return found


def wrong(text: str, loss: str, optimizer: str, mistake: str) -> str | None:
    """``text`` with a mistake in the step of one of the two; ``None`` where it cannot be made."""
    if mistake == "kept":
        changed, count = re.subn(rf"\b{loss}\.backward\(\)", f"{loss}.backward(retain_graph=True)", text)
    elif mistake == "uncleared":
        network = {"oa": "a", "ob": "b"}[optimizer]
        changed, count = re.subn(rf"\n *CLEAR\(({optimizer}|{network})\)(?=\n)", "", text)
    else:
        order = r"\1\3\2" if mistake == "early" else r"\2\1\3"
        line = rf"( *CLEAR\(\w+\)\n)( *{loss}\.backward\(\)\n)( *{optimizer}\.step\(\)\n)"
        changed, count = re.subn(line, order, text)
    return changed if count == 1 else None


CHANGES = (
    "right",
    "leaking",
    *(f"{who} {mistake}" for who in ("critic", "generator") for mistake in list(MISTAKES)[1:]),
)


def in_turn(name: str, change: str) -> str | None:
    """A writing with a change in it; ``None`` where that cannot be made."""
    parts = turns()[name]
    body = "\n".join(parts[key] for key in ("fake", "judge", "learn", "persuade", "improve"))
    loop = parts["loop"].rpartition("\n")[2]
    deep = len(loop) - len(loop.lstrip()) + 4
    head = "\n".join([TURNS_HEAD, parts["make"], parts["opt"], parts["pre"], parts["loop"]])
    text: str | None = f"{head}\n{indent(body, ' ' * deep)}\n"
    assert text is not None
    who, _, mistake = change.partition(" ")
    if mistake:
        text = wrong(text, *{"critic": ("ld", "ob"), "generator": ("lg", "oa")}[who], mistake)
    if text is None:
        return None
    return CLEARS.sub(r"\1.zero_grad()", CUTS.sub(r"\1" if change == "leaking" else r"\1.detach()", text))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", turns())
def test_a_mistake_is_found_however_two_networks_take_turns(name: str, change: str, options: Options) -> None:
    code = in_turn(name, change)
    if code is None:
        return
    mistake = change.partition(" ")[2]
    expected = {MISTAKES[mistake]} if mistake else {"undetached-fake"} if change == "leaking" else set()
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source), parsed
    found = {finding.code for finding in driver.findings(parsed, options)}
    # Where the critic steps several times on one picture, its own second step fails by the same leak.
    assert found - {"graph-used-twice"} == expected if change == "leaking" else found == expected
