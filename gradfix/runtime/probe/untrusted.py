"""Runs in an interpreter of which nothing may run outside the sandbox."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection
from typing import Any

from .. import FOLDER, MAIN
from ..sandbox import readable
from .confining import bound, confine, limit, opened, trouble

JOB = "job.json"
"""The file of a job in its folder."""
IMPORTING = 60
"""Seconds that an interpreter may take to import torch, where each run has one of its own."""


class UntrustedInterpreter:
    """An interpreter of which nothing may run outside the sandbox.

    Args:
        executable: Its path.
        prefixes: The folders that it and the interpreter it was made with are installed in.
    """

    def __init__(self, executable: str, prefixes: list[str]) -> None:
        self.executable = executable
        files = readable.environment_files(prefixes)
        self.files = readable.Readable([FOLDER, *files.whole], files.listed)

    def run(
        self, job: dict[str, Any], channel: socket.socket, held: Collection[str], group: Any = None
    ) -> None:
        """As :func:`run`: this process is confined, and then becomes that interpreter."""
        events, values = opened(job)
        # It cannot open this any more then: only the folder `scratch` below it is given to it.
        told = os.open(os.path.join(job["folder"], JOB), os.O_RDONLY)
        bound(job["limits"], IMPORTING)
        try:
            if group is not None:
                group.join()
            confine(job, channel, held, self.files)
        except Exception as error:
            trouble(events, "the sandbox could not be set up: " + str(error))
        descriptors = [told, events, values]
        for one in descriptors:
            os.set_inheritable(one, True)
        command = [self.executable, MAIN, "probe", "--confined", *map(str, descriptors)]
        try:
            os.execv(self.executable, command)
        except OSError as error:
            trouble(events, "the sandbox does not let " + self.executable + " be started: " + str(error))


def confined(told: int, events: int, values: int) -> None:
    """Run the job that the descriptor ``told`` leads to, in a process that is confined already."""
    with os.fdopen(told, encoding="utf-8") as file:
        job = json.load(file)
    try:
        from .execution import record, warm
        from .recorder import Recorder

        warm()
    except Exception as error:
        trouble(events, "torch cannot be imported: " + type(error).__name__ + ": " + str(error))
    for one in (events, values):
        os.set_inheritable(one, False)
    limit(job["limits"])
    record(Recorder(job, events, values), job)
