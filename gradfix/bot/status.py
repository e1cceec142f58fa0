"""What the bot would find if it ran now: its open pull requests, and who has touched them. Read only."""

from __future__ import annotations

from dataclasses import replace

from gradfix.bot import state
from gradfix.bot.config import REBUILD
from gradfix.bot.forges.protocol import Forge, PullRequest
from gradfix.bot.git import Git, Remote
from gradfix.bot.publish import Done, checked_branch
from gradfix.bot.secret import Token


def status(forge: Forge, git: Git, token: Token, *, fork: bool = False) -> list[Done]:
    """Every open pull request of the bot, and every branch of it that has none."""
    source = Remote(forge.clone_url(), token, forge.user)
    git.fetch(source, checked_branch(forge.default_branch()))
    if fork:
        git.fetch_heads(replace(source, url=forge.push_url()))
    heads = git.heads()
    requests = [r for r in forge.pull_requests() if r.ours and r.branch.startswith(state.PREFIX)]
    told = [_told(request, git, heads.get(request.branch)) for request in requests]
    alone = sorted(set(heads) - {request.branch for request in requests})
    return told + [Done(branch, "no open pull request") for branch in alone]


def _told(request: PullRequest, git: Git, head: str | None) -> Done:
    marker, _ = state.parsed(request.body)
    count = len(marker.keys) if marker else 0
    rewrites = f"{count} rewrite{'' if count == 1 else 's'}" if marker else "its marker was removed"
    touched = head is not None and not state.is_sealed(git.raw_commit(head))
    if touched and REBUILD in request.labels:
        return Done(request.branch, "to be rebuilt", rewrites, request.url)
    return Done(
        request.branch, "left alone, a person has pushed to it" if touched else "open", rewrites, request.url
    )
