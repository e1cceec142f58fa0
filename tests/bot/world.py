"""A repository with mistakes on a forge for tests, a plan for it, and the bot, run in this process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from forge_server import TOKEN, ForgeServer

from gradfix.bot import connect, picture, planning, publish
from gradfix.bot.errors import BotError
from gradfix.bot.git import Git
from gradfix.bot.http import Patience
from gradfix.bot.plan import PlanFile, Rewrite
from gradfix.bot.publish import Done, Wanted
from gradfix.bot.secret import Token
from gradfix.core.errors import quoted
from gradfix.pipeline import driver
from gradfix.pipeline.driver import RequestedOptions
from gradfix.pipeline.results import Outcome
from gradfix.rules import catalog

REPOSITORY = "lab/nets"

GAN = b"""\
import torch
from torch import nn, optim

painter = nn.Linear(4, 8)
critic = nn.Linear(8, 1)
painter_opt = optim.SGD(painter.parameters(), lr=0.1)
critic_opt = optim.SGD(critic.parameters(), lr=0.1)

for _ in range(3):
    painting = painter(torch.randn(2, 4))
    critic_opt.zero_grad()
    scorn = critic(painting).sigmoid().mean() - critic(torch.randn(2, 8)).sigmoid().mean()
    scorn.backward()
    critic_opt.step()
    painter_opt.zero_grad()
    envy = -critic(painting).sigmoid().mean()
    envy.backward()
    painter_opt.step()
"""

RNN = b"""\
import torch
from torch import nn, optim

memory = nn.GRU(4, 4)
tutor = optim.SGD(memory.parameters(), lr=0.1)
mood = torch.zeros(1, 2, 4)

for _ in range(4):
    sung, mood = memory(torch.randn(3, 2, 4), mood)
    tutor.zero_grad()
    loss = sung.pow(2).mean()
    loss.backward()
    tutor.step()
"""

RETAINED = b"""\
import torch
from torch import nn, optim

model = nn.Linear(4, 1)
opt = optim.SGD(model.parameters(), lr=0.1)

for _ in range(3):
    opt.zero_grad()
    loss = model(torch.randn(2, 4)).tanh().mean()
    loss.backward(retain_graph=True)
    opt.step()
"""

FILES = {"models/gan.py": GAN, "rnn.py": RNN, "README.md": b"# nets\n"}
FIXED_GAN = GAN.replace(
    b"critic(painting).sigmoid().mean() - ", b"critic(painting.detach()).sigmoid().mean() - "
)
NEIGHBOUR = b"    critic_opt.zero_grad(set_to_none=True)\n"
TOUCHED_GAN = GAN.replace(b"    critic_opt.zero_grad()\n", NEIGHBOUR)
"""With a change beside the line that is to be fixed: git cannot merge the two."""
BRANCH = "gradfix/undetached-fake"
"""Of the pull request for ``GAN``."""

CERTIFICATE = {
    "outcome": "proved",
    "reason": "3 checks hold on 3 seeds",
    "checks": [
        {
            "name": "original",
            "verdict": "holds",
            "detail": f"the original raises {quoted('E1')}, as predicted",
            "subject": "",
        },
        {"name": "fixed-runs", "verdict": "holds", "detail": "the fixed program ran 6 steps", "subject": ""},
        {
            "name": "reference",
            "verdict": "not checked",
            "detail": "nothing to compare `opt` with",
            "subject": "",
        },
        {
            "name": "unchanged",
            "verdict": "holds",
            "detail": "gradients of critic_opt equal at the 1 step before the crash",
            "subject": "critic_opt",
        },
    ],
    "runs": [
        {
            "version": "before",
            "seed": 0,
            "summary": f"raised {quoted('E1')} at line 17 in envy.backward()",
            "error": "RuntimeError: Trying to backward through the graph a second time (or directly access "
            "saved tensors after they have already been freed). Saved intermediate values of the graph are "
            "freed when you call .backward()",
        },
        {"version": "after", "seed": 0, "summary": "ran 6 steps"},
    ],
    "python": "3.11.7",
    "torch": "2.13.0",
    "seeds": [0, 1, 2],
    "sandbox": "none (`test`)",
    "seconds": 1.5,
}
"""What verification would say; none of these tests is about that."""


_known: dict[Any, Any] = {}


def remember(patch: pytest.MonkeyPatch) -> None:
    """Analyse each text once: the model is a function of the text, and the same few come again and again."""

    def remembered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def answer(parsed: Any, options: Any) -> Any:
            key = name, parsed.data, options.selected, options.unsafe_fixes
            if key not in _known:
                found = function(parsed, options)
                _known[key] = list(found) if name == "offers" else found
            # The same text lies elsewhere in every run.
            return _known[key]._replace(path=parsed.path) if name != "offers" else _known[key]

        return answer

    for name in ("offers", "file_report", "repair"):
        patch.setattr(driver, name, remembered(name, getattr(driver, name)))
    flow_of = picture.flow_of

    def flow(version: Any) -> Any:
        if version.data not in _known:
            _known[version.data] = flow_of(version)
        return _known[version.data]

    patch.setattr(picture, "flow_of", flow)
    patch.setattr(catalog, "load", lru_cache(catalog.load))


@lru_cache
def template() -> Path:
    """A folder with the bare repository, made once."""
    import atexit
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="gradfix-template-"))
    atexit.register(shutil.rmtree, folder, True)
    create(folder, REPOSITORY)
    forge = ForgeServer(folder)
    forge.commit(REPOSITORY, "main", FILES)
    return folder


def create(root: Path, repository: str) -> None:
    """An empty bare repository that takes pushes."""
    directory = root / f"{repository}.git"
    directory.parent.mkdir(parents=True, exist_ok=True)
    for command in (
        ["init", "-q", "--bare", "--template=", "-b", "main", str(directory)],
        ["--git-dir", str(directory), "config", "http.receivepack", "true"],
    ):
        subprocess.run(["git", *command], check=True)


@dataclass
class World:
    """A forge with the repository on it, and the bot."""

    forge: ForgeServer
    kind: str = "github"
    base: str = "main"
    object_format: str | None = "sha1"
    slept: list[float] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    """Everything that runs have said."""
    seconds: float = 60.0
    """For one answer; far more than one takes, so that a busy machine is no fault."""
    budget: float = 180.0
    token: str | None = TOKEN

    def plan(self, ref: str = "main", *paths: str, proved: bool = True, **requested: Any) -> PlanFile:
        """A plan for the repository as it is at ``ref``, as verification would have proved it."""
        commit = self.forge.git(REPOSITORY, "rev-parse", ref)
        repository = self.forge.root / f"{REPOSITORY}.git"
        return planned(repository, commit, paths, proved, tuple(sorted(requested.items())))

    def publish(self, plan: PlanFile, **wanted: Any) -> list[Done]:
        """What ``gradfix bot publish`` does."""
        with self.connected(wanted.get("fork", False)) as (served, git, token):
            wish = Wanted(**{"base": self.base, "sleep": self.slept.append, **wanted})
            return publish.publish(plan, served, git, token, wish)

    def exit_code(self, plan: PlanFile, **wanted: Any) -> int:
        """The exit code of ``gradfix bot publish``."""
        try:
            done = self.publish(plan, **wanted)
        except BotError as error:
            self.log.append(repr(error))
            return error.exit_code
        self.log.append(repr(done))
        return max((one.code for one in done), default=0)

    @contextmanager
    def connected(self, fork: bool = False) -> Iterator[tuple[Any, Git, Any]]:
        """The forge as the bot reaches it, and the token, if it has one."""
        token = None if self.token is None else Token(self.token)
        place = connect.ForgeRepository(self.kind, self.forge.api_url(self.kind), REPOSITORY)
        patience = Patience(self.seconds, self.budget, self.slept.append)
        with (
            connect.forge(place, token, fork=fork, patience=patience) as served,
            Git(self.object_format, seconds=self.seconds, sleep=self.slept.append) as git,
        ):
            yield served, git, token

    @property
    def branches(self) -> dict[str, str]:
        """Our branches."""
        return {k: v for k, v in self.forge.branches(REPOSITORY).items() if k.startswith("gradfix/")}

    def writes(self) -> list[str]:
        """The requests so far that change something."""
        return [
            str(request)
            for request in self.forge.requests
            if request.method != "GET" and not request.path.endswith("git-upload-pack")
        ]


_plans: dict[Any, PlanFile] = {}


def planned(
    repository: Path,
    commit: str,
    paths: tuple[str, ...],
    proved: bool,
    requested: tuple[tuple[str, Any], ...],
) -> PlanFile:
    """The plan for a commit, made in a checkout; nothing is run for it."""
    key = commit, paths, proved, requested
    if key not in _plans:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
            command = ["git", "clone", "-q", "--no-checkout", str(repository), folder]
            subprocess.run(command, check=True, env=environment)
            subprocess.run(["git", "-C", folder, "checkout", "-q", commit], check=True, env=environment)
            where = [os.path.join(folder, path) for path in paths or (".",)]
            made = planning.make(where, RequestedOptions(verify=False, **dict(requested)))
        _plans[key] = as_proved(made.plan) if proved else made.plan
    return _plans[key]


def as_proved(plan: PlanFile) -> PlanFile:
    """``plan`` with every rewrite proved."""

    def proved(rewrite: Rewrite) -> Rewrite:
        certificate = json.loads(json.dumps(CERTIFICATE))
        return replace(rewrite, outcome=Outcome.PROVED, certificate=certificate)

    changes = (replace(c, rewrites=tuple(proved(r) for r in c.rewrites)) for c in plan.changes)
    return replace(plan, changes=tuple(changes))


def git(*arguments: str, cwd: Path) -> None:
    """Run git in a checkout, as a person would."""
    identity = ["-c", "user.name=person", "-c", "user.email=person@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True)
