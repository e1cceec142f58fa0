"""Numbered draws: which numbers they give, and what tensors are known to depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from gradfix.runtime.probe.draws import Numbered


def numbered(seed: int = 0, **numbers: list[int]) -> Numbered:
    mode = Numbered(seed, numbers)
    mode.begun = True
    return mode


@pytest.fixture
def mode() -> Iterator[Numbered]:
    torch.manual_seed(5)
    with numbered() as mode:
        yield mode


NORMAL: dict[str, Callable[[], torch.Tensor]] = {
    "randn": lambda: torch.randn(4, 3),
    "randn_like": lambda: torch.randn_like(torch.zeros(4, 3)),
    "normal_": lambda: torch.empty(4, 3).normal_(),
    "normal": lambda: torch.normal(0.0, 1.0, (4, 3)),
    "a distribution": lambda: torch.distributions.Normal(torch.zeros(4, 3), 1.0).rsample(),
}


@pytest.mark.parametrize("how", NORMAL)
def test_a_number_gives_the_same_in_any_manner(how: str) -> None:
    with numbered():
        first = torch.randn(4, 3)
    with numbered():
        torch.rand(7)
        assert torch.allclose(NORMAL[how](), first)


def test_each_draw_has_a_number() -> None:
    with numbered() as mode:
        one, other, shorter = torch.randn(4, 3), torch.randn(4, 3), torch.randn(3)
    assert not torch.equal(one, other)
    ((what, first),), ((same, second),) = mode.of([one]), mode.of([other])
    assert (same, first, second) == (what, 0, 1)
    assert mode.of([shorter])[0][0] != what
    assert mode.counts() == {what: 2, mode.of([shorter])[0][0]: 1}
    torch.manual_seed(9)  # the generator's state has no part in it
    with numbered(**{what: [1, 0, -1]}) as mode:
        assert torch.equal(torch.randn(4, 3), other)
        assert torch.equal(torch.randn(4, 3), one)
        own, beyond = torch.randn(4, 3), torch.randn(4, 3)
        assert torch.equal(torch.randn(3), shorter)
    with numbered():
        known = [torch.randn(4, 3) for _ in range(6)]
    assert not any(torch.equal(drawn, values) for drawn in (own, beyond) for values in known)
    assert not torch.equal(own, beyond)


def test_weights_are_drawn_as_ever() -> None:
    torch.manual_seed(5)
    expected = [nn.Linear(3, 3).weight for _ in range(2)]
    torch.manual_seed(5)
    with Numbered(0, {}) as mode:
        one = nn.Linear(3, 3).weight
        mode.begun = True
        # Drawn into parameters, though there is an optimizer now.
        other = nn.Linear(3, 3).weight
    assert torch.equal(one, expected[0])
    assert torch.equal(other, expected[1])


def test_a_generator_of_its_own_goes_on(mode: Numbered) -> None:
    drawn = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(drawn, torch.rand(4, 3, generator=torch.Generator().manual_seed(1)))
    assert mode.of([drawn]) == []
    assert mode.counts() == {}


def test_each_seed_has_its_own_numbers() -> None:
    found = []
    for seed in (0, 1):
        with numbered(seed):
            found.append(torch.randn(4, 3))
    assert not torch.equal(*found)


def test_draws_from_the_same_state_are_the_same(mode: Numbered) -> None:
    torch.manual_seed(1)
    one = torch.randn(4, 3)
    torch.manual_seed(1)
    other = torch.randn(4, 3)
    assert torch.equal(one, other)
    assert mode.of([other]) == mode.of([one])


def test_what_depends_on_a_draw(mode: Numbered) -> None:
    noise = torch.randn(4, 3)
    drawn = mode.of([noise])
    weight = torch.ones(3, 2, requires_grad=True)
    made = noise @ weight
    assert mode.of([made, made.detach()[1:], made.view(-1)]) == drawn
    made.sum().backward()
    assert mode.of([weight.grad]) == drawn
    kept = torch.zeros(4, 3)
    kept.add_(noise)
    assert mode.of([kept]) == drawn
    kept.zero_()
    assert mode.of([kept]) == []
    row = torch.zeros(2, 4, 3)
    row[0].copy_(noise)
    assert mode.of([row]) == drawn
    row[1].zero_()
    assert mode.of([row]) == drawn
    mode.settle([row])
    assert mode.of([row]) == []
    assert mode.of([torch.zeros_like(noise), torch.empty_like(noise)]) == []


def test_running_statistics_are_no_part_of_what_is_normed_by_a_batch(mode: Numbered) -> None:
    norm = nn.BatchNorm1d(3)
    norm(torch.randn(4, 3))
    batch = torch.rand(4, 3)
    assert mode.of([norm(batch)]) == mode.of([batch])


def test_masks_are_draws(mode: Numbered) -> None:
    batch = torch.ones(4, 3)
    one, other = (nn.functional.dropout(batch, 0.5) for _ in range(2))
    assert not torch.equal(one, other)
    assert len(mode.of([one, other])) == 2


def test_sparse_tensors_are_left_alone(mode: Numbered) -> None:
    sparse = torch.eye(3).to_sparse() * 2
    assert mode.of([sparse]) == []
    assert torch.equal(torch.sparse.mm(sparse, torch.ones(3, 1)), torch.full((3, 1), 2.0))
