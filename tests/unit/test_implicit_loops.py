"""Mistakes in classes whose training loop is a framework's, and their right twins."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent

import pytest

from gradfix.core.codemod import Finding, Severity
from gradfix.core.coverage import Status
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@pytest.fixture(scope="module")
def options() -> Options:
    asked = RequestedOptions(unsafe_fixes=True, verify=False, min_severity=Severity.INFO)
    found = driver.prepare([], asked)
    assert isinstance(found, Options)
    return found


def findings(text: str, options: Options) -> list[Finding]:
    parsed = source.parse("script.py", f"{HEAD}{text}".encode(), 1 << 20)
    assert isinstance(parsed, Source), parsed
    return list(driver.findings(parsed, options))


def lightning(step: str, *, more: str = "", base: str = "pl.LightningModule") -> str:
    """A module under automatic optimization; ``step`` uses ``self.rnn``, ``self.head``, ``x`` and ``y``."""
    return (
        dedent("""
        import pytorch_lightning as pl

        class Lit(BASE):
            def __init__(self):
                super().__init__()
                self.rnn, self.head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 1)
                self.h, self.total, self.kept = None, 0.0, []

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())

            def training_step(self, batch, batch_idx):
                x, y = batch
        """).replace("BASE", base)
        + indent(dedent(step), " " * 8)
        + indent(dedent(more), " " * 4)
    )


def trainer(step: str, *, base: str = "Trainer") -> str:
    """A ``Trainer`` of transformers; ``step`` uses ``model`` and ``inputs``."""
    return dedent("""
        from transformers import Trainer

        class Own(BASE):
            total, kept = 0.0, []

            def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """).replace("BASE", base) + indent(dedent(step), " " * 8)


PAIRS: dict[str, tuple[Callable[..., str], str, str, str]] = {
    "detached": (
        lightning,
        "loss-without-graph",
        "loss = F.mse_loss(self.head(self.rnn(x)[0]), y)\nreturn loss.detach()",
        "loss = F.mse_loss(self.head(self.rnn(x)[0]), y)\nself.log('loss', loss.detach())\nreturn loss",
    ),
    "detached in a dict": (
        lightning,
        "loss-without-graph",
        "loss = F.mse_loss(self.head(self.rnn(x)[0]), y).detach()\nreturn {'loss': loss, 'log': {}}",
        "loss = F.mse_loss(self.head(self.rnn(x)[0]), y)\nreturn {'loss': loss, 'log': loss.detach()}",
    ),
    "carried": (
        lightning,
        "carried-hidden-state",
        "out, self.h = self.rnn(x, self.h)\nreturn F.mse_loss(self.head(out), y)",
        "out, h = self.rnn(x, self.h)\nself.h = h.detach()\nreturn F.mse_loss(self.head(out), y)",
    ),
    "in place": (
        lightning,
        "inplace-on-saved",
        "out = self.rnn(x)[0].sigmoid()\na = out.pow(2).mean()\nout += 1\nreturn a + out.mean()",
        "out = self.rnn(x)[0].sigmoid()\na = out.pow(2).mean()\nout = out + 1\nreturn a + out.mean()",
    ),
    "kept": (
        lightning,
        "graph-kept-for-bookkeeping",
        "loss = F.mse_loss(self.head(self.rnn(x)[0]), y)\nself.kept.append(loss)\nreturn loss",
        "loss = F.mse_loss(self.head(self.rnn(x)[0]), y)\nself.kept.append(loss.item())\nreturn loss",
    ),
    "detached by a trainer": (
        trainer,
        "loss-without-graph",
        "loss = model(**inputs).loss\nreturn loss.detach()",
        "out = model(**inputs)\nreturn (out.loss, out) if return_outputs else out.loss",
    ),
    "kept by a trainer": (
        trainer,
        "graph-kept-for-bookkeeping",
        "loss = model(**inputs).loss\nself.kept.append(loss)\nreturn loss",
        "loss = model(**inputs).loss\nself.kept.append(loss.detach())\nreturn loss",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_mistake_is_found_in_the_loop_of_a_framework(name: str, options: Options) -> None:
    made, code, wrong, _ = PAIRS[name]
    assert [one.code for one in findings(made(wrong), options)] == [code]


@pytest.mark.parametrize("name", PAIRS)
def test_its_right_twin_is_not_reported(name: str, options: Options) -> None:
    made, _, _, right = PAIRS[name]
    assert findings(made(right), options) == []


CARRIED = "out, self.h = self.rnn(x, self.h)\nreturn F.mse_loss(self.head(out), y)"
RESET = "\ndef on_train_epoch_start(self):\n    self.h = None\n"


def test_what_begins_with_each_epoch_is_carried_from_batch_to_batch(options: Options) -> None:
    found = findings(lightning(CARRIED, more=RESET), options)
    assert [one.code for one in found] == ["carried-hidden-state"]
    assert not findings(lightning(CARRIED, more=RESET.replace("epoch", "batch")), options)


@pytest.mark.parametrize("switch", ["self.automatic_optimization = False", "optimizer = self.optimizers()"])
def test_a_class_that_optimizes_by_hand_is_no_loop_of_the_framework(switch: str, options: Options) -> None:
    step = f"{switch}\nloss = F.mse_loss(self.head(self.rnn(x)[0]), y)\nself.manual_backward(loss)"
    assert not findings(lightning(f"{step}\nreturn loss.detach()"), options)


def test_a_class_of_the_project_is_no_framework(options: Options) -> None:
    step = PAIRS["detached"][2]
    assert not findings(f"class Base(nn.Module):\n    pass\n{lightning(step, base='Base')}", options)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (lightning(PAIRS["carried"][3]), Status.FOLLOWED),
        (trainer(PAIRS["kept by a trainer"][3]), Status.FOLLOWED),
        (lightning("return self.unseen(batch)"), Status.NOT_FOLLOWED),
    ],
)
def test_it_is_told_how_far_the_step_was_followed(text: str, status: Status, options: Options) -> None:
    (step,) = driver.check_text("script.py", f"{HEAD}{text}".encode(), options).training_steps
    assert step.status is status
