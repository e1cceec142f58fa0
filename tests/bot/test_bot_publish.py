"""Publishing, from the first pull request to the last."""

from __future__ import annotations

import pytest
from forge_server import ForgeServer
from world import World

KINDS = ("github", "gitlab", "gitea")


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_request_for_each_codemod(forge: ForgeServer, kind: str) -> None:
    lab = World(forge, kind)
    plan = lab.plan()
    done = {one.branch: one for one in lab.publish(plan)}
    assert {branch: one.what for branch, one in done.items()} == {
        "gradfix/carried-hidden-state": "created",
        "gradfix/undetached-fake": "created",
    }
    for pull in forge.pulls:
        print(pull.title)
        print(pull.body)
    import time

    before = list(forge.requests)
    t = time.time()
    again = lab.publish(plan)
    print(time.time() - t, len(forge.requests) - len(before))
    for r in forge.requests[len(before) :]:
        print(r)
    assert {one.what for one in again} == {"unchanged"}
