"""Which forge and which repository: from options, or from the CI environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from gradfix.bot.errors import UsageError
from gradfix.bot.forges import gitea, github, gitlab
from gradfix.bot.forges.protocol import Forge
from gradfix.bot.http import Http, Patience, origin_of
from gradfix.bot.secret import Token

_FORGES: dict[str, tuple[Callable[..., Forge], str, Mapping[str, str]]] = {
    "github": (github.GitHub, github.API, github.HEADERS),
    "gitlab": (gitlab.GitLab, gitlab.API, gitlab.HEADERS),
    "gitea": (gitea.Gitea, gitea.API, gitea.HEADERS),
}
_VERSIONS = {"v3": "github", "v4": "gitlab", "v1": "gitea"}
_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_.][\w.-]*)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ForgeRepository:
    """A repository on a forge."""

    kind: str
    """``github``, ``gitlab`` or ``gitea``."""
    api_url: str
    repository: str
    """Its full name."""

    @property
    def git_url(self) -> str:
        """The server as git reaches it."""
        if self.api_url.rstrip("/") == github.API:
            return "https://github.com"
        return re.sub(r"/api/v\d+/?$", "", self.api_url.rstrip("/"))


def place(
    environment: Mapping[str, str], kind: str | None, api_url: str | None, repository: str | None
) -> ForgeRepository:
    """Where to work; what is not given is taken from the variables that CI sets.

    Raises:
        UsageError: it is not known, or it makes no sense.
    """
    url = api_url or environment.get("CI_API_V4_URL") or environment.get("GITHUB_API_URL")
    found = kind or _kind(environment, url)
    url = url or _FORGES[found][1]
    origin_of(url)
    name = repository or environment.get("CI_PROJECT_PATH") or environment.get("GITHUB_REPOSITORY")
    if not name:
        raise UsageError("which repository? --repo OWNER/NAME says it")
    if not _REPOSITORY.fullmatch(name) or ".." in name or len(name) > 300:
        raise UsageError(f"{name[:100]!r} is not the name of a repository (OWNER/NAME)")
    return ForgeRepository(found, url, name)


def _kind(environment: Mapping[str, str], url: str | None) -> str:
    if url is not None:
        parts = urlsplit(url)
        if parts.hostname == "api.github.com":
            return "github"
        version = re.search(r"/api/(v\d+)/?$", parts.path)
        if version is None or version[1] not in _VERSIONS:
            raise UsageError("what kind of server is it? --forge github, gitlab or gitea says it")
        return _VERSIONS[version[1]]
    return "github"


@contextmanager
def forge(
    where: ForgeRepository, token: Token | None, *, fork: bool, patience: Patience | None = None
) -> Iterator[Forge]:
    """The forge at ``where``, with an HTTP client that is closed in the end; without a token for reading."""
    make, _, headers = _FORGES[where.kind]
    with Http(where.api_url, token, headers, patience or Patience()) as http:
        yield make(http, where.repository, where.git_url, fork=fork)
