"""Where gradients are to be cleared if a condition stands between a backward and its step. Nothing is run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.rewriting.rewrite import apply_fixes

HEAD = """
import math
import torch
from torch import nn
from elsewhere import due, load, tqdm

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
half, every, seen = False, 4, 0
batches = load()

for epoch in range(3):
    for i, x in {passes}:
        loss = net(x).square().mean()
        loss.backward()
"""
CLEAR = "optimizer.zero_grad()"


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def written(steps: str, passes: str = "enumerate(batches)") -> str:
    return HEAD.format(passes=passes) + indent(dedent(steps).strip(), " " * 8) + "\n"


def cleared(path: Path, code: str, options: Options) -> str | None:
    """The line before the clearing in the first fix of the one mistake; None where no fix is offered."""
    path.write_text(code)
    parsed = source.parse(str(path), code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    # That nothing updates the scaler is another mistake.
    found = driver.findings(parsed, options)
    (finding,) = (one for one in found if one.code != "missing-scaler-update")
    if not finding.fixes:
        return None
    lines = [line.strip() for line in apply_fixes(code, [finding.fixes[0].edits]).text.splitlines()]
    return lines[lines.index(CLEAR) - 1]


WAITING = {
    "by the number": "if (i + 1) % every == 0:\n    optimizer.step()",
    "by a bit": "if i & 1:\n    optimizer.step()",
    "or at the end": "if (i + 1) % every == 0 or i + 1 == len(batches):\n    optimizer.step()",
    "on one line": "if i % every == 3: optimizer.step()",
    "by a flag": "now = (i + 1) % every == 0\nif now:\n    optimizer.step()",
    "going on": "if (i + 1) % every:\n    continue\noptimizer.step()",
    "going on and printing": "if (i + 1) % every:\n    print(i)\n    continue\nprint(i)\noptimizer.step()",
    "by a counter": "seen += 1\nif seen >= every:\n    optimizer.step()\n    seen = 0",
    "by a setting": "if (i + 1) % int(load('every')) == 0:\n    optimizer.step()",
    "by the last number": "if i == len(batches) - 1:\n    optimizer.step()",
}


@pytest.mark.parametrize("steps", WAITING.values(), ids=WAITING)
def test_a_step_that_waits_clears_behind_itself(tmp_path: Path, options: Options, steps: str) -> None:
    code = written(f"{CLEAR}\n{steps}")
    assert (cleared(tmp_path / "a.py", code, options) or "").endswith("optimizer.step()")


def test_behind_both_ways_to_step(tmp_path: Path, options: Options) -> None:
    steps = f"""
        {CLEAR}
        if (i + 1) % every == 0:
            if half:
                scaler.step(optimizer)
            else:
                optimizer.step()
            print(i)
    """
    code = written(steps)
    assert cleared(tmp_path / "a.py", code, options) == "optimizer.step()"
    assert f"\n            {CLEAR}\n            print(i)" in fixed(tmp_path / "b.py", code, options)


def fixed(path: Path, code: str, options: Options) -> str:
    parsed = source.parse(str(path), code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (finding,) = driver.findings(parsed, options)
    return apply_fixes(code, [finding.fixes[0].edits]).text


PASSING = {
    "unconditional": "optimizer.step()",
    "the same in each pass": "if half:\n    scaler.step(optimizer)\nelse:\n    optimizer.step()",
    "the same in all passes": "if epoch > 0:\n    optimizer.step()",
    "skipping": "if torch.isfinite(loss):\n    optimizer.step()",
    "skipping and going on": "if math.isnan(loss.item()):\n    continue\noptimizer.step()",
    "one way or another": "if due(loss):\n    scaler.step(optimizer)\nelse:\n    optimizer.step()",
}


@pytest.mark.parametrize("steps", PASSING.values(), ids=PASSING)
def test_a_step_for_every_pass_has_them_cleared_before(tmp_path: Path, options: Options, steps: str) -> None:
    code = written(f"{CLEAR}\n{steps}")
    assert cleared(tmp_path / "a.py", code, options) == "loss = net(x).square().mean()"


UNKNOWN = {
    "asked elsewhere": "if due(i):\n    optimizer.step()",
    "by the loss": "if loss.item() < 3:\n    optimizer.step()",
    "from then on": "if i > 100:\n    optimizer.step()",
    "in two places": "if (i + 1) % every == 0:\n    optimizer.step()\nif i == 2:\n    optimizer.step()",
    "both": "if (i + 1) % every == 0 and torch.isfinite(loss):\n    optimizer.step()",
    "skipping around": "if torch.isfinite(loss):\n    if i % every == 3:\n        optimizer.step()",
    "as an expression": "i % every == 3 and optimizer.step()",
}


@pytest.mark.parametrize("steps", UNKNOWN.values(), ids=UNKNOWN)
def test_nothing_is_offered_where_the_words_do_not_tell(tmp_path: Path, options: Options, steps: str) -> None:
    code = written(f"{CLEAR}\n{steps}")
    assert cleared(tmp_path / "a.py", code, options) is None


def test_nothing_is_offered_where_a_function_decides(tmp_path: Path, options: Options) -> None:
    helper = "def turn(i):\n    if i % every == 3:\n        optimizer.step()\n"
    for clear in (f"{CLEAR}\n", ""):
        code = written(f"{clear}turn(i)").replace("batches = load()", f"batches = load()\n\n{helper}")
        assert cleared(tmp_path / "a.py", code, options) is None


def test_counted_under_a_progress_bar(tmp_path: Path, options: Options) -> None:
    code = written(f"{CLEAR}\nif i == every:\n    optimizer.step()", "tqdm(enumerate(batches))")
    assert cleared(tmp_path / "a.py", code, options) == "optimizer.step()"


@pytest.mark.parametrize("once", ["", f"{CLEAR}\n"], ids=["never", "too rarely"])
def test_what_is_cleared_too_rarely_is_cleared_behind_the_step(
    tmp_path: Path, options: Options, once: str
) -> None:
    code = written("if (i + 1) % every == 0:\n    optimizer.step()").replace("for epoch", f"{once}for epoch")
    text = fixed(tmp_path / "a.py", code, options)
    assert text.endswith(f"            optimizer.step()\n            {CLEAR}\n")
    code = written("if due(i):\n    optimizer.step()").replace("for epoch", f"{once}for epoch")
    assert cleared(tmp_path / "b.py", code, options) is None


@pytest.mark.parametrize(
    "steps",
    [
        f"if (i + 1) % every == 0:\n    optimizer.step()\n    {CLEAR}",
        f"if (i + 1) % every == 0:\n    optimizer.step()\nelse:\n    {CLEAR}",
        f"if i % every == 0:\n    {CLEAR}\nif (i + 1) % every == 0:\n    optimizer.step()",
    ],
    ids=["behind", "otherwise", "in other passes"],
)
def test_nothing_is_said_where_it_depends_on_the_numbers(
    tmp_path: Path, options: Options, steps: str
) -> None:
    parsed = source.parse(str(tmp_path / "a.py"), written(steps).encode(), 1 << 20)
    assert isinstance(parsed, Source)
    assert not driver.findings(parsed, options)


COUNTING = {
    "before the step": f"{CLEAR}\nloss.backward()\nif (i + 1) % every == 0:\n    optimizer.step()",
    "behind the branch": f"loss.backward()\nif (i + 1) % every == 0:\n    optimizer.step()\n{CLEAR}",
    "by an early end": f"{CLEAR}\nloss.backward()\nif (i + 1) % every:\n    continue\noptimizer.step()",
    "beside the right one": (
        f"{CLEAR}\nloss.backward()\nif (i + 1) % every == 0:\n    optimizer.step()\n    {CLEAR}"
    ),
}


@pytest.mark.parametrize("steps", COUNTING.values(), ids=COUNTING)
def test_what_is_cleared_in_every_pass_is_cleared_behind_the_step(
    tmp_path: Path, options: Options, steps: str
) -> None:
    code = written(steps).replace("        loss.backward()\n", "", 1)
    text = fixed(tmp_path / "b.py", code, options)
    lines = [line.strip() for line in text.splitlines()]
    assert lines.count(CLEAR) == 1
    assert lines[lines.index("optimizer.step()") + 1] == CLEAR


@pytest.mark.parametrize(
    "steps",
    [
        f"{CLEAR}\nloss.backward()\nnorm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
        "if (i + 1) % every == 0:\n    optimizer.step()",
        f"{CLEAR}\nloss.backward()\nif (i + 1) % every == 0:\n    optimizer.step()\nelse:\n    other.step()",
        f"{CLEAR}\naccelerator.backward(loss)\nif (i + 1) % every == 0:\n    optimizer.step()",
        f"if i % 2 == 0:\n    {CLEAR}\nloss.backward()\nif (i + 1) % every == 0:\n    optimizer.step()",
        f"{CLEAR}\nloss.backward()\nif i > 100:\n    optimizer.step()",
    ],
    ids=["measured", "in turns", "by a framework", "in some passes", "from then on"],
)
def test_passes_may_be_cleared_on_purpose(tmp_path: Path, options: Options, steps: str) -> None:
    code = written(steps).replace("        loss.backward()\n", "", 1)
    code = code.replace("for epoch", "other = torch.optim.SGD(net.parameters(), lr=0.1)\nfor epoch")
    parsed = source.parse(str(tmp_path / "a.py"), code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    assert "misplaced-zero-grad" not in {finding.code for finding in driver.findings(parsed, options)}
