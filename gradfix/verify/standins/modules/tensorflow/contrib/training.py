"""tensorflow.contrib.training: settings as attributes."""

from __future__ import annotations

import ast
import json
from typing import Any

from ....calls import reduced_value
from ....inert import others


class HParams:
    """Settings by their names."""

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """One more."""
        setattr(self, name, reduced_value("setting " + name, name, value))

    set_hparam = add_hparam

    def values(self) -> dict[str, Any]:
        """All of them."""
        return dict(vars(self))

    def get(self, key: str, default: Any = None) -> Any:
        """One of them."""
        return getattr(self, key, default)

    def override_from_dict(self, values: dict[str, Any]) -> HParams:
        """Other values."""
        vars(self).update(values)
        return self

    def parse(self, values: str) -> HParams:
        """Other values, as ``name=1,other=0.1``."""
        for pair in values.split(","):
            name, _, text = pair.strip().partition("=")
            if name:
                vars(self)[name] = _read(text)
        return self

    def parse_json(self, text: str) -> HParams:
        """Other values."""
        return self.override_from_dict(json.loads(text))

    def to_json(self, *args: Any, **kwargs: Any) -> str:
        """As text."""
        return json.dumps(self.values())

    def __contains__(self, key: str) -> bool:
        return key in vars(self)


def _read(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return {"true": True, "false": False}.get(text.lower(), text)


__getattr__ = others(__name__)
