"""Assignments, and the least value of a function."""

from __future__ import annotations

import itertools
from typing import Any

import numpy

from ...inert import others


def linear_sum_assignment(cost: Any, maximize: bool = False) -> Any:
    """The cheapest assignment: exact up to seven rows, beyond that the nearest that is free for each row."""
    cost = numpy.asarray(cost, float) * (-1 if maximize else 1)
    rows, columns = cost.shape
    if max(rows, columns) <= 7 and rows <= columns:
        best = min(
            itertools.permutations(range(columns), rows),
            key=lambda chosen: sum(cost[i, j] for i, j in enumerate(chosen)),
        )
        return numpy.arange(rows), numpy.array(best)
    free = set(range(columns))
    pairs = []
    for row in range(min(rows, columns)):
        column = min(free, key=lambda one: cost[row, one])
        free.discard(column)
        pairs.append((row, column))
    found = numpy.array(pairs)
    return found[:, 0], found[:, 1]


KEPT = 10
"""Steps by which L-BFGS knows how a function is curved."""


def _both(function: Any, gradient: Any, args: Any) -> Any:
    """What gives value and gradient at a place, by however much of both is given."""

    def value(x: Any) -> float:
        return float(numpy.asarray(function(x, *args)).reshape(-1)[0])

    def differences(x: Any) -> Any:
        steps = numpy.eye(len(x)) * 1e-8
        return numpy.array([(value(x + step) - value(x)) / 1e-8 for step in steps])

    def both(x: Any) -> Any:
        if gradient is True:
            found, slope = function(x, *args)
            return float(numpy.asarray(found).reshape(-1)[0]), numpy.asarray(slope, float).reshape(-1)
        slope = gradient(x, *args) if callable(gradient) else differences(x)
        return value(x), numpy.asarray(slope, float).reshape(-1)

    return both


def _downhill(slope: Any, moves: list[Any], changes: list[Any]) -> Any:
    """The direction of L-BFGS (Nocedal, Mathematics of Computation 35, 1980)."""
    direction, factors = -slope, []
    for move, change in zip(moves[::-1], changes[::-1]):
        factors.append(move @ direction / (move @ change))
        direction = direction - factors[-1] * change
    if moves:
        direction = direction * (moves[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for move, change, factor in zip(moves, changes, factors[::-1]):
        direction = direction + (factor - change @ direction / (move @ change)) * move
    return direction


class OptimizeResult(dict):  # type: ignore[type-arg]
    """What was found, also by attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]


def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    tol: float | None = None,
    callback: Any = None,
    options: Any = None,
    bounds: Any = None,
    **kwargs: Any,
) -> OptimizeResult:
    """The lowest place that L-BFGS comes to, whatever method is asked for; each step goes down."""
    both = _both(fun, jac, args if isinstance(args, tuple) else (args,))
    low, high = (
        numpy.array([numpy.inf * sign if one[side] is None else one[side] for one in bounds], float)
        if bounds is not None
        else sign * numpy.inf
        for side, sign in ((0, -1), (1, 1))
    )
    x = numpy.clip(numpy.asarray(x0, float).reshape(-1), low, high)
    value, slope = both(x)
    moves: list[Any] = []
    changes: list[Any] = []
    calls, turns = 1, 0
    while turns < int((options or {}).get("maxiter", 200)):
        turns += 1
        if numpy.abs(slope).max() <= (tol or 1e-5):
            break
        direction = _downhill(slope, moves, changes)
        share = 1.0 if moves else min(1.0, 1 / numpy.abs(slope).sum())
        for _ in range(20):
            there = numpy.clip(x + share * direction, low, high)
            found, other = both(there)
            calls += 1
            if found <= value + 1e-4 * (slope @ (there - x)):
                break
            share /= 2
        else:
            break
        if (there - x) @ (other - slope) > 1e-12:
            moves, changes = [*moves, there - x][-KEPT:], [*changes, other - slope][-KEPT:]
        x, value, slope = there, found, other
        if callback is not None:
            callback(x)
    return OptimizeResult(
        x=x, fun=value, jac=slope, nit=turns, nfev=calls, success=True, status=0, message="converged"
    )


def fmin_l_bfgs_b(
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    approx_grad: Any = False,
    bounds: Any = None,
    maxiter: int = 200,
    callback: Any = None,
    **kwargs: Any,
) -> tuple[Any, float, dict[str, Any]]:
    """The same, as it was called at first."""
    gradient = fprime if fprime is not None else not approx_grad
    found = minimize(
        func, x0, args, jac=gradient, bounds=bounds, options={"maxiter": maxiter}, callback=callback
    )
    told = {"grad": found.jac, "task": "converged", "funcalls": found.nfev, "nit": found.nit, "warnflag": 0}
    return found.x, found.fun, told


__getattr__ = others(__name__)
