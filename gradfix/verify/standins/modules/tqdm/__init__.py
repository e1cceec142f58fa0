"""tqdm: what is iterated is iterated, and no progress is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class tqdm:
    """A progress bar that is not drawn."""

    def __init__(
        self, iterable: Any = None, desc: Any = None, total: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        self.iterable = iterable
        self.desc = desc
        self.total = total
        if total is None and hasattr(iterable, "__len__"):
            self.total = len(iterable)
        self.n = 0
        self.format_dict = {"elapsed": 0.0, "rate": 1.0}

    def __iter__(self) -> Iterator[Any]:
        for value in self.iterable:
            self.n += 1
            yield value

    def __len__(self) -> int:
        return len(self.iterable) if hasattr(self.iterable, "__len__") else int(self.total)

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def update(self, n: int = 1) -> None:
        """``n`` steps further."""
        self.n += n

    def show(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown."""

    set_description = set_postfix = set_description_str = set_postfix_str = close = refresh = clear = (
        reset
    ) = show
    display = unpause = show

    @classmethod
    def write(cls, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown."""

    @classmethod
    def pandas(cls, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown."""


def trange(*args: Any, **kwargs: Any) -> tqdm:
    """A range with a progress bar."""
    return tqdm(range(*args), **kwargs)


tqdm_notebook = tqdm_gui = auto_tqdm = tqdm
tnrange = trange


@contextlib.contextmanager
def logging_redirect_tqdm(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Nothing is redirected."""
    yield
