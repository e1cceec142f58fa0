"""Where the machine has no sandbox, the tests run programs without one, and say so.

The programs are the tests' own. What tests the sandbox itself is skipped there. Nothing is taken from the
cache of whoever runs the tests, nor put there.

By default hypothesis draws the same examples in every run. Where what is marked long is asked for too, it
draws other ones each time; ``--hypothesis-profile random`` does so for any tests.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from gradfix.verify import runner, sandboxes
from gradfix.verify.jobs import Job
from gradfix.verify.recording.records import Recording


def pytest_configure(config: pytest.Config) -> None:
    """Find out, once for all processes."""
    # Whoever starts the tests may ignore signals (nohup, a job in the background): children would, too.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    # What is replaced in tests is not kept in the home of who runs them.
    state = tempfile.TemporaryDirectory(prefix="gradfix-tests-")
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name
    config.pluginmanager.register(Failures(config))
    draw_examples(config)
    # What is tested is what gradfix finds, not what it found another time.
    os.environ["GRADFIX_NO_CACHE"] = "1"
    if sandboxes.ALLOW in os.environ:
        return
    try:
        sandboxes.choose_sandbox(sys.executable)
    except sandboxes.CannotRun as error:
        os.environ[sandboxes.ALLOW] = "1"
        os.environ["GRADFIX_TESTS_WITHOUT"] = str(error)


def draw_examples(config: pytest.Config) -> None:
    """The same examples in every run, or others in each; none fails for being slow on a busy machine."""
    hypothesis.settings.register_profile("same", derandomize=True, deadline=None, database=None)
    hypothesis.settings.register_profile("random", derandomize=False, deadline=None)
    profile = config.getoption("hypothesis_profile", None)
    if profile is None:
        profile = "same" if config.option.markexpr == "not long" else "random"
        hypothesis.settings.load_profile(profile)
    if profile == "same":
        # Constants of gradfix are drawn, too, from the modules that a process happens to have imported: other
        # ones after every edit.
        if hasattr(providers, "_get_local_constants"):
            providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is sampled all but each n-th are long; what is long takes its time."""
    seen: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            test = item.nodeid.split("[")[0]
            if seen[test] % sampled.kwargs["every"]:
                item.add_marker(pytest.mark.long)
            seen[test] += 1
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def kept() -> Iterator[runner._Servers]:
    """The servers that the modules of a process share."""
    found = runner._Servers()
    yield found
    found.close()


@pytest.fixture(scope="module")
def servers(kept: runner._Servers) -> Iterator[None]:
    """One import of torch for all that is verified; for modules that leave the environment alone."""
    token = runner._servers.set(kept)
    yield
    runner._servers.reset(token)


class Sharing:
    """Runs jobs by the server that is there already; what has run in a row is answered from memory."""

    def __init__(self, kept: runner._Servers) -> None:
        self._kept = kept

    def run(self, jobs: Iterable[Job]) -> list[Recording]:
        """What ``Runner.run`` gives, with time enough."""
        return self._kept.runner(sys.executable, 300.0, False).run(jobs)


@pytest.fixture(scope="session")
def sharing(kept: runner._Servers) -> Sharing:
    """In the place of a runner, for programs that say nothing about how they are started."""
    return Sharing(kept)


def pytest_report_header() -> str | None:
    """What the tests run in."""
    missing = os.environ.get("GRADFIX_TESTS_WITHOUT")
    return None if missing is None else f"programs are run without a sandbox: {missing}"


class Failures:
    """Tells of each failure when it happens: a run that is ended from outside has told of them too."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say what failed and why."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"{report.when} of {report.nodeid} failed:", red=True)
            reporter.write_line(report.longreprtext)
