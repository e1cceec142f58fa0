"""A process in the user's interpreter that runs jobs."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradfix.runtime.sandbox import cgroups
from gradfix.system import hostile
from gradfix.verify.recording.records import Ending
from gradfix.verify.sandboxes import CannotRun

OUT_OF_TIME = "the time for this file is up: set `seconds` in tool.gradfix.verify to give it more"

PATIENT = 5.0
"""Seconds that a server has to end, once when it is told, and once more when its guard is."""

Ended = tuple[str, tuple[Ending, str]]
"""The file of a job that is over, and how."""


class Server:
    """A process that runs jobs, and the lines that it answers; they are read as if a job wrote them.

    Raises:
        CannotRun: if torch cannot be imported, or not in time.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, deadline: float
    ) -> None:
        self.environment = environment
        with log.open("w", encoding="utf-8") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                encoding="utf-8",
                errors="replace",
                cwd=folder,
                env={**environment, **(cgroups.session() if command[0] == "systemd-run" else {})},
                start_new_session=True,
            )
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()
        greeting = self.answer(deadline)
        if greeting is None or "fatal" in greeting:
            late = greeting is None and time.monotonic() >= deadline
            self.end()
            if late:
                raise CannotRun(OUT_OF_TIME)
            printed = hostile.read(log, 65536, tail=True).decode("utf-8", "replace").split("\n")
            last = next((line for line in reversed(printed) if line.strip()), "it said nothing")
            raise CannotRun(f"torch cannot be imported: {greeting['fatal'] if greeting else last}")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def run(self, names: Sequence[str], deadline: float) -> Iterator[Ended]:
        """Run the jobs in these files, and say of each when it is over; one that is missing has no end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write("".join(name + "\n" for name in names))
            self._process.stdin.flush()
        waiting = set(names)
        while waiting:
            answer = self.answer(deadline)
            if answer is None or answer.get("job") not in waiting:
                self.end()
                break
            waiting.remove(answer["job"])
            yield answer["job"], ending_of(answer.get("code"), answer.get("signal"), answer.get("why"))

    def answer(self, deadline: float) -> dict[str, Any] | None:
        """The next answer, if there is one in time."""
        try:
            line = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            answer = json.loads(line) if line else None
        except (queue.Empty, ValueError, RecursionError):
            answer = None
        return answer if isinstance(answer, dict) else None

    def end(self) -> None:
        """End the server, which ends its runs when its input is closed, or else is ended by its guard."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        for end in (self._process.terminate, self._process.kill):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=PATIENT)
                return
            end()
        self._process.wait()


LONGEST = 1 << 16
"""Characters in an answer of a server."""


def _read(server: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert server.stdout is not None
    while line := server.stdout.readline(LONGEST):
        answers.put(line)
    answers.put(None)


def ending_of(code: object, ended_by: object, why: object) -> tuple[Ending, str]:
    """The ending of a run that wrote none itself."""
    if code is None:
        return "killed", str(why or "it did not return in time")
    if ended_by:
        return "died", f"it was ended by signal {ended_by}"
    return "died", f"it left with exit code {code}"
