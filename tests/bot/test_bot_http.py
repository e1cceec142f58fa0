"""What is repeated, what is waited for, what is asked for again conditionally."""

from __future__ import annotations

import ssl
from email.utils import formatdate
from typing import Any

import httpx2
import pytest
from forge_server import TOKEN, Fault, ForgeServer, Request
from world import REPOSITORY, World

from gradfix.bot import http
from gradfix.bot.errors import AnswerLost, BotError, Missing, NotAllowed, RateLimited, Refused, Unreachable
from gradfix.bot.http import WAITS, Http, Patience
from gradfix.bot.secret import Token

NOW = 1_700_000_000.0


class Client:
    """An HTTP client at the forge, with a clock of its own."""

    def __init__(self, forge: ForgeServer, budget: float = 180.0) -> None:
        self.slept: list[float] = []
        patience = Patience(5.0, budget, self.slept.append, lambda: NOW)
        self.http = Http(forge.api_url("github"), Token(TOKEN), {}, patience)


@pytest.fixture
def client(forge: ForgeServer) -> Client:
    return Client(forge)


def first(count: int, fault: Fault):  # type: ignore[no-untyped-def]
    """The fault for the first ``count`` requests."""
    return lambda number, request: fault if number < count else None


@pytest.mark.parametrize("fault", [Fault(), Fault(500), Fault(502, after=True), Fault(503)])
def test_what_only_asks_is_repeated(forge: ForgeServer, client: Client, fault: Fault) -> None:
    forge.fault = first(len(WAITS), fault)
    assert client.http.get(f"/repos/{REPOSITORY}")["full_name"] == REPOSITORY
    assert client.slept == list(WAITS)


def test_in_the_end_it_gives_up(forge: ForgeServer, client: Client) -> None:
    forge.fault = lambda number, request: Fault(500)
    with pytest.raises(Unreachable):
        client.http.get(f"/repos/{REPOSITORY}")
    assert len(forge.requests) == 1 + len(WAITS)


@pytest.mark.parametrize("fault", [Fault(), Fault(500), Fault(502, after=True)])
def test_what_creates_is_sent_once(forge: ForgeServer, client: Client, fault: Fault) -> None:
    forge.fault = lambda number, request: fault
    with pytest.raises(AnswerLost):
        client.http.post(f"/repos/{REPOSITORY}/pulls", {"head": "x", "base": "main", "title": "x"})
    assert len(forge.requests) == 1


def test_what_was_never_sent_is_sent_again() -> None:
    slept: list[float] = []
    http = Http("http://127.0.0.1:9", Token(TOKEN), {}, Patience(5.0, 180.0, slept.append))
    with pytest.raises(Unreachable):
        http.post("/x", {})
    assert slept == list(WAITS)


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        (Fault(429, (("Retry-After", "7"),)), 7.0),
        (Fault(403, (("Retry-After", "7"),)), 7.0),
        (Fault(429, (("Retry-After", formatdate(NOW + 9, usegmt=True)),)), 9.0),
        (Fault(429), 60.0),
        (Fault(403, message="You have exceeded a secondary rate limit"), 60.0),
        (Fault(403, (("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", str(int(NOW) + 30)))), 30.0),
        (Fault(429, (("RateLimit-Remaining", "0"), ("RateLimit-Reset", str(int(NOW) + 30)))), 30.0),
    ],
)
def test_it_waits_as_long_as_it_is_asked_to(
    forge: ForgeServer, client: Client, fault: Fault, waited: float
) -> None:
    forge.fault = first(1, fault)
    # Nothing was created when it said so: even this may be sent again.
    with pytest.raises(Refused):
        client.http.post(f"/repos/{REPOSITORY}/pulls", {"head": "x", "base": "main", "title": "x"})
    assert client.slept == [waited]
    assert len(forge.requests) == 2


def test_it_does_not_wait_for_ever(forge: ForgeServer) -> None:
    client = Client(forge, budget=100.0)
    forge.fault = lambda number, request: Fault(429)
    with pytest.raises(RateLimited) as caught:
        client.http.get(f"/repos/{REPOSITORY}")
    assert client.slept == [60.0]
    assert caught.value.exit_code == 4
    forge.fault = lambda number, request: Fault(429, (("Retry-After", "0"),))
    with pytest.raises(RateLimited):
        client.http.get(f"/repos/{REPOSITORY}")


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [(401, NotAllowed, 3), (403, NotAllowed, 3), (404, Missing, 2), (409, Refused, 1), (422, Refused, 1)],
)
def test_what_a_refusal_means(
    forge: ForgeServer, client: Client, status: int, error: type[Exception], code: int
) -> None:
    forge.fault = lambda number, request: Fault(status, message="because \x1b[31mof\u202e this")
    with pytest.raises(error, match=r"because \\u\{1b\}\[31mof\\u\{202e\} this") as caught:
        client.http.get(f"/repos/{REPOSITORY}")
    assert caught.value.exit_code == code  # type: ignore[attr-defined]
    assert len(forge.requests) == 1


def test_what_has_not_changed_is_not_sent_again(forge: ForgeServer, client: Client) -> None:
    one = client.http.get(f"/repos/{REPOSITORY}")
    assert client.http.get(f"/repos/{REPOSITORY}") == one
    assert "if-none-match" in {name.lower() for name in forge.requests[1].headers}


def test_no_certificate_is_taken_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the usual authorities are asked; on this machine, where nothing is encrypted, nobody is."""
    given: list[Any] = []
    make = httpx2.Client

    def client(**options: Any) -> httpx2.Client:
        given.append(options["verify"])
        return make(**options)

    monkeypatch.setattr(httpx2, "Client", client)
    for url in ("https://forge.example/api/v1", "http://127.0.0.1:1/api/v1"):
        with Http(url, None, {}):
            pass
    usual, nobody = given
    assert usual is True
    assert (nobody.verify_mode, nobody.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert nobody.cert_store_stats()["x509"] == 0


def test_lists_end(forge: ForgeServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAGES", 5)
    forge.answer = lambda *a: (200, [{}] * 500)  # type: ignore[method-assign]
    forge.page = 1
    with pytest.raises(BotError, match="more than 5 pages"):
        list(client.http.pages(f"/repos/{REPOSITORY}/pulls"))
    assert len(forge.requests) == 5


def test_an_answer_that_is_no_json_to_a_post_may_have_been_a_yes(forge: ForgeServer, client: Client) -> None:
    forge.answer = lambda *a: (201, b"<html>")  # type: ignore[method-assign]
    with pytest.raises(AnswerLost):
        client.http.post("/x", {})
    with pytest.raises(Unreachable):
        client.http.get("/x")


def test_a_pull_request_is_created_once_even_where_duplicates_are_allowed(lab: World) -> None:
    """The answer is lost, and so are the first answers to the question whether it is there."""
    lab.forge.allows_duplicates = True
    lost: list[int] = []

    def fault(number: int, request: Request) -> Fault | None:
        if request.method == "POST" and request.path.endswith("/pulls"):
            lost.append(number)
            return Fault(after=True)
        return Fault(502) if lost and number < lost[0] + 3 else None

    lab.forge.fault = fault
    assert lab.exit_code(lab.plan(select=("undetached-fake",))) == 0
    assert len(lab.forge.pulls) == len(lost) == 1
