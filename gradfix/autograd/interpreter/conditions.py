"""How a condition is decided: by its value, by an earlier decision, by the scenario of the run."""

from __future__ import annotations

import ast
import contextlib
from functools import lru_cache
from typing import Any

from gradfix.autograd import script_options
from gradfix.autograd.interpreter.comparisons import COMPARE
from gradfix.autograd.run import Impossible, Run
from gradfix.autograd.semantics.names import is_of_networks
from gradfix.autograd.values import (
    Class,
    Const,
    Frame,
    Function,
    ImportedName,
    Instance,
    IterationNumber,
    Mapping,
    Module,
    NumberAnswer,
    NumberCondition,
    Omitted,
    Optimizer,
    Recurring,
    Sequence,
    Unknown,
    Value,
)
from gradfix.core.syntax import walk


def decide(
    run: Run,
    test: ast.expr,
    frame: Frame,
    default: bool = True,
    site: ast.AST | None = None,
    guess: bool = True,
) -> bool:
    """Whether ``test`` holds: by its value, by an earlier answer, or by the scenario.

    Where nobody is to ``guess``, an earlier answer does not count.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not decide(run, test.operand, frame, not default, site, guess)
    parts = test.values if isinstance(test, ast.BoolOp) else _links(test)
    if parts:
        stop = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
        for part in parts:
            if decide(run, part, frame, default, site, guess) is stop:
                return stop
        return not stop
    optional, if_given = _asked_whether_given(test)
    decides = site is not None and run.relevance.differentiates(site)
    if optional is not None and (decides or not guess):
        omitted = run.evaluate(optional, frame)
        if isinstance(omitted, Omitted):
            given = if_given is not (omitted.value is True)
            if guess and site is not None:
                return _of_omitted(run, optional, omitted, frame, default, site, given)
            if default_for(run, default) is given:
                # Without it, the program raises.
                _pass(run, optional, omitted, frame)
                return given
    value = run.evaluate(test, frame)
    if isinstance(value, NumberAnswer) and site is not None and _matters(run, site):
        note_number_condition(run, value)
    known = truth(value)
    if known is not None:
        return known
    passed = value.iteration if isinstance(value, (IterationNumber, NumberCondition)) else None
    if passed is not None:
        held = passed.holds(value.term)  # type: ignore[attr-defined]
        if held is not None:
            if not held and site is not None and _matters(run, site):
                run.decided_by_number += 1
            return held
    if isinstance(value, Recurring) and default is not value.then and not _tries_habit(run, site):
        # A window of micro-batches closes.
        default = value.then
        run.unusual.add(site)
    run.left_open += 1
    if site is None and value_in_iteration(value) is (not default_for(run, default)):
        # The loop is left in this iteration: there is no later one.
        return not default_for(run, default)
    if not guess:
        return default_for(run, default)
    answer = _choose(run, test, value, frame, default, site)
    skips = isinstance(site, ast.If) and isinstance(site.body[-1], ast.Continue)
    if passed is not None and site is not None and (skips or _matters(run, site)):
        # Of what only prints, every hundredth time say, nothing is to be concluded.
        passed.learn(value.term, answer)  # type: ignore[attr-defined]
    return answer


def _asked_whether_given(test: ast.expr) -> tuple[ast.expr | None, bool]:
    """The variable or attribute of which a condition asks whether it is there, and the answer if it is."""
    if isinstance(test, (ast.Name, ast.Attribute)):
        return test, True
    if isinstance(test, ast.Compare) and isinstance(test.left, (ast.Name, ast.Attribute)):
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        if none and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            return test.left, isinstance(test.ops[0], ast.IsNot)
    return None, False


def _of_omitted(
    run: Run,
    asked: ast.expr,
    omitted: Omitted,
    frame: Frame,
    default: bool,
    site: ast.AST,
    if_given: bool,
) -> bool:
    """The answer about a parameter that callers may leave out: it is passed in the run that tries that."""
    run.undecided.setdefault(site, []).append(None)
    if default is if_given:
        run.unusual.add(site)
        passed = _tries_habit(run, site)
    else:
        passed = site in run.scenario.flipped and not _tries_habit(run, site)
    if passed:
        _pass(run, asked, omitted, frame)
    return passed is if_given


def _pass(run: Run, asked: ast.expr, omitted: Omitted, frame: Frame) -> None:
    """Have the variable, or the attribute of an object in sight, hold what a caller passes."""
    if isinstance(asked, ast.Name):
        frame.binding_frame(asked.id).variables[asked.id] = omitted.given
    elif isinstance(asked, ast.Attribute):
        holder = run.evaluate(asked.value, frame)
        if isinstance(holder, (Instance, Module)):
            holder.attributes[asked.attr] = omitted.given
    if omitted.value is None:
        keep_answer(run, asked, frame, True)
        keep_answer(run, ast.Compare(asked, [ast.Is()], [ast.Constant(None)]), frame, False)


def _tries_habit(run: Run, site: ast.AST | None) -> bool:
    """Whether this run answers here as by habit, where the main run has a reason to answer otherwise."""
    first = run.scenario.main_run
    return site in run.scenario.flipped and first is not None and site in first.unusual


def _matters(run: Run, site: ast.AST) -> bool:
    """Whether a condition decides about gradients or graphs."""
    return run.relevance.touches(site) or run.relevance.shapes(site)


def _choose(
    run: Run, test: ast.expr, value: Value, frame: Frame, default: bool, site: ast.AST | None
) -> bool:
    """Whether a condition holds that its value leaves open."""
    held = _by_count(run, test, frame)
    if held is not None:
        return held
    key, negated = question(run, test, frame)
    learns = site is not None and run.relevance.differentiates(site)
    given = None
    if key is None and isinstance(test, ast.Call) and isinstance(value, Unknown):
        # A function gives what is asked about elsewhere too: ``def over(run): return run.done``. Where
        # training hangs on it, what was answered before says nothing: the value has changed unseen.
        given = "truth", ("value", id(value))
        if given in run.path_condition and not learns:
            return run.path_condition[given]
    answer = _choose_openly(run, test, value, frame, default, site, key, negated)
    if given is not None:
        run.kept.append(value)
        run.path_condition[given] = answer
    if learns:
        run.training_questions.add(key or given)
    return answer


def _by_count(run: Run, test: ast.expr, frame: Frame) -> bool | None:
    """The answer to ``n > 1`` and the like, if a loop over ``range(n)`` made several iterations in this
    run."""
    if not run.repeat_counts or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    op, bound = test.ops[0], test.comparators[0]
    if not isinstance(bound, ast.Constant) or not isinstance(bound.value, int):
        return None
    if comparable(run, test.left, frame) not in run.repeat_counts:
        return None
    match op:
        case ast.Gt() | ast.NotEq() if bound.value <= 1:
            return True
        case ast.GtE() if bound.value <= 2:
            return True
        case ast.LtE() | ast.Eq() if bound.value <= 1:
            return False
        case ast.Lt() if bound.value <= 2:
            return False
    return None


def may_repeat(run: Run, iterable: ast.expr, frame: Frame) -> bool:
    """Whether a loop over ``range(n)`` may make a second iteration, by what was answered about ``n``."""
    for node in walk(iterable):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "range" and len(node.args) == 1:
            number = comparable(run, node.args[0], frame)
            if number is None or number[0] == "const":
                return True
            if run.path_condition.get(("Gt", number, 1)) is False or run.path_condition.get(
                ("Eq", number, 1)
            ):
                return False
            run.repeat_counts.add(number)
    return True


def settled_by_training(run: Run, test: ast.expr, frame: Frame) -> bool | None:
    """What a condition comes to by the answer that has led to training, or kept it from being run."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = settled_by_training(run, test.operand, frame)
        return None if held is None else not held
    if isinstance(test, ast.BoolOp):
        stop = isinstance(test.op, ast.Or)
        return stop if any(settled_by_training(run, part, frame) is stop for part in test.values) else None
    key, negated = question(run, test, frame)
    return (
        run.path_condition[key] is not negated
        if key in run.training_questions and key in run.path_condition
        else None
    )


def _choose_openly(
    run: Run,
    test: ast.expr,
    value: Value,
    frame: Frame,
    default: bool,
    site: ast.AST | None,
    key: Any,
    negated: bool,
) -> bool:
    """Whether a condition holds by the scenario, or by an earlier answer to the same question."""
    trains = site is not None and (
        run.loops
        or run.called_from_outside
        or run.relevance.touches(site)
        or any(run.relevance.switched(site))
        or run.relevance.started(site)
    )
    if key is not None and key in run.path_condition:
        if site is not None and trains and site not in run.undecided:
            # Decided while networks were set up, and asked again where they are trained.
            run.undecided[site] = [key]
            before = run.setup_guesses.get(key) or run.picked.get(key)
            if before is not None:
                run.answered[site] = before
            if run.options_read:
                held = run.path_condition[key] is not negated
                _note_options(run, site, test, value, frame, held)
            flipped = site in run.scenario.flipped and not _tries_habit(run, site)
            if flipped and key not in run.reversed:
                keep_answer(run, test, frame, run.path_condition[key] is negated)
        return run.path_condition[key] is not negated
    if key is not None and key[0] == "Eq" and key[1] in run.equals:
        guessed = run.setup_guesses.get((*key[:2], run.equals[key[1]]))
        if guessed is not None and run.equals[key[1]] != key[2]:
            run.precluding.append(guessed)
        if site is not None:
            run.ruled_out.setdefault(run.equated.get(key[1]), set()).add(site)
        return (run.equals[key[1]] == key[2]) is not negated
    made = way_that_makes(run, site, frame) if isinstance(site, ast.If) else None
    if (
        run.options_read
        and isinstance(site, ast.If)
        and not trains
        and site not in run.scenario.revised_guesses
    ):
        # Networks are set up as they are for who gives no options.
        unset = _without_options(run, test, value, frame)[1]
        default = default if unset is None else unset
    answer = default if (run.scenario.main if made is None else made) else not default
    among = key is not None and key[0] == "In" and key[2].__class__ is tuple and key[1] in run.equals
    if among:
        assert key is not None
        answer = (run.equals[key[1]] in key[2]) is not negated
    if site is not None and trains and made is None:
        # How networks are set up is taken as it comes; how they are trained is asked both ways.
        run.undecided.setdefault(site, []).append(key)
        if run.options_read:
            _note_options(run, site, test, value, frame, answer)
        if isinstance(site, ast.IfExp) and key is not None:
            run.picked[key] = site
        if site in run.scenario.flipped and not _tries_habit(run, site):
            answer = not answer
            if among:
                assert key is not None
                _equals_something_else(run, key[1])
        elif site in run.scenario.earlier:
            # Who picks by this question what is trained picks by the other answer, too.
            answer = not answer
            run.reversed.add(key)
    elif site in run.scenario.earlier and made is None:
        # Networks that are set up for the other answer are the ones that are trained by it.
        answer = not answer
        run.reversed.add(key)
    if key is not None:
        _note_decision(run, key, answer is not negated)
        if key[1] in run.equals:
            run.equated[key[1]] = site
        if not trains:
            run.setup_guesses[key] = site
    return answer


def was_guessed(run: Run, test: ast.expr, frame: Frame) -> bool:
    """Whether the answer to a question was guessed while things were set up."""
    key, _ = question(run, test, frame)
    return key is not None and key in run.setup_guesses


def keep_answer(run: Run, test: ast.expr, frame: Frame, holds: bool) -> None:
    """Keep another answer to a question than the one that was guessed."""
    key, negated = question(run, test, frame)
    if key is not None and run.path_condition.get(key) is not (holds is not negated):
        if key[0] == "Eq" and key[1] in run.equals:
            _equals_something_else(run, key[1])
        _note_decision(run, key, holds is not negated)


def _note_decision(run: Run, key: tuple[Any, ...], answer: bool) -> None:
    """Keep the answer to a question, and which value something has by it."""
    run.path_condition[key] = answer
    if key[0] == "Eq" and answer and isinstance(key[2], (str, int, float, bool)):
        run.equals[key[1]] = key[2]


def _note_options(run: Run, site: ast.AST, test: ast.expr, value: Value, frame: Frame, answer: bool) -> None:
    """Note whether options decide a condition, and whether it comes out the same if none is given."""
    decides, unset = _without_options(run, test, value, frame)
    if not decides:
        return
    run.optional.add(site)
    # What is decided outside networks, and moves no gradient, decides what the data is.
    differs = unset is not None and unset is not answer
    if differs and (run.current_call is not None or _matters(run, site)):
        run.changed_by_options.add(site)


def _without_options(run: Run, test: ast.expr, value: Value, frame: Frame) -> tuple[bool, bool | None]:
    """Whether options decide a condition, and what it comes to if none is given, where that is known."""
    how = None
    sides: list[Value | None] = [value]
    if isinstance(test, ast.Compare):
        how = test.ops[0].__class__
        sides = [evaluated_again(run, side, frame) for side in (test.left, *test.comparators)]
    if not any(isinstance(side, script_options.ScriptOption) for side in sides):
        return False, None
    given = [side.default if isinstance(side, script_options.ScriptOption) else side for side in sides]
    if len(given) <= 2 and all(isinstance(side, Const) for side in given):
        values = [side.value for side in given]  # type: ignore[union-attr]
        with contextlib.suppress(TypeError):
            return True, bool(values[0] if how is None else COMPARE[how](*values))
    return True, None


def evaluated_again(run: Run, node: ast.expr, frame: Frame) -> Value | None:
    """The value of what can be evaluated once more, as it calls nothing."""
    base = node
    while isinstance(base, ast.Attribute):
        base = base.value
    with contextlib.suppress(Impossible):  # it is not bound yet
        return run.evaluate(node, frame) if isinstance(base, (ast.Name, ast.Constant)) else None
    return None


def _equals_something_else(run: Run, atom: tuple[Any, ...]) -> None:
    """Forget which value something has: it is asked about as if it had another."""
    del run.equals[atom]
    for known in [k for k in run.path_condition if k[0] == "Eq" and k[1] == atom]:
        del run.path_condition[known]


def default_for(run: Run, answer: bool) -> bool:
    """The default with which :func:`decide` gives ``answer`` in every scenario."""
    return answer if run.scenario.main else not answer


def question(run: Run, test: ast.expr, frame: Frame) -> tuple[Any, bool]:
    """What is asked, so that the same question about the same values gets the same answer.

    Returns the key (None where the question cannot be recognised) and whether ``test`` negates it.
    """
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        name = test.ops[0].__class__.__name__
        negated = name in ("NotEq", "IsNot", "NotIn")
        name = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}.get(name, name)
        left, right = comparable(run, test.left, frame), comparable(run, test.comparators[0], frame)
        if left is None or right is None:
            return None, negated
        return (name, left, right[1] if right[0] == "const" else right), negated
    atom = comparable(run, test, frame)
    return (None if atom is None else ("truth", atom)), False


def comparable(run: Run, node: ast.expr, frame: Frame) -> tuple[Any, ...] | None:
    """A comparable stand-in for a value that is looked up or computed without a call."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = run.evaluate(node, frame)
        if isinstance(value, Const):
            try:
                hash(value.value)
            except TypeError:
                return None
            return ("const", value.value)
        if isinstance(value, ImportedName):
            return ("external", value.name)
        run.kept.append(value)
        return ("value", id(value))
    if isinstance(node, ast.Constant):
        return ("const", node.value)
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(e, ast.Constant) for e in node.elts):
        return ("const", tuple(e.value for e in node.elts if isinstance(e, ast.Constant)))
    if isinstance(node, ast.BinOp):
        left, right = comparable(run, node.left, frame), comparable(run, node.right, frame)
        if left is None or right is None:
            return None
        return (node.op.__class__.__name__, left, right)
    if isinstance(node, ast.Subscript):
        left, right = comparable(run, node.value, frame), comparable(run, node.slice, frame)
        if left is None or right is None:
            return None
        return ("item", left, right)
    if isinstance(node, ast.Call):
        parts = [comparable(run, a, frame) for a in [node.func, *node.args]]
        if not node.keywords and all(p is not None for p in parts) and parts[0][0] == "external":  # type: ignore[index]
            if "rand" in parts[0][1]:  # type: ignore[index]
                return None
            return ("call", *parts)
    return None


def note_number_condition(run: Run, answer: NumberAnswer) -> None:
    """Note the answer to a condition on the iteration number, and whether a later iteration may change it."""
    if run.unflipped.get(answer.test, answer.value) is not answer.value:
        run.unflipped[answer.test] = None
    elif answer.flips:
        run.unflipped.setdefault(answer.test, answer.value)


def value_in_iteration(value: Value) -> bool | None:
    """The value in this iteration of a condition on the iteration number; None for any other value.

    Only conditions that decide whether the loop goes on use it. Those that decide what an iteration does are
    left open, since an iteration of every number comes at some time.
    """
    if isinstance(value, NumberCondition):
        return value.holds
    return bool(value.number) if isinstance(value, IterationNumber) else None


@lru_cache(maxsize=1024)
def _links(test: ast.expr) -> list[ast.expr]:
    """The single comparisons of a chained one (``a < b < c``), if its operands may be evaluated twice."""
    if not isinstance(test, ast.Compare) or len(test.ops) == 1:
        return []
    acting = (ast.Call, ast.NamedExpr, ast.Await)
    if any(isinstance(n, acting) for c in test.comparators for n in walk(c)):
        return []
    operands = [test.left, *test.comparators]
    return [
        ast.copy_location(ast.Compare(left, [op], [right]), test)
        for left, op, right in zip(operands, test.ops, operands[1:])
    ]


def truth(value: Value) -> bool | None:
    """Python's truth of a value, or None where it cannot be known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Sequence):
        return True if value.items else (None if value.open else False)
    if isinstance(value, Mapping):
        return True if value.items else (None if value.open else False)
    if isinstance(value, (Function, Class, Optimizer, Instance)):
        return True
    if isinstance(value, Module):
        return True
    return None


def way_that_makes(run: Run, node: ast.If, frame: Frame) -> bool | None:
    """Which way makes a network by a class that can be seen, where the other one gets it from elsewhere."""
    if run.relevance.touches(node):
        return None
    for target, ways in _made_by(node):
        made: set[bool] = set()
        unseen: set[bool] = set()
        for way, function in ways.items():
            value = evaluated_again(run, function, frame)
            known = isinstance(value, Class) or (
                isinstance(value, ImportedName) and is_of_networks(value.name)
            )
            if known or value.__class__ in (ImportedName, Unknown):
                (made if known else unseen).add(way)
        if len(ways) == 1 and isinstance(evaluated_again(run, target, frame), Module):
            made = {not way for way in ways}
        if len(made) == len(unseen) == 1 and made != unseen:
            return True in made
    return None


@lru_cache(maxsize=1024)
def _made_by(node: ast.If) -> list[tuple[ast.expr, dict[bool, ast.expr]]]:
    """What the ways of a condition assign from calls: each target, with what is called first for it."""
    targets: dict[str, ast.expr] = {}
    called: dict[str, dict[bool, ast.expr]] = {}
    for way, suite in ((True, node.body), (False, node.orelse)):
        for statement in suite:
            if isinstance(statement, ast.Assign) and isinstance(
                statement.targets[0], (ast.Name, ast.Attribute)
            ):
                name, value = ast.unparse(statement.targets[0]), statement.value
                function = None
                while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
                    function = value.func if isinstance(value, ast.Call) else function
                    value = value.func if isinstance(value, ast.Call) else value.value
                if function is not None:
                    targets[name] = statement.targets[0]
                    called.setdefault(name, {}).setdefault(way, function)
    return [(targets[name], ways) for name, ways in called.items()]


def ends_recursion(
    run: Run, body: list[ast.stmt] | ast.expr, orelse: list[ast.stmt] | ast.expr
) -> bool | None:
    """Which way a condition goes in a call of a function from inside itself: the one that ends it.

    None where it says nothing: elsewhere, or if both ways call the function again, or neither does and the
    function goes on.
    """
    if len(run.active) < 2 or run.active[-1] not in run.active[:-1]:
        return None
    name = getattr(run.active[-1][0], "name", "")
    again, otherwise = (_mentions(part, name) for part in (body, orelse))
    if again or otherwise:
        return None if again and otherwise else otherwise
    return True if isinstance(body, list) and isinstance(body[-1], ast.Return) and not orelse else None


def _mentions(code: list[ast.stmt] | ast.expr, name: str) -> bool:
    return any(
        name in (getattr(node, "id", ""), getattr(node, "attr", ""))
        for part in (code if isinstance(code, list) else [code])
        for node in walk(part)
    )
