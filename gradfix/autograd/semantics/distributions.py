"""``torch.distributions``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.autograd.arguments import Argument, Keywords
from gradfix.autograd.semantics.operations import operands_of, record
from gradfix.autograd.values import Opaque, Value

if TYPE_CHECKING:
    from gradfix.autograd.interpreter import Run


DENSITIES = frozenset({"log_prob", "entropy", "rsample", "cdf", "icdf"})
"""Methods of a distribution through which gradients reach its parameters."""


def distribution(run: Run, args: list[Argument], keywords: Keywords, node: ast.AST) -> Value:
    """A distribution of ``torch.distributions``: what is computed with it reaches what it was made of."""
    operands = [o for v, e in [*args, *keywords.values()] for o in operands_of(v, e)]

    made, requires, _ = record(run, "distribution", node, [operands], None)
    result = Opaque("distribution", made)
    result.requires = requires if made is not None else False
    return result
