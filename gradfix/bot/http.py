"""One forge's HTTP interface: what is repeated, what is waited for, and what is never sent twice blindly.

- Requests that can be repeated (GET, and PUT, PATCH and DELETE, which say what is to be) are repeated after
  an error of the server, a dropped connection or a time-out.
- A POST creates something. It is repeated only if it was certainly not carried out: the connection could not
  be made, or the server said that it will not now (429). Else :class:`AnswerLost` is raised, and whoever
  asked for it looks whether the thing is there.
- Where the server asks to wait, the bot waits, up to a budget; beyond it, it stops and says so.
- Answers that carry an ETag are asked for again conditionally; "not modified" counts against no limit.
- The token goes to one origin only: redirects are not followed, and pages are fetched from there alone.
"""

from __future__ import annotations

import email.utils
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2

from gradfix import __version__
from gradfix.bot import markdown, secret
from gradfix.bot.errors import (
    AnswerLost,
    BotError,
    Missing,
    NotAllowed,
    RateLimited,
    Refused,
    Unreachable,
    UsageError,
)
from gradfix.bot.secret import ANONYMOUS, Token

WAITS = (1.0, 3.0, 9.0)
"""Seconds between attempts."""
PAGES = 100
"""Pages of a list that are read at most: 10,000 items on GitHub."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the bot waits for the forge."""

    seconds: float = 30.0
    """For one answer."""
    budget: float = 180.0
    """Altogether, because the forge asks to."""
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time


class Http:
    """A client for the API at ``api_url``; used as a context manager."""

    def __init__(
        self,
        api_url: str,
        token: Token | None,
        headers: Mapping[str, str],
        patience: Patience = Patience(),
    ) -> None:
        """``token`` is ``None`` for requests without authentication, which may read what is public."""
        self._origin = origin_of(api_url)
        self._base = api_url.rstrip("/")
        self._token = token
        self._patience = patience
        self._left = patience.budget
        self._seen: dict[str, tuple[str, httpx2.Response]] = {}
        agent = {"User-Agent": f"gradfix/{__version__}", "Accept": "application/json"}
        # Plain HTTP is for this machine only: no proxy is to see it, and no authority has to be read (which
        # takes longer than all the rest) for a context that trusts nobody.
        encrypted = self._origin[0] == "https"
        self._client = httpx2.Client(
            headers={**agent, **headers},
            timeout=patience.seconds,
            follow_redirects=False,
            trust_env=encrypted,
            verify=True if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str, **parameters: str) -> Any:
        """The JSON at ``path``."""
        return self._json("GET", self._send("GET", self._url(path, parameters)))

    def text(self, path: str) -> str:
        """The text at ``path``."""
        return self._send("GET", self._url(path, {})).text

    def pages(self, path: str, **parameters: str) -> Iterator[Any]:
        """The items of the list at ``path``, page after page."""
        items = self.few_pages(path, PAGES, **parameters)
        if items is None:
            raise BotError(f"GET {path}: more than {PAGES} pages")
        yield from items

    def few_pages(self, path: str, most: int, **parameters: str) -> list[Any] | None:
        """The items of the list at ``path``; ``None`` if they take more than ``most`` pages."""
        found: list[Any] = []
        url: str | None = self._url(path, {"per_page": "100", **parameters})
        for _ in range(most):
            response = self._send("GET", url or "")
            items = self._json("GET", response)
            if not isinstance(items, list):
                raise BotError(f"GET {path}: the forge's answer is no list")
            found += items
            url = self._next(response)
            if url is None:
                return found
            if _last_page(response) > most:
                return None
        return None

    def post(self, path: str, content: Json) -> Any:
        """Create something.

        Raises:
            AnswerLost: it may have been created.
            Refused: something is in its way, often that it is there already.
        """
        return self._json("POST", self._send("POST", self._url(path, {}), content))

    def change(self, method: str, path: str, content: Json | None = None) -> Any:
        """PUT, PATCH or DELETE: what can be said twice."""
        return self._json(method, self._send(method, self._url(path, {}), content))

    # ------------------------------------------------------------------

    def _url(self, path: str, parameters: Mapping[str, str]) -> str:
        url = httpx2.URL(f"{self._base}{path}")
        return str(url.copy_merge_params(dict(parameters)) if parameters else url)

    def _next(self, response: httpx2.Response) -> str | None:
        """The address of the next page; only the same server is believed."""
        link = response.links.get("next", {}).get("url")
        if link is None:
            return None
        address = urljoin(str(response.url), link)
        if origin_of(address) != self._origin:
            raise BotError("the forge names another server for its next page")
        return address

    def _send(self, method: str, url: str, content: Json | None = None) -> httpx2.Response:
        """The answer to a request, after as many attempts as are right for it."""
        what = f"{method} {urlsplit(url).path}"
        waits = iter(WAITS)
        while True:
            answer = self._attempt(method, url, content)
            if isinstance(answer, httpx2.Response):
                wait = self._asked_to_wait(answer)
                if wait is not None:
                    self._wait_for(wait, what)
                    continue
                if answer.status_code < 500:
                    return self._judged(what, answer)
                problem, sent = f"{what}: the forge failed ({answer.status_code})", True
            else:
                problem, sent = f"{what}: {answer.reason}", answer.sent
            if method == "POST" and sent:
                raise AnswerLost(problem)
            pause = next(waits, None)
            if pause is None:
                raise Unreachable(problem)
            self._patience.sleep(pause)

    def _attempt(self, method: str, url: str, content: Json | None) -> httpx2.Response | _NoAnswer:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token.reveal()}"}
        known = self._seen.get(url) if method == "GET" else None
        if known is not None:
            headers["If-None-Match"] = known[0]
        try:
            response = self._client.request(method, url, json=content, headers=headers)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _NoAnswer(f"no connection ({type(error).__name__})", sent=False)
        except httpx2.HTTPError as error:
            # The error holds the request, and that the token: only its name goes on.
            return _NoAnswer(f"no answer ({type(error).__name__})", sent=True)
        if response.status_code == 304 and known is not None:
            return known[1]
        tag = response.headers.get("ETag")
        if method == "GET" and response.status_code == 200 and tag:
            self._seen[url] = tag, response
        return response

    def _asked_to_wait(self, response: httpx2.Response) -> float | None:
        """For how many seconds the forge asks to wait; ``None`` if it does not."""
        headers = response.headers
        spent = "0" in (headers.get("X-RateLimit-Remaining"), headers.get("RateLimit-Remaining"))
        limited = response.status_code == 429 or (
            response.status_code == 403
            and (spent or "Retry-After" in headers or "rate limit" in response.text.lower())
        )
        if not limited:
            return None
        now = self._patience.clock()
        after = headers.get("Retry-After", "")
        if after.isdecimal():
            return float(after)
        if date := email.utils.parsedate_tz(after):
            return max(0.0, email.utils.mktime_tz(date) - now)
        reset = headers.get("X-RateLimit-Reset") or headers.get("RateLimit-Reset") or ""
        if spent and reset.isdecimal():
            return max(1.0, float(reset) - now)
        return 60.0  # What GitHub asks for where it says nothing.

    def _wait_for(self, seconds: float, what: str) -> None:
        if seconds > self._left:
            raise RateLimited(f"{what}: the forge asks to come back in {seconds:.0f} seconds")
        # Zero seconds asked for again and again are not for ever.
        self._left -= max(seconds, 1.0)
        self._patience.sleep(seconds)

    def _judged(self, what: str, response: httpx2.Response) -> httpx2.Response:
        """The response if it is a good one."""
        status = response.status_code
        if 200 <= status < 300:
            return response
        said = secret.redacted(markdown.one_line(_message(response), 200))
        problem = f"{what}: {status}{f': {said}' if said else ''}"
        if self._token is None and status in (401, 403, 404):
            problem += f" ({ANONYMOUS})"
        if status in (301, 302, 307, 308):
            raise UsageError(f"{problem}: the repository or the server has moved; give its new name")
        if status in (401, 403):
            raise NotAllowed(problem)
        if status in (404, 410):
            raise Missing(problem)
        if status in (409, 422):
            raise Refused(problem)
        raise BotError(problem)

    def _json(self, method: str, response: httpx2.Response) -> Any:
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            # It said yes, so what was to be created is there.
            problem = f"{method} {response.url.path}: the forge's answer is no JSON"
            raise (AnswerLost(problem) if method == "POST" else Unreachable(problem)) from None


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    reason: str
    sent: bool
    """Whether the request may have reached the server."""


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of ``url``.

    Raises:
        UsageError: a token must not be sent there: it is not HTTPS, and not this machine either.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UsageError("this is not an address") from None
    if parts.scheme not in ("https", "http") or not host or parts.username or parts.password:
        raise UsageError("the address of a forge is https://host/...")
    if parts.scheme == "http" and host not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError(f"the token is not sent to http://{host}: it has to be https")
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80)


def _last_page(response: httpx2.Response) -> int:
    """The number of a list's last page, where the forge tells it; else 0."""
    query = urlsplit(response.links.get("last", {}).get("url", "")).query
    number = dict(parse_qsl(query)).get("page", "")
    return int(number) if number.isdecimal() else 0


def _message(response: httpx2.Response) -> str:
    """What the forge says is wrong."""
    try:
        content = response.json()
    except ValueError:
        return ""
    if not isinstance(content, dict):
        return ""
    message = content.get("message") or content.get("error") or ""
    details = content.get("errors")
    if isinstance(details, list):
        described = [
            str(item.get("message") or item.get("code") or "") for item in details if isinstance(item, dict)
        ]
        message = f"{message} ({', '.join(filter(None, described))})" if any(described) else message
    return message if isinstance(message, str) else str(message)
