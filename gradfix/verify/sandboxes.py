"""The sandbox and the environment that the runs of an interpreter get."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection
from pathlib import Path

from gradfix.runtime.sandbox import kernel, levels, readable
from gradfix.system import scratch
from gradfix.verify import starting, untrusted_environments


def variables_of_runs(code: Collection[Path]) -> dict[str, str]:
    """The script's environment: nothing of the user's but what programs need to start, off the network."""
    return starting.environment(code) | {
        "CUDA_VISIBLE_DEVICES": "",
        "HIP_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        # A compiled step computes what the plain one does, after a minute of compiling.
        "TORCHDYNAMO_DISABLE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
        # macOS refuses some libraries after a fork otherwise.
        "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",
    }


class CannotRun(Exception):
    """The interpreter cannot run anything; the message says why."""


@functools.cache
def _sandbox(executable: str) -> levels.Level | str:
    # It is asked about the system, unconfined: nothing of a project or of a stranger is to be loaded there.
    untrusted = untrusted_environments.environment_of(executable)
    variables = starting.environment([Path(os.curdir)])
    variables.pop("PYTHONPATH", None)
    try:
        with scratch.folder() as folder:
            level = levels.choose(sys.executable if untrusted else executable, variables, str(folder))
    except kernel.SandboxError as error:
        return str(error)
    return level._replace(readable=readable.environment_files(untrusted.prefixes)) if untrusted else level


ALLOW = "GRADFIX_ALLOW_UNSANDBOXED"


def choose_sandbox(executable: str, allow_unsandboxed: bool = False) -> levels.Level:
    """The sandbox for runs of an interpreter on this machine.

    The environment variable :data:`ALLOW` allows to run without one, as ``--allow-unsandboxed`` does.

    Raises:
        CannotRun: if there is none, and running without is not allowed.
    """
    found = _sandbox(executable)
    if not isinstance(found, str):
        return found
    if allow_unsandboxed or os.environ.get(ALLOW) == "1":
        return levels.UNSANDBOXED
    raise CannotRun(f"no sandbox here ({found}); --allow-unsandboxed runs it with resource limits only")
