"""Runs in which draws are alike: which numbers are the same, and what tensors are known to depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from gradfix.verify import provenance
from gradfix.verify.draws import DrawsAlike


@pytest.fixture
def mode() -> Iterator[DrawsAlike]:
    torch.manual_seed(5)
    with DrawsAlike(provenance, seed=0) as mode:
        mode.begun = True
        yield mode


NORMAL: dict[str, Callable[[], torch.Tensor]] = {
    "randn": lambda: torch.randn(4, 3),
    "randn_like": lambda: torch.randn_like(torch.zeros(4, 3)),
    "normal_": lambda: torch.empty(4, 3).normal_(),
    "normal": lambda: torch.normal(0.0, 1.0, (4, 3)),
    "a distribution": lambda: torch.distributions.Normal(torch.zeros(4, 3), 1.0).rsample(),
}


@pytest.mark.parametrize("how", NORMAL)
def test_the_same_numbers_in_any_manner(how: str, mode: DrawsAlike) -> None:
    first = torch.randn(4, 3)
    torch.randn(7)
    assert torch.allclose(NORMAL[how](), first)


def test_other_kinds_and_shapes_are_other_numbers(mode: DrawsAlike) -> None:
    first = torch.randn(4, 3)
    assert not torch.equal(torch.rand(4, 3), first)
    assert not torch.equal(torch.randn(3, 4).view(4, 3), first)
    assert torch.equal(torch.randperm(9), torch.randperm(9))


def test_weights_are_drawn_as_ever() -> None:
    torch.manual_seed(5)
    expected = [nn.Linear(3, 3).weight for _ in range(2)]
    torch.manual_seed(5)
    with DrawsAlike(provenance, seed=0) as mode:
        one = nn.Linear(3, 3).weight
        mode.begun = True
        # Drawn into parameters, though there is an optimizer now.
        other = nn.Linear(3, 3).weight
    assert torch.equal(one, expected[0])
    assert torch.equal(other, expected[1])


def test_a_generator_of_its_own_goes_on(mode: DrawsAlike) -> None:
    generator = torch.Generator().manual_seed(1)
    one, other = (torch.rand(4, 3, generator=generator) for _ in range(2))
    assert not torch.equal(one, other)
    (first,), (second,) = mode.of([one]), mode.of([other])
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_each_seed_has_its_own_numbers() -> None:
    found = []
    for seed in (0, 1):
        with DrawsAlike(provenance, seed) as mode:
            mode.begun = True
            found.append(torch.randn(4, 3))
    assert not torch.equal(*found)


def test_draws_are_told_apart_though_they_are_alike(mode: DrawsAlike) -> None:
    one, other = torch.randn(4, 3), torch.randn(4, 3)
    assert torch.equal(one, other)
    (first,), (second,) = mode.of([one]), mode.of([other])
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert mode.of([one + other]) == sorted([first, second])
    assert mode.of([one, None, other]) == sorted([first, second])


def test_draws_from_the_same_state_are_the_same(mode: DrawsAlike) -> None:
    torch.manual_seed(1)
    one = torch.randn(4, 3)
    torch.manual_seed(1)
    assert mode.of([torch.randn(4, 3)]) == mode.of([one])


def test_what_depends_on_a_draw(mode: DrawsAlike) -> None:
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


def test_running_statistics_are_no_part_of_what_is_normed_by_a_batch(mode: DrawsAlike) -> None:
    norm = nn.BatchNorm1d(3)
    norm(torch.randn(4, 3))
    batch = torch.rand(4, 3)
    assert mode.of([norm(batch)]) == mode.of([batch])


def test_masks_are_draws(mode: DrawsAlike) -> None:
    batch = torch.ones(4, 3)
    one, other = (nn.functional.dropout(batch, 0.5) for _ in range(2))
    assert torch.equal(one, other)
    assert len(mode.of([one, other])) == 2


def test_sparse_tensors_are_left_alone(mode: DrawsAlike) -> None:
    sparse = torch.eye(3).to_sparse() * 2
    assert mode.of([sparse]) == []
    assert torch.equal(torch.sparse.mm(sparse, torch.ones(3, 1)), torch.full((3, 1), 2.0))
