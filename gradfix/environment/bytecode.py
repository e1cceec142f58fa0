"""Compiling what was installed, once: a sandboxed run cannot write bytecode, and would compile all of torch.

What is compiled is a stranger's. The interpreter that an environment was made with does it, not the
environment's own: isolated and without ``site``, it reads the files as text and executes nothing of them. And
it may write to the environment alone, where the kernel has Landlock.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from gradfix.verify import starting

SECONDS = 900
"""For one of the processes; what is not compiled then is compiled by each run."""


def compile_all(environment: Path, base: str) -> None:
    """Compile the Python files of an environment with the interpreter ``base``."""
    files = sorted(_sources(environment))
    count = max(1, min(os.cpu_count() or 1, len(files) // 100))
    with ThreadPoolExecutor(count) as threads:
        for number in range(count):
            threads.submit(_compile, files[number::count], environment, base)


def _sources(environment: Path) -> Iterator[str]:
    for folder, _, names in os.walk(environment):
        # The list of files has one a line.
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py") and "\n" not in name)


def _compile(files: list[str], environment: Path, base: str) -> None:
    command = starting.apart(environment, [base, "-I", "-S", "-m", "compileall", "-q", "-i", "-"])
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            command,
            input="".join(f"{file}\n" for file in files).encode("utf-8", "surrogateescape"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=environment,
            env=starting.environment([environment]),
            timeout=SECONDS,
            check=False,
        )
