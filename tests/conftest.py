"""Where the machine has no sandbox, the tests run programs without one, and say so.

The programs are the tests' own. What tests the sandbox itself is skipped there.
"""

from __future__ import annotations

import os
import sys

import pytest

from gradfix.verify import runner


def pytest_configure(config: pytest.Config) -> None:
    """Find out, once for all processes."""
    if runner.ALLOW in os.environ:
        return
    try:
        runner.choose_sandbox(sys.executable)
    except runner.CannotRun as error:
        os.environ[runner.ALLOW] = "1"
        os.environ["GRADFIX_TESTS_WITHOUT"] = str(error)


def pytest_report_header() -> str | None:
    """What the tests run in."""
    missing = os.environ.get("GRADFIX_TESTS_WITHOUT")
    return None if missing is None else f"programs are run without a sandbox: {missing}"
