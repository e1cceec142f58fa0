"""Where a change in place is reported and not rewritten, and how a statement is put in another's place."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import indent

import pytest

from gradfix.core.codemod import Edit, ReplaceStatement, Span
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.rewriting.rewrite import apply_fixes
from gradfix.rewriting.splice import spliced

PROGRAM = """
import torch
from torch import nn

layer = nn.Linear(4, 4)
held = []
for batch in torch.randn(3, 8, 4):
{body}
    out.mean().backward()
"""


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(verify=False))
    assert isinstance(prepared, Options)
    return prepared


def rewritten(body: str, options: Options) -> tuple[list[str], str]:
    """What is found in a program with this body of its loop, and the body as it is rewritten."""
    code = PROGRAM.format(body=indent(body, "    "))
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    result = driver.repair(parsed, options)
    found = [attempt.finding.code for attempt in result.applied] + [r.finding.code for r in result.remaining]
    head, tail = PROGRAM.split("{body}")
    after = result.after.decode()
    return found, after[len(head) : len(after) - len(tail)].replace("\n    ", "\n").strip()


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("out = layer(batch).exp()\nout += 1", "out = layer(batch).exp()\nout = out + 1"),
        ("out = layer(batch).exp()\nout **= 1 + 1", "out = layer(batch).exp()\nout = out ** (1 + 1)"),
        (
            "out = layer(batch).exp()\nout.add_(1, alpha=2)  # a",
            "out = layer(batch).exp()\nout = out.add(1, alpha=2)  # a",
        ),
        ("out = -layer(batch).exp()\nout *= out", "out = -layer(batch).exp()\nout = out * out"),
        (
            "out = layer(batch).exp()\nout[0] = 1.0",
            "out = layer(batch).exp()\nout = out.clone()\nout[0] = 1.0",
        ),
        (
            "out = layer(batch).exp()\nout[:, 1] *= 2",
            "out = layer(batch).exp()\nout = out.clone()\nout[:, 1] *= 2",
        ),
    ],
)
def test_a_new_tensor_takes_its_place(body: str, after: str, options: Options) -> None:
    # The last one overwrites what it has saved itself.
    found, now = rewritten(body, options)
    assert now == after
    assert found == ["inplace-on-saved"]


@pytest.mark.parametrize(
    "body",
    [
        "out = layer(batch).exp()\nother = out\nout += 1",
        "out = layer(batch).exp()\nheld.append(out)\nout += 1",
        "out = layer(batch).exp()\nflat = out.view(-1)\nout += 1",
        "out = layer(batch).exp()\nhead = out[0]\nout += 1",
        "whole = layer(batch).exp()\nout = whole\nout += 1",
        "whole = layer(batch).exp()\nout = whole.view(-1)\nout += 1",
        "out = layer(batch).exp()\nif batch is not None:\n    out += 1",
        "out = layer(batch).exp()\nheld.append(out)\nout[0] = 1.0",
        "out = layer(batch).exp()\nhead = out[1]\nout[0] += 1.0",
        "out = layer(batch).exp()\nout += (\n    1\n)",
        "out = layer(batch).exp()\nnn.ReLU(inplace=True)(out)",
        "out = layer(batch).exp()\nother = torch.relu_(out)",
        "out = layer(batch).exp()\nfor _ in range(2):\n    act = nn.ReLU(inplace=True)\n    out = act(out)",
    ],
)
def test_what_somebody_else_may_hold_is_changed_in_a_clone(body: str, options: Options) -> None:
    found, after = rewritten(body, options)
    assert "inplace-on-saved" in found
    before = PROGRAM.format(body=indent(body, "    "))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        exec(before, {})
    # Whoever holds it sees the change as before, and the loss is the same.
    assert after == body or computed(after) == computed(body)


def computed(body: str) -> list[float]:
    """What the program computes with this body of its loop, pass by pass, and what is held at the end."""
    code = PROGRAM.format(body=indent(body, "    "))
    results: list[float] = []
    code = code.replace("out.mean().backward()", "results.append(out.mean().item())")
    names: dict[str, object] = {"results": results}
    exec("import torch\ntorch.manual_seed(0)\n" + code, names)
    others = (names[name] for name in ("other", "flat", "head", "whole") if name in names)
    held = names["held"]
    assert isinstance(held, list)
    return results + [one.sum().item() for one in (*held, *others)]  # type: ignore[attr-defined]


NETWORK = """
import torch
import torch.nn.functional as F
from torch import nn

class Known(nn.Module):
    def forward(self, x):
        self.known = torch.sigmoid(x)
        return self.known

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
{layers}

    def forward(self, x):
{forward}

loss = Net()(torch.randn(8, 4)).sum()
loss.backward()
"""
RELU = "self.relu = nn.ReLU(inplace=True)"


def of_network(layers: str, forward: str, options: Options) -> tuple[list[str], str, str]:
    """What is found in a program that differentiates a network, and the network's parts afterwards."""
    code = NETWORK.format(layers=indent(layers, " " * 8), forward=indent(forward, " " * 8))
    parsed = source.parse("script.py", code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    result = driver.repair(parsed, options)
    found = [attempt.finding.code for attempt in result.applied] + [r.finding.code for r in result.remaining]
    after = result.after.decode().replace("\n        ", "\n")
    start, between, end = (
        "nn.Linear(4, 4), nn.Linear(4, 4)\n",
        "\n\n    def forward(self, x):\n",
        "\n\nloss = ",
    )
    now, _, rest = after[after.index(start) + len(start) :].partition(between)
    return found, now, rest[: rest.index(end)]


@pytest.mark.parametrize(
    ("layers", "forward", "after"),
    [
        (RELU, "return self.relu(torch.sigmoid(self.first(x)))", "self.relu = nn.ReLU()"),
        (
            "self.acts = nn.Sequential(nn.Tanh(), nn.Threshold(0.1, 0.0, True), nn.Linear(4, 4))",
            "return self.acts(self.first(x))",
            "self.acts = nn.Sequential(nn.Tanh(), nn.Threshold(0.1, 0.0), nn.Linear(4, 4))",
        ),
        (
            # Of three, the second overwrites what the first has saved, and the third what the second has.
            "self.acts = nn.Sequential(nn.ReLU(True), nn.ReLU(True), nn.ReLU(True))",
            "return self.acts(self.first(x))",
            "self.acts = nn.Sequential(nn.ReLU(True), nn.ReLU(), nn.ReLU())",
        ),
        (
            # The dropout saves nothing of its result: the last one is right as soon as this one is.
            "self.acts = nn.Sequential(nn.ReLU(), nn.Dropout(0.5, True), nn.CELU(inplace=True))",
            "return self.acts(self.first(x))",
            "self.acts = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.CELU(inplace=True))",
        ),
        (
            "from torch.nn.utils.weight_norm import weight_norm\n"
            "self.acts = nn.Sequential(weight_norm(self.first), nn.ReLU(), nn.Dropout(inplace=True))",
            "return self.acts(x)",
            "from torch.nn.utils.weight_norm import weight_norm\n"
            "self.acts = nn.Sequential(weight_norm(self.first), nn.ReLU(), nn.Dropout())",
        ),
        (
            "self.act = (lambda kind: kind(inplace=True))(nn.SELU)",
            "return self.act(self.last(self.first(x)).tanh())",
            "self.act = (lambda kind: kind())(nn.SELU)",
        ),
        (
            RELU,
            "x = self.relu(self.first(x))\nx = self.last(x)\nx = x.sigmoid()\nx = self.relu(x)\nreturn x",
            "self.relu = nn.ReLU()",
        ),
    ],
)
def test_a_layer_is_made_without_inplace(layers: str, forward: str, after: str, options: Options) -> None:
    assert of_network(layers, forward, options) == (["inplace-on-saved"], after, forward)


@pytest.mark.parametrize(
    ("layers", "forward"),
    [
        # Its result is thrown away, here or where nobody has come to.
        (RELU, "x = torch.tanh(self.first(x))\nself.relu(x)\nreturn x"),
        (RELU, "x = torch.tanh(self.first(x))\nx = self.relu(x)\nif x is None:\n    self.relu(x)\nreturn x"),
        # What it overwrites is read under another name.
        (RELU, "y = torch.tanh(self.first(x))\nz = self.relu(y)\nreturn z + y"),
        (RELU, "y = torch.tanh(self.first(x))\nreturn self.relu(y) + y"),
        (RELU, "y = torch.tanh(self.first(x))\nz = y\ny = self.relu(y)\nreturn z + y"),
        (RELU, "y = [torch.tanh(self.first(x))]\nreturn self.relu(y[0])"),
        (
            RELU,
            "y = self.last(x)\nz = self.relu(y)\ny = y + torch.tanh(z)\nreturn self.relu(torch.tanh(y))",
        ),
        (
            "self.acts = nn.Sequential(nn.Identity(), nn.ReLU(True))",
            "y = torch.tanh(self.first(x))\nreturn self.acts(y) + y",
        ),
        (
            "self.acts = nn.Sequential(Known(), nn.ReLU(True))",
            "return self.acts(self.first(x)) + self.acts[0].known",
        ),
        # Nobody says literally that it works in place.
        (
            "inplace = True\nself.relu = nn.ReLU(inplace=inplace)",
            "return self.relu(torch.tanh(self.first(x)))",
        ),
        ("self.relu = nn.ReLU(**dict(inplace=True))", "return self.relu(torch.tanh(self.first(x)))"),
    ],
)
def test_a_layer_that_is_there_for_what_it_overwrites_stays_in_place(
    layers: str, forward: str, options: Options
) -> None:
    found, now, after = of_network(layers, forward, options)
    assert (set(found), now) == ({"inplace-on-saved"}, layers)
    # It overwrites a clone, if anything is changed at all.
    assert after == forward or loss_of(layers, after) == loss_of(layers, forward)


def loss_of(layers: str, forward: str) -> float:
    """The loss of a network with these parts, without its backward."""
    code = NETWORK.format(layers=indent(layers, " " * 8), forward=indent(forward, " " * 8))
    names: dict[str, object] = {"__file__": "script.py"}
    exec("import torch\ntorch.manual_seed(0)\n" + code.replace("loss.backward()", ""), names)
    return names["loss"].item()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("layers", "forward"),
    [
        (RELU, "x = self.relu(self.first(x))\nx = self.last(x)\nx += 1\nreturn self.relu(x)"),
        ("self.drop = nn.Dropout(0.0, True)", "return self.drop(torch.tanh(self.first(x)))"),
        ("self.drop = nn.Dropout(0.5, True).eval()", "return self.drop(torch.tanh(self.first(x)))"),
        ("self.drop = nn.Dropout(len(__file__) / 1000, True)", "return self.drop(torch.tanh(self.first(x)))"),
        ("pass", "return F.dropout(torch.tanh(self.first(x)), training=False, inplace=True)"),
        ("pass", "return F.dropout(torch.tanh(self.first(x)), 0.0, True, True)"),
        ("pass", "return F.dropout(torch.tanh(self.first(x)), training=bool(__file__), inplace=True)"),
        ("self.relu = nn.ReLU(inplace=bool(__file__))", "return self.relu(torch.tanh(self.first(x)))"),
        (
            "self.relu = type('Own', (nn.ReLU,), {})(inplace=True)",
            "return self.relu(torch.tanh(self.first(x)))",
        ),
    ],
)
def test_what_changes_nothing_or_may_not_is_not_reported(layers: str, forward: str, options: Options) -> None:
    assert of_network(layers, forward, options) == ([], layers, forward)


SCRIPT = """
import torch
from torch import nn
{script}
loss = net(torch.randn(8, 4)).sum()
loss.backward()
"""
BLOCK = """
from torch import nn

class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.first, self.act = nn.Linear(4, 4), act

    def forward(self, x):
        return {result}

def layers(act):
    return nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), act)

def made():
    return layers(nn.ReLU(inplace=True))
"""


@pytest.mark.parametrize(
    ("script", "result", "after"),
    [
        # It is made in the other module, where no edit lies: told is what is called here.
        ("from block import made\nnet = made()", "x", "from block import made\nnet = made()"),
        (
            "from block import Block\nnet = Block(nn.ReLU(inplace=True))",
            "self.act(self.first(x).tanh())",
            None,
        ),
        # Here it has one, and there it works on what no other layer can hold.
        (
            "from block import layers\nnet = layers(nn.ReLU(inplace=True))",
            "x",
            "from block import layers\nnet = layers(nn.ReLU())",
        ),
        (
            "from block import Block\nnet = nn.Sequential(Block(nn.ReLU()), nn.SELU(True))",
            "self.act(self.first(x))",
            "from block import Block\nnet = nn.Sequential(Block(nn.ReLU()), nn.SELU())",
        ),
        (
            "from block import Block\nnet = nn.Sequential(Block(nn.ReLU()), nn.SELU(True))",
            "self.first(x)",
            None,
        ),
        ("from block import Block\nnet = nn.Sequential(Block(nn.Tanh()), nn.ReLU(True))", "unknown(x)", None),
    ],
)
def test_layers_of_which_parts_stand_in_another_module(
    script: str, result: str, after: str | None, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "block.py").write_text(BLOCK.format(result=result))
    code = SCRIPT.format(script=script)
    parsed = source.parse(str(tmp_path / "script.py"), code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    made = driver.repair(parsed, options)
    found = [one.finding.code for one in made.applied] + [one.finding.code for one in made.remaining]
    assert found == ["inplace-on-saved"] * (after is not None)
    assert made.after.decode() == SCRIPT.format(script=after or script)


@pytest.mark.parametrize(
    ("text", "code", "after"),
    [
        ("x += 1  # one\ny = 2\n", "x = x + 1", "x = x + 1  # one\ny = 2\n"),
        ("if y: x += 1; y = 2\n", "x = x + 1", "if y: x = x + 1; y = 2\n"),
        ("def f(x):\r\n\tx += 1\r\n", "x = x + 1", "def f(x):\r\n\tx = x + 1\r\n"),
        ("x += 1\n", "if x: pass", None),
        ("x += 1\n", "x = 1\ny = 2", None),
        ("x += 1\n", "x = (", None),
    ],
)
def test_a_simple_statement_is_put_in_the_place_of_another(text: str, code: str, after: str | None) -> None:
    tree = ast.parse(text)
    (statement,) = (node for node in ast.walk(tree) if isinstance(node, ast.AugAssign))
    edits: list[Edit] = [ReplaceStatement(Span.of(statement), code)]
    written = apply_fixes(text, [edits])
    if after is None:
        assert not written.applied
    else:
        assert written.text == after
        assert spliced(text, tree, edits) == after


def test_the_example_is_one_of_the_fixtures() -> None:
    case = Path(__file__).parent.parent / "fixtures" / "inplace_on_saved" / "article_000.py"
    assert "rate += 1" in case.read_text()
