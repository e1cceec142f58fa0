"""Which ways through a program the model takes, and which of them say something. Nothing is run."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent, indent

import pytest

from gradfix.autograd.graph import Backward
from gradfix.autograd.program import analyze
from gradfix.core.codemod import Effect, ReplaceExpression
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

UNCLEARED = "missing-zero-grad"


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def findings(path: Path, code: str, options: Options) -> list[str]:
    """The mistakes in a program that stands at ``path``, each with the line that is reported."""
    path.write_text(code)
    parsed = source.parse(str(path), code.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    lines = code.splitlines()
    return [f"{f.code}: {lines[f.span.line - 1].strip()}" for f in driver.findings(parsed, options)]


HEAD = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""

STEP = """
loss = net({batch}).square().mean()
{clear}
loss.backward()
optimizer.step()
"""


def program(code: str, batch: str = "batch", cleared: bool = False) -> str:
    """``code`` below a network and its optimizer; ``STEP`` is a step, ``CLEAR`` clears if anything does."""
    clear = "optimizer.zero_grad()" if cleared else "pass"
    step = STEP.format(batch=batch, clear=clear)
    lines = [
        indent(step, line[: -len("STEP")]) if line.strip() == "STEP" else line
        for line in dedent(code).splitlines()
    ]
    return HEAD + "\n".join(lines).replace("CLEAR", clear) + "\n"


TRAINED = {
    "what is trained where nothing was loaded, as was asked before": """
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--weights", required=False, default="")
        args = parser.parse_args()
        if args.weights != "":
            net.load_state_dict(torch.load(args.weights))
        if args.weights == "":
            for batch in torch.randn(5, 4, 3):
                STEP
        else:
            print("loaded")
    """,
    "a network that is loaded or made": """
        import sys

        if len(sys.argv) > 1:
            net = torch.load(sys.argv[1]).cpu()
            net = net.train()
        else:
            net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net[0].parameters(), lr=0.1)
        for batch in torch.randn(5, 4, 3):
            STEP
    """,
    "a network that may be replaced by a loaded one": """
        import os

        if os.path.exists("last.pt"):
            net = torch.load("last.pt")
            print("goes on")
        optimizer = torch.optim.SGD([*net[0].parameters(), *net[2].parameters()], lr=0.1)
        for batch in torch.randn(5, 4, 3):
            STEP
    """,
    "a network that an object holds and may replace": """
        import sys

        class Trainer:
            def __init__(self, net):
                self.net = net
                if int(sys.argv[1]) > 0:
                    self.net = torch.load("last.pt").to("cpu")

        trainer = Trainer(net)
        optimizer = torch.optim.SGD(trainer.net.parameters(), lr=0.1)
        for batch in torch.randn(5, 4, 3):
            STEP
    """,
    "a memory that has to be full enough": """
        memory = []
        for number in range(1000):
            memory.append(torch.randn(3))
            if len(memory) > 32:
                batch = torch.stack(memory[-32:])
                STEP
    """,
    "a memory that is not yet full enough": """
        memory = []
        for number in range(1000):
            memory.append(torch.randn(3))
            if len(memory) < 32:
                continue
            batch = torch.stack(memory[-32:])
            STEP
    """,
    "batches that a function collects": """
        def batches(data, size):
            found, batch = [], []
            for item in data:
                batch.append(item)
                if len(batch) == size:
                    found.append(torch.stack(batch))
                    batch = []
            return found

        for epoch in range(20):
            for number, batch in enumerate(batches(torch.randn(100, 3), 20)):
                STEP
    """,
    "a setting that is checked before others are told apart": """
        import sys

        def layers(count):
            if count < 1:
                raise ValueError("no layers")
            elif count == 1:
                return 1
            else:
                return count

        layers(int(sys.argv[1]))
        for batch in torch.randn(5, 4, 3):
            STEP
    """,
    "a function that raises where somebody waits for it": """
        def fresh(batches):
            raise StopIteration

        for epoch in range(3):
            try:
                batch = fresh(None)
            except StopIteration:
                batch = torch.randn(4, 3)
            STEP
    """,
    "what is looked for and raised if it is not there": """
        import re
        import sys

        PATTERNS = [(re.compile("^(\\d+)$"), int), (re.compile("^gpu(\\d+)$"), str)]

        def parse(text):
            found = []
            for part in text.split(","):
                for pattern, make in PATTERNS:
                    match = pattern.match(part)
                    if match:
                        found.append(make(match.group(1)))
                        break
                else:
                    raise ValueError(part)
            return found

        parse(sys.argv[1])
        for batch in torch.randn(5, 4, 3):
            STEP
    """,
    "texts that are compared by identity": """
        def prepare(kind):
            if kind is "speech":
                return 1
            elif kind is "text":
                return 2
            else:
                raise NotImplementedError

        prepare("text")
        for batch in torch.randn(5, 4, 3):
            STEP
    """,
    "replicas": """
        from torch.nn.parallel import gather, parallel_apply, replicate, scatter

        for batch in torch.randn(5, 4, 3):
            if torch.cuda.device_count() > 1:
                ids = list(range(torch.cuda.device_count()))
                value = gather(parallel_apply(replicate(net, ids), scatter((batch,), ids)), ids[0])
            else:
                value = net(batch)
            loss = value.square().mean()
            CLEAR
            loss.backward()
            optimizer.step()
    """,
    "training that a setting of the script keeps from being run": """
        def train(batches, warm_up=0):
            for epoch in range(10):
                for batch in batches:
                    if epoch < warm_up:
                        STEP

        train(torch.randn(5, 4, 3))
    """,
    "a way that cannot be gone": """
        import sys

        kind = sys.argv[1]
        for number, batch in enumerate(torch.randn(5, 4, 3)):
            STEP
            if kind == "a":
                shown = loss.item()
            if kind != "a":
                shown = 0.0
            if kind == "a":
                more = loss.item()
            else:
                raise SystemError("no such kind")
            print(number, shown, more)
    """,
}


@pytest.mark.parametrize("code", TRAINED.values(), ids=TRAINED)
def test_training_is_come_to(code: str, options: Options, tmp_path: Path) -> None:
    assert findings(tmp_path / "script.py", program(code), options) == [f"{UNCLEARED}: optimizer.step()"]
    assert findings(tmp_path / "script.py", program(code, cleared=True), options) == []


GROUPS = """
{groups}
optimizer = torch.optim.AdamW([{{"params": some, "weight_decay": 0.1}}, {{"params": others}}], lr=0.1)
for batch in torch.randn(9, 4, 3):
    STEP
"""

BY_NAME = """
skip = ["bias", "norm.weight"]
some = [p for n, p in net.named_parameters() if not any(part in n for part in skip)]
others = [p for n, p in net.named_parameters() if any(part in n for part in {skip})]
"""

BY_SIZE = """
held = {{name: p for name, p in net.named_parameters()}}
held = {{name: p for name, p in held.items() if p.requires_grad}}
some = [p for name, p in held.items() if p.dim() >= 2]
others = [p for name, p in held.items() if p.dim() {how} 2]
"""


@pytest.mark.parametrize(
    ("groups", "whole"),
    [
        (BY_NAME.format(skip="skip"), True),
        (BY_NAME.format(skip="['weight']"), False),
        (BY_SIZE.format(how="<"), True),
        (BY_SIZE.format(how=">"), False),
    ],
)
def test_two_groups_that_a_condition_divides_are_the_whole(
    groups: str, whole: bool, options: Options, tmp_path: Path
) -> None:
    code = GROUPS.format(groups=groups)
    expected = [f"{UNCLEARED}: optimizer.step()"] if whole else []
    assert findings(tmp_path / "script.py", program(code), options) == expected
    assert findings(tmp_path / "script.py", program(code, cleared=True), options) == []


def test_what_a_list_holds_in_the_first_passes_is_known(options: Options, tmp_path: Path) -> None:
    code = program(
        """
        losses = []
        for batch in torch.randn(9, 4, 3):
            losses.append(net(batch).mean())
            if len(losses) == 2:
                optimizer.zero_grad()
                sum(losses).backward()
                optimizer.step()
                losses = []
        """
    )
    assert findings(tmp_path / "script.py", code, options) == []


def test_each_loss_of_a_growing_list_is_differentiated_once(options: Options, tmp_path: Path) -> None:
    code = program(
        """
        losses = []
        for batch in torch.randn(9, 4, 3):
            losses.append(net(batch).mean())
        optimizer.zero_grad()
        for loss in losses:
            loss.backward()
        optimizer.step()
        """
    )
    assert findings(tmp_path / "script.py", code, options) == []


def test_a_network_within_a_network_of_its_class_is_no_recursion(options: Options, tmp_path: Path) -> None:
    code = program(
        """
        class Within(nn.Module):
            def __init__(self, size, inner=None):
                super().__init__()
                down, up = nn.Linear(size, size + 1), nn.Linear(size + 1, size)
                parts = [down, up] if inner is None else [down, inner, up]
                self.model = nn.Sequential(*parts)

            def forward(self, x):
                return x + self.model(x)

        block = None
        for size in (6, 5, 4, 3):
            block = Within(size, block)
        net = block
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for batch in torch.randn(9, 4, 3):
            STEP
        """
    )
    assert findings(tmp_path / "script.py", code, options) == [f"{UNCLEARED}: optimizer.step()"]


def test_a_long_sampler_that_leaves_no_graph_costs_little(options: Options, tmp_path: Path) -> None:
    code = program(
        """
        class Sampler(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(64)])

            def forward(self, x, passes=1):
                for number in range(passes):
                    for layer in self.layers:
                        x = layer(x)
                        x = x + 1
                        x = x * 2
                        x = x - 3
                        x = x / 4
                        x = x.tanh()
                        x = x * x
                        x = x + 5
                        x = x - 6
                        x = x * 7
                        x = x + 8
                        x = x - 9
                        x = x * 10
                return x

        net = Sampler()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with torch.no_grad():
            sample = net(torch.randn(1, 3), 60)
        for batch in torch.randn(9, 4, 3):
            STEP
        """
    )
    assert findings(tmp_path / "script.py", code, options) == [f"{UNCLEARED}: optimizer.step()"]


def test_a_logger_that_hands_on_what_it_is_asked_for(options: Options, tmp_path: Path) -> None:
    code = """
        import importlib

        import torch
        from elsewhere import build, read

        class Writer:
            def __init__(self, kind):
                self.writer = importlib.import_module(kind).SummaryWriter()

            def __getattr__(self, name):
                write = getattr(self.writer, name, None)
                return lambda tag, data: write(tag, data, 0)

        writer = Writer("tensorboard")
        net = getattr(build, "Network")()
        optimizer = getattr(torch.optim, build.which)(net.parameters())
        for batch in read():
            loss = net(batch).mean()
            loss.backward()
            optimizer.step()
            writer.add_image("what it looks like", net(batch))
    """
    assert findings(tmp_path / "script.py", dedent(code), options) == [f"{UNCLEARED}: optimizer.step()"]


def test_a_call_that_python_refuses_says_nothing_about_graphs() -> None:
    # Settings choose both the network and the loss: with this one the call has an argument too many.
    code = program(
        """
        def distance(weak):
            return weak.square().mean()

        for batch in torch.randn(5, 4, 3):
            with torch.no_grad():
                weak = net(batch)
            loss = distance(weak, net(batch))
            loss.backward()
        """
    )
    runs = [
        run
        for entry in analyze(ast.parse(code), code, Path("script.py")).entry_points
        for run in entry.all_runs()
    ]
    backwards = [event for run in runs for event in run.events if isinstance(event, Backward)]
    assert backwards
    assert all(event.failure is None for event in backwards)


# ---------------------------------------------------------------------- modules of the project

SCRIPT = """
import torch
from torch import nn
{imports}

def main(net, optimizer):
    for batch in torch.randn(9, 4, 3):
        net(batch).mean().backward()
        {between}
        optimizer.step()

if __name__ == "__main__":
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {start}
"""


def project(folder: Path, files: dict[str, str], options: Options) -> list[str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text))
    return findings(folder / "script.py", (folder / "script.py").read_text(), options)


def test_an_imported_module_imports_whole_modules_itself(options: Options, tmp_path: Path) -> None:
    files = {
        "helpers.py": """
            import clipping as how

            def clip(optimizer):
                how.clip(optimizer)
        """,
        "clipping.py": """
            from torch.nn.utils import clip_grad_norm_

            def clip(optimizer):
                for group in optimizer.param_groups:
                    clip_grad_norm_(group["params"], 1.0)
        """,
        "script.py": SCRIPT.format(
            imports="import helpers", between="helpers.clip(optimizer)", start="main(net, optimizer)"
        ),
    }
    assert project(tmp_path, files, options) == [f"{UNCLEARED}: optimizer.step()"]


def test_a_package_that_has_a_module_of_its_own_name(options: Options, tmp_path: Path) -> None:
    files = {
        "several/__init__.py": "from .several import GROUP\nfrom .launch import launch\n",
        "several/several.py": "GROUP = None\n",
        "several/launch.py": """
            import several as own

            def launch(function, *arguments):
                if own.GROUP is not None:
                    raise ValueError("there is a group")
                function(*arguments)
        """,
        "script.py": "import sys\n"
        + SCRIPT.format(imports="import several", between="", start="several.launch(main, net, optimizer)"),
    }
    assert project(tmp_path, files, options) == [f"{UNCLEARED}: optimizer.step()"]


def test_what_one_run_does_to_a_module_is_undone_for_the_next(options: Options, tmp_path: Path) -> None:
    files = {
        "settings.py": """
            class Settings:
                def __init__(self):
                    self.done = False

                def configure(self):
                    if self.done:
                        raise RuntimeError("twice")
                    self.done = True

            settings = Settings()
        """,
        "script.py": "import sys\n"
        + SCRIPT.format(
            imports="from settings import settings",
            between="",
            start="settings.configure()\n    print(sys.argv) if len(sys.argv) > 1 else main(net, optimizer)",
        ),
    }
    assert project(tmp_path, files, options) == [f"{UNCLEARED}: optimizer.step()"]


OWN_WORDS = """
import torch
from torch import nn

policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for batch in torch.randn(3, 6, 4):
    before = policy(batch).log_softmax(1)
    for repeat in range(2):
        loss = -(policy({now}).log_softmax(1) - before).exp().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("now", "fix"),
    [
        # Computed anew, it would be what it is compared with.
        ("batch", "detach `before`, which it is compared with"),
        # A constant, or to be computed anew: the author has to say which.
        ("batch.flip(0)", ""),
        ("batch + 0.1 * torch.randn(6, 4)", ""),
    ],
)
def test_what_a_network_said_before_is_cut_off_from_what_it_says_now_of_the_same(
    now: str, fix: str, options: Options, tmp_path: Path
) -> None:
    parsed = source.parse(str(tmp_path / "script.py"), OWN_WORDS.format(now=now).encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (finding,) = driver.findings(parsed, options)
    assert (finding.code, "".join(f.message for f in finding.fixes)) == ("stale-forward", fix)


def test_what_is_added_to_the_path_of_imports_is_found(options: Options, tmp_path: Path) -> None:
    for folder, text in (("networks", "class Net(nn.Module):\n"), ("tools", "")):
        (tmp_path / folder).mkdir()
        body = "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n"
        body += "    def forward(self, x):\n        return self.a(x)\n"
        (tmp_path / folder / f"{folder}_of_ours.py").write_text(
            f"from torch import nn\n{text}{body if text else ''}\ndef clear(o):\n    o.zero_grad()\n"
        )
    (tmp_path / "scripts").mkdir()
    script = """
    import os
    import sys

    sys.path.append("../networks")
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools"))
    sys.path.append("/elsewhere")
    import _init_paths
    import torch
    from losses_of_ours import shown
    from networks_of_ours import Net
    from tools_of_ours import clear

    net = torch.nn.DataParallel(Net())
    optimizer = torch.optim.SGD(net.module.parameters(), lr=0.1)
    for batch in torch.randn(5, 4, 3):
        {clear}
        net(batch).mean().backward()
        optimizer.step()
        shown(net)
    """
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "losses_of_ours.py").write_text("def shown(net):\n    print(net)\n")
    (tmp_path / "scripts" / "_init_paths.py").write_text(
        "import os.path as osp\nimport sys\n\ndef add_path(path):\n    sys.path.insert(0, path)\n\n"
        "add_path(osp.join(osp.dirname(__file__), '..', 'lib'))\n"
    )
    path = tmp_path / "scripts" / "train.py"
    code = dedent(script)
    assert findings(path, code.format(clear="clear(optimizer)"), options) == []
    assert findings(path, code.format(clear="pass"), options) == [f"{UNCLEARED}: optimizer.step()"]


WRONG_OPTIMIZER = """
import torch
from torch import nn

painter, judge = nn.Linear(4, 3), nn.Linear(3, 1)
of_painter = torch.optim.SGD(painter.parameters(), lr=0.1)
of_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
for noise, real in zip(torch.randn(3, 8, 4), torch.randn(3, 8, 3)):
    of_judge.zero_grad()
    picture = painter(noise)
    loss = judge(picture.detach()).mean() - judge(real).mean()
    loss.backward()
    of_judge.step()
    of_painter.zero_grad()
    verdict = -judge(
        # What the judge sees
        picture
    ).mean()
    verdict.backward()
    of_judge.step()
"""


def test_a_step_that_is_meant_for_another_optimizer_is_not_given_a_clearing(
    options: Options, tmp_path: Path
) -> None:
    # Detaching the picture, for nobody steps on the painter, would be as wrong.
    given = len(WRONG_OPTIMIZER.splitlines())
    parsed = source.parse(str(tmp_path / "script.py"), WRONG_OPTIMIZER.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (finding,) = driver.findings(parsed, options)
    assert finding.code == "wrong-optimizer"
    (fix,) = finding.fixes
    (edit,) = fix.edits
    assert isinstance(edit, ReplaceExpression)
    assert (edit.span.line, edit.code) == (given, "of_painter")


ON_LINES = """
import torch
from torch import nn

nets = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))])
optimizer = torch.optim.SGD(nets.parameters(), lr=0.1)
for batch in torch.randn(3, 8, 4):
    before = nets[0](batch.view(
        -1, {width}
    ))
    loss = nets[0](batch).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    (before ** 2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        ("4", "`nets[0](batch.view( -1, 4 ))`"),
        ("int(torch.tensor([4]).sum().item()) * 2 // 2 + 0 * 1", "`nets[0](…)`"),
    ],
)
def test_code_is_named_on_one_line(options: Options, tmp_path: Path, width: str, shown: str) -> None:
    parsed = source.parse(str(tmp_path / "script.py"), ON_LINES.format(width=width).encode(), 1 << 20)
    assert isinstance(parsed, Source)
    messages = [f.message for f in driver.findings(parsed, options) if f.code == "stale-forward"]
    assert len(messages) == 1
    assert shown in messages[0]


SWITCHED = (
    HEAD
    + """
import os
if os.path.exists(input()):
    net.load_state_dict(torch.load("net.pt"))
    warm_up = False
else:
    warm_up = True

if warm_up:
    for batch in torch.randn(5, 8, 3):
        {cleared}
        net(batch).mean().backward()
        optimizer.step()
for batch in torch.randn(5, 8, 3):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
"""
)


def test_what_a_condition_switches_on_is_looked_at(options: Options, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    assert findings(script, SWITCHED.format(cleared="optimizer.zero_grad()"), options) == []
    rarely = "misplaced-zero-grad: optimizer.step()"
    assert findings(script, SWITCHED.format(cleared="pass"), options) == [rarely]


KINDS = """
import sys
import torch
from torch import nn

class Trainer:
    def __init__(self, kind):
        self.kind = kind
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        print("least squares" if self.kind == "square" else "another")
        if self.kind == "square":
            print("a parabola")

    def fit(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            if self.kind == "square":
                self.net(batch).square().mean().backward()
            elif self.kind == "absolute":
                self.net(batch).abs().mean().backward()
            elif self.kind == "both":
                self.net(batch).exp().mean().backward({flag})
            else:
                raise ValueError(self.kind)
            self.optimizer.step()

Trainer(sys.argv[1]).fit(torch.randn(5, 8, 3))
"""


def test_the_third_kind_is_run_although_the_first_was_met_at_the_outset(
    options: Options, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    assert findings(script, KINDS.format(flag=""), options) == []
    flagged = findings(script, KINDS.format(flag="retain_graph=True"), options)
    assert [f.split(":")[0] for f in flagged] == ["needless-retain-graph"]


TWO_CRITICS = """
import torch
from torch import nn

def network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

actor, first, second = nn.Linear(3, 3), network(), network()
actor_optimizer = torch.optim.Adam(actor.parameters())
first_optimizer = torch.optim.Adam(first.parameters())
second_optimizer = torch.optim.Adam(second.parameters())
for state in torch.randn(5, 8, 3):
    action = actor(state)
    loss = -torch.min(first(action), second(action)).mean()
    for critic, optimizer in ((first, first_optimizer), (second, second_optimizer)):
        optimizer.zero_grad()
        critic(state).square().mean().backward()
        optimizer.step()
    actor_optimizer.zero_grad()
    loss.backward()
    actor_optimizer.step()
"""
PASS = """
    {0}_optimizer.zero_grad()
    {0}(state).square().mean().backward()
    {0}_optimizer.step()
"""
LOOP = TWO_CRITICS[TWO_CRITICS.index("    for critic") : TWO_CRITICS.index("    actor_optimizer.zero")]
UNROLLED = TWO_CRITICS.replace(LOOP, PASS.format("first") + PASS.format("second"))


def test_every_step_that_makes_a_loss_stale_is_named(options: Options, tmp_path: Path) -> None:
    parsed = source.parse(str(tmp_path / "script.py"), UNROLLED.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    (finding,) = driver.findings(parsed, options)
    lines = UNROLLED.splitlines()
    named = {lines[note.span.line - 1].strip() for note in finding.notes}
    assert {"first_optimizer.step()", "second_optimizer.step()"} <= named
    assert "actor_optimizer.step()" not in named


OPTIONS = """
import argparse

class Options:
    def parse(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--test", action="store_true")
        parser.add_argument("--demo", default="false")
        self.given = parser.parse_args()
        for name in vars(self.given):
            if vars(self.given)[name] == "false":
                vars(self.given)[name] = False
        if self.given.test or self.given.demo:
            self.given.workers = 0
        if self.given.test:
            print("testing")
        if self.given.demo:
            print("a demonstration")
        return self.given
"""

LEAVES = """
import sys
import torch
from torch import nn
from settings import Options

def main():
    given = Options().parse()
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if {question}:
        print(net)
        {leaves}
    for batch in torch.randn(5, 8, 3):
        net(batch).square().mean().backward()
        optimizer.step()
    if given.test:
        print("tested")

main()
"""


@pytest.mark.parametrize("leaves", ["return", "exit()", "sys.exit(0)"])
@pytest.mark.parametrize("question", ["given.test", "given.demo"])
def test_what_options_were_taken_to_be_is_no_reason_to_leave_out_the_training(
    question: str, leaves: str, options: Options, tmp_path: Path
) -> None:
    (tmp_path / "settings.py").write_text(OPTIONS)
    code = LEAVES.format(question=question, leaves=leaves)
    assert findings(tmp_path / "script.py", code, options) == [f"{UNCLEARED}: optimizer.step()"]


EPISODES = """
import torch
from torch import nn

class Agent:
    def __init__(self, world):
        self.world = world
        self.policy = nn.Linear(3, 2)
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.said, self.done = [], False

    def begin(self):
        self.state, self.said, self.done = self.world.reset(), [], False

    def episode(self):
        while not self.done:
            self.said.append(self.policy(self.state).log_softmax(0)[0])
            self.state, self.reward, self.done, _ = self.world.step(self.said)
            {asked}
                loss = torch.stack(self.said).sum() * self.reward
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def finished(self):
        return self.done
"""


@pytest.mark.parametrize(
    ("asked", "raises"),
    [
        ("if self.done:", False),
        ("if self.finished():", False),
        ("if self.reward > 0:", True),
        ("if True:", True),
    ],
)
def test_an_episode_that_is_learnt_from_is_over(
    asked: str, raises: bool, options: Options, tmp_path: Path
) -> None:
    codes = [f.split(":")[0] for f in findings(tmp_path / "script.py", EPISODES.format(asked=asked), options)]
    assert codes == ["carried-hidden-state"] * raises


UNDETACHED = """
import torch
from torch import nn

painter = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
paints = torch.optim.Adam(painter.parameters())
judges = torch.optim.Adam(judge.parameters())
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(5, 1), torch.zeros(5, 1)

for real in torch.randn(4, 5, 2):
    verdict = bce(judge(real), ones) + bce(judge(painter(torch.randn(5, 3))), zeros)
    verdict.backward()
    judges.step()
    flattery = bce(judge(painter(torch.randn(5, 3))), ones)
    {clear}
    flattery.backward()
    paints.step()
    {last}
"""


def test_a_loss_that_spills_over_may_find_what_another_left(tmp_path: Path, options: Options) -> None:
    """What the first loss leaves in the other network is cleared unused: each loss is for one network."""
    path = tmp_path / "script.py"
    mistaken = findings(
        path, UNDETACHED.format(clear="judge.zero_grad(); painter.zero_grad()", last=""), options
    )
    assert [one.split(":")[0] for one in mistaken] == ["undetached-fake", "misplaced-zero-grad"]
    cleared = "judge.zero_grad(); painter.zero_grad()"
    right = findings(path, UNDETACHED.format(clear="painter.zero_grad()", last=cleared), options)
    assert [one.split(":")[0] for one in right] == ["undetached-fake"]
    # Where nothing is cleared between the two, both networks may be trained on both losses.
    both = findings(path, UNDETACHED.format(clear="pass", last=cleared), options)
    assert "misplaced-zero-grad" not in [one.split(":")[0] for one in both]


ANOTHER_LOOP = """
import torch
from torch import nn

policy = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for episode in range(3):
    logs = []
    for t in range(5):
        logs.append(policy(torch.randn(1, 3)).log_softmax(1)[0, 0])
    for log in {items}:
        optimizer.zero_grad()
        loss = -log
        loss.backward({keyword})
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("items", "keyword", "error"),
    [
        ("(logs[0], logs[0])", "", "a second time"),
        ("(logs[0], logs[0])", "retain_graph=True", "inplace"),
        ("logs", "", "inplace"),
        ("(sum(logs), sum(logs))", "", "a second time"),
    ],
)
def test_what_was_computed_in_the_loop_before(
    items: str, keyword: str, error: str, options: Options, tmp_path: Path
) -> None:
    """REINFORCE that updates after each step of an episode: its predictions are from before the first."""
    text = ANOTHER_LOOP.format(items=items, keyword=keyword)
    parsed = source.parse("script.py", text.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    found = [(f.code, f.span.line) for f in driver.findings(parsed, options)]
    line = next(n for n, row in enumerate(text.split("\n"), 1) if ".backward(" in row)
    assert found == [("stale-forward", line)]
    with pytest.raises(RuntimeError, match=error):
        exec(compile(text, "script.py", "exec"), {})


BETWEEN_EPISODES = """
import torch
from torch import nn

torch.manual_seed(0)


class Memory:
    def __init__(self):
        self.held = []
        self.count = 0

    def add(self, state):
        self.held.append(state)
        self.count += 1


def play(position):
    return position + torch.randn(3), bool(torch.rand(()) < 0.05)


model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
memory = Memory()
steps = 0
while steps < 400:
    state = torch.zeros(3)
    done = False
    while not done:
        memory.add(state)
        state, done = play(state)
        steps += 1
    if memory.count >= 50:
        loss = ((model(torch.stack(memory.held[-8:])) - 1) ** 2).mean()
        optimizer.zero_grad()
        optimizer.step()
        loss.backward()
"""
REGISTRY = """
import torch
from torch import nn
from torch.distributions import Normal, kl

torch.manual_seed(0)


def divergence(one, other):
    if (type(one), type(other)) in kl._KL_REGISTRY:
        return kl.kl_divergence(one, other)
    raise NotImplementedError(type(one))


encoder = nn.Linear(4, 6)
decoder = nn.Linear(3, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
prior = Normal(torch.zeros(3), torch.ones(3))
for _ in range(4):
    real = torch.rand(8, 4)
    mean, scale = encoder(real).chunk(2, 1)
    code = Normal(mean, scale.exp())
    loss = ((decoder(code.rsample()) - real) ** 2).sum() + divergence(code, prior).sum()
    optimizer.zero_grad()
    optimizer.step()
    loss.backward()
"""


@pytest.mark.parametrize("text", [BETWEEN_EPISODES, REGISTRY])
def test_what_a_condition_leads_to_that_nobody_knows(text: str, options: Options) -> None:
    """How often `while not done` repeats is unknown, and an answer that only raises is not gone by."""
    parsed = source.parse("script.py", text.encode(), 1 << 20)
    assert isinstance(parsed, Source)
    found = [(f.code, f.span.line) for f in driver.findings(parsed, options)]
    line = next(n for n, row in enumerate(text.split("\n"), 1) if "optimizer.step()" in row)
    assert found == [("step-before-backward", line)]


ALTERNATIVES = """
import torch
from torch import nn


class Trainer:
    def __init__(self, judge, optimizer, kind):
        self.judge = judge
        self.optimizer = optimizer
        self.kind = kind

    def update(self, real):
        self.optimizer.zero_grad()
        loss = self.judge(real).mean()
        if self.kind == "a" or self.kind == "ab":
            loss.backward(retain_graph=True)
            loss.square().backward()
        else:
            loss.backward()
        if self.kind == "b" or self.kind == "ab":
            self.judge(real).square().mean().backward()
        else:
            self.judge(-real).mean().backward()
        if self.kind == "c":
            penalty = self.judge(real).square().mean()
            penalty.backward()
        elif self.kind == "d":
            penalty = self.judge(real).abs().mean()
            penalty.backward(retain_graph=True)
        self.optimizer.step()


judge = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
trainer = Trainer(judge, torch.optim.SGD(judge.parameters(), lr=0.1), input())
for _ in range(5):
    trainer.update(torch.randn(4, 3))
"""


def test_an_alternative_that_earlier_answers_rule_out(tmp_path: Path, options: Options) -> None:
    """To come to `kind == "d"` takes another answer to three conditions that ask about something else."""
    assert findings(tmp_path / "script.py", ALTERNATIVES, options) == [
        "needless-retain-graph: penalty.backward(retain_graph=True)"
    ]


EPOCHS = """
import torch
from torch import nn

maker, judge = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
makers = torch.optim.SGD(maker.parameters(), lr=0.1)
judges = torch.optim.SGD(judge.parameters(), lr=0.1)
for epoch in range(3):
    judge.zero_grad()
    for real in torch.randn(5, 4, 3):
        loss = judge(real).mean() - judge(maker(torch.randn(4, 3)).detach()).mean()
        loss.backward()
        judges.step()
        judge.zero_grad()
        maker.zero_grad()
        wanted = judge(maker(torch.randn(4, 3))).mean()
        wanted.backward()
        makers.step()
"""


def test_a_clearing_before_the_inner_loop_cleans_its_first_pass_alone(
    tmp_path: Path, options: Options
) -> None:
    assert [f.split(":")[0] for f in findings(tmp_path / "script.py", EPOCHS, options)] == [
        "misplaced-zero-grad"
    ]
    inside = EPOCHS.replace("        loss.backward()", "        judge.zero_grad()\n        loss.backward()")
    assert findings(tmp_path / "script.py", inside, options) == []


COUNTED = """
import torch
from torch import nn
from settings import steps

maker, judge = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
makers = torch.optim.SGD(maker.parameters(), lr=0.1)
for batch in range(3):
    {before}
    made = maker(torch.randn(4, 2)).tanh()
    for number in range(steps):
        makers.zero_grad()
        judge(made).mean().backward()
        makers.step()
        if {several}:
            made = maker(torch.randn(4, 2)).tanh()
"""


@pytest.mark.parametrize(
    ("before", "several", "raises"),
    [
        ("pass", "steps > 1", False),
        ("pass", "steps >= 2", False),
        ("pass", "steps != 1", False),
        ("pass", "not steps <= 1", False),
        ("pass", "not steps < 2", False),
        ("if steps > 1: print('several')", "steps > 1", False),
        ("if steps == 1: print('once')", "not steps == 1", False),
        ("pass", "steps > 5", True),
        ("pass", "batch > 1", True),
    ],
)
def test_a_loop_makes_as_many_passes_as_is_asked_about(before: str, several: str, raises: bool) -> None:
    """Of a second pass that goes through what the first has freed there has to be a second one."""
    code = COUNTED.format(before=before, several=several)
    program = analyze(ast.parse(code), code, Path("script.py"))
    runs = [run for entry in program.entry_points for run in entry.all_runs()]
    assert raises == any(
        isinstance(e, Backward) and e.failure is not None for run in runs for e in run.events
    )


REFUSED = """
import argparse
import torch
from torch import nn

class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    @classmethod
    def made(cls, width):
        net = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))
        return cls(net, torch.optim.SGD(net.parameters(), lr=0.1))

    def train(self, batches):
        for batch in batches:
            self.epoch(batch)

class First(Trainer):
    def epoch(self, batch):
        self.optimizer.zero_grad()
        self.net(batch).mean().backward()
        self.optimizer.step()

class Last(Trainer):
    def epoch(self, batch):
        {clear}
        self.net(batch).mean().backward()
        self.optimizer.step()

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="first", choices=["first", "other", "last"])
    kind = parser.parse_args().kind
    if kind == "first":
        trainer = First.made(4)
    elif kind == "other":
        from elsewhere import trainer
    elif kind == "last":
        trainer = Last.made(4)
    else:
        raise ValueError(kind)
    trainer.train(torch.randn(5, 4, 3))

main()
"""


def test_the_last_kind_before_all_others_are_refused(tmp_path: Path, options: Options) -> None:
    uncleared = findings(tmp_path / "script.py", REFUSED.format(clear="pass"), options)
    assert uncleared == [f"{UNCLEARED}: self.optimizer.step()"]
    assert findings(tmp_path / "script.py", REFUSED.format(clear="self.optimizer.zero_grad()"), options) == []


OPTIONAL_NETWORK = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="recurrent")
parser.add_argument("--plain", action="store_true")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(3, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, batch, state):
        said, state = self.cell(batch, state)
        return self.out(said), state


if {asked}:
    net = nn.Linear(3, 1)
else:
    net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def epoch():
    state = torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
    for _ in range(3):
        optimizer.zero_grad()
        if {asked}:
            said = net(torch.randn(5, 2, 3))
        else:
            said, state = net(torch.randn(5, 2, 3), {state})
        said.square().mean().backward()
        optimizer.step()


for _ in range(2):
    epoch()
"""


@pytest.mark.parametrize("asked", ["args.kind == 'plain'", "args.plain"])
@pytest.mark.parametrize("state", ["state", "[part.detach() for part in state]"])
def test_networks_are_those_of_who_gives_no_options(
    asked: str, state: str, options: Options, tmp_path: Path
) -> None:
    found = findings(tmp_path / "script.py", OPTIONAL_NETWORK.format(asked=asked, state=state), options)
    assert [f.split(":")[0] for f in found] == ["carried-hidden-state"] * (state == "state")


NESTED_STATES = """
import torch
from torch import nn


def cut(state):
    if isinstance(state, torch.Tensor):
        return state.{cut}
    return {listed}(cut(part) for part in state)


class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTM(3, 3) for _ in range(layers)])

    def forward(self, batch, states):
        later = []
        for cell, state in zip(self.cells, states):
            batch, state = cell(batch, state)
            later.append(state)
        return batch, later


net = Net(3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
states = [(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)) for _ in range(3)]
for _ in range(20):
    states = cut(states)
    optimizer.zero_grad()
    said, states = net(torch.randn(5, 2, 3), states)
    said.square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("listed", ["tuple", "list"])
@pytest.mark.parametrize("cut", ["detach()", "clone()"])
def test_states_in_pairs_in_a_list_are_cut_by_a_function_that_calls_itself(
    cut: str, listed: str, options: Options, tmp_path: Path
) -> None:
    found = findings(tmp_path / "script.py", NESTED_STATES.format(cut=cut, listed=listed), options)
    assert [f.split(":")[0] for f in found] == ["carried-hidden-state"] * (cut == "clone()")


BASELINE = """
import torch
from torch import nn

actor, critic, value, extra = nn.Linear(4, 2), nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)
parts = nn.ModuleList([actor, critic, value, extra])
optimizer = torch.optim.Adam(parts.parameters())
for state in torch.randn(3, 16, 4):
    features = critic(state).tanh()
    advantage = torch.randn(16) - value(features).squeeze(1)
    value_loss = advantage.pow(2).mean() {more}
    policy_loss = -(actor(state).log_softmax(1)[:, 0] * {weight}).mean()
    optimizer.zero_grad()
    value_loss.backward()
    policy_loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("more", ["", "+ 0.1 * extra(features).pow(2).mean()"])
def test_a_baseline_that_weighs_a_loss_is_a_doubt_whatever_else_the_other_loss_trains(
    more: str, options: Options
) -> None:
    def effects(weight: str) -> list[Effect]:
        code = BASELINE.format(more=more, weight=weight)
        parsed = source.parse("script.py", code.encode(), 1 << 20)
        assert isinstance(parsed, Source)
        return [fix.effect for finding in driver.findings(parsed, options) for fix in finding.fixes]

    mixed = effects("advantage")
    assert mixed and set(mixed) == {Effect.CHANGES}
    assert not effects("advantage.detach()")
