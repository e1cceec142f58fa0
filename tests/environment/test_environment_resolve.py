"""Relaxing by what uv says, and by trying where it says nothing that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gradfix.environment.errors import EnvironmentFailure
from gradfix.environment.requirements import Requirement, parse
from gradfix.environment.resolve import Resolution, resolve
from gradfix.environment.uv import Answer, Uv


class Told(Uv):
    """A uv that says what a test wants of the requirements that it is handed."""

    answer: Callable[[list[str]], str]

    def call(self, *arguments: str, constraints: Sequence[Path] = ()) -> Answer:
        wanted = (self.folder / "requirements.in").read_text().splitlines()
        said = type(self).answer(wanted)
        lines = "".join(f"{line.split('=')[0].split('>')[0].split('<')[0]}==9\n" for line in wanted)
        return Answer(not said, "" if said else lines, said)


def resolved(tmp_path: Path, lines: Sequence[str], answer: Callable[[list[str]], str]) -> Resolution:
    wanted = [one for line in lines if isinstance(one := parse(line, "here"), Requirement)]
    uv = type("Fake", (Told,), {"answer": staticmethod(answer)})("uv", tmp_path)
    return resolve(wanted, uv, "python", "3.11", lambda _: None)


@pytest.mark.parametrize("bad", ["a==1", "c==1", "e==1"])
def test_where_uv_names_nothing_the_culprit_is_found_by_trying(tmp_path: Path, bad: str) -> None:
    found = resolved(
        tmp_path,
        ["a==1", "b==1", "c==1", "d==1", "e==1"],
        lambda wanted: "error: it went wrong" if bad in wanted else "",
    )
    assert [one.stated for one in found.relaxed] == [bad]
    assert not found.missing


def test_what_fails_whatever_is_asked_for_is_no_fault_of_the_requirements(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="it went wrong"):
        resolved(tmp_path, ["a==1", "b==1"], lambda _: "error: it went wrong")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            "Because a==1 has no usable wheels and you require a==1, we can conclude",
            "no wheel for Python 3.11",
        ),
        (
            "Because there is no version of a==1 and you require a==1, we can conclude",
            "there is no such version",
        ),
        ("Because a was not found in the package registry and you require a==1,", "it is not in the index"),
        (
            "Because the current Python version (3.11.7) does not satisfy Python<3.8 and a==1 depends on "
            "Python<3.8, we can conclude that a==1 cannot be used. And because you require a==1,",
            "not for Python 3.11",
        ),
        (
            "Because b==2 depends on a>=3 and you require a==1, we can conclude that your requirements and "
            "b==2 are incompatible. And because you require b==2, we can conclude",
            "at odds with b==2",
        ),
        (
            "Because a>=1.0,<1.5 have no usable wheels and only the following versions of a are available: "
            "a<=0.9 a>1.5 we can conclude that a==1 cannot be used. And because you require a==1,",
            "no wheel for Python 3.11",
        ),
        ("Because you require a==1 and a==2, we can conclude", "at odds with a constraint of yours"),
    ],
)
def test_the_reason_is_told_in_few_words(tmp_path: Path, message: str, why: str) -> None:
    found = resolved(
        tmp_path,
        ["a==1", "b==2"],
        lambda wanted: f"error: No solution found cause: {message}" if "a==1" in wanted else "",
    )
    assert [(one.stated, one.why) for one in found.relaxed] == [("a==1", why)]


def test_one_package_that_the_index_refuses_is_dropped(tmp_path: Path) -> None:
    found = resolved(
        tmp_path,
        ["a", "b", "c"],
        lambda wanted: "error: Failed to fetch: x cause: HTTP status 403" if "b" in wanted else "",
    )
    assert [one.text for one in found.missing] == ["b"]
    assert found.lines == ("a==9", "c==9")


def test_a_resolution_that_never_comes_ends(tmp_path: Path) -> None:
    answers = iter(range(100_000))
    with pytest.raises(EnvironmentFailure):
        resolved(
            tmp_path,
            [f"p{number}==1" for number in range(500)],
            lambda wanted: (
                f"you require {wanted[0].split('=')[0]}, {next(answers)}" if len(wanted) > 1 else ""
            ),
        )
