"""`pytest --gradfix`: a test that fails by one of autograd's errors gets the explanation of `gradfix run`.

pytest loads this module wherever gradfix is installed: until the option is given, it imports nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the option."""
    parser.getgroup("gradfix").addoption(
        "--gradfix",
        action="store_true",
        help="explain errors that autograd raises in tests: what led to them, and what to do",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests if that is asked for."""
    if config.getoption("gradfix"):
        from gradfix.watch.failing_tests import FailingTests

        tests = FailingTests(str(config.invocation_params.dir))
        config.pluginmanager.register(tests, "gradfix-failing-tests")
        config.add_cleanup(tests.end)
