"""gpustat: one accelerator that does nothing."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from ..inert import others

__version__ = "1.1.1"
IDLE: dict[str, Any] = {
    "index": 0,
    "uuid": "GPU-00000000-0000-0000-0000-000000000000",
    "name": "CPU",
    "temperature.gpu": 30,
    "fan.speed": 0,
    "utilization.gpu": 0,
    "utilization.enc": 0,
    "utilization.dec": 0,
    "power.draw": 10,
    "enforced.power.limit": 100,
    "memory.used": 0,
    "memory.total": 1024,
    "processes": [],
}
"""What there is to say of it, under the real one's keys: megabytes, per cent, watts, degrees."""
BY_NAME = {
    "temperature": "temperature.gpu",
    "fan_speed": "fan.speed",
    "utilization": "utilization.gpu",
    "power_draw": "power.draw",
    "power_limit": "enforced.power.limit",
    "memory_used": "memory.used",
    "memory_total": "memory.total",
}


class GPUStat:
    """An accelerator."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = dict(entry)
        self.available = True

    def __getattr__(self, name: str) -> Any:
        if name in ("memory_free", "memory_available"):
            return self.entry["memory.total"] - self.entry["memory.used"]
        key = BY_NAME.get(name, name)
        if name.startswith("__") or key not in self.__dict__["entry"]:
            raise AttributeError(name)
        return self.entry[key]

    def __getitem__(self, key: str) -> Any:
        return self.entry[key]

    def keys(self) -> Any:
        """What there is to say."""
        return self.entry.keys()

    def jsonify(self) -> dict[str, Any]:
        """All of it."""
        return dict(self.entry)


class GPUStatCollection(Sequence[Any]):
    """All accelerators of this machine."""

    def __init__(self, gpu_list: Any, driver_version: Any = None) -> None:
        self.gpus = list(gpu_list)
        self.hostname = "localhost"
        self.query_time = datetime.datetime(2020, 1, 1)
        self.driver_version = driver_version

    @staticmethod
    def new_query(*args: Any, **kwargs: Any) -> GPUStatCollection:
        """What they do now."""
        return GPUStatCollection([GPUStat(IDLE)])

    def __len__(self) -> int:
        return len(self.gpus)

    def __getitem__(self, index: Any) -> Any:
        return self.gpus[index]

    def jsonify(self) -> dict[str, Any]:
        """All that there is to say."""
        gpus = [one.jsonify() for one in self.gpus]
        return {"hostname": self.hostname, "query_time": self.query_time, "gpus": gpus}

    def print_formatted(self, *args: Any, **kwargs: Any) -> None:
        """Nobody reads it."""

    print_json = print_formatted


new_query = GPUStatCollection.new_query


def gpu_count() -> int:
    """One."""
    return 1


def is_available() -> bool:
    """There is one."""
    return True


def print_gpustat(*args: Any, **kwargs: Any) -> None:
    """Nobody reads it."""


__getattr__ = others(__name__)
