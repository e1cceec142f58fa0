"""Drivers of a step alone: what is written of an entry whose caller is nobody's."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.pipeline import driver
from gradfix.pipeline.analysis import Analysis, analyse
from gradfix.pipeline.choosing import choose_fix
from gradfix.pipeline.drivers import drivers
from gradfix.pipeline.options import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source
from gradfix.verify.alone import Driver
from gradfix.verify.planting import KINDS, planted


@pytest.fixture(scope="module")
def options() -> Options:
    prepared = driver.prepare([], RequestedOptions(unsafe_fixes=True, verify=False))
    assert isinstance(prepared, Options)
    return prepared


def written(text: str, folder: Path, options: Options) -> list[list[Driver]]:
    """The drivers for the first fix of the first finding in ``text``."""
    before = analysed(text, folder / "train.py", options)
    finding = before.findings[0]
    chosen = choose_fix(before, finding, finding.fixes, options)
    assert chosen.fix is not None and chosen.fixed_text is not None
    after = analysed(chosen.fixed_text, folder / "train.py", options)
    return list(drivers(before, after, chosen.fix, bool(finding.assumption)))


def analysed(text: str, path: Path, options: Options) -> Analysis:
    parsed = source.parse_code(str(path), text)
    assert isinstance(parsed, Source)
    return analyse(parsed, options)


def lines(found: Driver) -> Iterator[str]:
    return (
        line for line in found.text.splitlines() if line.startswith(("gen", "disc", "opt", "sub", "    "))
    )


STEP = textwrap.dedent(
    """
    import torch


    def train_step(gen, disc, opt_g, opt_d, x, weight=1.0):
        fake = gen(torch.randn(x.size(0), 16))
        loss_d = (disc(fake) - disc(x)).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -disc(fake).mean() * weight
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    """
).lstrip()


def test_networks_and_optimizers_are_made_as_the_world_has_them(tmp_path: Path, options: Options) -> None:
    ((found,),) = written(STEP, tmp_path, options)
    assert list(lines(found)) == [
        "gen = network('gen', owner='opt_g')",
        "disc = network('disc', owner='opt_d')",
        "opt_g = optimizer('opt_g', [gen], line=4)",
        "opt_d = optimizer('opt_d', [disc], line=4)",
        "    module.train_step(gen=gen, disc=disc, opt_g=opt_g, opt_d=opt_d, x=Given('x', turn))",
    ]
    assert found.world == "`opt_d` updates `disc`, and `opt_g` updates `gen`"


TRAINER = textwrap.dedent(
    """
    import torch


    class Trainer:
        def __init__(self, gen, disc, opt_g, opt_d, z_dim):
            self.gen, self.disc = gen, disc
            self.opt_g, self.opt_d = opt_g, opt_d
            self.z_dim = z_dim

        def train_epoch(self, loader):
            for x, _ in loader:
                fake = self.gen(torch.randn(x.size(0), self.z_dim))
                loss_d = (self.disc(fake) - self.disc(x)).mean()
                self.opt_d.zero_grad()
                loss_d.backward()
                self.opt_d.step()
                loss_g = -self.disc(fake).mean()
                self.opt_g.zero_grad()
                loss_g.backward()
                self.opt_g.step()
    """
).lstrip()


def test_a_class_is_made_and_its_method_called_with_a_loader(tmp_path: Path, options: Options) -> None:
    ((found,),) = written(TRAINER, tmp_path, options)
    assert list(lines(found))[-2:] == [
        "subject = module.Trainer(gen=gen, disc=disc, opt_g=opt_g, opt_d=opt_d, z_dim=number('z_dim'))",
        "    subject.train_epoch(loader=Given('loader', turn))",
    ]


def test_of_each_kind_of_mistake_one_is_planted_at_each_place() -> None:
    text = STEP.replace("disc(fake) - disc(x)).mean()", "disc(fake)).mean() - disc(x).mean()")
    found = list(planted(text, 1, len(text.splitlines())))
    assert {one.kind for one in found} == set(KINDS)
    assert [one.line for one in found if one.kind == "loss doubled"] == [8, 12]
    (doubled, _) = (one.text for one in found if one.kind == "loss doubled")
    assert "__planted__.doubled(loss_d).backward()" in doubled
