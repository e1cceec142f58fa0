"""What the hashes of :mod:`gradfix.runtime.probe.provenance` tell apart, and what they do not.

Each test computes the same thing in two ways, or two things that differ, and holds the hashes against the
tensors themselves: equal hashes of tensors that differ by a bit are always a failure.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.utils._python_dispatch import (
    BaseTorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
)
from torch.utils.checkpoint import checkpoint

from gradfix.runtime.probe.provenance import MOST, Provenance
from gradfix.runtime.probe.storages import copied_alike
from gradfix.verify.jobs import Job
from gradfix.verify.recording.records import Recording

Tensors = list[torch.Tensor]
Computation = Callable[[], "torch.Tensor | Tensors"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """More threads end all hashing."""
    torch.set_num_threads(1)


def bits(tensor: torch.Tensor) -> bytes:
    dense = tensor.detach()
    dense = dense.to_dense() if dense.layout != torch.strided else dense
    flat = dense.contiguous().view(-1)
    return repr((dense.dtype, tuple(dense.shape))).encode() + bytes(flat.view(torch.uint8).tolist())


def observed(compute: Computation) -> tuple[list[str | None], list[bytes]]:
    """The hashes and the bits of what a computation gives, from a fixed seed."""
    torch.manual_seed(0)
    provenance = Provenance()
    with provenance:
        result = compute()
        given = [result] if isinstance(result, torch.Tensor) else result
        with _disable_current_modes():
            hashes = [provenance.of(tensor) for tensor in given]
    assert provenance.lost is None
    return hashes, [bits(tensor) for tensor in given]


def same(one: Computation, other: Computation) -> bool:
    """Whether hashes prove that the two give the same; wrong proofs are failures."""
    (hashes, values), (others, found) = observed(one), observed(other)
    assert len(hashes) == len(others)
    for a, b, value, mate in zip(hashes, others, values, found):
        assert a is not None
        assert a != b or value == mate, "equal hashes, different bits"
    return hashes == others


def net(*layers: nn.Module) -> nn.Sequential:
    torch.manual_seed(7)
    return nn.Sequential(*(layers or (nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))))


def gradients(module: nn.Module) -> Tensors:
    return [parameter.grad for parameter in module.parameters() if parameter.grad is not None]


# -- memory: views, aliases, writes in place --------------------------------------------------


def test_computing_the_same_again_gives_the_same_hash() -> None:
    assert same(lambda: torch.randn(3).exp() * 2, lambda: torch.randn(3).exp() * 2)
    assert not same(lambda: torch.randn(3).exp() * 2, lambda: torch.randn(3).exp() * 3)


def test_a_shape_is_part_of_a_tensor() -> None:
    def summed(*shape: int) -> torch.Tensor:
        return torch.randn(6).view(*shape).sum(0)

    assert not same(lambda: summed(2, 3), lambda: summed(3, 2))


def test_writing_to_a_view_changes_its_base_and_its_other_views() -> None:
    def computed(write: bool) -> Tensors:
        base = torch.randn(4, 3)
        row, column, copy = base[1], base[:, 0], base.clone()
        if write:
            row.mul_(2)
        return [base, row, column, copy]

    (plain, _), (written, _) = observed(lambda: computed(False)), observed(lambda: computed(True))
    assert [a == b for a, b in zip(plain, written)] == [False, False, False, True]


def test_writing_to_a_base_changes_its_views() -> None:
    def computed(write: bool) -> torch.Tensor:
        base = torch.randn(4, 3)
        view = base.t()[1:]
        if write:
            base.add_(1)
        return view

    assert not same(lambda: computed(False), lambda: computed(True))


@pytest.mark.parametrize("alias", ["detach", "data", "view", "numpy", "storage"])
def test_writing_through_an_alias_is_noticed(alias: str) -> None:
    def computed(write: bool) -> torch.Tensor:
        tensor = torch.ones(4)
        other = {
            "detach": tensor.detach,
            "data": lambda: tensor.data,
            "view": lambda: tensor.view(2, 2),
            "numpy": tensor.numpy,
            "storage": lambda: torch.empty(0).set_(tensor.untyped_storage()),
        }[alias]()
        if write:
            other[0] = 5.0
        return tensor * 2

    assert not same(lambda: computed(False), lambda: computed(True))


def test_memory_of_numpy_is_read_anew() -> None:
    numpy = pytest.importorskip("numpy")

    def computed(value: float) -> Tensors:
        array = numpy.ones(4)
        tensor = torch.from_numpy(array)
        first = tensor * 2
        array[1] = value
        return [first, tensor * 2]

    hashes, _ = observed(lambda: computed(1.0))
    others, _ = observed(lambda: computed(3.0))
    assert hashes[0] == others[0]
    assert hashes[1] != others[1]


def test_in_place_and_out_of_place_arithmetic_agree() -> None:
    assert same(lambda: torch.randn(3) * 2 - 1, lambda: torch.randn(3).mul_(2).sub_(1))


def test_a_copy_into_a_part_keeps_the_rest() -> None:
    def computed(first: float) -> torch.Tensor:
        target = torch.full((4,), first)
        target[:2].copy_(torch.ones(2))
        return target

    assert same(lambda: computed(3.0), lambda: computed(3.0))
    assert not same(lambda: computed(3.0), lambda: computed(4.0))


def test_a_part_that_was_written_last_is_known_by_what_was_written() -> None:
    def computed(between: Callable[[torch.Tensor], object]) -> torch.Tensor:
        memory = torch.empty(6)
        memory[2:4].copy_(torch.randn(2))
        between(memory)
        return memory[2:4].exp()

    assert same(lambda: computed(lambda m: None), lambda: torch.empty(6)[2:4].copy_(torch.randn(2)).exp())
    assert not same(lambda: computed(lambda m: None), lambda: computed(lambda m: m[1:3].fill_(1.0)))
    assert not same(lambda: computed(lambda m: None), lambda: computed(lambda m: m.fill_(1.0)))
    assert not same(lambda: computed(lambda m: None), lambda: computed(lambda m: m.numpy().fill(1.0)))


@pytest.mark.parametrize(
    "view",
    [lambda t: t, lambda t: t.t(), lambda t: t[:, 1:], lambda t: t[1], lambda t: t[:, :1].t()],
    ids=["whole", "transposed", "columns", "row", "one column"],
)
def test_a_kept_copy_serves_kernels_as_the_original(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def computed(kept: bool) -> torch.Tensor:
        tensor = view(torch.randn(5, 3))
        return (copied_alike(tensor) if kept else tensor).exp().sum(0)

    assert same(lambda: computed(True), lambda: computed(False))


def test_memory_that_was_never_written_is_known_by_its_bytes_only() -> None:
    def computed(value: float) -> torch.Tensor:
        target = torch.empty(2)
        target[0] = value
        target[1] = 2.0
        return target + 1

    assert same(lambda: computed(1.0), lambda: computed(1.0))
    assert not same(lambda: computed(1.0), lambda: computed(3.0))


def test_parameters_that_share_memory_are_followed() -> None:
    def computed(write: bool) -> Tensors:
        first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        second.weight = first.weight
        if write:
            with torch.no_grad():
                first.weight.zero_()
        return [second(torch.ones(1, 3))]

    assert not same(lambda: computed(False), lambda: computed(True))


def test_vector_to_parameters_makes_views() -> None:
    def computed(write: bool) -> Tensors:
        module = net()
        vector = nn.utils.parameters_to_vector(module.parameters()).detach()
        nn.utils.vector_to_parameters(vector, module.parameters())
        if write:
            vector.mul_(2)
        return [*module.parameters()]

    hashes, _ = observed(lambda: computed(False))
    others, _ = observed(lambda: computed(True))
    assert all(a != b for a, b in zip(hashes, others))


def test_layout_enters_where_kernels_go_by_it() -> None:
    def computed(dense: bool) -> torch.Tensor:
        matrix = torch.randn(65, 65).t()
        return (matrix.contiguous() if dense else matrix).exp().sum(0)

    assert not same(lambda: computed(True), lambda: computed(False))


# -- constants and random numbers -------------------------------------------------------------


def test_constants_hash_by_content() -> None:
    assert same(lambda: torch.tensor([1.0, 2.0]) + 1, lambda: torch.tensor([1.0, 2.0]) + 1)
    assert not same(lambda: torch.tensor([1.0, 2.0]), lambda: torch.tensor([1.0, 3.0]))
    assert not same(lambda: torch.tensor([1.0]), lambda: torch.tensor([1.0], dtype=torch.float64))
    assert not same(lambda: torch.zeros(1), lambda: torch.full((1,), -0.0))


def test_filling_is_the_same_however_it_is_said() -> None:
    assert same(lambda: torch.zeros(3), lambda: torch.randn(3).mul_(0).zero_().clone())
    assert same(lambda: torch.ones(3), lambda: torch.full((3,), 1.0))
    assert same(lambda: torch.randn(3).new_full((3,), 2.0), lambda: torch.empty(3).fill_(2))


def test_draws_hash_by_the_state_of_the_generator() -> None:
    def drawn(*before: int, seed: int | None = None) -> torch.Tensor:
        for size in before:
            torch.rand(size)
        if seed is not None:
            torch.manual_seed(seed)
        return torch.rand(3)

    assert not same(drawn, lambda: drawn(2))
    assert not same(lambda: drawn(2), lambda: drawn(3))
    assert same(lambda: drawn(2, seed=4), lambda: drawn(5, seed=4))
    assert not same(lambda: drawn(seed=4), lambda: drawn(seed=5))


def test_a_generator_of_its_own_is_its_own() -> None:
    def drawn(before: int, seed: int) -> torch.Tensor:
        torch.rand(before)
        return torch.rand(3, generator=torch.Generator().manual_seed(seed))

    assert same(lambda: drawn(1, 5), lambda: drawn(2, 5))
    assert not same(lambda: drawn(1, 5), lambda: drawn(1, 6))


def test_noise_like_a_tensor_does_not_depend_on_its_contents() -> None:
    assert same(lambda: torch.rand_like(torch.zeros(3)), lambda: torch.rand_like(torch.ones(3)))


# -- harmless differences of a fixed program --------------------------------------------------


def trained(prepare: Callable[[nn.Module, torch.Tensor], torch.Tensor], *layers: nn.Module) -> Tensors:
    module = net(*layers)
    prepare(module, torch.randn(5, 3)).backward()
    return gradients(module)


def loss(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return module(x).square().mean()


@pytest.mark.parametrize(
    "other",
    [
        lambda m, x: loss(m, x.detach()),
        lambda m, x: loss(m, x.clone()),
        lambda m, x: loss(m, x.requires_grad_(True)),
        lambda m, x: (loss(m, x), loss(m, x))[1],
        lambda m, x: (m.requires_grad_(False), m(x), m.requires_grad_(True), loss(m, x))[-1],
        lambda m, x: (loss(m, x).backward(retain_graph=True), m.zero_grad(), loss(m, x))[-1],
        lambda m, x: (loss(m, x).backward(), m.zero_grad(set_to_none=False), loss(m, x))[-1],
        lambda m, x: functional_call(m, dict(m.named_parameters()), (x,)).square().mean(),
        lambda m, x: checkpoint(m, x, use_reentrant=False).square().mean(),
    ],
    ids=[
        "detached input",
        "cloned input",
        "input with a gradient",
        "forward twice",
        "frozen forward before",
        "cleared gradients",
        "zeroed gradients",
        "functional_call",
        "checkpoint",
    ],
)
def test_gradients_of_the_same_loss_are_the_same(
    other: Callable[[nn.Module, torch.Tensor], torch.Tensor],
) -> None:
    assert same(lambda: trained(loss), lambda: trained(other))


def test_two_losses_accumulate_in_either_order() -> None:
    def accumulated(order: tuple[int, ...], zeroed: bool) -> Tensors:
        module, x = net(), torch.randn(5, 3)
        losses = [module(x).square().mean(), module(x).abs().mean(), module(x).exp().mean()]
        if zeroed:
            module(x).sum().backward()
            module.zero_grad(set_to_none=False)
        for number in order:
            losses[number].backward()
        return gradients(module)

    assert same(lambda: accumulated((0, 1), False), lambda: accumulated((1, 0), False))
    assert same(lambda: accumulated((0, 1), False), lambda: accumulated((0, 1), True))
    assert not same(lambda: accumulated((0,), False), lambda: accumulated((0, 1), False))
    # Three are not associative: whether the bits agree is for numbers to say.
    assert not same(lambda: accumulated((0, 1, 2), False), lambda: accumulated((1, 2, 0), False))


def test_adding_to_zeros_may_change_a_negative_zero() -> None:
    def added(value: float, zeros: bool) -> torch.Tensor:
        tensor = torch.tensor([1.0, value])
        return torch.zeros(2) + tensor if zeros else tensor

    assert same(lambda: added(0.0, True), lambda: added(0.0, False))
    assert not same(lambda: added(-0.0, True), lambda: added(-0.0, False))


def test_a_step_with_zeros_changes_nothing() -> None:
    def stepped(value: float, factor: float) -> torch.Tensor:
        return torch.tensor([1.0, value]).add_(torch.zeros(2), alpha=factor)

    assert same(lambda: stepped(-0.0, -0.1), lambda: torch.tensor([1.0, -0.0]))
    assert same(lambda: stepped(0.0, 0.1), lambda: torch.tensor([1.0, 0.0]))
    assert not same(lambda: stepped(-0.0, 0.1), lambda: torch.tensor([1.0, -0.0]))


def test_a_leak_of_another_loss_is_no_harmless_difference() -> None:
    def leaked(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        m(x).sum().backward()
        return loss(m, x)

    assert not same(lambda: trained(loss), lambda: trained(leaked))


# -- layers with state, masks of backward kernels ---------------------------------------------


def test_batch_norm_in_training_does_not_depend_on_its_statistics() -> None:
    def computed(forwards: int, evaluated: bool) -> Tensors:
        module = net(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        x = torch.randn(5, 3)
        for _ in range(forwards):
            module(x + 1)
        if evaluated:
            module.eval()
        loss(module, x).backward()
        return gradients(module)

    assert same(lambda: computed(0, False), lambda: computed(2, False))
    assert not same(lambda: computed(0, True), lambda: computed(2, True))


@pytest.mark.parametrize("statistic", ["running_mean", "running_var", "num_batches_tracked"])
def test_batch_norm_writes_its_statistics(statistic: str) -> None:
    def computed(forwards: int) -> torch.Tensor:
        module = nn.BatchNorm1d(3)
        for _ in range(forwards):
            module(torch.randn(5, 3))
        found = getattr(module, statistic)
        assert isinstance(found, torch.Tensor)
        return found

    assert same(lambda: computed(2), lambda: computed(2))
    assert not same(lambda: computed(2), lambda: computed(3))


def test_dropout_depends_on_the_draws_before() -> None:
    def computed(m: nn.Module, x: torch.Tensor, draws: int) -> torch.Tensor:
        torch.rand(draws)
        return loss(m, x)

    def dropped(draws: int) -> Tensors:
        layers = nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)
        return trained(functools.partial(computed, draws=draws), *layers)

    assert same(lambda: dropped(1), lambda: dropped(1))
    assert not same(lambda: dropped(1), lambda: dropped(2))


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conv": (lambda: nn.Conv2d(4, 6, 3, padding=1), (2, 4, 9, 9)),
    "conv, one image": (lambda: nn.Conv2d(4, 6, 3), (1, 4, 9, 9)),
    "conv, groups": (lambda: nn.Conv2d(4, 4, 3, groups=4, bias=False), (2, 4, 9, 9)),
    "conv, strides": (lambda: nn.Conv2d(3, 64, 4, 2, 1), (4, 3, 32, 32)),
    "conv, dilated": (lambda: nn.Conv2d(4, 6, 3, dilation=2), (2, 4, 9, 9)),
    "conv 1d": (lambda: nn.Conv1d(4, 6, 3), (2, 4, 9)),
    "conv 3d": (lambda: nn.Conv3d(2, 3, 3), (2, 2, 5, 5, 5)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 4, 2, 1), (2, 4, 9, 9)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (3, 4, 5, 5)),
    "layer norm": (lambda: nn.LayerNorm(9), (3, 4, 9)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (3, 4, 5, 5)),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), (3, 4, 5, 5)),
    "linear": (lambda: nn.Linear(9, 3), (4, 9)),
    "rnn": (lambda: nn.GRU(9, 5), (4, 2, 9)),
}


@pytest.mark.parametrize("double", [False, True], ids=["float", "double"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_gives_its_parameters_the_same_whether_its_input_needs_a_gradient(
    layer: str, double: bool
) -> None:
    """What a fix by detach relies on; the bits are held against each other whatever the hashes say."""
    make, shape = LAYERS[layer]

    def computed(wanted: bool) -> Tensors:
        torch.manual_seed(3)
        module, x = make(), torch.randn(shape)
        if double:
            module, x = module.double(), x.double()
        result = module(x.requires_grad_(wanted))
        result = result[0] if isinstance(result, tuple) else result
        (result * torch.randn(result.shape, dtype=x.dtype)).sum().backward()
        return gradients(module)

    assert same(lambda: computed(True), lambda: computed(False))
    assert observed(lambda: computed(True))[1] == observed(lambda: computed(False))[1]


@pytest.mark.parametrize("layer", ["conv", "transposed", "batch norm", "layer norm", "group norm"])
def test_frozen_parameters_leave_the_gradient_of_the_input_the_same(layer: str) -> None:
    make, shape = LAYERS[layer]

    def computed(frozen: bool) -> torch.Tensor:
        torch.manual_seed(3)
        module, x = make(), torch.randn(shape, requires_grad=True)
        module.requires_grad_(not frozen)
        result = module(x)
        (result * torch.randn(result.shape)).sum().backward()
        assert x.grad is not None
        return x.grad

    assert same(lambda: computed(True), lambda: computed(False))


# -- optimizers -------------------------------------------------------------------------------


OPTIMIZERS: dict[str, Callable[[Tensors], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd, foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "sgd, fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "adam, foreach": lambda p: torch.optim.Adam(p, lr=0.1, foreach=True),
    "adam, fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_carry_their_state(name: str) -> None:
    def stepped(gradients_differ: bool, clip: bool = False) -> Tensors:
        module, x = net(), torch.randn(5, 3)
        optimizer = OPTIMIZERS[name]([*module.parameters()])
        for turn in range(3):
            optimizer.zero_grad()
            loss(module, x * 2 if gradients_differ and turn == 0 else x).backward()
            if clip:
                nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step()
        return [*module.parameters()]

    assert same(lambda: stepped(False), lambda: stepped(False))
    assert same(lambda: stepped(False, clip=True), lambda: stepped(False, clip=True))
    assert not same(lambda: stepped(True), lambda: stepped(False))


@pytest.mark.parametrize("name", ["adam", "adam, foreach", "adam, fused", "sgd, foreach"])
def test_one_parameter_does_not_touch_the_others(name: str) -> None:
    """Where a gradient of one parameter changes, the others are still proved equal."""

    def stepped(scale: float) -> Tensors:
        one, other = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))
        optimizer = OPTIMIZERS[name]([one, other])
        one.grad, other.grad = torch.ones(3) * scale, torch.ones(2) * 3
        optimizer.step()
        return [one.detach(), other.detach()]

    (first, second), _ = observed(lambda: stepped(1.0))
    (changed, kept), _ = observed(lambda: stepped(2.0))
    assert first != changed
    assert second == kept


# -- autocast, functions of the user's own, sparse gradients ----------------------------------


def test_autocast_enters() -> None:
    def lower(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss(m, x)

    assert same(lambda: trained(lower), lambda: trained(lower))
    assert not same(lambda: trained(lower), lambda: trained(loss))


class Scaled(torch.autograd.Function):
    """A gradient of its own making."""

    factor = 1.0

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * Scaled.factor


def test_functions_of_the_users_own_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(factor: float, m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        monkeypatch.setattr(Scaled, "factor", factor)
        result = Scaled.apply(m(x))
        assert isinstance(result, torch.Tensor)
        return result.square().mean()

    one, two = functools.partial(scaled, 2.0), functools.partial(scaled, 3.0)
    assert same(lambda: trained(one), lambda: trained(one))
    assert not same(lambda: trained(one), lambda: trained(two))


def test_a_function_by_way_of_numpy_is_known_by_its_bytes() -> None:
    pytest.importorskip("numpy")

    def computed(factor: float) -> torch.Tensor:
        return torch.from_numpy(torch.randn(3).numpy() * factor) + 1

    assert same(lambda: computed(2.0), lambda: computed(2.0))
    assert not same(lambda: computed(2.0), lambda: computed(3.0))


def test_sparse_gradients() -> None:
    def computed(index: int, step: bool = False) -> Tensors:
        torch.manual_seed(2)
        table = nn.Embedding(5, 3, sparse=True)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        table(torch.tensor([index, 1])).square().sum().backward()
        if step:
            optimizer.step()
        assert table.weight.grad is not None
        return [table.weight.detach() if step else table.weight.grad]

    assert same(lambda: computed(3), lambda: computed(3))
    assert not same(lambda: computed(3), lambda: computed(4))
    assert same(lambda: computed(3, True), lambda: computed(3, True))
    assert not same(lambda: computed(3, True), lambda: computed(4, True))


def test_what_is_not_understood_is_like_nothing_else() -> None:
    class Strange(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            with torch._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    def computed() -> torch.Tensor:
        return torch.Tensor._make_subclass(Strange, torch.ones(3))

    assert not same(computed, computed)
    assert not same(lambda: torch.ones(3).to_mkldnn(), lambda: torch.ones(3).to_mkldnn())


# -- in the probe -----------------------------------------------------------------------------


PROGRAM = """
import threading
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{prelude}
for step in range(2):
    optimizer.zero_grad()
    net(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, sharing: Any) -> Callable[[str], Recording]:
    path = Path(tmp_path_factory.mktemp("project")) / "train.py"
    preludes = {
        "plain": "",
        "thread": textwrap.dedent("""
            thread = threading.Thread(target=lambda: net.weight.data.mul_(2))
            thread.start()
            thread.join()
        """),
        "threads": "torch.set_num_threads(2)",
        "applied": "net.weight.data.apply_(lambda value: value * 2)",
        "pointer": textwrap.dedent("""
            import ctypes
            ctypes.cast(net.weight.data_ptr(), ctypes.POINTER(ctypes.c_float))[0] = 7.0
        """),
    }
    jobs = [Job(path, PROGRAM.format(prelude=prelude)) for prelude in preludes.values()]
    return dict(zip(preludes, sharing.run(jobs))).__getitem__


def hashes(recording: Recording, step: int) -> list[tuple[str | None, str | None]]:
    return [(p.gradient_hash, p.value_hash) for p in recording.steps[step].parameters]


def test_the_probe_records_hashes_at_every_step(recorded: Callable[[str], Recording]) -> None:
    plain = recorded("plain")
    assert plain.ending == "finished"
    found = [hash for step in (0, 1) for pair in hashes(plain, step) for hash in pair]
    assert None not in found
    assert len({*found}) == 8


@pytest.mark.parametrize("prelude", ["thread", "threads"])
def test_threads_end_all_hashing(prelude: str, recorded: Callable[[str], Recording]) -> None:
    assert recorded(prelude).ending == "finished"
    assert hashes(recorded(prelude), 0) == [(None, None), (None, None)]


@pytest.mark.parametrize("prelude", ["applied", "pointer"])
def test_writes_that_no_operation_makes_are_noticed(
    prelude: str, recorded: Callable[[str], Recording]
) -> None:
    plain, written = recorded("plain"), recorded(prelude)
    assert written.ending == "finished"
    assert hashes(plain, 0)[0] != hashes(written, 0)[0]
    digests = [r.steps[0].parameters[0].value.digest for r in (plain, written)]
    assert digests[0] != digests[1]


# -- when no hash can be trusted any more -----------------------------------------------------


def test_it_leaves_where_no_hash_can_be_trusted() -> None:
    provenance = Provenance()
    with provenance:
        provenance.leave_if_lost()
        assert _get_current_dispatch_mode() is provenance
        provenance.lost = "a thread was started"
        with BaseTorchDispatchMode():
            # It is not its turn.
            provenance.leave_if_lost()
            assert _get_current_dispatch_mode() is not provenance
        provenance.leave_if_lost()
        assert _get_current_dispatch_mode() is None
    assert _get_current_dispatch_mode() is None


LONG = """
import torch
for pass_ in range(2):
    x = torch.ones(3)
    for _ in range({most} // 2):
        x = x + 1
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    (weight * x).sum().backward()
    optimizer.step()
from torch.utils._python_dispatch import _get_current_dispatch_mode
assert _get_current_dispatch_mode() is None
"""


def test_a_long_run_is_watched_on_without_hashes(tmp_path: Path, sharing: Any) -> None:
    (recording,) = sharing.run([Job(tmp_path / "long.py", LONG.format(most=MOST))])
    assert recording.ending == "finished", recording.uncaught
    first, last = ([state.value_hash for state in step.parameters] for step in recording.steps)
    assert None not in first
    assert last == [None]
