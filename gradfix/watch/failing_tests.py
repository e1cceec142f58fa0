"""Tests under watch: what autograd raises in one is explained in its report.

The explanation is made by another process, as `gradfix run` has it made: a test may have replaced anything in
this one, `subprocess.run` for instance.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from subprocess import PIPE, Popen
from typing import Any

import pytest

from gradfix.runtime.autograd_errors import error_in
from gradfix.runtime.watch.facts import Facts
from gradfix.runtime.watch.hooks import Awaiting, Watch
from gradfix.watch.running import explainer

HEADING = "what led to it, by gradfix"
"""That of the section of a report."""
PATIENCE = 120
"""Seconds that an explanation may take."""


class FailingTests:
    """The hooks of pytest that watch tests, and explain why one fails."""

    def __init__(self, folder: str) -> None:
        """Begin to watch; paths are shown as they are from ``folder``."""
        self.folder = folder
        self.environment = {**os.environ, "NO_COLOR": "1"}
        self.environment.pop("FORCE_COLOR", None)
        self.command = explainer()
        self.watch = Watch()
        self.explained: dict[str, str] = {}
        """By the facts: a test with many parameters may fail in the same way for each."""
        self.finder = Awaiting(self.watch)
        sys.meta_path.insert(0, self.finder)
        self.finder.find_spec("")  # torch may be there already.

    def end(self) -> None:
        """Look at no further import."""
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the explanation to the report of a test that has failed."""
        report = yield
        if report.failed and call.excinfo is not None:
            explanation = self.explanation(call.excinfo.value)
            if explanation:
                add_section(report, explanation)
        return report

    def explanation(self, error: BaseException) -> str:
        """What is to be said of ``error``; nothing if autograd has not raised it."""
        try:
            found = error_in(error)
            if found is None:
                return ""
            facts = json.dumps({**Facts(self.watch, *found).told, "command": []})
            if facts not in self.explained:
                self.explained[facts] = self.explain(facts)
            return self.explained[facts]
        except Exception as failure:  # The test has failed nevertheless, and its report says why.
            return f"gradfix: the error could not be explained: {failure}"

    def explain(self, facts: str) -> str:
        """What another process makes of ``facts``."""
        with Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        ) as explaining:
            try:
                shown, complaint = explaining.communicate(facts.encode(), PATIENCE)
            except BaseException:
                explaining.kill()
                raise
        return (shown or complaint).decode(errors="replace").strip("\n")


def add_section(report: pytest.TestReport, text: str) -> None:
    """Put ``text`` below the traceback, where no option about captured output hides it."""
    shown: Any = report.longrepr
    if hasattr(shown, "addsection"):
        shown.addsection(HEADING, text)
    else:
        report.sections.append((HEADING, text))
