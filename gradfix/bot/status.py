"""``gradfix bot status``: the bot's open pull requests, and who has touched them. Read only."""

from __future__ import annotations

from dataclasses import replace

from gradfix.bot import merging, state
from gradfix.bot.config import REBUILD
from gradfix.bot.forges.protocol import Forge, PullRequest
from gradfix.bot.git import Git, Remote
from gradfix.bot.publish import Done, checked_branch
from gradfix.bot.replay import Base
from gradfix.bot.secret import Token
from gradfix.bot.standing import standing


def status(forge: Forge, git: Git, token: Token, *, fork: bool = False) -> list[Done]:
    """Every open pull request of the bot, and every branch of it that has none."""
    source = Remote(forge.clone_url(), token, forge.user)
    tip = git.fetch(source, checked_branch(forge.default_branch()))
    if fork:
        git.fetch_heads(replace(source, url=forge.push_url()))
    base = Base(git, tip)
    heads = git.heads()
    requests = [r for r in forge.pull_requests() if r.ours and r.branch.startswith(state.PREFIX)]
    described = [_described(request, base, heads.get(request.branch)) for request in requests]
    alone = sorted(set(heads) - {request.branch for request in requests})
    return described + [Done(branch, "no open pull request") for branch in alone]


def _described(request: PullRequest, base: Base, head: str | None) -> Done:
    marker, _ = state.parsed(request.body)
    count = len(marker.keys) if marker else 0
    rewrites = f"{count} rewrite{'' if count == 1 else 's'}" if marker else "its marker was removed"
    touched = head is not None and not merging.is_ours(base.repository, head)
    if touched and REBUILD in request.labels:
        return Done(request.branch, "to be rebuilt", rewrites, request.url)
    if touched:
        return Done(request.branch, "left alone, a person has pushed to it", rewrites, request.url)
    unknown = standing(base, marker.keys if marker else (), head).unknown
    for why in list(unknown.values())[:1]:
        rewrites += f"; at the moment this cannot be analysed: {why}"
    return Done(request.branch, "open", rewrites, request.url)
