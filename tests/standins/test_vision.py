"""The networks of torchvision that are made without torchvision have as many weights as the real ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gradfix.verify.standins import context
from tests.standins.vision import COUNTS


def weights(name: str, **settings: object) -> int:
    torch = pytest.importorskip("torch")
    from gradfix.verify.standins.modules.torchvision import models

    with torch.device("meta"):
        made = models.get_model(name, **settings)
    return sum(one.numel() for one in made.parameters())


@pytest.fixture(autouse=True)
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that does not reduce sizes."""
    monkeypatch.setattr(context, "current", SimpleNamespace(small=False, used=lambda what, gave: None))


@pytest.mark.parametrize("name", COUNTS)
def test_there_are_as_many_weights(name: str) -> None:
    twofold = name.startswith(("fcn", "deeplabv3"))
    assert weights(name, **({"aux_loss": True} if twofold else {})) == COUNTS[name]


def test_googlenet_has_nothing_in_its_middle_if_it_is_thought_to_be_trained() -> None:
    assert weights("googlenet", weights="DEFAULT") == 6624904
