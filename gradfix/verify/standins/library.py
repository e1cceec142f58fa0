"""What older versions of Python, torch and numpy had, and scripts still ask for."""

from __future__ import annotations

import ast
import builtins
import collections
import collections.abc
import contextlib
import dataclasses
import fractions
import functools
import importlib.machinery
import importlib.util
import inspect
import io
import itertools
import math
import operator
import os
import re
import sys
import time
import tokenize
import traceback
import types
from typing import Any, ClassVar, TypeVar

import torch
import torch.utils.data

from . import algebra, content, context, inert

NUMPY = {
    "float": float,
    "int": int,
    "bool": bool,
    "object": object,
    "str": str,
    "complex": complex,
    "long": int,
}


def install(run: context.Run) -> None:
    """Give the old names their old meaning, where they have none today."""
    names(run)
    defaults(run)
    indexing(run)
    loaders(run)
    samplers(run)
    sequences(run)
    gradients(run)
    counters(run)
    retained(run)
    targets(run)
    widths(run)
    flags(run)
    functions(run)
    backends(run)
    scripted(run)
    dotted(run)
    spectra(run)
    masks(run)
    singles(run)
    schedulers(run)
    betas(run)
    whole_numbers(run)
    numbers(run)
    products(run)
    differences(run)
    parts(run)
    contiguous(run)
    kept_whole(run)
    resized(run)
    subclasses(run)
    algebra.install(run)
    shown(run)
    if content.book.planned("torch", "contents"):
        content.convert_contents()
    variables(run)
    plotting(run)
    if "numpy" in sys.modules:
        arrays(run, sys.modules["numpy"])


PACKAGES = ("packaging", "importlib", "concurrent", "urllib", "xml", "logging")
"""Packages of which scripts use modules that they do not import: some library has done so, mostly."""


def _with_parts(package: types.ModuleType) -> None:
    """Let the modules of a package be imported when they are asked for."""
    if hasattr(package, "__getattr__"):
        return

    def part(name: str) -> types.ModuleType:
        full = f"{package.__name__}.{name}"
        if not name.startswith("__") and importlib.machinery.PathFinder.find_spec(full, package.__path__):
            return importlib.import_module(full)
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")

    package.__getattr__ = part  # type: ignore[method-assign]


def shown(run: context.Run) -> None:
    """Note the errors that a script only shows: what stopped it is then not what it ends with."""
    for name in ("format_exc", "print_exc"):
        real = getattr(traceback, name)

        def show(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            if context.caller_of_standins(run) is not None:
                run.shown = sys.exc_info()[1]
            return _real(*args, **kwargs)

        context.replace(traceback, name, show)


def defaults(run: context.Run) -> None:
    """``spect: Spect = Spect()`` of one dataclass within another, which Python took until 3.11."""
    real = dataclasses.dataclass

    def shared(value: Any) -> Any:
        return dataclasses.field(default_factory=lambda: value)

    def made(cls: type, **kwargs: Any) -> type:
        given = {
            name: value
            for name in vars(cls).get("__annotations__", ())
            if dataclasses.is_dataclass(value := vars(cls).get(name))
            and not isinstance(value, type)
            and type(value).__hash__ is None
        }
        for name, value in given.items():
            run.used(f"a {type(value).__name__} that all share as a default", "the same")
            setattr(cls, name, shared(value))
        found: type = real(cls, **kwargs)
        for name, value in given.items():
            setattr(found, name, value)
        return found

    def decorate(cls: type | None = None, /, **kwargs: Any) -> Any:
        return functools.partial(made, **kwargs) if cls is None else made(cls, **kwargs)

    context.replace(dataclasses, "dataclass", decorate)


def names(run: context.Run) -> None:
    """Names that left Python or its ``collections``."""
    for name, value in (
        ("xrange", range),
        ("unicode", str),
        ("basestring", str),
        ("long", int),
        ("reduce", functools.reduce),
        ("reload", lambda module: module),
        ("raw_input", lambda *args: answer(run)),
        ("unichr", chr),
    ):
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    more: dict[str, Any] = {"maxint": sys.maxsize, "setdefaultencoding": lambda name: None}
    for name, given in more.items():
        if not hasattr(sys, name):
            setattr(sys, name, given)
    builtins.input = lambda *args: answer(run)
    for name in ("Iterable", "Mapping", "Sequence", "Callable", "MutableMapping", "Hashable"):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    if not hasattr(itertools, "izip"):
        itertools.izip = zip  # type: ignore[attr-defined]
    if not hasattr(torch, "_six"):
        six = sys.modules["torch._six"] = types.ModuleType("torch._six")
        torch._six = six  # type: ignore[attr-defined]
        six.__dict__.update(
            string_classes=(str, bytes),
            int_classes=int,
            inf=math.inf,
            nan=math.nan,
            PY3=True,
            PY37=True,
            container_abcs=collections.abc,
            with_metaclass=lambda meta, *bases: meta("Based", bases, {}),
        )
    for module, name, meant in (
        (torch.utils.data.dataset, "T_co", TypeVar("T_co", covariant=True)),
        (torch._utils, "_accumulate", itertools.accumulate),
    ):
        if not hasattr(module, name):
            setattr(module, name, meant)
    for package in PACKAGES:
        # Only what is installed: of what is missing the finder makes another thing.
        with contextlib.suppress(ImportError):
            _with_parts(importlib.import_module(package))
    if not hasattr(fractions, "gcd"):
        fractions.gcd = math.gcd  # type: ignore[attr-defined]
    if not hasattr(time, "clock"):
        time.clock = time.perf_counter  # type: ignore[attr-defined]
    time.sleep = lambda seconds: None


_BEFORE = r"^([^\n#]*?(?:^|[:;\s]))"
OLD_SYNTAX = (
    (re.compile(r"^(\s*(?:else:|try:|finally:)?\s*)print[ \t]*$", re.M), r"\1print()"),
    (re.compile(_BEFORE + r"print[ \t]+(?![=(.])([^\n]*?),?[ \t]*$", re.M), r"\1print(\2)"),
    (re.compile(_BEFORE + r"print[ \t]+(\([^\n]*\)[ \t]*[%,+][^\n]*?),?[ \t]*$", re.M), r"\1print(\2)"),
    (re.compile(r"^(\s*except\s+[\w.]+(?:\s*\([^)]*\))?)\s*,\s*(\w+)\s*:", re.M), r"\1 as \2:"),
    (re.compile(r"^(\s*raise\s+[\w.]+)\s*,\s*([^\n]+)$", re.M), r"\1(\2)"),
)
"""Statements that have gone, and how they are written today: one line each, so that lines stay lines."""


def as_today(text: str) -> str:
    """The text of a module with statements that Python no longer has."""
    for pattern, today in OLD_SYNTAX:
        text = pattern.sub(today, text)
    return without_async(text)


def without_async(text: str) -> str:
    """The same with ``non_blocking`` where ``async`` is a name: torch's own argument is called that today,
    and what a project calls so has the same name in all of its modules then."""
    lines = text.splitlines(keepends=True)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    for place in reversed(range(len(tokens) - 1)):
        if tokens[place].string == "async" and tokens[place + 1].string not in ("def", "for", "with"):
            row, column = tokens[place].start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + "non_blocking" + line[column + len("async") :]
    return "".join(lines)


def scripted(run: context.Run) -> None:
    """Functions that torch would compile are run as they stand: it cannot compile what calls a stand-in."""

    def plainly(what: Any, *args: Any, **kwargs: Any) -> Any:
        run.used("torch.jit", "functions as they stand")
        return what

    for name in ("script", "script_method"):
        context.replace(torch.jit, name, plainly)
    torch.jit.ScriptModule = Scripted  # type: ignore[assignment, misc]


class Scripted(torch.nn.Module):
    """What a class derives from that torch would compile; torch asks other modules whether they are one."""


def dotted(run: context.Run) -> None:
    """Names of modules with a dot in them, which torch once took."""
    real = torch.nn.Module.add_module

    def add(self: Any, name: Any, module: Any) -> None:
        if isinstance(name, str) and "." in name:
            run.used("a dot in the name of a module", "a colon")
            name = name.replace(".", ":")
        real(self, name, module)

    context.replace(torch.nn.Module, "add_module", add)


def spectra(run: context.Run) -> None:
    """``stft`` that is not told whether to return complex numbers: pairs of real ones."""
    real = torch.stft

    def stft(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 7 or "return_complex" in kwargs or input.is_complex():
            return real(input, *args, **kwargs)
        run.used("complex numbers of stft", "pairs of real ones")
        kwargs["return_complex"] = True
        return torch.view_as_real(real(input, *args, **kwargs))

    context.replace(torch, "stft", stft)


def singles(run: context.Run) -> None:
    """Normalizing over one value a channel, which torch once took: nothing remains but the bias.

    Not with smaller pictures than the script's own: nothing would go back through such a layer then.
    """
    if run.small:
        return
    functional: Any = torch.nn.functional
    real = getattr(functional, "_verify_batch_size", None)
    if real is None:
        return

    def verify(size: Any) -> None:
        try:
            real(size)
        except ValueError:
            run.used("normalizing over one value", "the bias alone")

    context.replace(functional, "_verify_batch_size", verify)


BYTES = "masked_fill_ only supports boolean masks"
"""What torch says to ``values[mask] = 0`` with a mask of bytes."""


def masks(run: context.Run) -> None:
    """Masks of bytes, which are masks of truth values today."""
    for name in ("masked_fill", "masked_fill_", "masked_select", "masked_scatter_"):
        real = getattr(torch.Tensor, name)

        def fill(self: torch.Tensor, mask: Any, *args: Any, _real: Any = real, **kwargs: Any) -> Any:
            if isinstance(mask, torch.Tensor) and mask.dtype == torch.uint8:
                run.used("a mask of bytes", "one of truth values")
                mask = mask.bool()
            return _real(self, mask, *args, **kwargs)

        context.replace(torch.Tensor, name, fill)
    if not content.book.planned("torch", "masks"):
        return
    put = torch.Tensor.__setitem__

    def store(self: torch.Tensor, index: Any, value: Any) -> None:
        if isinstance(index, torch.Tensor) and index.dtype == torch.uint8:
            run.used("a mask of bytes", "one of truth values")
            index = index.bool()
        put(self, index, value)

    context.replace(torch.Tensor, "__setitem__", store)


def answer(run: context.Run) -> str:
    """What a person might have typed: a number where the line makes one of it, else nothing."""
    frame = context.caller_of_standins(run)
    lines = run.text(frame.f_code.co_filename).splitlines() if frame is not None else []
    line = lines[frame.f_lineno - 1] if frame is not None and frame.f_lineno <= len(lines) else ""
    run.used("input", "2" if re.search(r"(int|float)\(\s*(raw_)?input", line) else "an empty line")
    return "2" if re.search(r"(int|float)\(\s*(raw_)?input", line) else ""


def gradients(run: context.Run) -> None:
    """``loss.backward(one)`` as of the time when a loss had one dimension: the gradient is that number."""
    real = torch.autograd.backward

    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
        given = grad_tensors
        if isinstance(tensors, torch.Tensor) and tensors.dim() == 0 and isinstance(given, torch.Tensor):
            if given.dim() == 1 and given.numel() == 1:
                run.used("a gradient of one element for a number", "that element")
                given = given[0]
        return real(tensors, given, *args, **kwargs)

    context.replace(torch.autograd, "backward", backward)


def texts(run: context.Run) -> list[str]:
    """The script's text, those of the files beside it, and those of the project's modules it has loaded."""
    folder = os.path.dirname(run.script)
    names = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    names += [name for name in loaded if name and name.endswith(".py") and run.owns_file(name)]
    return [run.source, *(context.read(name) for name in dict.fromkeys(names))]


def retained(run: context.Run) -> None:
    """``backward(retain_variables=True)``, which is ``retain_graph`` today; only where the project has it."""
    if not any("retain_variables" in text for text in texts(run)):
        return
    real: Any = torch.Tensor.backward

    def backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if "retain_variables" in kwargs:
            run.used("retain_variables", "retain_graph")
            kwargs["retain_graph"] = kwargs.pop("retain_variables")
        return real(self, *args, **kwargs)

    # The recorder knows a tensor's own backward call by the file that it stands in.
    backward.__code__ = backward.__code__.replace(co_filename=real.__code__.co_filename)
    context.replace(torch.Tensor, "backward", backward)


def targets(run: context.Run) -> None:
    """Targets of as many elements as the input in another shape, which were once taken one by one."""
    functional = torch.nn.functional
    real = functional.binary_cross_entropy

    def entropy(input: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if target.shape != input.shape and target.numel() == input.numel():
            run.used("a target in another shape than its input", "its elements, one by one")
            target = target.reshape(input.shape)
        return real(input, target, *args, **kwargs)

    context.replace(functional, "binary_cross_entropy", entropy)
    for name in ("cross_entropy", "nll_loss"):
        one_class(run, functional, name)


def one_class(run: context.Run, functional: Any, name: str) -> None:
    """A class without dimensions for a batch of one: an element of a target once was a target of one."""
    real = getattr(functional, name)

    def entropy(input: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if target.dim() == 0 and input.dim() == 2 and len(input) == 1:
            run.used("a class without dimensions", "a batch of one")
            target = target.reshape(1)
        return real(input, target, *args, **kwargs)

    context.replace(functional, name, entropy)


def counters(run: context.Run) -> None:
    """``state["step"] = 0`` of an optimizer whose own step is torch's, which today counts in a tensor."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def count(optimizer: Any, *args: Any) -> None:
        if not getattr(type(optimizer).step, "__module__", "").startswith("torch.optim"):
            return
        for state in optimizer.state.values():
            step = state.get("step") if isinstance(state, dict) else None
            if isinstance(step, (int, float)):
                run.used("a number as an optimizer's count of steps", "the same in a tensor")
                state["step"] = torch.tensor(float(step))

    register_optimizer_step_pre_hook(count)


def widths(run: context.Run) -> None:
    """``Linear(size / 2, ...)``: a width that a division made, which tensors once took."""
    real = torch.nn.Linear.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        def whole(value: Any) -> Any:
            if isinstance(value, float) and value.is_integer():  # One of numpy's is one, too.
                run.used("a width that a division made", "the whole number")
                return int(value)
            return value

        real(self, *map(whole, args), **{name: whole(value) for name, value in kwargs.items()})

    context.replace(torch.nn.Linear, "__init__", init)


def flags(run: context.Run) -> None:
    """``GRU(size, size, layers, dropout)``: what stands where a flag belongs was taken for its truth."""
    real = torch.nn.RNNBase.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = list(args)
        for place, flag in ((4, "bias"), (5, "batch_first")):
            if len(given) > place and isinstance(given[place], (int, float)):
                if type(given[place]) is not bool:
                    run.used(f"{given[place]} for {flag}", str(bool(given[place])))
                given[place] = bool(given[place])
        real(self, *given, **kwargs)

    context.replace(torch.nn.RNNBase, "__init__", init)


def functions(run: context.Run) -> None:
    """``embedding._backend.Embedding.apply(...)``, by which dropout of words was written."""

    def embedded(words: Any, weight: Any, padding: int | None, *args: Any) -> Any:
        run.used("_backend.Embedding.apply", "torch.nn.functional.embedding")
        return torch.nn.functional.embedding(words, weight, None if padding == -1 else padding, *args)

    backend: Any = types.SimpleNamespace(Embedding=types.SimpleNamespace(apply=embedded))
    if not hasattr(torch.nn.Embedding, "_backend"):
        torch.nn.Embedding._backend = backend  # type: ignore[attr-defined]


def backends(run: context.Run) -> None:
    """``self._backend.L1Loss(size_average)(input, target)``: what older modules computed by."""
    if not hasattr(torch.nn.Module, "_backend"):
        torch.nn.Module._backend = Backend(run)  # type: ignore[attr-defined]


class Backend:
    """The functions of older modules by their names: losses, and ``Linear``."""

    LOSSES: ClassVar[dict[str, str]] = {
        "BCELoss": "binary_cross_entropy",
        "KLDivLoss": "kl_div",
        "L1Loss": "l1_loss",
        "MSELoss": "mse_loss",
        "NLLLoss": "nll_loss",
        "SmoothL1Loss": "smooth_l1_loss",
        "SoftMarginLoss": "soft_margin_loss",
    }

    def __init__(self, run: context.Run) -> None:
        self.run = run

    def __getattr__(self, name: str) -> Any:
        if name not in self.LOSSES and name != "Linear":
            raise AttributeError(name)
        self.run.used(f"_backend.{name}", "the function of torch that computes the same")
        if name == "Linear":
            return lambda: torch.nn.functional.linear
        real = getattr(torch.nn.functional, self.LOSSES[name])

        def made(size_average: bool = True, **kwargs: Any) -> Any:
            def loss(input: torch.Tensor, target: torch.Tensor) -> Any:
                # A target got no gradient then.
                return real(input, target.detach(), reduction="mean" if size_average else "sum", **kwargs)

            return loss

        return made


def indexing(run: context.Run) -> None:
    """``loss.data[0]`` of a tensor without dimensions: its only value.

    Only where the project writes that: with a method of Python's own, torch takes such a tensor for a
    sequence, and a list of them for one of sequences. In a script that failed for that, what is written so
    is taken so (:class:`OnlyValue`), and nothing else; ``total_loss[0]`` in one that failed for that.
    """
    written = any(re.search(r"\.data\s*\[0\]", text) for text in texts(run))
    if not written and not content.book.planned("torch", "first"):
        return
    real = torch.Tensor.__getitem__

    def get(self: Any, index: Any) -> Any:
        if type(index) is int and index == 0 and isinstance(self, torch.Tensor) and self.dim() == 0:
            run.used("indexing a tensor without dimensions", "its only value")
            return self
        return real(self, index) if isinstance(self, torch.Tensor) else self[index]

    if only_values():
        setattr(builtins, ONLY, get)
    else:
        context.replace(torch.Tensor, "__getitem__", get)


ONLY = "_gradfix_only_value"
NO_INDEX = "invalid index of a 0-dim tensor"
"""Beginning of the message where a tensor without dimensions is indexed."""


def only_values() -> OnlyValue | None:
    """What lets the code take the only value of a tensor without dimensions, where the plan says so."""
    first = bool(content.book.planned("torch", "first"))
    return OnlyValue(first) if first or content.book.planned("torch", "unindexed") else None


class OnlyValue(ast.NodeTransformer):
    """Lets the project's code take ``it.data[0]`` of a tensor without dimensions, or also ``it[0]``."""

    def __init__(self, everywhere: bool) -> None:
        self.everywhere = everywhere

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Where it is read."""
        self.generic_visit(node)
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        data = self.everywhere or (isinstance(node.value, ast.Attribute) and node.value.attr == "data")
        if first and data and isinstance(node.ctx, ast.Load):
            return called(ONLY, [node.value, node.slice], node)
        return node


def loaders(run: context.Run) -> None:
    """``iter(loader).next()``."""
    import torch.utils.data.dataloader as module

    def following(self: Any) -> Any:
        return next(self)

    module._BaseDataLoaderIter.next = following  # type: ignore[attr-defined]


def samplers(run: context.Run) -> None:
    """``super().__init__(data_source)`` of a sampler, which once took what it draws from."""
    kind = torch.utils.data.Sampler
    if "__init__" in vars(kind):
        return

    def init(self: Any, data_source: Any = None) -> None:
        if data_source is not None:
            run.used("a sampler that is told what it draws from", "a sampler as there are today")

    kind.__init__ = init  # type: ignore[method-assign]


def sequences(run: context.Run) -> None:
    """``scores, _ = pack_padded_sequence(...)``: a packed sequence once had two parts."""
    real = torch.nn.utils.rnn.pack_padded_sequence

    def pack(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        frame = context.caller_of_standins(run)
        if frame is not None and context.unpacked(frame) == 2:
            run.used("a packed sequence in two parts", "its data and the sizes of its batches")
            return found[0], found[1]
        return found

    context.replace(torch.nn.utils.rnn, "pack_padded_sequence", pack)


def schedulers(run: context.Run) -> None:
    """``verbose`` of a schedule, which some no longer take: it only prints."""
    for owner in vars(torch.optim.lr_scheduler).values():
        if inspect.isclass(owner) and "__init__" in vars(owner):
            parameters = inspect.signature(owner.__init__).parameters
            if "optimizer" in parameters and "verbose" not in parameters:
                context.replace(owner, "__init__", without(owner.__init__, "verbose"))


def betas(run: context.Run) -> None:
    """``Adam(..., betas=(0, 0.9))``, whose numbers have to be of one type today."""
    for owner in (torch.optim.Adam, torch.optim.AdamW):
        real = owner.__init__

        def init(self: Any, *args: Any, _real: Any = real, **kwargs: Any) -> None:
            given = args[2] if len(args) > 2 else kwargs.get("betas")
            if isinstance(given, (tuple, list)) and any(type(one) is int for one in given):
                run.used("a whole number among betas", "the same as a floating-point number")
                both = tuple(float(one) if type(one) is int else one for one in given)
                args, kwargs = (
                    ((*args[:2], both, *args[3:]), kwargs)
                    if len(args) > 2
                    else (args, {**kwargs, "betas": both})
                )
            _real(self, *args, **kwargs)

        context.replace(owner, "__init__", init)


FLOATS = re.compile(
    r"Found dtype Long but expected Float|result type Float can't be cast to the desired output type Long|"
    r"expected scalar type Float but found Long|"
    r"Only Tensors of floating point (and complex )?dtype can require gradients|"
    r"(mean|std)\(\): could not infer output dtype.*Long",
    re.S,
)
"""Messages of torch where numbers are whole that could be those of ``torch.full``."""


def whole_numbers(run: context.Run) -> None:
    """``torch.full(size, 1)``, which once gave floating-point numbers; only if the run failed for it."""
    if not content.book.planned("torch", "full"):
        return
    real = torch.full

    def full(size: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(fill_value) is int and kwargs.get("dtype") is None and kwargs.get("out") is None:
            run.used("torch.full of a whole number", "floating-point numbers")
            kwargs["dtype"] = torch.get_default_dtype()
        return real(size, fill_value, *args, **kwargs)

    context.replace(torch, "full", full)


KIND = re.compile(r"type\(.*\)\s*[!=]=\s*(?:[\w.]+\.)?Variable\b")
"""Code that asks whether something is of the type that tensors with a history once had."""


def variables(run: context.Run) -> None:
    """``type(hidden) == Variable``: it is the type of all tensors today; only if the run failed for it."""
    if not content.book.planned("torch", "variables"):
        return

    def same(self: Any, other: Any) -> bool:
        if other is torch.Tensor:
            run.used("the type of variables", "that of tensors")
        return other is self or other is torch.Tensor

    # A stand-in may take its place.
    kinds: list[Any] = [type(torch.autograd.Variable), content.VariableKind]
    for kind in kinds:
        kind.__eq__, kind.__hash__ = same, type.__hash__


def numbers(run: context.Run) -> None:
    """``loss.data.numpy()[0]``: a loss was once an array of one element; only if the run failed for it."""
    if not content.book.planned("torch", "numbers"):
        return
    real = torch.Tensor.numpy

    def as_array(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        found = real(self, *args, **kwargs)
        if self.dim() == 0:
            run.used("an array without dimensions", "one of one element")
            return found.reshape(1)
        return found

    context.replace(torch.Tensor, "numpy", as_array)


NO_CONCATENATION = "Concatenation operation is not implemented for NumPy arrays"
"""What numpy says to ``array += tensor``."""


def products(run: context.Run) -> None:
    """``x += a.dot(b) * array``: a number of torch's was once one of Python's, and such a product an array;
    only if the run failed for it."""
    if not content.book.planned("torch", "products"):
        return
    real = torch.Tensor.__mul__

    def times(self: torch.Tensor, other: Any) -> Any:
        if self.dim() == 0 and not self.requires_grad and type(other) is sys.modules["numpy"].ndarray:
            run.used("a number of torch's times an array", "an array")
            return self.item() * other
        return real(self, other)

    context.replace(torch.Tensor, "__mul__", times)
    context.replace(torch.Tensor, "__rmul__", times)


NO_DIFFERENCE = "Subtraction, the `-` operator, with"


def differences(run: context.Run) -> None:
    """``1 - (x > 0)`` and ``x - True``: small numbers until torch 1.2; only if the run failed for it."""
    if not content.book.planned("torch", "differences"):
        return

    def number(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype is torch.bool:
            run.used("a difference of truth values", "one of small numbers")
            return value.to(torch.uint8)
        return int(value) if isinstance(value, bool) else value

    for name in ("__sub__", "__rsub__"):
        real = getattr(torch.Tensor, name)

        def subtract(self: Any, other: Any, _real: Any = real) -> Any:
            return _real(number(self), number(other))

        context.replace(torch.Tensor, name, subtract)


TENSOR_FOR_LIST = re.compile(r"stack\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not ")


def parts(run: context.Run) -> None:
    """``torch.stack(values)`` of a tensor, once a sequence of its parts; only if the run failed for it.

    Up to torch 0.3 it was written in Python, and went through what it was given.
    """
    if not content.book.planned("torch", "sequences"):
        return

    def stack(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensors, torch.Tensor):
            run.used("torch.stack of a tensor", "of its parts")
            tensors = tensors.unbind()
        return real(tensors, *args, **kwargs)

    real = context.replace(torch, "stack", stack)


def contiguous(run: context.Run) -> None:
    """``correct[:k].view(-1)``: results once lay in memory in their own order. Only if a view failed."""
    if not content.book.planned("torch", "contiguous"):
        return
    real = torch.Tensor.view

    def view(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            return real(self, *args, **kwargs)
        except RuntimeError as error:
            if not str(error).startswith(DISORDER):
                raise
            run.used("a view of values that lie in another order", "a view of a copy")
            return real(self.contiguous(), *args, **kwargs)

    context.replace(torch.Tensor, "view", view)


NO_PARAMETER = re.compile(r"cannot assign '[\w.]+' as parameter '\w+'")


def kept_whole(run: context.Run) -> None:
    """``dropout(weight, training=False)`` of a parameter, once another tensor; only if the run failed for it.

    Up to torch 0.4 dropout was a function of autograd's, which gives a view of what it leaves as it is. A
    module that has that for an attribute has no parameter of the name.
    """
    if not content.book.planned("torch", "dropout"):
        return
    real = torch.nn.functional.dropout

    def dropout(input: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(input, *args, **kwargs)
        if found is input and isinstance(input, torch.nn.Parameter):
            run.used("a parameter of which dropout keeps all", "a view of it")
            return input.view_as(input)
        return found

    context.replace(torch.nn.functional, "dropout", dropout)


def resized(run: context.Run) -> None:
    """``z.data.resize_(size)``, which once gave ``z`` itself the size; only if the run failed without."""
    if not content.book.planned("torch", "resize"):
        return
    inner: Any = torch.Tensor.__mro__[1]
    real_data, real_resize = inner.data, torch.Tensor.resize_

    def data(self: torch.Tensor) -> torch.Tensor:
        found = real_data.__get__(self)
        found._gradfix_of = self
        return found  # type: ignore[no-any-return]

    def resize(self: torch.Tensor, *size: Any, **kwargs: Any) -> torch.Tensor:
        found = real_resize(self, *size, **kwargs)
        owner = self.__dict__.get("_gradfix_of")
        if owner is not None and not owner.requires_grad and owner.shape != self.shape:
            run.used("the size given to a tensor's data", "the tensor's too")
            real_resize(owner, *size, **kwargs)
        return found

    torch.Tensor.data = property(data, real_data.__set__)  # type: ignore[assignment]
    context.replace(torch.Tensor, "resize_", resize)


RESIZED = re.compile(r"\.data\.resize_\(")
SIZES_DIFFER = re.compile(r"[Ss]izes? |shape|size\b")


def without(real: Any, dropped: str) -> Any:
    """A function that takes one more keyword and does nothing with it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop(dropped, None)
        return real(*args, **kwargs)

    return call


def plotting(run: context.Run) -> None:
    """``torch.utils.tensorboard`` without tensorboard."""
    if importlib.util.find_spec("tensorboard") is None:
        name = "torch.utils.tensorboard"
        torch.utils.tensorboard = sys.modules[name] = inert.InertModule(name, lenient=True)


def arrays(run: context.Run, numpy: Any) -> None:
    """Aliases that numpy has dropped."""
    for name, kind in NUMPY.items():
        if name not in numpy.__dict__:
            setattr(numpy, name, kind)
    for name, value in (
        ("Inf", float("inf")),
        ("NaN", float("nan")),
        ("float_", float),
        ("product", numpy.prod),
        ("cumproduct", numpy.cumprod),
        ("alltrue", numpy.all),
        ("sometrue", numpy.any),
        ("row_stack", numpy.vstack),
        ("in1d", numpy.isin),
        ("trapz", getattr(numpy, "trapezoid", None)),
    ):
        if name not in numpy.__dict__:
            setattr(numpy, name, value)
    copies(run, numpy)
    histograms(run, numpy)
    ragged(run, numpy)
    sums(run, numpy)
    drawn(numpy)
    binary(run, numpy)


def drawn(numpy: Any) -> None:
    """Arrays of what was drawn by a library that is not there: nothing of it trains anything."""
    for name in ("fromstring", "frombuffer"):
        real = getattr(numpy, name)

        def make(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            if args and type(args[0]) is inert.Inert and args[0]._lenient:
                return args[0]
            return _real(*args, **kwargs)

        context.replace(numpy, name, make)


def binary(run: context.Run, numpy: Any) -> None:
    """``numpy.fromstring`` of bytes, which is ``frombuffer`` today; that gave an array of its own."""
    real = numpy.fromstring

    def make(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **kwargs: Any) -> Any:
        if sep == "" and isinstance(string, (bytes, bytearray)):
            run.used("numpy.fromstring of bytes", "an array of what they are")
            return numpy.array(numpy.frombuffer(string, dtype, count))
        return real(string, dtype, count, sep=sep, **kwargs)

    context.replace(numpy, "fromstring", make)


def sums(run: context.Run, numpy: Any) -> None:
    """``numpy.sum`` of what a generator gives, which was Python's sum of it."""
    real = numpy.sum

    def total(a: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, types.GeneratorType):
            run.used("numpy.sum of a generator", "the sum of what it gives")
            return sum(a)
        return real(a, *args, **kwargs)

    context.replace(numpy, "sum", total)


def ragged(run: context.Run, numpy: Any) -> None:
    """Arrays of what differs in length, which once held objects; only if the run failed for it."""
    if not content.book.planned("numpy", "ragged"):
        return

    def lenient(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def make(values: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return real(values, *args, **kwargs)
            except ValueError as error:
                if RAGGED not in str(error):
                    raise
                run.used("an array of what differs in length", "one of objects")
                depth = re.search(r"after (\d+) dimension", str(error))
                return real(objects(numpy, list(values), int(depth[1]) if depth else 1), *args, **kwargs)

        context.replace(owner, name, make)

    for name in ("array", "asarray", "asanyarray"):
        lenient(numpy, name)
    lenient(numpy.random, "choice")


def objects(numpy: Any, values: Any, depth: int) -> Any:
    """An array of ``depth`` dimensions that holds objects."""
    held = numpy.empty(len(values), dtype=object)
    for number, one in enumerate(values):
        held[number] = one
    if depth < 2 or not all(hasattr(one, "__len__") for one in values):
        return held
    return numpy.array([objects(numpy, list(one), depth - 1) for one in values], dtype=object)


def copies(run: context.Run, numpy: Any) -> None:
    """``numpy.array(it, copy=False)``, which copied where it had to; only where the project says that."""
    if not any("copy=False" in text for text in texts(run)):
        return
    real = numpy.array

    def array(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("copy") is False:
            kwargs["copy"] = None if numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0" else False
        return real(*args, **kwargs)

    context.replace(numpy, "array", array)


def histograms(run: context.Run, numpy: Any) -> None:
    """``numpy.histogram(it, normed=True)``, as ``density`` was called; only where the project says that."""
    if not any("normed=" in text for text in texts(run)):
        return
    real = numpy.histogram

    def histogram(*args: Any, **kwargs: Any) -> Any:
        if "normed" in kwargs:
            run.used("normed, of a histogram", "density")
            kwargs["density"] = kwargs.pop("normed")
        return real(*args, **kwargs)

    context.replace(numpy, "histogram", histogram)


SUBCLASS = "Creating a new Tensor subclass"
"""Beginning of the message of what torch took until it had objects of Python for all of its tensors."""


def subclasses(run: context.Run) -> None:
    """``Kind(tensor)`` of a class that a script derives from ``Tensor``: it has the tensor's values."""
    if not content.book.planned("torch", "subclasses"):
        return
    base = torch.Tensor.__mro__[1]

    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        if kind is torch.Tensor or len(args) != 1 or type(args[0]) is not torch.Tensor:
            return base.__new__(kind, *args, **kwargs)
        run.used("torch.Tensor", "a class derived from it takes a tensor's values")
        return args[0].detach().as_subclass(kind)

    torch.Tensor.__new__ = staticmethod(new)  # type: ignore[assignment, method-assign]


NO_DEVICES = re.compile(
    r"rank should be in the interval \[0, -1\]|num_replicas|world_size must be|nprocs|"
    r"has no attribute 'module'$|batch_size should be a positive integer value, but got batch_size=0$"
)
"""Messages where a number of accelerators is 0, by which a script divides its work, or is not one, with which
it does without what it does for several."""
ONE_SAMPLE = "Expected more than 1 value per channel when training"
"""Beginning of the message where one sample has the place of a batch."""
DISORDER = "view size is not compatible with input tensor's size and stride"
ONE_ELEMENT = re.compile(
    r"^setting an array element with a sequence\.$|^only 0-dimensional arrays can be conv"
)
"""Messages of numpy 2.4 where an array of one element has the place of a number, which earlier ones took."""
OUT_OF_BOUNDS = re.compile(r"^Python integer -?\d+ out of bounds for u?int\d+$")
"""Message of numpy 2 where a number does not fit an array's elements, which took its last bits until then."""
RAGGED = "inhomogeneous shape"
"""In the message of numpy 1.24 and later about what differs in length."""
NUMBER, STORE, FITTED = "_gradfix_number", "_gradfix_store", "_gradfix_fitted"
"""What :class:`OneElement` lets the code call, among the names that are built in."""


WHOLE = re.compile(r"^u?int\d+$")


class OneElement(ast.NodeTransformer):
    """Lets the project's code give an array of one element where numpy wants a number."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``float(it)``, ``int(it)``, ``math.sqrt(it)``, ``numpy.uint8(it)``."""
        self.generic_visit(node)
        plain = isinstance(node.func, ast.Name) and node.func.id in ("float", "int")
        if plain or (isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "math"):
            node.args = [
                one if isinstance(one, ast.Starred) else called(NUMBER, [one], one) for one in node.args
            ]
        if isinstance(node.func, ast.Attribute) and WHOLE.match(node.func.attr) and len(node.args) == 1:
            return called(FITTED, [node.func, *node.args], node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """``array[i] = it``."""
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return node
        if any(isinstance(one, (ast.Slice, ast.Starred)) for one in ast.walk(target.slice)):
            return node
        place = [node.value, target.value, target.slice]
        return ast.copy_location(ast.Expr(called(STORE, place, node)), node)


OLD_METHODS = {"iteritems": "items", "itervalues": "values", "iterkeys": "keys", "has_key": "__contains__"}
"""Methods of mappings that Python 2 had, and what does the same."""
OLD_METHOD = re.compile(r"^(?:.* has no attribute ')?(?:" + "|".join([*OLD_METHODS, "next"]) + r")'?$")
FOLLOWING = "_gradfix_following"


class OldMethods(ast.NodeTransformer):
    """Lets the project's code call the methods of mappings and iterators by the names that they have."""

    def __init__(self) -> None:
        setattr(builtins, FOLLOWING, lambda it: it.next() if hasattr(it, "next") else next(it))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``it.next()``, which the project's own classes may have."""
        self.generic_visit(node)
        function = node.func
        if node.args or node.keywords:
            return node
        if isinstance(function, ast.Attribute) and function.attr == "next":
            return called(FOLLOWING, [function.value], node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """``it.iteritems``."""
        self.generic_visit(node)
        node.attr = OLD_METHODS.get(node.attr, node.attr)
        return node


def advise(error: BaseException) -> str | None:
    """The plan of a run that what older versions did might get further than this error."""
    if "numpy" in sys.modules and (ONE_ELEMENT.match(str(error)) or OUT_OF_BOUNDS.match(str(error))):
        return content.planned_with("numpy", "one element", True)
    if "numpy" in sys.modules and RAGGED in str(error):
        return content.planned_with("numpy", "ragged", True)
    if isinstance(error, AttributeError) and OLD_METHOD.match(str(error)):
        return content.planned_with("python", "mappings", True)
    if isinstance(error, (TypeError, AttributeError)) and OLD_LIST.search(str(error)):
        return content.planned_with("python", "lists", True)
    quotient = isinstance(error, (TypeError, IndexError)) and OLD_QUOTIENT.search(str(error))
    if quotient or asked_to_be_whole(error):
        again = content.book.planned("python", "quotients") and any(map(ONLY_2.search, texts(context.run())))
        return content.planned_with("python", "quotients", "all" if again else True)
    if str(error).startswith("Cannot access accelerator device"):
        return content.planned_with("torch", "devices by number", True)
    if isinstance(error, ZeroDivisionError) or NO_DEVICES.search(str(error)):
        if any("device_count(" in text for text in texts(context.run())):
            return content.planned_with("torch", "devices", 1)
    if str(error).startswith(ONE_SAMPLE) and content.book.planned("torch", "devices") == 1:
        # The script takes one sample for each.
        return content.planned_with("torch", "devices", 2)
    if str(error) == "too many indices for array: array is 0-dimensional, but 1 were indexed":
        return content.planned_with("torch", "numbers", True)
    if str(error) == "iteration over a 0-d tensor" and any(KIND.search(one) for one in texts(context.run())):
        return content.planned_with("torch", "variables", True)
    if isinstance(error, IndexError) and str(error).startswith(NO_INDEX):
        return content.planned_with("torch", "first", True)
    if str(error) == "len() of a 0-d tensor" and "__getitem__" in vars(torch.Tensor):
        return content.planned_with("torch", "unindexed", True)
    if isinstance(error, TypeError) and TENSOR_FOR_LIST.match(str(error)):
        return content.planned_with("torch", "sequences", True)
    if isinstance(error, RuntimeError) and str(error).startswith(SUBCLASS):
        return content.planned_with("torch", "subclasses", True)
    if isinstance(error, RuntimeError) and str(error).startswith(BYTES):
        return content.planned_with("torch", "masks", True)
    if isinstance(error, TypeError) and str(error).startswith(NO_CONCATENATION):
        return content.planned_with("torch", "products", True)
    if isinstance(error, RuntimeError) and str(error).startswith(NO_DIFFERENCE):
        return content.planned_with("torch", "differences", True)
    if isinstance(error, RuntimeError) and str(error).startswith(DISORDER):
        return content.planned_with("torch", "contiguous", True)
    if isinstance(error, TypeError) and NO_PARAMETER.match(str(error)):
        if any("dropout(" in text for text in texts(context.run())):
            return content.planned_with("torch", "dropout", True)
    if isinstance(error, (RuntimeError, ValueError)) and SIZES_DIFFER.search(str(error)):
        if any(RESIZED.search(text) for text in texts(context.run())):
            return content.planned_with("torch", "resize", True)
    if isinstance(error, RuntimeError) and OTHER_FLOATS.search(str(error)) and "numpy" in sys.modules:
        if sys.modules["numpy"].lib.NumpyVersion(sys.modules["numpy"].__version__) >= "2.0.0":
            if (plan := content.planned_with("numpy", "scalars", True)) is not None:
                return plan
    if FLOATS.search(str(error)) and any("torch.full(" in text for text in texts(context.run())):
        return content.planned_with("torch", "full", True)
    return None


def asked_to_be_whole(error: BaseException) -> bool:
    """Whether code gives up as a number that has no fraction is no ``int``: a quotient may be it."""
    frame, run = context.raised_in(error), context.run()
    if frame is None or not run.owns(frame) or not isinstance(error, (AssertionError, TypeError, ValueError)):
        return False
    for one in context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno):
        test = one.test if isinstance(one, (ast.Assert, ast.If)) else ast.Constant(None)
        for node in ast.walk(test):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and len(node.args) == 2:
                value = frame.f_locals.get(ast.unparse(node.args[0]))
                kinds = re.findall(r"\w+", ast.unparse(node.args[1]))
                if type(value) is float and value.is_integer() and "int" in kinds and "float" not in kinds:
                    return True
    return False


LISTED, DIVIDED = "_gradfix_listed", "_gradfix_divided"
OLD_LIST = re.compile(
    r"'(?:map|filter|zip|range|dict_keys|dict_values|dict_items)' (?:object|and)|"
    r"and '(?:range|dict_keys|dict_values)'|"
    r"(?:\bgot |of type ')(?:map|filter|zip|dict_keys|dict_values)\b"
)
"""Messages about what Python 2 gave as a list."""
OLD_QUOTIENT = re.compile(
    r"'float' object cannot be interpreted as an integer|(?:slice )?indices must be integers"
    r"|(?:but )?(?:got|found element of type) '?float|only integers, slices"
)
"""Messages where a floating-point number should have been whole: a quotient may be."""


ONLY_2 = re.compile(
    r"\bxrange\(|\braw_input\(|\.iteritems\(|\.itervalues\(|\.has_key\(|\bunicode\(|"
    r"^\s*print\s+[\"']|^\s*(?:import|from) (?:cPickle|Queue|StringIO|ConfigParser)\b|\bexcept \w+, \w+:",
    re.M,
)
"""What only Python 2 reads, or has."""


class OldResults(ast.NodeTransformer):
    """Lets ``map`` and the like give lists, and ``/`` of whole numbers that are divisible a whole one; of any
    others too, where nothing but Python 2 can have been meant."""

    def __init__(self, lists: bool, quotients: bool) -> None:
        self.lists = lists
        self.quotients = quotients

    def visit_For(self, node: ast.For) -> ast.AST:
        """What is only gone through may stay as it is."""
        if isinstance(node.iter, ast.Call):
            node.iter.args = [self.visit(one) for one in node.iter.args]
        else:
            node.iter = self.visit(node.iter)
        node.body = [self.visit(one) for one in node.body]
        node.orelse = [self.visit(one) for one in node.orelse]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``map(f, it)``, ``it.keys()``."""
        self.generic_visit(node)
        function = node.func
        plain = isinstance(function, ast.Name) and function.id in ("map", "filter", "zip", "range")
        keys = isinstance(function, ast.Attribute) and function.attr in ("keys", "values", "items")
        return called(LISTED, [node], node) if self.lists and (plain or (keys and not node.args)) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """``a / b``."""
        self.generic_visit(node)
        if not (self.quotients and isinstance(node.op, ast.Div)):
            return node
        return called(DIVIDED, [node.left, node.right], node)


def old_results(run: context.Run) -> OldResults | None:
    """What gives code of the project the results that Python 2 gave; only if the run failed for them."""
    lists, quotients = (bool(content.book.planned("python", one)) for one in ("lists", "quotients"))
    if not (lists or quotients):
        return None

    def listed(value: Any) -> Any:
        if isinstance(value, range) and len(value) > LONGEST_LIST:
            return value
        if isinstance(value, LISTS):
            run.used("what Python 2 gave as a list", "a list")
            return list(value)
        return value

    floored = content.book.planned("python", "quotients") == "all"
    which = "a whole one, as of Python 2" if floored else "a whole one, where they are divisible"

    def divided(one: Any, other: Any) -> Any:
        if type(one) is int and type(other) is int and other and (floored or one % other == 0):
            run.used("a quotient of whole numbers", which)
            return one // other
        return one / other

    for name, function in ((LISTED, listed), (DIVIDED, divided)):
        setattr(builtins, name, function)
    return OldResults(lists, quotients)


LISTS: tuple[Any, ...] = (map, filter, zip, range)
LISTS += tuple(type(getattr({}, name)()) for name in ("keys", "values", "items"))
LONGEST_LIST = 1 << 20
"""Numbers that a range may have to be made a list."""


def called(name: str, given: list[ast.expr], place: ast.AST) -> ast.Call:
    """A call in the place of a node."""
    call = ast.copy_location(ast.Call(ast.Name(name, ast.Load()), given, []), place)
    ast.copy_location(call.func, place)
    return call


OTHER_FLOATS = re.compile(
    r"Input type \((?:float|double)\) and bias type \((?:float|double)\)|"
    r"same dtype, but got (?:Float and Double|Double and Float)|"
    r"scalar type (?:Double but found Float|Float but found Double)"
)
"""Messages where numbers of eight bytes meet those of four: one of numpy's may have made an array so long."""
COMPUTED = "_gradfix_computed"
OPERATORS = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "Pow": operator.pow,
}


class Scalars(ast.NodeTransformer):
    """Lets a number of numpy's leave the numbers of an array as long as they are, as until numpy 2."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """``number * array``."""
        self.generic_visit(node)
        name = type(node.op).__name__
        if name not in OPERATORS:
            return node
        return called(COMPUTED, [ast.copy_location(ast.Constant(name), node), node.left, node.right], node)


def scalars(run: context.Run) -> Scalars | None:
    """What makes numbers of numpy's as weak as Python's; only if the run failed for them."""
    if not content.book.planned("numpy", "scalars"):
        return None
    numpy = sys.modules["numpy"]

    def weak(one: Any, other: Any) -> Any:
        short = type(other) is numpy.ndarray and other.ndim and other.dtype in (numpy.float32, numpy.float16)
        if short and type(one) is numpy.float64:
            run.used("a number of numpy's beside an array", "one that is no longer than the array's")
            return float(one)
        return one

    def computed(name: str, one: Any, other: Any) -> Any:
        return OPERATORS[name](weak(one, other), weak(other, one))

    setattr(builtins, COMPUTED, computed)
    return Scalars()


def one_element(run: context.Run) -> None:
    """Make what :class:`OneElement` has the code call."""
    numpy = sys.modules["numpy"]

    def number(value: Any) -> Any:
        if isinstance(value, numpy.ndarray) and value.ndim and value.size == 1:
            run.used("an array of one element for a number", "that element")
            return value.reshape(())[()]
        return value

    def store(value: Any, owner: Any, place: Any) -> None:
        if type(owner) is numpy.ndarray:
            # One element for any part of an array is the same as an array of it.
            value = number(value)
            if type(value) is int and owner.dtype.kind in "iu" and not fits(value, numpy.iinfo(owner.dtype)):
                run.used(f"{value} in an array of {owner.dtype}", "the number that has the same last bits")
                value = numpy.array(value).astype(owner.dtype)
        owner[place] = value

    def fits(value: int, bounds: Any) -> bool:
        return bool(bounds.min <= value <= bounds.max)

    def fitted(kind: Any, value: Any) -> Any:
        try:
            return kind(value)
        except OverflowError:
            run.used(f"{value} as {kind.__name__}", "the number that has the same last bits")
            return numpy.array(int(value)).astype(kind)[()]

    setattr(builtins, NUMBER, number)
    setattr(builtins, STORE, store)
    setattr(builtins, FITTED, fitted)
