"""Choosing fixes, applying them in sequence with their evidence, and keeping one file's trouble to itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import standard_codemods, write_codemod

from gradfix.core.codemod import Claim, Effect
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, Refusal, RequestedOptions
from gradfix.pipeline.results import Outcome, Plan, Report
from gradfix.system import parallel
from gradfix.verify.command import Command
from gradfix.verify.jobs import Limits


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standard_codemods(tmp_path / "codemods")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)


def options(**requested: Any) -> Options:
    prepared = driver.prepare(
        ["src"], RequestedOptions(**{"codemods": ("codemods",), "verify": False, **requested})
    )
    assert isinstance(prepared, Options), prepared
    return prepared


def put(code: str, name: str = "train.py") -> Path:
    path = Path("src") / name
    path.write_text(f"{code}\nx.backward()\n")
    return path


def check(**requested: Any) -> Report:
    return driver.check(["src"], options(**requested))


def plan(**requested: Any) -> Plan:
    return driver.plan(["src"], options(**requested))


def result(planned: Plan) -> list[str]:
    assert len(planned.files) == 1
    return planned.files[0].text.splitlines()[:-1]


@dataclasses.dataclass
class Evidence:
    outcome: str
    reason: str = "because"
    standins: tuple[str, ...] = ()


Verifier = Callable[..., Evidence]


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Claim, Effect]]:
    """What verification is asked; it refutes any text in which ``refute`` is said to be good."""
    asked: list[tuple[str, str, Claim, Effect]] = []

    def verify(
        path: Path,
        before: str,
        after: str,
        claim: Claim,
        effect: Effect,
        *,
        python: str | None,
        command: Command,
        limits: Limits,
        allow_unsandboxed: bool,
        faults: object,
    ) -> Evidence:
        assert not allow_unsandboxed and faults is not None
        assert (command, limits) == (Command(), Limits())
        assert path == Path("src/train.py")
        asked.append((before, after, claim, effect))
        if "good  # refute" in after:
            return Evidence("refuted")
        return Evidence("not run", "no torch") if "good  # fail" in after else Evidence("proved")

    monkeypatch.setattr("gradfix.verify.verification.verify_rewrite", verify)
    return asked


# ---------------------------------------------------------------------------- choosing


@pytest.mark.parametrize(
    ("code", "message", "text"),
    [
        ("bad", "say good", "good"),
        ("stubborn", "say good", "good"),
        ("risky", "say good", "good"),
        ("traded", None, None),
        ("hopeless", None, None),
        ("bad + bad", None, None),
    ],
)
def test_the_first_fix_is_chosen_that_resolves_its_finding_and_brings_no_other(
    code: str, message: str | None, text: str | None
) -> None:
    put(code)
    found = check().findings[0]
    if code == "bad + bad":  # The other finding stays; it is recognised although its line has changed.
        message, text = "say good", "good + bad"
    assert (found.fix.message if found.fix else None) == message
    assert (found.fixed_text.splitlines()[0] if found.fixed_text else None) == text


def test_a_fix_is_held_against_codemods_that_are_not_selected() -> None:
    put("traded")
    assert check(select=("traded-word",)).findings[0].fix is None
    assert check(ignore=("bad-word",)).findings[0].fix is None


def test_waste_that_cannot_be_saved_is_not_told() -> None:
    put("idle")
    assert check().findings == ()
    planned = plan()
    assert result(planned) == ["idle"]
    assert planned.remaining == ()


HIDDEN_WASTE = """\
import torch
from torch import nn

G, D = nn.Linear(4, 3), nn.Linear(3, 1)
opt_G, opt_D = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(4):
    opt_D.zero_grad()
    d_loss = D(torch.rand(8, 3)).relu().mean() - D(G(torch.rand(8, 4))).relu().mean()
    opt_D.step()
    d_loss.backward()
    opt_G.zero_grad()
    g_loss = D(G(torch.rand(8, 4))).relu().mean()
    g_loss.backward()
    opt_G.step()
"""


G_TOO_EARLY = """\
    opt_D.step()
    opt_G.zero_grad()
    g_loss = D(G(torch.rand(8, 4))).relu().mean()
    opt_G.step()
    g_loss.backward()
"""


@pytest.mark.parametrize(
    "code",
    [
        HIDDEN_WASTE,
        HIDDEN_WASTE[: HIDDEN_WASTE.index("    opt_D.step()")] + "    d_loss.backward()\n" + G_TOO_EARLY,
    ],
    ids=["the discriminator steps early", "the generator steps early"],
)
def test_a_step_that_learns_again_may_show_waste_that_was_hidden(code: str) -> None:
    """While one of them learned nothing, nobody could see that the loss of D runs into G for nothing."""
    Path("src/train.py").write_text(code)
    (file,) = plan(codemods=(), unsafe_fixes=True).files
    assert [a.finding.code for a in file.applied] == ["step-before-backward", "undetached-fake"]
    assert not file.remaining
    lines = [line.strip() for line in file.text.splitlines()]
    assert lines.index("d_loss.backward()") < lines.index("opt_D.step()")
    assert lines.index("g_loss.backward()") < lines.index("opt_G.step()")
    assert "D(G(torch.rand(8, 4)).detach())" in file.text


def test_a_fix_that_may_be_applied_goes_before_one_that_may_not() -> None:
    write_codemod(Path("codemods"), "either-word", "either", [("best", "changes"), ("good", "repairs")])
    put("either")
    assert [found.fix.message for found in check().findings if found.fix] == ["say good"]
    assert result(plan()) == ["good"]
    assert result(plan(unsafe_fixes=True)) == ["best"]


def test_a_fix_whose_edits_do_not_fit_is_passed_over() -> None:
    write_codemod(Path("codemods"), "odd-word", "odd", [("not python (", "repairs"), ("odd", "repairs")])
    put("odd")
    assert [found.fix for found in check().findings] == [None]


# ---------------------------------------------------------------------------- applying


def test_every_fix_is_applied_until_nothing_is_left() -> None:
    put("bad\nbroken(bad)\nstubborn\nfine")
    planned = plan()
    assert result(planned) == ["good", "good(good)", "good", "fine"]
    assert planned.exit_code == 1  # Nothing is written yet.
    written = driver.write(planned)
    assert written.exit_code == 0
    assert check().findings == ()
    again = plan()
    assert (again.attempts, again.remaining) == ((), ())


def test_equal_lines_are_fixed_one_by_one() -> None:
    put("\n".join(["bad"] * 5))
    planned = plan()
    assert result(planned) == ["good"] * 5
    assert len(planned.attempts) == 5


def test_fixes_that_change_what_is_learned_need_leave() -> None:
    put("risky\nbad")
    planned = plan()
    assert result(planned) == ["risky", "good"]
    assert [found.fix.effect for found in planned.remaining if found.fix] == [Effect.CHANGES]
    assert result(plan(unsafe_fixes=True)) == ["good", "good"]


def test_each_fix_is_proved_on_the_text_that_the_last_one_left(verdicts: list[Any]) -> None:
    put("bad\nbroken")
    planned = plan(verify=True)
    assert [(before.split()[:2], after.split()[:2]) for before, after, *_ in verdicts] == [
        (["bad", "broken"], ["good", "broken"]),
        (["good", "broken"], ["good", "good"]),
    ]
    assert [(claim.raises_line, effect) for *_, claim, effect in verdicts] == [
        (1, Effect.PRESERVES),
        (2, Effect.REPAIRS),
    ]
    assert [attempt.outcome for attempt in planned.attempts] == [Outcome.PROVED, Outcome.PROVED]


def test_a_refuted_fix_is_left_out_and_the_others_are_applied(verdicts: list[Any]) -> None:
    put("bad  # refute\nbroken")
    planned = plan(verify=True)
    assert result(planned) == ["bad  # refute", "good"]
    assert [attempt.outcome for attempt in planned.attempts] == [Outcome.PROVED, Outcome.REFUTED]
    assert [(found.finding.span.line, found.fix) for found in planned.remaining] == [(1, None)]
    assert driver.write(planned).exit_code == 1
    assert Path("src/train.py").read_text().startswith("bad  # refute\ngood\n")


def test_the_next_fix_is_tried_when_one_is_refuted(verdicts: list[Any]) -> None:
    write_codemod(Path("codemods"), "two-ways", "twice", [("good", "preserves"), ("fine", "preserves")])
    put("twice  # refute")
    assert result(plan(verify=True)) == ["fine  # refute"]
    assert len(verdicts) == 2


def test_a_fix_that_was_refuted_is_tried_again_after_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(path: Path, before: str, after: str, *_: object, **__: object) -> Evidence:
        # The second line is the one that raises: only its fix can be proved first.
        return Evidence("refuted" if "broken" in after else "proved")

    monkeypatch.setattr("gradfix.verify.verification.verify_rewrite", verify)
    put("bad\nbroken")
    planned = plan(verify=True)
    assert result(planned) == ["good", "good"]
    assert [(attempt.finding.code, attempt.outcome) for attempt in planned.attempts] == [
        ("broken-word", Outcome.PROVED),
        ("bad-word", Outcome.PROVED),
    ]


def test_doing_without_a_sandbox_is_passed_on_to_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[object] = []

    def verify(*_: object, allow_unsandboxed: object, **__: object) -> Evidence:
        allowed.append(allow_unsandboxed)
        return Evidence("proved", "")

    monkeypatch.setattr("gradfix.verify.verification.verify_rewrite", verify)
    put("bad")
    plan(verify=True)
    plan(verify=True, allow_unsandboxed=True)
    assert allowed == [False, True]


@pytest.mark.parametrize(("unproved", "after"), [(True, "good  # fail"), (False, "bad  # fail")])
def test_what_could_not_be_run_says_why(verdicts: list[Any], unproved: bool, after: str) -> None:
    put("bad  # fail")
    planned = plan(verify=True, unproved=unproved)
    assert result(planned) == [after]
    assert [(attempt.outcome, attempt.reason) for attempt in planned.attempts] == [
        (Outcome.UNVERIFIED, "no torch")
    ]


def test_verification_that_fails_leaves_the_fix_unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(*_: object, **__: object) -> None:
        raise OSError("no space for temporary files")

    monkeypatch.setattr("gradfix.verify.verification.verify_rewrite", verify)
    put("bad")
    (attempt,) = plan(verify=True).attempts
    assert attempt.outcome is Outcome.UNVERIFIED
    assert "verification failed: OSError: no space" in attempt.reason


def test_silenced_findings_are_neither_reported_nor_fixed() -> None:
    put("bad  # gradfix: ignore[bad-word]\nbad  # gradfix: ignore[other]\n")
    assert [found.finding.span.line for found in check().findings] == [2]
    assert result(plan())[0].startswith("bad  #")
    assert result(plan())[1].startswith("good  #")


def test_bytes_that_would_not_survive_are_not_rewritten() -> None:
    # A second, needless escape sequence is lost when the text is encoded again.
    data = b"# coding: iso2022_jp\nbad  # \x1b$B\x1b$B0!\x1b(B\nx.backward()\n"
    Path("src/train.py").write_bytes(data)
    written = driver.write(plan())
    assert [problem.message for problem in written.all_problems] == [
        "cannot be rewritten: iso2022_jp does not give its bytes back"
    ]
    assert Path("src/train.py").read_bytes() == data


def test_a_file_that_changes_meanwhile_is_not_overwritten() -> None:
    first, second = put("bad", "a.py"), put("bad", "b.py")
    planned = plan()
    first.write_text("edited\n")
    written = driver.write(planned)
    assert written.exit_code == 2
    assert [problem.path for problem in written.all_problems] == ["src/a.py"]
    assert first.read_text() == "edited\n"
    assert second.read_text().startswith("good\n")


# ---------------------------------------------------------------------------- trouble


def break_codemod(name: str, body: str) -> None:
    lines = [
        f'"""{name}"""',
        "import os, sys",
        "def find(program):",
        *(f"    {line}" for line in body.splitlines()),
    ]
    Path("codemods", f"{name}.py").write_text("\n".join(lines) + "\n    return []\n")


def test_a_codemod_that_fails_is_a_problem_of_that_file_alone() -> None:
    break_codemod("failing", "if 'trip' in program.text: raise KeyError('boom')")
    put("bad\ntrip", "a.py")
    put("bad", "b.py")
    report = check()
    (problem,) = report.all_problems
    assert problem.path == "src/a.py"
    assert problem.code == "internal-error"
    assert "the codemod failing failed: KeyError: 'boom' (failing.py:4)" in problem.message
    assert [(file.path, len(file.findings)) for file in report.files] == [("src/a.py", 1), ("src/b.py", 1)]
    assert report.exit_code == 2


def test_a_codemod_that_is_not_selected_cannot_fail() -> None:
    break_codemod("failing", "raise KeyError('boom')")
    put("bad")
    report = check(ignore=("failing",))
    assert report.all_problems == ()
    assert [found.fix is not None for found in report.findings] == [True]


def test_endless_recursion_is_a_problem() -> None:
    break_codemod("endless", "return find(program)")
    put("bad")
    (problem,) = check().all_problems
    assert "is nested too deeply for the codemod endless" in problem.message


@pytest.mark.parametrize(
    "function", ["gradfix.autograd.program.analyze", "gradfix.pipeline.choosing.spliced"]
)
def test_a_bug_of_ours_is_a_problem_of_that_file_alone(
    monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr(function, fail)
    put("bad")
    for run in (check(), plan()):
        (problem,) = run.all_problems
        assert problem.code == "internal-error"
        assert "AssertionError: a bug" in problem.message
        assert run.exit_code == 2


def test_a_mistake_in_what_is_asked_for_is_refused() -> None:
    Path("pyproject.toml").write_text('[tool.gradfix]\nignore = ["bad-wrd"]\n')
    for requested, message in [
        (RequestedOptions(codemods=("codemods",)), "pyproject.toml: there is no codemod 'bad-wrd'"),
        (
            RequestedOptions(select=("bad-wrd",), ignore=(), codemods=("codemods",)),
            "did you mean 'bad-word'?",
        ),
        (
            RequestedOptions(python="no-such-python", ignore=()),
            "there is no Python interpreter 'no-such-python'",
        ),
    ]:
        refusal = driver.prepare(["src"], requested)
        assert isinstance(refusal, Refusal)
        assert message in refusal.message


def test_the_configuration_counts_where_nothing_is_asked_for() -> None:
    Path("pyproject.toml").write_text('[tool.gradfix]\nignore = ["bad_word"]\nunsafe-fixes = true\n')
    put("bad\nrisky")
    assert [found.finding.code for found in check().findings] == ["risky-word"]
    assert [found.finding.code for found in check(ignore=()).findings] == ["bad-word", "risky-word"]
    assert result(plan()) == ["bad", "good"]


# ---------------------------------------------------------------------------- many files


def many(number: int = 40) -> None:
    for index in range(number):
        put("bad\n" * (index % 3), f"f{index:02}.py")
    Path("src/f07.py").write_text("x.backward(\n")


def test_many_files_give_the_same_report_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    many()
    together = check()
    monkeypatch.setattr(parallel, "WORTH_PROCESSES", 1000)
    assert check() == together
    assert [problem.path for problem in together.all_problems] == ["src/f07.py"]


def test_a_process_that_dies_costs_one_file_its_report() -> None:
    break_codemod("deadly", "if 'die' in program.text: os._exit(1)")
    many()
    put("die", "f20.py")
    report = check()
    assert [(problem.path, problem.code) for problem in report.all_problems] == [
        ("src/f07.py", "syntax-error"),
        ("src/f20.py", "internal-error"),
    ]
    assert len(report.findings) == sum(index % 3 for index in range(40) if index not in (7, 20))


LEAKING = """
import torch
from torch import nn

painter, critic = nn.Linear(4, 3), nn.Linear(3, 1)
of_painter = torch.optim.SGD(painter.parameters(), lr=0.1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for number, real in enumerate(torch.utils.data.DataLoader(torch.randn(64, 3), batch_size=8)):
    of_critic.zero_grad()
    loss = critic(painter(torch.randn(8, 4))).mean() - critic(real).mean()
    loss.backward()
    of_critic.step()
    if number % 5 != 0:
        continue
    verdict = -critic(painter(torch.randn(8, 4))).mean()
    verdict.backward()
    of_painter.step()
"""


def test_a_clearing_may_show_what_is_wasted_then(tmp_path: Path) -> None:
    prepared = driver.prepare(
        [], RequestedOptions(unsafe_fixes=True, verify=False, select=("missing-zero-grad",))
    )
    assert isinstance(prepared, Options)
    script = tmp_path / "script.py"
    script.write_text(LEAKING)
    (reported,) = driver.check([str(script)], prepared).files[0].findings
    assert reported.fix is not None
    assert reported.fix.message == "clear the gradients in every iteration"
