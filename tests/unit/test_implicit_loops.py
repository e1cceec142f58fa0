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
def test_a_mistake_is_pastin_the_loop_of_a_framework(name: str, options: Options) -> None:
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


@pytest.mark.parametrize(
    "more",
    [
        "\ndef backward(self, loss):\n    loss.backward(retain_graph=True)\n",
        "\ndef optimizer_zero_grad(self, epoch, batch_idx, optimizer):\n    pass\n",
    ],
)
def test_a_part_of_the_loop_may_be_done_in_another_way(more: str, options: Options) -> None:
    assert not findings(lightning(CARRIED, more=more), options)


def test_the_trainer_of_another_library_may_hand_over_anything(options: Options) -> None:
    text = trainer(PAIRS["kept by a trainer"][2]).replace("model, inputs", "batch, outputs")
    assert not findings(text.replace("model(**inputs)", "outputs(batch)"), options)


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


PREPARED = """
from accelerate import Accelerator

def main(loader, net):
    accelerator = Accelerator(gradient_accumulation_steps=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(net):
            loss = F.mse_loss(net(x), y)
            BACKWARD
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        (PREPARED, "loss.backward()", "accelerator.backward(loss)"),
        (
            PREPARED.replace("accelerate import Accelerator", "lightning.fabric import Fabric")
            .replace("Accelerator(gradient_accumulation_steps=2)", "Fabric()")
            .replace("accelerator.prepare", "accelerator.setup"),
            "loss.backward(retain_graph=True)",
            "accelerator.backward(loss, retain_graph=True)",
        ),
        (
            lightning(
                "optimizer = self.optimizers()\nloss = F.mse_loss(self.head(self.rnn(x)[0]), y)\n"
                "optimizer.zero_grad()\nBACKWARD\noptimizer.step()\n",
                more="\nautomatic_optimization = False\n",
            ),
            "loss.backward()",
            "self.manual_backward(loss)",
        ),
        (
            trainer("pass\n").replace("compute_loss", "training_step").replace("pass", "").rstrip()
            + "\n        loss = self.compute_loss(model, inputs)\n        BACKWARD\n"
            + "        return loss.detach()\n",
            "loss.backward()",
            "self.accelerator.backward(loss)",
        ),
    ],
)
def test_a_backward_past_the_framework_goes_through_it(
    text: str, wrong: str, right: str, options: Options
) -> None:
    data = f"{HEAD}{text.replace('BACKWARD', wrong)}".encode()
    (found,) = (
        one
        for one in driver.check_text("script.py", data, options).findings
        if one.finding.code == "bypassed-wrapper"
    )
    assert found.fixed_text == data.decode().replace(wrong, right)
    assert "bypassed-wrapper" not in [one.code for one in findings(text.replace("BACKWARD", right), options)]


DEEPSPEED = """
import deepspeed

def main(net, loader, config):
    engine, optimizer, _, _ = deepspeed.initialize(None, net, None, net.parameters(), config=config)
    for x, y in loader:
        loss = F.mse_loss(engine(x), y)
        BACKWARD
        STEP
"""


@pytest.mark.parametrize(
    ("backward", "step", "fixed"),
    [
        ("loss.backward()", "engine.step()", "engine.backward(loss)"),
        ("engine.backward(loss)", "optimizer.step()", "engine.step()"),
    ],
)
def test_what_an_engine_trains_is_trained_by_the_engine(
    backward: str, step: str, fixed: str, options: Options
) -> None:
    def written(backward: str, step: str) -> str:
        return HEAD + DEEPSPEED.replace("BACKWARD", backward).replace("STEP", step)

    right = written("engine.backward(loss)", "engine.step()")
    found = driver.check_text("script.py", written(backward, step).encode(), options).findings
    (past,) = (one for one in found if one.finding.code == "bypassed-wrapper")
    assert past.fixed_text == right and fixed in right
    assert not driver.check_text("script.py", right.encode(), options).findings


def test_a_prepared_network_is_called_by_its_new_name(options: Options) -> None:
    right = HEAD + PREPARED.replace("net, optimizer, loader =", "model, optimizer, loader =").replace(
        "BACKWARD", "accelerator.backward(loss)"
    ).replace("accumulate(net)", "accumulate(model)").replace("net(x)", "model(x)")
    found = driver.check_text("script.py", right.replace("model(x)", "net(x)").encode(), options).findings
    assert [(one.finding.code, one.fixed_text) for one in found] == [("bypassed-wrapper", right)]
    assert not driver.check_text("script.py", right.encode(), options).findings


def test_what_an_accelerator_has_not_prepared_is_differentiated_as_ever(options: Options) -> None:
    text = PREPARED.replace("accelerator.prepare(net, optimizer, loader)", "net, optimizer, loader")
    assert not findings(text.replace("BACKWARD", "loss.backward()"), options)


CLEARED_FIRST = (
    PREPARED.replace("            optimizer.zero_grad()\n", "")
    .replace("            loss = F", "            optimizer.zero_grad()\n            loss = F")
    .replace("BACKWARD", "accelerator.backward(loss)")
)


def test_a_batch_that_does_not_step_does_not_clear_either(options: Options) -> None:
    data = f"{HEAD}{CLEARED_FIRST}".encode()
    (found,) = driver.check_text("script.py", data, options).findings
    right = f"{HEAD}{PREPARED.replace('BACKWARD', 'accelerator.backward(loss)')}"
    assert (found.finding.code, found.fixed_text) == ("misplaced-zero-grad", right)


@pytest.mark.parametrize("batches", ["", "gradient_accumulation_steps=1"])
def test_where_each_batch_steps_it_may_be_cleared_first(batches: str, options: Options) -> None:
    assert not findings(CLEARED_FIRST.replace("gradient_accumulation_steps=2", batches), options)
