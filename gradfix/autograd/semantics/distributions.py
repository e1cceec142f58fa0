"""``torch.distributions``."""

from __future__ import annotations

from gradfix.autograd.arguments import Call
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import function
from gradfix.autograd.semantics.operations import operands_of, record
from gradfix.autograd.values import Opaque, Value

DENSITIES = frozenset({"log_prob", "entropy", "rsample", "cdf", "icdf"})
"""Methods of a distribution through which gradients reach its parameters."""


@function(
    "torch.distributions.Normal",
    "torch.distributions.Categorical",
    "torch.distributions.Bernoulli",
    "torch.distributions.MultivariateNormal",
    "torch.distributions.Independent",
    "torch.distributions.TransformedDistribution",
    "torch.distributions.Beta",
    "torch.distributions.normal.Normal",
    "torch.distributions.categorical.Categorical",
)
def distribution(run: Run, call: Call) -> Value:
    """A distribution of ``torch.distributions``: what is computed with it reaches what it was made of."""
    operands = [o for v, e in call.given for o in operands_of(v, e)]

    made, requires, _ = record(run, "distribution", call.site, [operands], None)
    result = Opaque("distribution", made)
    result.requires = requires if made is not None else False
    return result
