"""huggingface_hub: the paths of files that would have been downloaded."""

from __future__ import annotations

import os
from typing import Any

from ..context import run
from ..inert import others


def hf_hub_download(repo_id: Any = None, filename: str = "", *args: Any, **kwargs: Any) -> str:
    """The path of a file, which is not there."""
    run().used("download of " + str(filename), "nothing: it is made up where it is read")
    return os.path.join(run().cwd, "hub", str(repo_id).replace("/", "_"), filename)


cached_download = hf_hub_download


def snapshot_download(repo_id: str, *args: Any, **kwargs: Any) -> str:
    """The path of a folder, which is not there."""
    run().used("download of " + repo_id, "nothing: it is made up where it is read")
    return os.path.join(run().cwd, "hub", repo_id.replace("/", "_"))


def login(*args: Any, **kwargs: Any) -> None:
    """Nobody is asked."""


__getattr__ = others(__name__)
