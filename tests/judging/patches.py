"""Wrong and right patches for the faulty fixtures: what people do to make an error go away.

A wrong patch is wrong by construction: a loss that trained a network no longer does, or trains another as
well, or gradients are thrown away or kept too long, or the program leaves before it is done. Each is made of
the text of a fixture (or of its fixed version), and leaves every other line as it is. That none of them
trains as the fixed version does is what :mod:`judging.oracle` says, too, which asks torch.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from cases import Case

CARRIES = ("undetached_fake", "stale_forward")
"""The fixtures in which one network's loss runs into another network."""


@dataclass(frozen=True)
class Patch:
    """A patched version of one fixture."""

    case: Case
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.case.name}-{self.kind}"


class Text:
    """A program whose statements can be replaced and surrounded, by line."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.tree = ast.parse(self.text)
        self._lines = self.text.splitlines()
        self._edits: list[tuple[int, int, list[str]]] = []

    def statements(self, calls: str) -> list[ast.Expr]:
        """The statements that are one call of a method."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == calls
            # A statement that shares its line with another is left alone.
            and self._lines[node.lineno - 1]
            .strip()
            .startswith(ast.get_source_segment(self.text, node) or "?")
        ]

    def segment(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or "?"

    def put(self, node: ast.stmt, code: str) -> None:
        """Put ``code`` (rows of it, dedented) in the place of a statement."""
        indent = " " * node.col_offset
        assert node.end_lineno is not None
        rows = [indent + row for row in code.split("\n")]
        self._edits.append((node.lineno - 1, node.end_lineno, rows))

    def source(self, node: ast.AST) -> str:
        return ast.unparse(node)

    def prefix(self, code: str) -> None:
        """Put ``code`` before the program's first statement."""
        for node in self.tree.body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                self._edits.append((node.lineno - 1, node.lineno - 1, code.split("\n")))
                return

    def patched(self) -> str | None:
        """The text after all edits; None if there were none or it does not parse."""
        if not self._edits:
            return None
        lines = list(self._lines)
        for start, end, rows in sorted(self._edits, reverse=True):
            lines[start:end] = rows
        text = "\n".join(lines) + "\n"
        try:
            ast.parse(text)
        except SyntaxError:
            return None
        return text if text != self.text else None


def _call(statement: ast.Expr) -> tuple[ast.Call, ast.expr]:
    """A statement's call of a method, and the object whose method it is."""
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    return statement.value, statement.value.func.value


def _receiver(statement: ast.Expr) -> str:
    return ast.unparse(_call(statement)[1])


def _loss(statement: ast.Expr) -> str:
    """What a backward call differentiates."""
    call, owner = _call(statement)
    # `fabric.backward(loss)`, `torch.autograd.backward(loss)`; not `loss.backward(gradient)`.
    through = re.search(r"(fabric|accelerator|manager|autograd)$", ast.unparse(owner))
    return ast.unparse(call.args[0] if through and call.args else owner)


def _retaining(statement: ast.Expr, how: str = "retain_graph") -> str:
    call, _ = _call(statement)
    others = [keyword for keyword in call.keywords if keyword.arg != how]
    return ast.unparse(ast.Call(call.func, call.args, [*others, ast.keyword(how, ast.Constant(True))]))


def _optimizers(text: Text) -> list[tuple[ast.Assign, str]]:
    """The assignments of optimizers, each with what it is called; one of each name."""
    found = [
        (node, ast.unparse(node.targets[0]))
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name | ast.Attribute)
        and isinstance(node.value, ast.Call)
        and _is_optimizer(node.value)
        # Its step makes the gradients itself.
        and "LBFGS" not in ast.unparse(node.value.func)
    ]
    names = Counter(name for _, name in found)
    return [(node, name) for node, name in found if names[name] == 1]


def _optimizer_steps(text: Text) -> list[ast.Expr]:
    """The steps, but those of schedulers and scalers."""
    return [one for one in text.statements("step") if not re.search("sched|scaler", _receiver(one))]


def _is_optimizer(call: ast.Call) -> bool:
    return bool(re.search(r"\b(SGD|Adam|AdamW|RMSprop|Adagrad|LBFGS)$", ast.unparse(call.func)))


def _raising(text: Text, case: Case) -> list[ast.Expr]:
    line = case.raises[1] if case.raises else 0
    return [s for s in text.statements("backward") if s.lineno <= line <= (s.end_lineno or 0)]


# -- wrong ------------------------------------------------------------------------------------


def retain_everywhere(case: Case) -> str | None:
    """``retain_graph=True`` at every backward: what a search engine says."""
    text = Text(case.path.read_text())
    for statement in text.statements("backward"):
        text.put(statement, _retaining(statement))
    return text.patched()


def create_everywhere(case: Case) -> str | None:
    """``create_graph=True`` at every backward, which retains graphs too."""
    text = Text(case.path.read_text())
    for statement in text.statements("backward"):
        text.put(statement, _retaining(statement, "create_graph"))
    return text.patched()


def _steps_last(source: str) -> str | None:
    text = Text(source)
    steps = text.statements("step")
    for block in ast.walk(text.tree):
        body = getattr(block, "body", None)
        if not isinstance(body, list):
            continue
        own = [s for s in body if s in steps]
        if len({_receiver(s) for s in own}) < 2 or body[-1] not in own:
            continue
        *early, last = own
        if any(body.index(s) + 1 < len(body) and body[body.index(s) + 1] not in own for s in early):
            for step in early:
                text.put(step, "pass")
            text.put(last, "\n".join(text.source(s) for s in own))
    return text.patched()


def steps_last(case: Case) -> str | None:
    """Both optimizers step at the end of the pass: nothing is stale, and each takes in the other's loss."""
    return _steps_last(case.path.read_text())


def steps_last_and_retain(case: Case) -> str | None:
    """The two together: no error is left, and the gradients are mixed."""
    retained = retain_everywhere(case)
    return None if retained is None else _steps_last(retained)


def caught(case: Case) -> str | None:
    """The error is swallowed, and what it would have trained is not trained."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"try:\n    {text.source(statement)}\nexcept RuntimeError:\n    pass")
    return text.patched()


def left_out(case: Case) -> str | None:
    """The backward that raises is no longer called."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, "pass")
    return text.patched()


def loss_cut_off(case: Case) -> str | None:
    """The loss is detached and made to require grad: the backward runs, and reaches nothing."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"({_loss(statement)}).detach().requires_grad_().backward()")
    return text.patched()


def loss_as_data(case: Case) -> str | None:
    """The same through ``.data``."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"({_loss(statement)}).data.requires_grad_(True).backward()")
    return text.patched()


def only_once(case: Case) -> str | None:
    """The backward that raises is called in the first pass only."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        done = f"'_done_{statement.lineno}'"
        text.put(
            statement,
            f"if {done} not in globals():\n    globals()[{done}] = True\n    {text.source(statement)}",
        )
    return text.patched()


BUILTINS = frozenset({"print", "range", "len", "float", "enumerate"})


def everything_detached(case: Case) -> str | None:
    """Every value that is handed to something called is detached on the way, for all losses."""
    if case.effect == "preserves":
        return None  # There may be nothing but waste to detach.
    source = case.path.read_text().replace("\r\n", "\n")
    lines = [line.encode() for line in source.splitlines()]
    tree = ast.parse(source)
    backwards = [node.lineno for node in ast.walk(tree) if getattr(node, "attr", "") == "backward"]
    inside = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.FunctionDef)
        and any(node.lineno < line <= (node.end_lineno or 0) for line in backwards)
        for inner in ast.walk(node)
    }
    handed: list[ast.expr] = []
    for node in ast.walk(tree):
        if id(node) not in inside or not isinstance(node, ast.Call) or not node.args or node.keywords:
            continue
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            continue
        first, *others = node.args
        # `net(x)`, `torch.cat([x, y], 1)`
        values = first.elts if isinstance(first, ast.List) else [] if others else [first]
        handed += [value for value in values if isinstance(value, ast.Name)]
        # `net([encoder(x), encoder(y)])`
        handed += [value for value in values if isinstance(first, ast.List) and isinstance(value, ast.Call)]
    for value in sorted(handed, key=lambda value: (-value.lineno, -value.col_offset)):
        row, end = lines[value.lineno - 1], value.end_col_offset or 0
        lines[value.lineno - 1] = row[:end] + b".detach()" + row[end:]
    return b"\n".join([*lines, b""]).decode() if handed else None


def cleared_before_the_step(case: Case) -> str | None:
    """In the right program the gradients are cleared between backward and step."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for statement in _optimizer_steps(text):
        # A closure makes the gradients itself.
        if not _call(statement)[0].args:
            text.put(statement, f"{_receiver(statement)}.zero_grad()\n{text.source(statement)}")
    return text.patched()


def never_cleared(case: Case) -> str | None:
    """In the right program no gradient is ever cleared."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    repeated = [n for n in ast.walk(text.tree) if isinstance(n, (ast.For, ast.While, ast.FunctionDef))]
    again = {id(inner) for node in repeated for inner in ast.walk(node)}
    for statement in text.statements("zero_grad"):
        # What runs only once has nothing to clear.
        if id(statement) in again:
            text.put(statement, "pass")
    return text.patched()


def step_before_backward(case: Case) -> str | None:
    """In the right program the steps come before the backwards that they follow."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    steps, backwards = text.statements("step"), text.statements("backward")
    for block in ast.walk(text.tree):
        body = getattr(block, "body", None)
        if not isinstance(body, list):
            continue
        roles = itertools.groupby(body, lambda statement: _role(statement, steps, backwards))
        runs = [(role, list(run)) for role, run in roles]
        for (one, first), (other, second) in itertools.pairwise(runs):
            # Some of these backwards may be of no concern to some of the steps.
            if (one, other) == ("backward", "step"):
                for statement, moved in zip([*first, *second], [*second, *first]):
                    text.put(statement, text.source(moved))
    return text.patched()


def _role(statement: ast.stmt, steps: list[ast.Expr], backwards: list[ast.Expr]) -> str:
    return "step" if statement in steps else "backward" if statement in backwards else ""


def cloned_instead(case: Case) -> str | None:
    """In the right program ``clone()`` stands for ``detach()``."""
    assert case.fixed is not None
    right = case.fixed.read_text()
    if ".detach()" in case.path.read_text() or ".detach()" not in right:
        return None
    return right.replace(".detach()", ".clone()")


def no_learning(case: Case) -> str | None:
    """In the right program the learning rates are zero."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    if any(isinstance(node, ast.Constant) and node.value == "lr" for node in ast.walk(text.tree)):
        return None  # Groups with rates of their own do not ask for the optimizer's.
    for node in ast.walk(text.tree):
        if not isinstance(node, ast.Assign):
            continue
        rates = [
            keyword
            for call in ast.walk(node.value)
            if isinstance(call, ast.Call) and _is_optimizer(call)
            for keyword in call.keywords
            if keyword.arg == "lr"
        ]
        for rate in rates:
            rate.value = ast.Constant(0.0)
        if rates:
            text.put(node, text.source(node))
    return text.patched()


def forward_without_grad(case: Case) -> str | None:
    """The loss is computed under ``no_grad``, and is told to require grad."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        made = [
            node
            for node in ast.walk(text.tree)
            if isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == _loss(statement)
            and node.lineno < statement.lineno
        ]
        if made:
            text.put(made[-1], f"with torch.no_grad():\n    {text.source(made[-1])}")
            text.put(statement, f"{_loss(statement)}.requires_grad_().backward()")
    return text.patched()


def loss_as_number(case: Case) -> str | None:
    """The loss is made a number, and that a new tensor."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, f"torch.tensor(({_loss(statement)}).sum().item(), requires_grad=True).backward()")
    return text.patched()


def unused_allowed(case: Case) -> str | None:
    """``autograd.grad`` with ``allow_unused``, whose result nobody uses, for the backward that raises."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        nothing = "[torch.zeros(1, requires_grad=True)]"
        text.put(statement, f"torch.autograd.grad(({_loss(statement)}).sum(), {nothing}, allow_unused=True)")
    return text.patched()


def detached_in_the_other_loss(case: Case) -> str | None:
    """In the right program the value is detached where it should not be, and only there."""
    assert case.fixed is not None
    right = case.fixed.read_text().replace("\r\n", "\n")
    if ".detach()" in case.path.read_text():
        return None
    detached = set(re.findall(r"\((\w+)\.detach\(\)\)", right))
    swapped = right
    for name in detached:
        mark = f"({name}.detach())"
        swapped = swapped.replace(mark, "(\0)").replace(f"({name})", mark).replace("(\0)", f"({name})")
    # Two calls that only change places need not be two networks' losses.
    return swapped if detached and swapped.count(".detach()") != 0 else None


def network_frozen(case: Case) -> str | None:
    """In the right program what the last optimizer trains is frozen."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for node, name in _optimizers(text)[-1:]:
        loop = f"for _group in {name}.param_groups:\n    for _one in _group['params']:\n"
        text.put(node, f"{text.source(node)}\n{loop}        _one.requires_grad_(False)")
    return text.patched()


def step_skipped(case: Case) -> str | None:
    """In the right program the last optimizer never steps."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for statement in _optimizer_steps(text)[-1:]:
        text.put(statement, "pass")
    return text.patched()


def training_deleted(case: Case) -> str | None:
    """The backward that raises is gone, and so is the next step after it."""
    text = Text(case.path.read_text())
    steps = sorted(text.statements("step"), key=lambda step: step.lineno)
    for statement in _raising(text, case):
        text.put(statement, "pass")
        for step in [step for step in steps if step.lineno > statement.lineno][:1]:
            text.put(step, "pass")
    return text.patched()


def copies_trained(case: Case) -> str | None:
    """In the right program every network is copied before it is called: nothing is stale, nothing trains."""
    assert case.fixed is not None
    text = case.fixed.read_text().replace("\r\n", "\n")
    networks = set(re.findall(r"^(\w+) = nn\.(?:Sequential|Linear|RNNCell|GRUCell|LSTMCell)\(", text, re.M))
    copied = text
    for name in networks:
        copied = re.sub(rf"(?<![\w.]){name}\((?!\))", f"__import__('copy').deepcopy({name})(", copied)
    return copied if copied != text else None


def gradients_disabled(case: Case) -> str | None:
    """In the right program gradients are off everywhere, and losses are told to require one."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    if "closure" in text.text:
        return None
    for statement in text.statements("backward"):
        text.put(statement, f"({_loss(statement)}).sum().requires_grad_().backward()")
    text.prefix("import torch\ntorch.set_grad_enabled(False)")
    return text.patched()


def anomalies_detected(case: Case) -> str | None:
    """Autograd is asked to say more; nothing is mended."""
    text = Text(case.path.read_text())
    text.prefix("import torch\ntorch.autograd.set_detect_anomaly(True)")
    return text.patched()


def only_one_pass(case: Case) -> str | None:
    """The loop around the backward that raises is left after one pass."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        loops = [
            node
            for node in ast.walk(text.tree)
            if isinstance(node, ast.For | ast.While)
            and node.lineno < statement.lineno <= (node.end_lineno or 0)
        ]
        for loop in loops[-1:]:
            last = loop.body[-1]
            if isinstance(last, ast.Expr | ast.Assign | ast.AugAssign):
                text.put(last, f"{text.source(last)}\nbreak")
    return text.patched()


def _leaving(case: Case, how: str, passes: int) -> str | None:
    """In the right program the last step is followed by ``how``, once it has been taken so often."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    repeated = [n for n in ast.walk(text.tree) if isinstance(n, ast.For | ast.While)]
    again = {id(inner) for node in repeated for inner in ast.walk(node)}
    for statement in [s for s in text.statements("step") if id(s) in again][-1:]:
        count = "globals().get('_passes', 0)"
        rows = [text.source(statement), f"globals()['_passes'] = {count} + 1", f"if {count} == {passes}:"]
        text.put(statement, "\n".join([*rows, *(f"    {row}" for row in how.split("\n"))]))
    return text.patched()


def left_after_the_first_step(case: Case) -> str | None:
    """The right program leaves after its first step."""
    return _leaving(case, "raise SystemExit", 1)


def left_with_an_exit_code(case: Case) -> str | None:
    """The right program leaves after its second pass, with an exit code."""
    return _leaving(case, "import sys\nsys.exit(1)", 2)


def left_at_once(case: Case) -> str | None:
    """The right program leaves after its second pass, and no handler is asked."""
    return _leaving(case, "import os\nos._exit(0)", 2)


def other_numbers_drawn(case: Case) -> str | None:
    """After its second pass the right program draws another random number, and learns no more."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    names = [name for _, name in _optimizers(text)]
    rates = [f"{name}.param_groups[0]['lr'] = 0.0" for name in names if name.isidentifier()]
    # There has to be a third pass.
    long = re.search(r"^for \w+ in range\(([3-9]|\d\d+)\):", text.text, re.M)
    return _leaving(case, "\n".join(["torch.rand(1)", *rates]), 2) if rates and long else None


def backward_patched(case: Case) -> str | None:
    """``backward`` is made to do nothing."""
    text = Text(case.path.read_text())
    nothing = "lambda *args, **kwargs: None"
    text.prefix(f"import torch\ntorch.Tensor.backward = torch.autograd.backward = {nothing}")
    return text.patched()


def backward_patched_to_swallow(case: Case) -> str | None:
    """``backward`` is made to swallow every error."""
    text = Text(case.path.read_text())
    text.prefix(
        """import torch
def _swallowing(real):
    def backward(*args, **kwargs):
        try:
            real(*args, **kwargs)
        except RuntimeError:
            pass
    return backward
torch.Tensor.backward = _swallowing(torch.Tensor.backward)
torch.autograd.backward = _swallowing(torch.autograd.backward)"""
    )
    return text.patched() if case.raises else None


def step_patched(case: Case) -> str | None:
    """In the right program the steps are made to do nothing."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    if "closure" in text.text or not _optimizer_steps(text):
        return None
    text.prefix(
        """import torch
for _kind in torch.optim.Optimizer.__subclasses__():
    _kind.step = lambda self, closure=None: None"""
    )
    return text.patched()


def cleared_by_a_hook(case: Case) -> str | None:
    """In the right program a hook clears the gradients on the way into the step."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for node, name in _optimizers(text)[-1:]:
        text.put(
            node,
            f"{text.source(node)}\n{name}.register_step_pre_hook(lambda one, *_: one.zero_grad())",
        )
    return text.patched()


def layer_cleared_by_a_hook(case: Case) -> str | None:
    """In the right program a hook throws away one gradient on the way into the step."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for node, name in _optimizers(text)[-1:]:
        hook = "lambda one, *_: setattr(one.param_groups[0]['params'][0], 'grad', None)"
        text.put(node, f"{text.source(node)}\n{name}.register_step_pre_hook({hook})")
    return text.patched()


def layer_put_back(case: Case) -> str | None:
    """In the right program the first parameter of each optimizer is put back after each step."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for statement in _optimizer_steps(text):
        text.put(
            statement,
            f"_kept = {_receiver(statement)}.param_groups[0]['params'][0]\n"
            f"_value = _kept.detach().clone()\n{text.source(statement)}\n_kept.data.copy_(_value)",
        )
    return text.patched()


def recorder_silenced(case: Case) -> str | None:
    """The recorder is found and told to look away, and the backward that raises is no longer called."""
    text = Text(case.path.read_text())
    for statement in _raising(text, case):
        text.put(statement, "pass")
    text.prefix(
        """import gc
for _one in gc.get_objects():
    if type(_one).__name__ == 'Recorder':
        _one.failed = lambda *args: 0
        _one.backward = lambda real, args, kwargs: real(*args, **kwargs)"""
    )
    return text.patched() if _raising(text, case) else None


def recorder_ended(case: Case) -> str | None:
    """After its second pass the right program makes the recorder say that it has seen enough."""
    recorder = "next(o for o in gc.get_objects() if type(o).__name__ == 'Recorder')"
    return _leaving(case, f"import gc\n{recorder}.finish('steps')", 2)


WRONG: dict[str, tuple[Callable[[Case], str | None], tuple[str, ...]]] = {
    "retain_everywhere": (retain_everywhere, (*CARRIES, "carried_hidden_state", "requires_grad_input")),
    "create_everywhere": (create_everywhere, (*CARRIES, "carried_hidden_state", "requires_grad_input")),
    "steps_last": (steps_last, CARRIES),
    "steps_last_and_retain": (steps_last_and_retain, CARRIES),
    "caught": (caught, ()),
    "left_out": (left_out, ()),
    "loss_cut_off": (loss_cut_off, ()),
    "loss_as_data": (loss_as_data, ()),
    "only_once": (only_once, ()),
    "everything_detached": (everything_detached, CARRIES),
    "cleared_before_the_step": (cleared_before_the_step, ()),
    "never_cleared": (never_cleared, ()),
    "step_before_backward": (step_before_backward, ()),
    "cloned_instead": (cloned_instead, ()),
    "no_learning": (no_learning, ()),
    "forward_without_grad": (forward_without_grad, ()),
    "loss_as_number": (loss_as_number, ()),
    "unused_allowed": (unused_allowed, ()),
    "detached_in_the_other_loss": (detached_in_the_other_loss, ("undetached_fake",)),
    "network_frozen": (network_frozen, ()),
    "step_skipped": (step_skipped, ()),
    "training_deleted": (training_deleted, ()),
    "copies_trained": (copies_trained, ()),
    "gradients_disabled": (gradients_disabled, ()),
    "anomalies_detected": (anomalies_detected, ()),
    "only_one_pass": (only_one_pass, ()),
    "left_after_the_first_step": (left_after_the_first_step, ()),
    "left_with_an_exit_code": (left_with_an_exit_code, ()),
    "left_at_once": (left_at_once, ()),
    "other_numbers_drawn": (other_numbers_drawn, ()),
    "backward_patched": (backward_patched, ()),
    "backward_patched_to_swallow": (backward_patched_to_swallow, ()),
    "step_patched": (step_patched, ()),
    "cleared_by_a_hook": (cleared_by_a_hook, ()),
    "layer_cleared_by_a_hook": (layer_cleared_by_a_hook, ()),
    "layer_put_back": (layer_put_back, ()),
    "recorder_silenced": (recorder_silenced, ()),
    "recorder_ended": (recorder_ended, ()),
}
"""The ways to go wrong, each with the folders of fixtures in which it is wrong (none: in all)."""


HIDING = frozenset({"retain_everywhere", "create_everywhere", "caught", "backward_patched_to_swallow"})
"""Kinds that silence an error. Autograd may raise when it has been through everything that is trained."""
KEEPING = frozenset({"anomalies_detected", "cloned_instead"})
"""Kinds that leave the mistake as it is, which need not be one of gradients."""


def hides(patch: Patch) -> bool:
    """Whether a patch need not change a gradient: the mistake is there, and only hidden."""
    return patch.kind in HIDING or (patch.kind in KEEPING and patch.case.effect == "preserves")


UNTOLD = frozenset({"recorder_ended", "recorder_silenced", "other_numbers_drawn"})
"""Kinds that make a run give out, or its record make no sense, so that what it trained cannot be told."""


def wrong(cases: list[Case], kinds: Collection[str] = WRONG) -> Iterator[Patch]:
    """Every wrong patch of ``cases``; of patches that come to the same, the one of the first of ``kinds``."""
    for case in cases:
        seen: set[str | None] = {_meaning(path.read_text()) for path in (case.path, case.fixed) if path}
        for kind in kinds:
            make, folders = WRONG[kind]
            if folders and case.path.parent.name not in folders:
                continue
            text = make(case)
            meaning = _meaning(text) if text is not None else None
            if text is not None and meaning is not None and meaning not in seen:
                seen.add(meaning)
                yield Patch(case, kind, text)


def _meaning(text: str) -> str | None:
    """A program without its comments and its layout; ``None`` for what is no program."""
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None


# -- right ------------------------------------------------------------------------------------


def as_written(case: Case) -> str | None:
    """The fixed version itself."""
    assert case.fixed is not None
    return case.fixed.read_text()


def detached_clone(case: Case) -> str | None:
    """``clone().detach()`` for ``detach()``."""
    assert case.fixed is not None
    text = case.fixed.read_text()
    return text.replace(".detach()", ".clone().detach()") if ".detach()" in text else None


def through_autograd(case: Case) -> str | None:
    """``torch.autograd.backward(loss)`` for ``loss.backward()``."""
    assert case.fixed is not None
    text = Text(case.fixed.read_text())
    for statement in text.statements("backward"):
        call = statement.value
        assert isinstance(call, ast.Call)
        if not call.args and not call.keywords and "import torch\n" in text.text:
            text.put(statement, f"torch.autograd.backward({_receiver(statement)})")
    return text.patched()


RIGHT: dict[str, Callable[[Case], str | None]] = {
    "as_written": as_written,
    "detached_clone": detached_clone,
    "through_autograd": through_autograd,
}


def right(cases: list[Case], kinds: Collection[str] = RIGHT) -> Iterator[Patch]:
    """Right patches of ``cases``."""
    for case in cases:
        for kind in kinds:
            text = RIGHT[kind](case)
            if text is not None:
                yield Patch(case, kind, text)
