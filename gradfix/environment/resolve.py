"""Which distributions an environment gets: uv's resolution, and the pins that are relaxed until there is one.

Old projects pin what they were written with, of which there are no wheels for today's Python. uv says in
words why requirements cannot be met; the words name the requirement, which is relaxed by one step (see
:func:`requirements.relaxed`), or dropped where it already takes any version. Where the words name nothing
that is known, the requirement is found by trying.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradfix.environment import requirements
from gradfix.environment.errors import EnvironmentFailure
from gradfix.environment.requirements import TORCH, LeftOut, Requirement
from gradfix.environment.uv import WHEELS_ONLY, Answer, Uv, settings

Say = Callable[[str], None]

MOST_ATTEMPTS = 400
"""To find a resolution; each takes a tenth of a second or so, and there are up to four for a requirement."""

CPU_BUILDS = ("--torch-backend", "cpu")
EXTENSIONS = ("torchvision", "torchaudio")
"""What is compiled against PyTorch, and on PyPI for Linux against the one with CUDA."""
CUDA = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
"""One of these is needed by any build of PyTorch for NVIDIA's GPUs that is on PyPI for Linux."""

_UNREACHABLE = re.compile(
    r"client error \(Connect\)|dns error|operation timed out|Failed to read `--find-links`"
)
_REQUIRED = re.compile(r"you require (?:any of: )?([A-Za-z0-9][A-Za-z0-9._-]*)")
_CONFLICTING = re.compile(r"requirements and ([A-Za-z0-9][A-Za-z0-9._-]*?)[=<>!~, ]")


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A requirement that was met by another version than the stated one."""

    stated: str
    installed: str
    """The distribution and its version, as ``torch 2.13.0``."""
    why: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is to be installed."""

    lines: tuple[str, ...]
    """One distribution each, as ``numpy==2.4.6``; all that is needed, dependencies too."""
    relaxed: tuple[Relaxed, ...]
    missing: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    options: tuple[str, ...]
    """What uv has to be told to find them again."""


@dataclass(slots=True)
class _Request:
    stated: Requirement
    now: Requirement
    why: str = ""


def resolve(wanted: Sequence[Requirement], uv: Uv, python: str, version: str, say: Say) -> Resolution:
    """Find distributions for ``wanted`` that have wheels for an interpreter, relaxing what has none.

    Args:
        wanted: What is asked for.
        uv: The uv to ask.
        python: The interpreter.
        version: Its version, for people.
        say: Told what is being done.

    Raises:
        EnvironmentFailure: The index cannot be reached, or uv fails for a reason of its own.
    """
    return _Resolver(uv, python, version, say).resolve(wanted)


class _Resolver:
    def __init__(self, uv: Uv, python: str, version: str, say: Say) -> None:
        self.uv = uv
        self.python = python
        self.version = version
        self.say = say
        self.options: tuple[str, ...] = ()
        self.notes: list[str] = []

    def resolve(self, wanted: Sequence[Requirement]) -> Resolution:
        requests = [_Request(requirement, requirement) for requirement in wanted]
        missing: list[LeftOut] = []
        if sys.platform == "linux" and any(one.name in TORCH for one in wanted):
            self._find_cpu_builds()
        answer = self._compile([request.now for request in requests])
        for _ in range(MOST_ATTEMPTS):
            if answer.ok or not requests:
                break
            request = self._suspect(requests, answer)
            self._relax(request, requests, missing, answer)
            answer = self._compile([request.now for request in requests])
        if not answer.ok and requests:
            raise EnvironmentFailure(f"uv cannot resolve the requirements: {answer.first_line}")
        lines = self._without_cuda([request.now for request in requests], _lines(answer))
        lines = self._without_strangers(lines, missing)
        versions = dict(line.split("==", 1) for line in lines if "==" in line)
        return Resolution(
            lines,
            tuple(
                Relaxed(
                    request.stated.versioned, f"{request.now.name} {versions[request.now.name]}", request.why
                )
                for request in requests
                if request.why and request.now.name in versions
            ),
            tuple(missing),
            tuple(self.notes),
            self.options,
        )

    # ------------------------------------------------------------------------ relaxing

    def _relax(
        self, request: _Request, requests: list[_Request], missing: list[LeftOut], answer: Answer
    ) -> None:
        """Relax a requirement by one step, or drop it; the reason that is told is the first one."""
        request.why = request.why or self._why(request.now, requests, answer)
        looser = requirements.relaxed(request.now)
        if looser is not None:
            self.say(f"{request.now.versioned} cannot be had ({request.why}); trying {looser.versioned}")
            request.now = looser
            return
        self.say(f"{request.now.name} cannot be had ({request.why})")
        requests.remove(request)
        # Of a pin that had to go first, the last reason says more: there is nothing of it at all.
        why = self._why(request.now, requests, answer)
        missing.append(LeftOut(request.stated.versioned, why, request.stated.origin))

    def _suspect(self, requests: Sequence[_Request], answer: Answer) -> _Request:
        """The requirement to relax next."""
        if _UNREACHABLE.search(answer.message):
            raise EnvironmentFailure(f"the index cannot be reached: {answer.first_line}")
        names = {*_REQUIRED.findall(answer.message), *_CONFLICTING.findall(answer.message)}
        named = [request for request in requests if request.now.name in names]
        guilty = [request for request in requests if _is_unavailable(request.now, answer.message)]
        bounded = [request for request in guilty if request.now.specifier]
        same = [request for request in bounded if request.now.name == bounded[0].now.name]
        for among in (
            # Of several that ask for versions of one distribution it is those that are tied to old ones.
            *_by_tightness(same),
            *_by_tightness(named),
            # What already takes any version goes only where nothing that could be relaxed is in its way.
            guilty[:1],
            named[-1:],
        ):
            if among:
                return self._first_that_helps(among, requests)
        return self._found_by_trying(requests, answer)

    def _first_that_helps(self, among: Sequence[_Request], requests: Sequence[_Request]) -> _Request:
        """Of several that are at odds, the one without whose pin there is a resolution; else the first."""
        if len(among) > 1:
            for request in among:
                looser = requirements.relaxed(request.now)
                others = [other.now for other in requests if other is not request]
                if looser is not None and self._compile([*others, looser]).ok:
                    return request
        return among[0]

    def _found_by_trying(self, requests: Sequence[_Request], answer: Answer) -> _Request:
        """The first requirement that cannot be met together with those before it."""
        low, high = 0, len(requests)
        while high - low > 1:
            middle = (low + high) // 2
            if self._compile([request.now for request in requests[:middle]]).ok:
                low = middle
            else:
                high = middle
        if (
            low == 0
            and len(requests) > 1
            and not self._compile([request.now for request in requests[1:2]]).ok
        ):
            # Not even the next one alone: it is not the requirements that uv stumbles over.
            raise EnvironmentFailure(f"uv fails: {answer.first_line}")
        return requests[low]

    def _why(self, requirement: Requirement, requests: Sequence[_Request], answer: Answer) -> str:
        message, name = answer.message, re.escape(requirement.name)
        if re.search(rf"there is no version of {name}\b", message):
            return "there is no such version"
        if re.search(rf"(?<![\w.-]){name} was not found", message):
            return "it is not in the index"
        if re.search(rf"(?<![\w.-]){name}\b[^,]*? (?:has|have) no (?:usable )?wheels", message):
            return f"no wheel for Python {self.version}"
        if re.search(rf"(?<![\w.-]){name}\b\S* depends on Python", message):
            return f"not for Python {self.version}"
        transitive = re.search(
            r"([\w.-]+?)(?:[=<>!~]\S*)? (?:(?:has|have) no (?:usable )?wheels|was not found)", message
        )
        if transitive and transitive[1] not in (requirement.name, "available"):
            return f"it depends on {transitive[1]}, of which there is no wheel for Python {self.version}"
        named = {*_REQUIRED.findall(message), *_CONFLICTING.findall(message)} - {requirement.name}
        others = [request.now.versioned for request in requests if request.now.name in named]
        if not others and re.search(r"no (?:usable )?wheels", message):
            return f"no wheel for Python {self.version}"
        rivals = [
            request.now
            for request in requests
            if request.now.name == requirement.name and request.now != requirement
        ]
        others += [one.versioned for one in rivals if one.specifier and one.versioned in message]
        if not others and re.search(rf"you require {name}\S* and {name}(?![\w-])", message):
            return "at odds with a constraint of yours"
        if others:
            shown = sorted(set(others))
            more = " and others" if len(shown) > 2 else ""
            return f"at odds with {' and '.join(shown[:2])}{more}"
        return "uv cannot resolve it"

    # ------------------------------------------------------------------------ uv

    def _compile(
        self, wanted: Sequence[Requirement], *, options: tuple[str, ...] = (), without: Sequence[str] = ()
    ) -> Answer:
        """Have uv resolve ``wanted``, ``without`` any version of some distributions."""
        source = self.uv.folder / "requirements.in"
        source.write_text("".join(f"{one.text}\n" for one in wanted), encoding="utf-8")
        constraints: list[Path] = []
        if without:
            constraints = [self.uv.folder / "without.txt"]
            constraints[0].write_text("".join(f"{name}<0\n" for name in without), encoding="utf-8")
        return self.uv.call(
            "pip",
            "compile",
            *WHEELS_ONLY,
            "--python",
            self.python,
            "--no-header",
            "--no-annotate",
            *self.options,
            *options,
            str(source),
            constraints=constraints,
        )

    def _find_cpu_builds(self) -> None:
        """Have uv take PyTorch from the index of its CPU builds, if that can be reached."""
        mine = settings()
        if "UV_TORCH_BACKEND" in mine or "UV_NO_INDEX" in mine:
            return
        torch = Requirement("torch", "", "", "", "")
        impatient = replace(self.uv, impatient=True)
        patient, self.uv = self.uv, impatient
        answer = self._compile([torch], options=(*CPU_BUILDS, "--no-deps"))
        self.uv = patient
        if answer.ok:
            self.options = CPU_BUILDS
        elif "download.pytorch.org" in answer.message:
            self.notes.append(
                "PyTorch's index of CPU builds cannot be reached, so torch is taken from the other indexes"
            )

    def _without_cuda(self, wanted: Sequence[Requirement], lines: tuple[str, ...]) -> tuple[str, ...]:
        """The same, with a PyTorch for the CPU alone if there is one that meets the requirements."""
        if not any(line.startswith("nvidia-cudnn-") for line in lines):
            return lines
        answer = self._compile(wanted, without=CUDA)
        found = _lines(answer) if answer.ok else ()
        if any(line.startswith("torch==") for line in found):
            return found
        self.notes.append("there is no CPU build of torch to be had: NVIDIA's libraries come with it (GBs)")
        return lines

    def _without_strangers(self, lines: tuple[str, ...], missing: list[LeftOut]) -> tuple[str, ...]:
        """The same, without extensions of PyTorch that are built for GPUs where PyTorch is for the CPU.

        They cannot even be imported, which is worse than that they are not there.
        """
        if not any(line.startswith("torch==") and line.endswith("+cpu") for line in lines):
            return lines
        strangers = [line for line in lines if line.split("==")[0] in EXTENSIONS and "+cpu" not in line]
        if sys.platform == "linux":
            for line in strangers:
                why = "no CPU build in the index, and one for GPUs does not load with torch for the CPU"
                missing.append(LeftOut(line.split("==")[0], why, "beside torch"))
            return tuple(line for line in lines if line not in strangers)
        return lines


def _lines(answer: Answer) -> tuple[str, ...]:
    """The resolution that uv prints, without what is no distribution."""
    lines = (line.strip() for line in answer.output.splitlines())
    return tuple(line for line in lines if re.match(r"[A-Za-z0-9][\w.-]*==", line)) if answer.ok else ()


def _by_tightness(requests: Sequence[_Request]) -> tuple[list[_Request], ...]:
    """Those that ask for one version, those that want none above another, and those with any condition."""
    return (
        [request for request in requests if requirements.pinned(request.now)],
        [request for request in requests if "<" in request.now.specifier],
        [request for request in requests if request.now.specifier],
    )


def _is_unavailable(requirement: Requirement, message: str) -> bool:
    """Whether uv says that a requirement itself cannot be had, whatever else is asked for."""
    if requirement.name not in message:
        return False
    name = re.escape(requirement.name)
    return bool(
        re.search(
            rf"there is no version of {name}(?![\w.-]*[A-Za-z])|(?<![\w.-]){name} was not found"
            rf"|(?<![\w.-]){name}(?:[=<>!~]\S*)? (?:has|have) no (?:usable )?wheels"
            rf"|only the following versions of {name} are available"
            rf"|(?<![\w.-]){name}(?:[=<>!~]\S*)? depends on Python",
            message,
        )
        or ("parse requirement" in message and requirement.versioned in message)
    )
