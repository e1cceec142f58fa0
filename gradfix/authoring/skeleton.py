"""The first files of a codemod: one that works, to be changed into what is meant."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from gradfix.authoring.cases import FIXED, FIXTURES
from gradfix.rules import catalog
from gradfix.system import files

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

CODEMOD = '''\
"""`create_graph=True` gives gradients a graph that nothing uses.
It takes memory and time in every iteration, and changes no gradient.

    loss.backward(create_graph=True)  =>  loss.backward()

When not to fix it: where gradients are differentiated in turn, in a way that gradfix does not see.

Preconditions:

* the argument is written as `create_graph=True`, on a backward;
* nothing in the file reads a `.grad` or calls `autograd.grad`.

By hand: leave the argument out.

Effect: preserves.

Severity: warning.
"""

import ast
from collections.abc import Iterator

from gradfix.autograd.trace_queries import backwards
from gradfix.autograd.program import Program
from gradfix.core.codemod import Effect, Finding, Fix, RemoveArgument
from gradfix.core.span import Span


def find(program: Program) -> Iterator[Finding]:
    """Report each backward that is given such an argument."""
    if any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(program.tree)):
        return
    sites = {{event.site for entry in program.entry_points for event in backwards(entry.run_without_options)}}
    for site in sites:
        if not isinstance(site, ast.Call) or site.lineno <= 0:
            continue  # it stands in another module of the project
        span = Span.of(site)
        for argument in site.keywords:
            if argument.arg == "create_graph" and ast.unparse(argument.value) == "True":
                fix = Fix("leave the argument out", Effect.PRESERVES, (RemoveArgument(span, "create_graph"),))
                yield Finding("{name}", "nothing uses the graph of these gradients", span, (), (fix,))
'''

_BEGINNING = """\
# fault: {fault}
# raises: nothing
# effect: {effect}
# why: {why}
import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(4, 3)).square().mean()
    optimizer.zero_grad()
"""
_FAULTY = (
    _BEGINNING
    + """\
    loss.backward({argument})
    optimizer.step()
"""
)
_RIGHT = (
    _BEGINNING
    + """\
    slopes = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
    (loss + sum(slope.square().sum() for slope in slopes)).backward()
    optimizer.step()
"""
)

TEST = '''\
"""Every program of `fixtures` is found, repaired and proved as its header says."""

from pathlib import Path

import pytest

from gradfix.authoring import cases

CODEMODS = Path(__file__).parent.parent


@pytest.mark.parametrize("case", cases.of(CODEMODS), ids=str)
def test_a_program(case: cases.Case) -> None:
    assert cases.differences(case) == []
'''


class SkeletonError(ValueError):
    """Why no codemod is begun."""


def texts(name: str) -> dict[str, str]:
    """What is written for the codemod ``name``, by path below the folder of codemods.

    Raises:
        SkeletonError: if it cannot be called so.
    """
    name = catalog.normal(name)
    stem = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(stem):
        raise SkeletonError(
            f"codemods are named in lower case with hyphens, as stale-forward is: not {name!r}"
        )
    if name in catalog.load().names:
        raise SkeletonError(f"there is already a codemod {name!r}")
    faulty = {"fault": name, "effect": "preserves", "why": "no gradient is differentiated in turn"}
    right = {"fault": "none", "effect": "none", "why": "the penalty differentiates the gradients"}
    folder = os.path.join(FIXTURES, stem)
    return {
        f"{stem}.py": CODEMOD.format(name=name),
        os.path.join(folder, "faulty.py"): _FAULTY.format(**faulty, argument="create_graph=True"),
        os.path.join(folder, f"faulty{FIXED}"): _FAULTY.format(**faulty, argument=""),
        os.path.join(folder, "right.py"): _RIGHT.format(**right),
        os.path.join("tests", "test_codemods.py"): TEST,
    }


def write(name: str, folder: str) -> list[str]:
    """Write the first files of the codemod ``name`` into ``folder``, and say which; none that is there.

    Raises:
        SkeletonError: if it cannot be called so, or is there already.
        OSError: if a file cannot be written.
    """
    written = texts(name)
    test = os.path.join("tests", "test_codemods.py")
    wanted = {path: text for path, text in written.items() if path != test or not Path(folder, path).exists()}
    for path in wanted:
        if os.path.lexists(os.path.join(folder, path)):
            raise SkeletonError(f"{os.path.join(folder, path)} is there already")
    for path, text in wanted.items():
        files.save(os.path.join(folder, path), text.encode())
    return [os.path.join(folder, path) for path in wanted]
