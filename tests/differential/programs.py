"""Generates training programs: small, deterministic, and right for torch up to autograd's own errors.

Every tensor that flows through networks has the shape (2, 3), so that every expression fits everywhere.
A program is a sequence of statements drawn at random under the rules of what is defined where; the odds
are such that most programs look like training (a forward, a loss, a backward, a step), and about half of
them make a mistake. What is written inside the loop is then distributed: over branches, inner loops,
helper functions with arguments and results, methods of a trainer that share attributes, closures.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import vocabulary as words
from choices import Choices
from distribution import Lines, indented, outlined, renamed, split_functions, split_methods


@dataclass(frozen=True)
class Features:
    """What programs may contain."""

    unknown_length: bool = False
    """Loops over data whose length the model cannot know."""


@dataclass
class Net:
    """A network, a cell, or a parameter."""

    ref: str
    kind: str
    """``net``: a call maps (2, 3) to (2, 3); ``pair``: to two of them; ``cell``, ``lstmcell``, ``rnn``,
    ``lstm``, ``embedding``, ``matrix`` (a parameter to multiply by), ``vector`` (one to add)."""
    make: str
    parts: frozenset[str] = frozenset()
    """Where it shares parameters with others: the parts that it consists of."""
    options: tuple[str, ...] = ()
    """Keywords that its forward understands."""

    @property
    def is_module(self) -> bool:
        """Whether it has ``parameters()``."""
        return self.kind not in ("matrix", "vector")


NETS = ("net", "embedding", "matrix", "vector", "pair")
"""What a tensor can be sent through in an expression."""
CELLS = ("cell", "lstmcell", "rnn", "lstm")


@dataclass
class Var:
    """A variable that holds tensors."""

    name: str
    kind: str
    """``T``: (2, 3); ``L``: a loss; ``H``: a recurrent layer's state (1, 3); ``TT``, ``HH``: tuples of two;
    ``TS``: a list that holds something."""
    grad: bool = True
    used: int = 0
    depth: int = 0
    leaf: bool = False
    """Made with ``requires_grad``: no in-place operation, unless for the error."""


@dataclass
class Opt:
    """An optimizer."""

    ref: str
    nets: list[Net]
    make: str
    dirty: bool = False


@dataclass
class Scope:
    """What is defined at some place."""

    nets: list[Net]
    opts: list[Opt]
    vars: list[Var] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    looping: bool = False
    depth: int = 0
    recording: bool = True
    weight: int = 1
    """How often this place runs, so that the model can run it as often."""

    def of(self, *kinds: str) -> list[Var]:
        """The variables of these kinds."""
        return [v for v in self.vars if v.kind in kinds]

    def nets_of(self, *kinds: str) -> list[Net]:
        """The networks of these kinds."""
        return [n for n in self.nets if n.kind in kinds]

    @property
    def modules(self) -> list[Net]:
        """Everything that has ``parameters()``."""
        return [n for n in self.nets if n.is_module]


class Generator:
    """Writes one program."""

    def __init__(self, choices: Choices, features: Features) -> None:
        self.c = choices
        self.features = features
        self.numbers: dict[str, int] = {}
        self.definitions: Lines = []
        self.setup: Lines = []
        self.style = "module"
        self.helpers: dict[str, list[str]] = {}
        """Network -> the functions that apply it."""
        self.methods: Lines = []
        self.holder = ""
        """What holds some of the variables, as attributes or items."""

    def word(self, options: list[str]) -> str:
        """One of the vocabulary's expressions."""
        return self.c.one(options)

    def fresh(self, stem: str) -> str:
        """A name that was not used yet."""
        self.numbers[stem] = self.numbers.get(stem, 0) + 1
        return f"{stem}{self.numbers[stem]}"

    # ------------------------------------------------------------------ expressions

    def data(self) -> str:
        """Data."""
        return self.c.one(["torch.randn(2, 3)", "torch.ones(2, 3)", "torch.rand(2, 3)", "ONE * 0.5"])

    def atom(self, scope: Scope, grad: bool | None = None) -> str:
        """A variable, data, or a parameter."""
        by_kind = {k: [v for v in scope.of(k) if grad is None or v.grad is grad] for k in ("T", "TS", "TT")}
        options: list[tuple[float, str]] = [(6, "T")] if by_kind["T"] else []
        options += [(0.7, "TS")] if by_kind["TS"] else []
        options += [(1, "TT")] if by_kind["TT"] else []
        if grad is not True:
            options.append((2, "data"))
        if scope.nets_of("vector") and grad is not False:
            options.append((1, "vector"))
        kind = self.c.weighted(options) if options else "data"
        if kind == "data":
            return self.data()
        if kind == "vector":
            return self.c.one(scope.nets_of("vector")).ref
        name = self.pick(by_kind[kind]).name
        index = {"T": [""], "TS": ["[-1]", "[0]"], "TT": ["[0]", "[1]"]}[kind]
        return name + self.c.one(index)

    def pick(self, found: list[Var]) -> Var:
        """One of the variables, rather a recent one."""
        if self.c.chance(60):
            return found[-1 - self.c.below(min(2, len(found)))]
        return self.c.one(found)

    def graph_expression(self, scope: Scope, depth: int) -> str:
        """An expression that most likely carries a graph."""
        nets = scope.nets_of(*NETS)
        carrying = [v for v in scope.of("T", "TS", "TT") if v.grad]
        if carrying and (not nets or self.c.chance(45)):
            return self.expression(scope, depth, self.atom(scope, True))
        if nets:
            return self.through(self.c.one(nets), self.expression(scope, depth - 1))
        return self.expression(scope, depth)

    def through(self, net: Net, operand: str) -> str:
        """A network applied to an operand."""
        if net.kind == "embedding":
            return self.c.one([f"{net.ref}(INDEX)", f"{net.ref}(INDEX) + {operand}"])
        if net.kind == "matrix":
            forms = ["{0} @ {1}", "torch.mm({0}, {1})", "{0}.matmul({1})", "F.linear({0}, {1})"]
            return self.c.one(forms).format(_bracket(operand), net.ref)
        if net.kind == "vector":
            return self.c.one(["{0} + {1}", "{0} * {1}", "{1} * {0}"]).format(_bracket(operand), net.ref)
        helpers = self.helpers.get(net.ref)
        if helpers and self.c.chance(50):
            return self.c.one(helpers).replace("{}", operand)
        call = f"{net.ref}({operand})"
        if net.options and self.c.chance(50):
            call = f"{net.ref}({operand}, {self.c.one(net.options)})"
        elif net.kind == "net" and self.c.chance(2):
            call = f"{net.ref}.forward({operand})"
        return f"{call}[{self.c.below(2)}]" if net.kind == "pair" else call

    def expression(self, scope: Scope, depth: int, first: str | None = None) -> str:
        """An expression of shape (2, 3)."""
        if depth <= 0:
            return first or self.atom(scope)
        kinds = [(3, "atom"), (4, "unary"), (2.5, "binary"), (3, "net"), (0.8, "detach"), (0.2, "either")]
        kind = self.c.weighted(kinds)
        inner = self.expression(scope, depth - 1, first)
        if kind == "unary":
            return self.word(words.UNARY).format(_bracket(inner))
        if kind == "binary":
            other = self.expression(scope, depth - 2)
            pair = [inner, other] if self.c.chance(50) else [other, inner]
            return self.word(words.BINARY).format(*(_bracket(p) for p in pair))
        if kind == "net" and scope.nets_of(*NETS):
            return self.through(self.c.one(scope.nets_of(*NETS)), inner)
        if kind == "detach":
            return self.c.weighted(words.CUT).format(_bracket(inner))
        if kind == "either" and scope.counters:
            return f"({inner} if {self.condition(scope)} else {self.expression(scope, depth - 1)})"
        return inner

    def loss(self, scope: Scope) -> str:
        """A scalar that most likely carries a graph."""
        losses = [v for v in scope.of("L") if v.grad]
        kind = self.c.weighted([(4.0, "one"), (4, "two"), (1.2 if losses else 0, "more")])
        if kind == "more":
            old = self.pick(losses)
            old.used += 1
            fresh = self.loss(replace(scope, vars=[v for v in scope.vars if v.kind != "L"]))
            return self.word(words.LOSSES_MORE).format(old.name, fresh)
        main = _bracket(self.graph_expression(scope, 2))
        if kind == "one":
            return self.word(words.LOSSES_ONE).format(main)
        other = _bracket(self.expression(scope, 1))
        pair = [main, other] if not self.c.chance(25) else [other, main]
        return self.word(words.LOSSES_TWO).format(*pair)

    def condition(self, scope: Scope) -> str:
        """A condition on a loop's counter."""
        if not scope.counters:
            return self.c.one(["True", "False"])
        return self.word(words.CONDITIONS).format(self.c.one(scope.counters))

    # ------------------------------------------------------------------ variables

    @property
    def prefix(self) -> str:
        return "self." if self.style == "attributes" else ""

    def name(self, stem: str) -> str:
        """A name for a new variable."""
        name = self.fresh(stem)
        if self.holder and self.c.chance(30):
            return f"{self.holder}.{name}" if self.holder == "box" else f'{self.holder}["{name}"]'
        return self.prefix + name

    def define(self, scope: Scope, kind: str, grad: bool, stem: str, reuse: float = 25) -> str:
        """The name for a new value: a new variable or one that exists."""
        old = scope.of(kind)
        if old and self.c.chance(reuse):
            var = self.c.one(old)
            var.grad, var.used, var.leaf = grad, 0, False
            return var.name
        name = self.name(stem)
        scope.vars.append(Var(name, kind, grad, depth=scope.depth))
        return name

    # ------------------------------------------------------------------ statements

    def statements(self, scope: Scope, count: int) -> Lines:
        """A sequence of statements."""
        lines: Lines = []
        for _ in range(count):
            lines += self.statement(scope)
        return lines or ["pass"]

    def statement(self, scope: Scope) -> Lines:
        """One statement (or a few that belong together)."""
        losses = [v for v in scope.of("L") if v.grad and v.used == 0]
        again = [v for v in scope.of("L") if v.grad and v.used > 0]
        dirty = any(o.dirty for o in scope.opts)
        on = scope.recording
        room = scope.depth < 3
        looping = room and scope.weight <= 12
        options: list[tuple[float, Callable[[Scope], Lines]]] = [
            (7, self.forward),
            (5, self.new_loss),
            ((9 if losses else 0.4 if again else 0) * on, self.backward),
            ((6 if dirty else 0.6) * on, self.step),
            (3, self.zero),
            (1, self.inplace),
            (1, self.detach),
            (0.7, self.toggle),
            (0.8 * room, self.no_grad),
            (1.4 if room and scope.counters else 0, self.branch),
            (0.8 * looping, self.inner_loop),
            (0.9, self.collect),
            (2.5 if scope.nets_of(*CELLS) else 0, self.recurrent),
            (0.25 * on, self.gradient),
            (0.6, self.bookkeeping),
            (0.4, self.mode),
            (0.4, self.write),
            (1.6 * on, self.phase),
            (0.5, self.pair),
            (0.5, self.from_list),
            (0.4 * on if losses or again else 0, self.several_losses),
            (0.3, self.leaf),
            (0.5 * on * looping, self.unrolled),
            (0.4 * on, self.table_of_losses),
            (0.3, self.copies),
            (0.3 * on, self.closure),
            (0.3, self.rebinding),
            (0.3 * on if losses else 0, self.update),
            (0.2 * on, self.scaled_gradients),
            (0.15, self.renewal),
            (0.3 * on, self.in_parallel),
            (0.4 * on if losses else 0, self.regularised),
            (0.4, self.both_losses),
        ]
        chosen = self.c.weighted([o for o in options if o[0] > 0])
        return chosen(scope)

    def forward(self, scope: Scope) -> Lines:
        """``x = ...``."""
        text = self.graph_expression(scope, 2) if self.c.chance(75) else self.expression(scope, 2)
        return [
            f"{self.define(scope, 'T', scope.recording, self.c.one(['x', 'fake', 'z', 'y', 'h']))} = {text}"
        ]

    def new_loss(self, scope: Scope) -> Lines:
        """``loss = ...``."""
        text = self.loss(scope)
        return [f"{self.define(scope, 'L', scope.recording, 'loss', 20)} = {text}"]

    def backward(self, scope: Scope) -> Lines:
        """``loss.backward()``."""
        losses = [v for v in scope.of("L") if v.grad and v.used == 0]
        if not losses or self.c.chance(6):
            losses = [v for v in scope.of("L") if v.grad] or scope.of("L")
        if not losses:
            return []
        loss = losses[-1] if self.c.chance(60) else self.c.one(losses)
        loss.used += 1
        for opt in scope.opts:
            opt.dirty = True
        how = self.c.weighted(
            [
                (10.0, "{}.backward()"),
                (4, "{}.backward(retain_graph=True)"),
                (0.5, "torch.autograd.backward({})"),
                (0.6, "({} * 0.5).backward()"),
                (0.2, "{}.backward(create_graph=True)"),
                (0.5, "({} / 2).backward()"),
                (0.3, "{}.backward(torch.tensor(1.0))"),
                (0.2, "{}.backward(None, True)"),
                (0.2, "{}.backward(gradient=torch.ones(()), retain_graph=True)"),
                (0.3, "torch.autograd.backward([{}], retain_graph=True)"),
                (0.3, "inputs"),
                (0.3, "keep"),
            ]
        )
        if how == "keep":
            return [f"keep = {self.condition(scope)}", f"{loss.name}.backward(retain_graph=keep)"]
        if how == "inputs":
            if not scope.modules:
                return [f"{loss.name}.backward()"]
            ref = self.c.one(scope.modules).ref
            more = self.c.one(["", ", retain_graph=True"])
            return [f"{loss.name}.backward(inputs=list({ref}.parameters()){more})"]
        lines = [how.format(loss.name)]
        if self.c.chance(8) and scope.modules:
            clip = self.c.one(
                ["clip_grad_norm_({}.parameters(), 1.0)", "clip_grad_value_({}.parameters(), 0.5)"]
            )
            lines.append(f"nn.utils.{clip.format(self.c.one(scope.modules).ref)}")
        return lines

    def step(self, scope: Scope) -> Lines:
        """``optimizer.step()``."""
        if not scope.opts:
            return []
        opt = self.c.one([o for o in scope.opts if o.dirty] or scope.opts)
        opt.dirty = False
        kind = self.c.weighted([(8.0, "one"), (1, "zero"), (0.8, "all"), (0.3, "scheduler")])
        if kind == "all":
            name = self.fresh("o")
            return [f"for {name} in [{', '.join(o.ref for o in scope.opts)}]:", f"    {name}.step()"]
        if kind == "zero":
            return [f"{opt.ref}.step()", f"{opt.ref}.zero_grad()"]
        if kind == "scheduler":
            return [f"{opt.ref}.step()", f"torch.optim.lr_scheduler.StepLR({opt.ref}, 1).step()"]
        return [f"{opt.ref}.step()"]

    def zero(self, scope: Scope) -> Lines:
        """Gradients cleared, in any writing."""
        options: list[tuple[float, str]] = []
        if scope.opts:
            options += [(8, "opt"), (1, "keep"), (0.7, "all")]
        if scope.modules:
            options += [(2, "net"), (0.5, "none"), (0.4, "zeros")]
        if scope.nets_of("matrix", "vector"):
            options += [(0.4, "parameter")]
        if not options:
            return []
        kind = self.c.weighted(options)
        if kind == "opt":
            return [f"{self.c.one(scope.opts).ref}.zero_grad()"]
        if kind == "keep":
            flag = self.c.one(["set_to_none=False", "set_to_none=True", "False"])
            return [f"{self.c.one(scope.opts).ref}.zero_grad({flag})"]
        if kind == "all":
            name = self.fresh("o")
            return [f"for {name} in ({', '.join(o.ref for o in scope.opts)},):", f"    {name}.zero_grad()"]
        if kind == "net":
            flag = self.c.one(["", "", "set_to_none=False"])
            return [f"{self.c.one(scope.modules).ref}.zero_grad({flag})"]
        if kind == "parameter":
            return [f"{self.c.one(scope.nets_of('matrix', 'vector')).ref}.grad = None"]
        name = self.fresh("p")
        head = f"for {name} in {self.c.one(scope.modules).ref}.parameters():"
        if kind == "none":
            return [head, f"    {name}.grad = None"]
        test = self.c.one([f"{name}.grad is not None", f"not {name}.grad is None"])
        return [
            head,
            f"    if {test}:",
            f"        {name}.grad.{self.c.one(['zero_()', 'zero_()', 'data.zero_()'])}",
        ]

    def inplace(self, scope: Scope) -> Lines:
        """A tensor changed in place."""
        found = [v for v in scope.of("T") if not v.leaf or self.c.chance(15)]
        if not found:
            return []
        name = self.pick(found).name
        operand = self.expression(scope, 1)
        kind = self.c.weighted(
            [
                (3.0, "+="),
                (4, "method"),
                (2, "item"),
                (1, "row"),
                (1, "function"),
                (0.7, "view"),
                (0.7, "*="),
                (0.5, "item+="),
            ]
        )
        if kind == "+=":
            return [f"{name} {self.c.one(['+=', '-='])} {operand}"]
        if kind == "*=":
            return [f"{name} {self.c.one(['*=', '/='])} {self.c.one(['0.5', '2', 'ONE'])}"]
        if kind == "item+=":
            index, how = self.c.one(["0", ":1", "MASK"]), self.c.one(["+= 1", "*= 0.5"])
            return [f"{name}[{index}] {how}"]
        if kind == "method":
            method = self.c.one(
                [*words.INPLACE_METHODS, f"add_({operand})", f"mul_({operand})", f"copy_({operand})"]
            )
            return [f"{name}.{method}"]
        if kind == "item":
            index = self.c.one(["0", ":1", ":", "1", "MASK", "0, 1", ":, 1", "INDEX"])
            return [f"{name}[{index}] = {self.c.one(['0.0', '1'])}"]
        if kind == "row":
            return [f"{name}[0] = {_bracket(operand)}[1]"]
        if kind == "function":
            return [self.word(words.INPLACE_FUNCTIONS).format(name)]
        method = self.c.one(["add_(1)", "mul_(0.5)", "zero_()"])
        return [f"{name}{self.word(words.INPLACE_VIEWS)}.{method}"]

    def detach(self, scope: Scope) -> Lines:
        """Something cut off its graph."""
        found = scope.of("T", "H", "TT", "HH", "L", "TS")
        if not found:
            return []
        var = self.pick(found)
        var.grad = False
        if var.kind in ("TT", "HH"):
            return [self.word(words.DETACHED_TUPLES).format(var.name)]
        if var.kind == "TS":
            return [f"{var.name} = [s.detach() for s in {var.name}]"]
        if var.kind == "L":
            return [f"{var.name} = {var.name}.detach()"]
        how = self.c.weighted(words.DETACHED)
        if how == "{0}.detach()":
            var.grad = True
        if how.endswith(("requires_grad_()", "requires_grad=True)")):
            var.leaf, var.grad = True, True
        return [how.format(var.name)]

    def toggle(self, scope: Scope) -> Lines:
        """Parameters frozen or thawed."""
        modules, parameters = scope.modules, scope.nets_of("matrix", "vector")
        if not scope.nets:
            return []
        on = self.c.chance(50)
        if parameters and (not modules or self.c.chance(30)):
            ref = self.c.one(parameters).ref
            return [self.c.one([f"{ref}.requires_grad_({on})", f"{ref}.requires_grad = {on}"])]
        ref = self.c.one(modules).ref
        name = self.fresh("p")
        ways: list[Lines] = [
            [f"{ref}.requires_grad_({on})"],
            [f"for {name} in {ref}.parameters():", f"    {name}.requires_grad = {on}"],
            [f"for {name} in {ref}.parameters():", f"    {name}.requires_grad_({on})"],
            [f"freeze({ref}, {on})"],
            [f"for name, {name} in {ref}.named_parameters():", f"    {name}.requires_grad = {on}"],
            [f"for {name} in list({ref}.parameters()):", f"    {name}.requires_grad = {on}"],
        ]
        before = self.c.one(ways)
        if not on and self.c.chance(50):
            # Frozen for a while only.
            inner = self.statements(scope, 1 + self.c.below(3))
            return [*before, *inner, *(line.replace("False", "True") for line in self.c.one(ways))]
        return before

    def no_grad(self, scope: Scope) -> Lines:
        """Statements without (or with) recording."""
        kinds = [(8.0, "torch.no_grad()"), (1, "torch.set_grad_enabled(False)"), (1, "torch.enable_grad()")]
        kinds += [(0.7, "switch"), (0.5, f"torch.set_grad_enabled({self.condition(scope)})")]
        kind = self.c.weighted(kinds)
        recording = scope.recording
        scope.recording = "enable_grad" in kind
        body = self.block(scope, 1 + self.c.below(3))
        scope.recording = recording
        if kind == "switch" and not any("continue" in line or "break" in line for line in body):
            return ["torch.set_grad_enabled(False)", *body, f"torch.set_grad_enabled({recording})"]
        if kind == "switch":
            kind = "torch.no_grad()"
        return [f"with {kind}:", *indented(body)]

    def block(self, scope: Scope, count: int) -> Lines:
        """The statements of a branch: what they define ends with them."""
        inner = replace(scope, vars=list(scope.vars), depth=scope.depth + 1, counters=list(scope.counters))
        return self.statements(inner, count)

    def branch(self, scope: Scope) -> Lines:
        """``if`` on a loop's counter."""
        test = self.condition(scope)
        kind = self.c.weighted([(10.0, "if"), (5, "else"), (1, "elif"), (0.7, "continue"), (0.3, "break")])
        if kind in ("continue", "break") and scope.looping and scope.depth == 1:
            return [f"if {test}:", f"    {kind}"]
        lines = [f"if {test}:", *indented(self.block(scope, 1 + self.c.below(3)))]
        if kind == "elif":
            lines += [f"elif {self.condition(scope)}:", *indented(self.block(scope, 1))]
        if kind in ("else", "elif"):
            lines += ["else:", *indented(self.block(scope, 1 + self.c.below(2)))]
        return lines

    def inner_loop(self, scope: Scope) -> Lines:
        """A loop with few passes."""
        count = 2 + self.c.below(2)
        name = self.fresh("k")
        inner = replace(scope, vars=list(scope.vars), depth=scope.depth + 1, weight=scope.weight * count)
        inner.counters, inner.looping = [*scope.counters, name], False
        body = self.statements(inner, 1 + self.c.below(4))
        kind = self.c.weighted([(5.0, "range"), (1, "tuple"), (0.5, "while"), (0.5, "reversed")])
        if kind == "while":
            return [f"{name} = 0", f"while {name} < {count}:", *indented(body), f"    {name} += 1"]
        over = {
            "range": f"range({count})",
            "tuple": f"{tuple(range(count))}",
            "reversed": f"reversed(range({count}))",
        }
        return [f"for {name} in {over[kind]}:", *indented(body)]

    def collect(self, scope: Scope) -> Lines:
        """Lists, tuples and dicts of tensors."""
        tensors, losses, lists = scope.of("T"), scope.of("L"), scope.of("TS")
        kinds = [
            (1.0, "new"),
            (2 if lists else 0, "append"),
            (2 if lists else 0, "use"),
            (1, "total"),
            (1, "tuple"),
        ]
        kind = self.c.weighted([k for k in [*kinds, (0.5, "dict")] if k[0]])
        if kind == "append":
            target = self.c.one(lists).name
            text = self.expression(scope, 1)
            return [
                self.c.one(
                    [f"{target}.append({text})", f"{target} = {target} + [{text}]", f"{target} += [{text}]"]
                )
            ]
        if kind == "use":
            source = self.c.one(lists)
            text = self.word(words.FROM_LISTS).format(source.name)
            return [f"{self.define(scope, 'T', source.grad and scope.recording, 's')} = {text}"]
        if kind == "total" and losses:
            loss = self.pick(losses)
            totals = [v for v in losses if v is not loss and v.depth < scope.depth]
            if not totals:
                return []
            total = self.c.one(totals)
            total.grad, total.used = loss.grad, 0
            return [f"{total.name} {self.c.one([f'= {total.name} +', '+='])} {loss.name}"]
        if not tensors:
            return []
        first = self.pick(tensors)
        second = self.expression(scope, 1)
        if kind == "tuple":
            return [f"{self.define(scope, 'TT', first.grad, 'pair')} = ({first.name}, {second})"]
        if kind == "dict":
            name = self.fresh("out")
            target = self.define(scope, "T", first.grad, "x")
            make = self.c.one([f'{{"a": {first.name}, "b": {second}}}', f"dict(a={first.name}, b={second})"])
            return [f"{name} = {make}", f'{target} = {name}["a"] + {name}["b"]']
        if kind == "new":
            return [f"{self.define(scope, 'TS', first.grad, 'items')} = [{first.name}, {second}]"]
        return []

    def recurrent(self, scope: Scope) -> Lines:
        """One step of a recurrent network on a state that may be carried."""
        net = self.c.one(scope.nets_of(*CELLS)) if scope.nets_of(*CELLS) else None
        if net is None:
            return []
        operand = self.expression(scope, 1)
        kind = {"cell": "T", "lstmcell": "TT", "rnn": "H", "lstm": "HH"}[net.kind]
        lines: Lines = []
        if not scope.of(kind):
            zeros = "torch.zeros(1, 3)" if "H" in kind else "torch.zeros(2, 3)"
            first = f"({zeros}, {zeros})" if len(kind) == 2 else zeros
            lines.append(f"{self.define(scope, kind, False, 'state')} = {first}")
        state = self.pick(scope.of(kind))
        old = state.name
        target = old
        if self.c.chance(25):
            target = self.define(scope, kind, scope.recording, "state", 0)
        else:
            state.grad = scope.recording
        given = f"{net.ref}({operand}, {old})"
        if net.kind in ("rnn", "lstm"):
            out = self.define(scope, "T", scope.recording, "out", 0)
            if self.c.chance(15):
                given = f"{net.ref}({operand})"
            if net.kind == "lstm" and self.c.chance(40):
                a, b = self.fresh("h"), self.fresh("c")
                return [*lines, f"{out}, ({a}, {b}) = {given}", f"{target} = ({a}, {b})"]
            return [*lines, f"{out}, {target} = {given}"]
        if net.kind == "lstmcell" and self.c.chance(40):
            a, b = self.fresh("h"), self.fresh("c")
            return [*lines, f"{a}, {b} = {given}", f"{target} = ({a}, {b})"]
        return [*lines, f"{target} = {given}"]

    def gradient(self, scope: Scope) -> Lines:
        """``autograd.grad``, mostly as a gradient penalty."""
        nets = scope.nets_of("net")
        if not nets:
            return []
        net = self.c.one(nets)
        kind = self.c.weighted([(3.0, "penalty"), (1, "plain"), (1, "parameters")])
        if kind == "parameters":
            losses = [v for v in scope.of("L") if v.grad]
            if not losses:
                return []
            extra = self.c.one(["retain_graph=True, ", "", "create_graph=True, "])
            of = f"{self.pick(losses).name}, list({net.ref}.parameters())"
            return [f"grads = torch.autograd.grad({of}, {extra}allow_unused=True)"]
        at, out = self.fresh("u"), self.fresh("g")
        leaf = self.c.one(["requires_grad_()", "requires_grad_(True)", "clone().requires_grad_()"])
        create = ", create_graph=True" if kind == "penalty" else ""
        lines = [f"{at} = {_bracket(self.expression(scope, 1))}.detach().{leaf}"]
        call = f"torch.autograd.grad({net.ref}({at}).sum() + {at}.sum(), {at}{create})"
        lines += [f"({out},) = {call}"] if self.c.chance(50) else [f"{out} = {call}[0]"]
        if create:
            name = self.define(scope, "L", True, "penalty", 0)
            lines.append(f"{name} = ({out}.norm(2, dim=1) - 1).pow(2).mean()")
        return lines

    def bookkeeping(self, scope: Scope) -> Lines:
        """Losses printed and kept."""
        if not scope.of("L"):
            return []
        name = self.pick(scope.of("L")).name
        forms = ["print({}.item())", "log.append({}.item())", "log.append({}.detach())", "log.append({})"]
        forms += ["total = float({})", "print('loss %.3f' % {})", "log += [{}.item()]"]
        return [self.c.one(forms).format(name)]

    def mode(self, scope: Scope) -> Lines:
        """``eval()`` and ``train()``."""
        if not scope.modules:
            return []
        return [f"{self.c.one(scope.modules).ref}.{self.c.one(['eval()', 'train()', 'train(False)'])}"]

    def write(self, scope: Scope) -> Lines:
        """Parameters written by hand."""
        if not scope.nets:
            return []
        net = self.c.one(scope.nets)
        how = self.word(words.WRITES)
        name = self.fresh("p") if net.is_module else net.ref
        if not net.is_module and how.startswith("{} "):
            how = "{}.mul_(0.9)"
        inside = [how.replace("{}", name)]
        if net.is_module:
            inside = [f"for {name} in {net.ref}.parameters():", *indented(inside)]
        free = ".data" in how or "init" in how
        if (free and self.c.chance(50)) or (not free and self.c.chance(10)):
            return inside
        return ["with torch.no_grad():", *indented(inside)]

    def phase(self, scope: Scope) -> Lines:
        """A whole phase of training one optimizer: its own loss, backward and step, in some order."""
        if not scope.opts:
            return []
        opt = self.c.one(scope.opts)
        own = [n for n in opt.nets if n.kind in NETS]
        if not own:
            return []
        net = self.c.one(own)
        source = self.expression(scope, 1)
        if self.c.chance(30) and scope.of("T"):
            source = f"{self.pick(scope.of('T')).name}.detach()"
        target = self.expression(scope, 0)
        name = self.define(scope, "L", True, "loss", 0)
        scope.vars[-1].used = 1
        text = self.word(words.LOSS_OF_PHASE).format(_bracket(self.through(net, source)), _bracket(target))
        loss = [f"{name} = {text}"]
        zero = [f"{net.ref if self.c.chance(15) and net.is_module else opt.ref}.zero_grad()"]
        backward = [f"{name}.backward({self.c.weighted([(4, ''), (1, 'retain_graph=True')])})"]
        step = [f"{opt.ref}.step()"]
        order = self.c.weighted([(4, 0), (4, 1), (1, 2), (1, 3)])
        parts = [
            [zero, loss, backward, step],
            [loss, zero, backward, step],
            [loss, backward, step, zero],
            [loss, backward, step],
        ][order]
        return [line for part in parts for line in part]

    def pair(self, scope: Scope) -> Lines:
        """A network with two results."""
        nets = scope.nets_of("pair")
        if not nets:
            return []
        source = self.expression(scope, 1)
        a = self.define(scope, "T", scope.recording, "a", 0)
        b = self.define(scope, "T", scope.recording, "b", 0)
        return [f"{a}, {b} = {self.c.one(nets).ref}({source})"]

    def from_list(self, scope: Scope) -> Lines:
        """Networks held in a list or a dict."""
        nets = scope.nets_of("net")
        if not nets:
            return []
        refs = [n.ref for n in self.c.some(nets, 1, 2)]
        listed = ", ".join(refs)
        start = self.expression(scope, 1)
        name = self.define(scope, "T", scope.recording, "x")
        kind = self.c.below(7)
        if kind == 6:
            stacks = [n for n in nets if n.make.startswith("nn.Sequential(")]
            simple = [n for n in nets if n.make == "nn.Linear(3, 3)"]
            if simple and self.c.chance(50):
                ref = self.c.one(simple).ref
                return [f"{name} = F.linear({start}, {ref}.weight, {ref}.bias)"]
            if not stacks:
                return [f"{name} = {start}"]
            net = self.c.one(stacks)
            if net.make.startswith("nn.Sequential(nn.Linear(3, 3)"):
                return [f"{name} = {net.ref}{self.c.one(['[0]', '[:1]'])}({start})"]
            layer = self.fresh("layer")
            return [f"{name} = {start}", f"for {layer} in {net.ref}:", f"    {name} = {layer}({name})"]
        if kind == 0:
            f = self.fresh("f")
            return [f"{name} = {start}", f"for {f} in [{listed}]:", f"    {name} = {f}({name})"]
        if kind == 1:
            table = self.fresh("nets")
            items = ", ".join(f"{i}: {ref}" for i, ref in enumerate(refs))
            return [f"{table} = {{{items}}}", f"{name} = {table}[0]({start})"]
        if kind == 2:
            return [f"{name} = sum([f({start}) for f in [{listed}]])"]
        if kind == 3:
            f = self.fresh("apply")
            return [f"{f} = lambda t: {refs[0]}(t)", f"{name} = {f}({start})"]
        if kind == 4:
            return [f"{name} = sum(f({start}) * s for f, s in zip([{listed}], (0.5, 2)))"]
        return [f"{name} = torch.stack([f({start}) for f in ({listed},)]).mean(0)"]

    def several_losses(self, scope: Scope) -> Lines:
        """Several losses differentiated together or one after another."""
        losses = [v for v in scope.of("L") if v.grad]
        if len(losses) < 2:
            return []
        a, b = self.c.some(losses, 2, 2)
        a.used += 1
        b.used += 1
        kind = self.c.below(5)
        if kind == 0:
            return [f"({a.name} + {b.name}).backward()"]
        if kind == 1:
            return [f"torch.autograd.backward([{a.name}, {b.name}])"]
        if kind == 2:
            name = self.fresh("v")
            retain = self.c.one(["retain_graph=True", ""])
            return [f"for {name} in ({a.name}, {b.name}):", f"    {name}.backward({retain})"]
        if kind == 3:
            name = self.fresh("v")
            head = f"for n, {name} in enumerate([{a.name}, {b.name}]):"
            return [head, f"    {name}.backward(retain_graph=n < 1)"]
        return [f"{a.name}.backward(retain_graph=True)", f"{b.name}.backward()"]

    def leaf(self, scope: Scope) -> Lines:
        """A tensor that asks for a gradient of its own."""
        name = self.define(scope, "T", True, "leaf", 0)
        scope.vars[-1].leaf = True
        return [f"{name} = {self.word(words.LEAVES)}"]

    def unrolled(self, scope: Scope) -> Lines:
        """Losses gathered over an inner loop, and differentiated in it or after it."""
        tensors = scope.of("T")
        nets = scope.nets_of("net")
        if not tensors or not nets:
            return []
        state = self.pick(tensors)
        net = self.c.one(nets).ref
        losses, k = self.fresh("losses"), self.fresh("k")
        count = 2 + self.c.below(2)
        step = self.c.one(
            [
                f"{net}({state.name})",
                f"torch.tanh({net}(ONE) + {state.name})",
                f"{net}({state.name}.detach())",
            ]
        )
        body = [
            f"{state.name} = {step}",
            f"{losses}.append({self.word(words.LOSSES_ONE).format(state.name)})",
        ]
        state.grad = True
        if self.c.chance(20):
            body.append(f"{state.name} = {state.name}.detach()")
        name = self.define(scope, "L", True, "loss", 0)
        total = self.c.one(
            [f"sum({losses})", f"torch.stack({losses}).mean()", f"{losses}[-1]", f"sum({losses}) / {count}"]
        )
        return [f"{losses} = []", f"for {k} in range({count}):", *indented(body), f"{name} = {total}"]

    def table_of_losses(self, scope: Scope) -> Lines:
        """Losses in a dict."""
        table = self.fresh("table")
        lines = [f'{table} = {{"a": {self.loss(scope)}}}', f'{table}["b"] = {self.loss(scope)}']
        for opt in scope.opts:
            opt.dirty = True
        kind = self.c.below(4)
        if kind == 0:
            return [*lines, f"sum({table}.values()).backward()"]
        if kind == 1:
            name = self.fresh("v")
            return [*lines, f"for key, {name} in {table}.items():", f"    {name}.backward(retain_graph=True)"]
        if kind == 2:
            return [*lines, f'({table}["a"] + {table}["b"]).backward()']
        return [*lines, f'{table}["{self.c.one(["a", "b"])}"].backward()']

    def copies(self, scope: Scope) -> Lines:
        """Weights moved from one network to another of the same make."""
        copied = [(n, m) for n in scope.modules for m in scope.modules if m.make == f"copy.deepcopy({n.ref})"]
        if not copied:
            return []
        net, target = self.c.one(copied)
        p, q = self.fresh("p"), self.fresh("q")
        how = self.c.one(
            [
                f"{q}.data.mul_(0.9).add_({p}.data * 0.1)",
                f"{q}.data.copy_({p}.data)",
                f"{q}.mul_(0.9).add_({p}, alpha=0.1)",
                f"{q}.copy_(0.9 * {q} + 0.1 * {p})",
                "load",
                "blend",
            ]
        )
        if how == "blend":
            return [f"blend({target.ref}, {net.ref})"]
        if how == "load":
            return [f"{target.ref}.load_state_dict({net.ref}.state_dict())"]
        loop = [f"for {p}, {q} in zip({net.ref}.parameters(), {target.ref}.parameters()):", f"    {how}"]
        return loop if ".data" in how and self.c.chance(50) else ["with torch.no_grad():", *indented(loop)]

    def closure(self, scope: Scope) -> Lines:
        """A step that is given a closure."""
        if not scope.opts:
            return []
        opt = self.c.one(scope.opts)
        name, loss = self.fresh("closure"), self.fresh("value")
        zero = [f"    {opt.ref}.zero_grad()"] if self.c.chance(80) else []
        body = [*zero, f"    {loss} = {self.loss(scope)}", f"    {loss}.backward()", f"    return {loss}"]
        return [f"def {name}():", *body, f"{opt.ref}.step({name})"]

    def rebinding(self, scope: Scope) -> Lines:
        """Names exchanged, shared and dropped."""
        tensors = scope.of("T")
        if len(tensors) < 2:
            return []
        a, b = self.c.some(tensors, 2, 2)
        if self.c.chance(50):
            a.grad, b.grad, a.leaf, b.leaf = b.grad, a.grad, b.leaf, a.leaf
            return [f"{a.name}, {b.name} = {b.name}, {a.name}"]
        a.grad = b.grad = scope.recording
        a.leaf = b.leaf = False
        return [f"{a.name} = {b.name} = {self.graph_expression(scope, 1)}"]

    def update(self, scope: Scope) -> Lines:
        """A helper that is handed an optimizer and a loss."""
        losses = [v for v in scope.of("L") if v.grad and v.used == 0]
        if not losses or not scope.opts:
            return []
        loss = self.c.one(losses)
        loss.used += 1
        more = self.c.one(["", "", ", retain=True", ", zero=False"])
        return [f"update({self.c.one(scope.opts).ref}, {loss.name}{more})"]

    def scaled_gradients(self, scope: Scope) -> Lines:
        """Gradients changed by hand."""
        if not scope.modules:
            return []
        p = self.fresh("p")
        how = self.c.one(
            [f"{p}.grad.mul_(0.5)", f"{p}.grad *= 0.5", f"{p}.grad.data.clamp_(-1, 1)", f"{p}.grad /= 2"]
        )
        head = f"for {p} in {self.c.one(scope.modules).ref}.parameters():"
        return [head, f"    if {p}.grad is not None:", f"        {how}"]

    def renewal(self, scope: Scope) -> Lines:
        """An optimizer made anew."""
        if not scope.opts:
            return []
        opt = self.c.one(scope.opts)
        return [f"{opt.ref} = {opt.make}"]

    def in_parallel(self, scope: Scope) -> Lines:
        """Networks and their optimizers in step."""
        pairs = [(n, o) for o in scope.opts for n in o.nets if n.kind == "net"]
        if not pairs:
            return []
        chosen = self.c.some(pairs, 1, 2)
        n, o, loss = self.fresh("n"), self.fresh("o"), self.fresh("value")
        nets, opts = (", ".join(x[k].ref for x in chosen) for k in (0, 1))
        body = [f"{o}.zero_grad()"] if self.c.chance(80) else []
        body += [f"{loss} = {n}({self.expression(scope, 1)}).mean()", f"{loss}.backward()", f"{o}.step()"]
        return [f"for {n}, {o} in zip([{nets}], [{opts}]):", *indented(body)]

    def regularised(self, scope: Scope) -> Lines:
        """A loss with a term on the weights."""
        losses = [v for v in scope.of("L") if v.grad and v.used == 0]
        if not losses or not scope.modules:
            return []
        loss = self.c.one(losses).name
        term = self.word(words.ON_WEIGHTS).format(self.c.one(scope.modules).ref)
        return [f"{loss} = {loss} + 0.1 * {term}" if self.c.chance(70) else f"{loss} += {term}"]

    def both_losses(self, scope: Scope) -> Lines:
        """A function that gives two losses."""
        first, second = self.graph_expression(scope, 1), self.expression(scope, 1)
        a = self.define(scope, "L", scope.recording, "loss", 0)
        b = self.define(scope, "L", scope.recording, "loss", 0)
        return [f"{a}, {b} = both({first}, {second})"]

    # ------------------------------------------------------------------ networks and optimizers

    def user_class(self) -> Net:
        """A class of the program's own."""
        name = self.fresh("Net")
        kind = self.c.weighted([(4.0, "net"), (1.5, "pair"), (1, "stateful")])
        init: Lines = ["super().__init__()"]
        inner: list[Net] = []
        if self.c.chance(25):
            init.append("self.w = nn.Parameter(torch.randn(3, 3))")
            inner.append(Net("self.w", "matrix", ""))
        if self.c.chance(20):
            init.append("self.v = nn.Parameter(torch.randn(2, 3))")
            inner.append(Net("self.v", "vector", ""))
        for number in range(1 + self.c.below(3)):
            init.append(f"self.layer{number} = {self.word(words.LAYERS)}")
            inner.append(Net(f"self.layer{number}", "net", ""))
        if self.c.chance(15):
            count = 1 + self.c.below(2)
            init.append(f"self.stack = nn.ModuleList([nn.Linear(3, 3) for _ in range({count})])")
            inner.append(Net("self.stack[0]", "net", ""))
        scope = Scope(inner, [], [Var("x", "T", False)])
        body: Lines = []
        options: tuple[str, ...] = ()
        style, holder = self.style, self.holder
        self.style, self.holder = "module", ""
        if kind == "stateful":
            init.append(
                self.c.one(
                    ["self.state = torch.zeros(2, 3)", 'self.register_buffer("state", torch.zeros(2, 3))']
                )
            )
            scope.vars.append(Var("self.state", "T", True))
            body.append(f"x = {self.graph_expression(scope, 2)}")
            forms = [
                "torch.tanh(x + self.state)",
                "0.9 * self.state + 0.1 * x",
                "x",
                "self.state.detach() + x",
            ]
            body.append(f"self.state = {self.c.one(forms)}")
            scope.vars[0].grad = True
        head = "def forward(self, x):"
        if self.c.chance(12):
            head = "def forward(self, x, cut=False):"
            options = ("cut=True", "cut=False", "True")
            body += ["if cut:", "    x = x.detach()"]
        for _ in range(1 + self.c.below(3)):
            kinds = [(6.0, self.forward), (0.6, self.inplace), (0.6, self.from_list), (0.5, self.collect)]
            body += self.c.weighted(kinds)(scope)
        if self.c.chance(8):
            body += ["with torch.no_grad():", *indented(self.forward(replace(scope, vars=list(scope.vars))))]
        if "self.stack[0]" in [n.ref for n in inner] and self.c.chance(60):
            body += ["for layer in self.stack:", "    x = layer(x)"]
        body.append(f"return {self.graph_expression(scope, 1)}")
        if kind == "pair":
            body[-1] += f", {self.graph_expression(scope, 1)}"
        self.style, self.holder = style, holder
        lines = [f"class {name}(nn.Module):", "    def __init__(self):", *indented(indented(init)), ""]
        lines += [f"    {head}", *indented(indented(body))]
        self.definitions += ["", *lines]
        return Net("", "pair" if kind == "pair" else "net", f"{name}()", options=options)

    def networks(self) -> list[Net]:
        """One to five networks, cells and parameters."""
        nets: list[Net] = []
        for ref in ["g", "d", "e", "q"][: 1 + self.c.weighted([(3, 0), (5, 1), (3, 2), (1, 3)])]:
            kinds = [
                (6.0, "layer"),
                (4, "user"),
                (1.2, "cell"),
                (0.8, "lstmcell"),
                (0.6, "rnn"),
                (0.6, "lstm"),
            ]
            kinds += [(0.7, "embedding"), (0.8, "matrix"), (0.8, "vector")]
            whole = [n for n in nets if n.kind == "net" and not n.parts]
            if whole:
                kinds += [(0.5, "wrapper"), (0.5, "joined"), (0.8, "copy")]
            kind = self.c.weighted(kinds)
            parts: frozenset[str] = frozenset()
            options: tuple[str, ...] = ()
            if kind == "layer":
                make, kind = self.word(words.LAYERS), "net"
            elif kind == "user":
                made = self.user_class()
                make, kind, options = made.make, made.kind, made.options
            elif kind == "copy":
                make, kind = f"copy.deepcopy({self.c.one(whole).ref})", "net"
            elif kind == "joined":
                inner = self.c.one(whole).ref
                more = self.c.one(
                    ["nn.Tanh()", "nn.Linear(3, 3)", "nn.ReLU(inplace=True)", "nn.Dropout(0.5, True)"]
                )
                make, kind = f"nn.Sequential({inner}, {more})", "net"
                parts = frozenset({inner, ref})
            elif kind == "wrapper":
                inner = self.c.one(whole).ref
                make, kind = f"Wrapper({inner})", "net"
                parts = frozenset({inner, ref})
                if not any("class Wrapper" in line for line in self.definitions):
                    scale = self.c.one(
                        ["self.inner(x) * 0.5", "self.inner(self.inner(x))", "x + self.inner(x)"]
                    )
                    self.definitions += ["", "class Wrapper(nn.Module):", "    def __init__(self, inner):"]
                    self.definitions += ["        super().__init__()", "        self.inner = inner", ""]
                    self.definitions += ["    def forward(self, x):", f"        return {scale}"]
            else:
                make = self.c.one(
                    {
                        "cell": ["nn.RNNCell(3, 3)", "nn.GRUCell(3, 3)"],
                        "lstmcell": ["nn.LSTMCell(3, 3)"],
                        "rnn": ["nn.RNN(3, 3)", "nn.GRU(3, 3)"],
                        "lstm": ["nn.LSTM(3, 3)"],
                        "embedding": ["nn.Embedding(4, 3)"],
                        "matrix": [
                            "nn.Parameter(torch.randn(3, 3))",
                            "torch.randn(3, 3, requires_grad=True)",
                        ],
                        "vector": [
                            "nn.Parameter(torch.randn(2, 3))",
                            "torch.zeros(2, 3, requires_grad=True)",
                        ],
                    }[kind]
                )
            nets.append(Net(ref, kind, make, parts, options))
        return nets

    def optimizers(self, nets: list[Net]) -> list[Opt]:
        """One to four optimizers over the networks; they may overlap."""
        opts: list[Opt] = []
        left = list(nets)
        count = self.c.weighted([(4, 1), (6, 2), (2, 3), (1, 4)])
        for number in range(count):
            most = (len(left) or 1) if number == count - 1 else 2
            chosen = self.c.some(left or nets, 1, max(1, most))
            left = [n for n in left if n not in chosen]
            if self.c.chance(12):
                chosen += [n for n in self.c.some(nets, 1, 2) if n not in chosen]
            # No optimizer is given the same parameter twice.
            apart: list[Net] = []
            for net in chosen:
                if not any((net.parts or {net.ref}) & (n.parts or {n.ref}) for n in apart):
                    apart.append(net)
            opts.append(Opt(f"opt{number + 1}", apart, self.owned(apart)))
        return opts

    def owned(self, nets: list[Net]) -> str:
        """The expression that makes an optimizer of these networks."""
        name = self.c.weighted([(6.0, "SGD"), (4, "Adam"), (1, "AdamW"), (1, "RMSprop"), (0.5, "Adagrad")])
        options = "lr=0.01"
        if name == "Adam":
            more = ["lr=0.01, betas=(0.5, 0.999)", "lr=0.0", "lr=0.01, weight_decay=0.1"]
            options = self.c.one(["lr=0.01", "lr=0.01", *more, "lr=0.01, fused=True"])
        if name == "SGD":
            options = self.c.one(["lr=0.01", "lr=0.01", "lr=0.01, momentum=0.9", "lr=0.1, weight_decay=0.1"])
        refs = [n.ref for n in nets]
        if len(nets) == 1 and nets[0].is_module:
            ref = refs[0]
            ways = [(8, f"{ref}.parameters()"), (0.7, f"list({ref}.parameters())")]
            ways += [(0.7, f"[p for p in {ref}.parameters()]"), (0.5, f"[{{'params': {ref}.parameters()}}]")]
            ways += [(0.7, f"filter(lambda p: p.requires_grad, {ref}.parameters())")]
            ways += [(0.5, f"[p for p in {ref}.parameters() if p.requires_grad]")]
            ways += [
                (0.3, f"(p for p in {ref}.parameters())"),
                (0.3, f"[p for _, p in {ref}.named_parameters()]"),
            ]
            given = self.c.weighted(ways)
        elif all(n.is_module for n in nets):
            ways_ = [
                f"[{', '.join(f'*{r}.parameters()' for r in refs)}]",
                f"itertools.chain({', '.join(f'{r}.parameters()' for r in refs)})",
                " + ".join(f"list({r}.parameters())" for r in refs),
                f"[{', '.join(f'dict(params={r}.parameters(), lr=0.0{i + 1})' for i, r in enumerate(refs))}]",
                f"itertools.chain(*[m.parameters() for m in [{', '.join(refs)}]])",
                f"nn.ModuleList([{', '.join(refs)}]).parameters()",
                f"[p for m in ({', '.join(refs)}) for p in m.parameters()]",
                f"sum([list(m.parameters()) for m in ({', '.join(refs)})], [])",
            ]
            given = self.c.one(ways_)
        else:
            flat = ", ".join(f"*{n.ref}.parameters()" if n.is_module else n.ref for n in nets)
            groups = ", ".join(
                f"{{'params': {f'{n.ref}.parameters()' if n.is_module else f'[{n.ref}]'}}}" for n in nets
            )
            given = self.c.one([f"[{flat}]", f"[{groups}]"])
        return f"torch.optim.{name}({given}, {options})"

    # ------------------------------------------------------------------ the whole

    def program(self) -> str:
        """One program."""
        self.style = self.c.weighted(
            [(5.0, "module"), (3, "function"), (3, "methods"), (2, "attributes"), (2, "shared")]
        )
        nets = self.networks()
        opts = self.optimizers(nets)
        self.setup = [f"{n.ref} = {n.make}" for n in nets] + [f"{o.ref} = {o.make}" for o in opts]
        scope = self.held(Scope(nets, opts))
        before: Lines = ["log = []"]
        if self.style != "attributes":
            self.holder = self.c.weighted([(8, ""), (1, "box"), (1, "memory")])
            if self.holder == "box":
                self.definitions += ["", "class Box:", "    pass"]
                before.append("box = Box()")
            elif self.holder:
                before.append("memory = {}")
        self.applications(scope)
        # State from before the loop, to be carried.
        for _ in range(self.c.below(3)):
            kind = self.c.one(["T", "TT", "L", "TS", "T"])
            first = {
                "T": "torch.zeros(2, 3)",
                "TT": "(torch.zeros(2, 3), torch.ones(2, 3))",
                "L": "torch.zeros(())",
                "TS": "[torch.zeros(2, 3)]",
            }[kind]
            name = self.name("state")
            scope.vars.append(Var(name, kind, False))
            before.append(f"{name} = {first}")
        if self.c.chance(25):
            before += self.statements(scope, 1 + self.c.below(3))
        loop = self.training_loop(scope)
        if self.c.chance(15):
            loop += self.statements(scope, 1 + self.c.below(3))
        return self.assemble([*before, *loop], scope)

    def held(self, scope: Scope) -> Scope:
        """Networks and optimizers under the names by which training reaches them."""
        names = {x.ref: x.ref for x in [*scope.nets, *scope.opts]}
        kind = self.c.weighted([(8, ""), (1, "dict"), (0.5, "list"), (0.5, "ModuleDict")])
        modules = [n for n in scope.nets if n.is_module]
        if kind == "dict":
            self.setup.append("nets = {" + ", ".join(f'"{n.ref}": {n.ref}' for n in scope.nets) + "}")
            names |= {n.ref: f'nets["{n.ref}"]' for n in scope.nets}
            self.setup.append("opts = {" + ", ".join(f'"{o.ref}": {o.ref}' for o in scope.opts) + "}")
            names |= {o.ref: f'opts["{o.ref}"]' for o in scope.opts}
        elif kind == "list":
            self.setup.append(f"opts = [{', '.join(o.ref for o in scope.opts)}]")
            names |= {o.ref: f"opts[{number}]" for number, o in enumerate(scope.opts)}
        elif kind == "ModuleDict" and modules:
            self.setup.append(
                "nets = nn.ModuleDict({" + ", ".join(f'"{n.ref}": {n.ref}' for n in modules) + "})"
            )
            names |= {n.ref: f'nets["{n.ref}"]' for n in modules}
        if self.style in ("methods", "attributes"):
            own = {x: f"self.{x}" for x in [*names, "nets", "opts"]}
            self.setup = [renamed(line, own) for line in self.setup]
            names = {x: f"self.{ref}" for x, ref in names.items()}
        nets = {n.ref: replace(n, ref=names[n.ref], make=renamed(n.make, names)) for n in scope.nets}
        opts = [
            replace(o, ref=names[o.ref], nets=[nets[n.ref] for n in o.nets], make=renamed(o.make, names))
            for o in scope.opts
        ]
        return Scope(list(nets.values()), opts)

    def applications(self, scope: Scope) -> None:
        """Functions that apply one network."""
        in_class = self.style in ("methods", "attributes")
        own, self_ = ("self.", "self, ") if in_class else ("", "")
        for net in scope.nets_of("net"):
            if not self.c.chance(15):
                continue
            name = self.fresh("run")
            call = f"{own}{name}({{}})"
            inner = self.c.one(["{}(t)", "{}(t) * 0.5", "{}(t.detach())", "{}({}(t))", "{}(t).detach()"])
            lines = [f"def {name}({self_}t):", f"    return {inner.replace('{}', net.ref)}", ""]
            kind = self.c.below(8)
            if kind == 0:
                lines = ["@torch.no_grad()", *lines]
            elif kind == 1:
                static = ["@staticmethod"] if in_class else []
                lines = [*static, f"def {name}(net, t, scale=0.5):", "    return net(t) * scale", ""]
                call = f"{own}{name}({net.ref}, {self.c.one(['{}', '{}, scale=2', 't={}'])})"
            elif kind == 2:
                lines = [
                    f"def {name}({self_}*args, **keywords):",
                    f"    return {net.ref}(*args, **keywords)",
                    "",
                ]
            elif kind == 3:
                lines = [
                    f"def {name}({self_}t, cut=False):",
                    "    if cut:",
                    f"        return {net.ref}(t.detach())",
                ]
                lines += [f"    return {net.ref}(t)", ""]
                call = f"{own}{name}({{}}, cut={self.c.one(['True', 'False'])})"
            self.methods += lines
            self.helpers.setdefault(net.ref, []).append(call)

    def training_loop(self, scope: Scope) -> Lines:
        """The loop over passes, as ``for`` or ``while``, with data that the model can follow or not."""
        count = 2 + self.c.below(3)
        i = self.fresh("i")
        inner = replace(scope, vars=list(scope.vars), depth=1, counters=[i], weight=count, looping=True)
        data = [f"data = [torch.randn(2, 3) for _ in range({count})]"]
        loader = ""
        if self.features.unknown_length:
            kind = self.c.weighted([(4.0, "loader"), (2, "enumerate"), (2, "zip"), (0.5, "True")])
            data, loader = self.loader()
            inner.weight = 4
        else:
            kinds = [
                (8.0, "range"),
                (2, "data"),
                (1.5, "enumerate"),
                (1, "while"),
                (1.5, "index"),
                (1, "zip"),
            ]
            kind = self.c.weighted(kinds)
        pre, first, post = data, [], []
        given = ["x"]
        if kind in ("range", "index"):
            head = f"for {i} in range({count}):"
            pre = [f"data = torch.randn({count}, 2, 3)"] if kind == "index" else []
            first = [f"x = data[{i}]"] if kind == "index" else []
            given = ["x"] if kind == "index" else []
        elif kind in ("data", "loader"):
            head = f"for x in {loader or 'data'}:"
            inner.counters = []
        elif kind == "enumerate":
            head = f"for {i}, x in enumerate({loader or 'data'}):"
        elif kind == "zip" and loader:
            head = f"for x, y in zip({loader}, {loader}):"
            inner.counters, given = [], ["x", "y"]
        elif kind == "zip":
            head = f"for {i}, x in zip(range({count}), data):"
        else:
            pre, head = [f"{i} = 0"], f"while {i} < {count}:"
            post, given = [f"{i} += 1"], []
            inner.looping = False
            if kind == "True":
                head = "while True:"
                post += [f"if {i} >= 4:", "    break"]
                inner.counters = []
        inner.vars += [Var(name, "T", False, depth=1) for name in given]
        body = first + self.statements(inner, 4 + self.c.below(9))
        if not any(".backward(" in line for line in body):
            body.append(f"objective = {self.loss(inner)}")
            body += ["objective.backward()", *self.step(inner)]
        lines = [*pre, head, *indented(body + post)]
        if loader and kind != "True" and self.c.chance(30):
            return [*pre, f"for epoch in range({1 + self.c.below(3)}):", *indented(lines[len(pre) :])]
        return lines

    def loader(self) -> tuple[Lines, str]:
        """Batches whose number the model cannot know."""
        kind = self.c.below(3)
        batches = ["    for _ in range(4):", "        yield torch.randn(2, 3)"]
        if kind == 0:
            self.definitions += ["", "def batches():", *batches]
            return [], "batches()"
        if kind == 1:
            self.definitions += ["", "class Batches:", "    def __iter__(self):", *indented(batches)]
            return ["loader = Batches()"], "loader"
        return ["loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)"], "loader"

    def assemble(self, body: Lines, scope: Scope) -> str:
        """Distribute the program over functions, methods and closures."""
        defs = list(self.definitions)
        for name, lines in HELPERS.items():
            if any(f"{name}(" in line for line in body):
                defs += ["", *lines]
        helper: Lines = []
        if self.style == "shared":
            return self.shared(defs, body)
        if self.style != "attributes" and self.c.chance(45):
            body, helper = outlined(self.c, body, method=self.style == "methods")
        methods = [*self.methods, *helper]
        if self.style == "module":
            main = [*self.setup, "", *methods, "", *body]
        elif self.style == "function":
            where = self.c.below(3)
            names = sorted(
                {
                    r.id
                    for x in [*scope.nets, *scope.opts]
                    for r in ast.walk(ast.parse(x.ref))
                    if isinstance(r, ast.Name)
                }
            )
            if where == 0:
                main = [*self.setup, "", *methods, "", "def train():", *indented(body), "", "train()"]
            elif where == 1:
                # The helpers are closures.
                main = ["def train():", *indented([*self.setup, *methods, *body]), "", "train()"]
            else:
                given = ", ".join(names)
                main = [
                    *self.setup,
                    "",
                    f"def train({given}):",
                    *indented([*methods, *body]),
                    "",
                    f"train({given})",
                ]
        else:
            if self.style == "attributes":
                body, split = split_methods(self.c, body)
                methods += split
            main = ["class Trainer:", "    def __init__(self):", *indented(indented(self.setup)), ""]
            if self.c.chance(15):
                main[0] = "class Base:"
                main += ["class Trainer(Base):", "    def __init__(self):", "        super().__init__()", ""]
            main += [*indented(methods), "", "    def train(self):", *indented(indented(body)), ""]
            main += ["trainer = Trainer()", "trainer.train()"]
        return self.written([*defs, "", *main])

    def shared(self, defs: Lines, body: Lines) -> str:
        """Functions that share global variables, or closures that share those of the function around."""
        closures = self.c.chance(50)
        body, parts, names = split_functions(self.c, body, "nonlocal" if closures else "global")
        if not closures:
            return self.written([*defs, "", *self.setup, "", *self.methods, *parts, *body])
        first = [f"{' = '.join(names)} = None"] if names else []
        inside = [*self.setup, "", *first, *self.methods, *parts, *body]
        return self.written([*defs, "", "def main():", *indented(inside), "", "main()"])

    @staticmethod
    def written(main: Lines) -> str:
        """The whole file."""
        text = "\n".join(main)
        return words.PRELUDE + "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


HELPERS = {
    "freeze": ["def freeze(net, flag):", "    for p in net.parameters():", "        p.requires_grad_(flag)"],
    "detached": [
        "def detached(h):",
        "    if isinstance(h, torch.Tensor):",
        "        return h.detach()",
        "    return tuple(detached(v) for v in h)",
    ],
    "blend": [
        "@torch.no_grad()",
        "def blend(target, source):",
        "    for p, q in zip(target.parameters(), source.parameters()):",
        "        p.mul_(0.9).add_(q, alpha=0.1)",
    ],
    "both": ["def both(a, b):", "    return a.mean(), (a - b).pow(2).mean()"],
    "update": [
        "def update(optimizer, loss, retain=False, zero=True):",
        "    if zero:",
        "        optimizer.zero_grad()",
        "    loss.backward(retain_graph=retain)",
        "    optimizer.step()",
    ],
}
"""Functions that programs use, by name."""


def _bracket(text: str) -> str:
    """The expression as the operand of any operator."""
    node = ast.parse(text, mode="eval").body
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) else f"({text})"


def generate(choices: Choices, features: Features | None = None) -> str:
    """One program as source text."""
    return Generator(choices, features or Features()).program()
