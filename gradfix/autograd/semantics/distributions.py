"""``torch.distributions``."""

from __future__ import annotations

from gradfix.autograd.arguments import Call
from gradfix.autograd.graph import Edge
from gradfix.autograd.run import Run
from gradfix.autograd.semantics.dispatch import method, package
from gradfix.autograd.semantics.operations import operands_of, record
from gradfix.autograd.values import Tensor, Unknown, Value, graphless_value


class Distribution(Unknown):
    """A distribution of ``torch.distributions``: what is computed with it reaches what it was made of."""


@package("torch.distributions")
def _distribution(run: Run, call: Call) -> Value | None:
    return make_distribution(run, call) if call.name.rpartition(".")[2][:1].isupper() else None


def make_distribution(run: Run, call: Call) -> Value:
    """A distribution, of whatever it is given."""
    operands = [o for v, e in call.given for o in operands_of(v, e)]
    made, requires, _ = record(run, "distribution", call.site, [operands], None)
    result = Distribution("distribution", made)
    result.requires = requires if made is not None else False
    return result


@method(Distribution, "sample", "sample_n")
def _drawn(run: Run, value: Distribution, call: Call) -> Value:
    """What is drawn without a graph."""
    return graphless_value(call.name)


@method(Distribution, "log_prob", "entropy", "rsample", "cdf", "icdf")
def _density(run: Run, value: Distribution, call: Call) -> Value | None:
    """What gradients go through to the parameters of a distribution."""
    if value.node is None:
        return None
    made = run.node(call.name, call.site)
    made.raises_when_freed = None
    operands = [o for v, e in [(value, call.receiver), *call.args] for o in operands_of(v, e)]
    made.edges = tuple(Edge(o.node, o.requires is True, o.expression) for o in operands if o.node is not None)
    return Tensor(made, value.requires)
