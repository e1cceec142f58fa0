"""requests: every answer is there, and nobody knows what is in it."""

from __future__ import annotations

from typing import Any

from ..absent import AbsentFile, response
from ..context import run


class RequestException(OSError):
    """Never raised."""


ConnectionError = HTTPError = Timeout = RequestException


class exceptions:
    """The errors under their other place."""

    RequestException = ConnectionError = HTTPError = Timeout = RequestException


class Response:
    """An answer."""

    status_code = 200
    ok = True
    encoding = "utf-8"

    def __init__(self, url: str) -> None:
        self.url = url
        self.raw: AbsentFile = response(run(), url)
        self.headers = {"content-length": "0"}
        self.cookies: dict[str, str] = {}

    @property
    def content(self) -> Any:
        """All of it."""
        return self.raw.read()

    @property
    def text(self) -> Any:
        """All of it."""
        text = AbsentFile(run(), self.raw.name, False)
        return text.read()

    def json(self) -> Any:
        """All of it."""
        return self.raw.content()

    def iter_content(self, chunk_size: int = 1, **kwargs: Any) -> Any:
        """All of it at once."""
        return iter([self.content])

    iter_lines = iter_content

    def raise_for_status(self) -> None:
        """It went well."""

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def get(url: str, *args: Any, **kwargs: Any) -> Response:
    """The answer to a request."""
    return Response(url)


post = put = head = get


class Session:
    """Several requests."""

    get = staticmethod(get)
    post = staticmethod(post)
