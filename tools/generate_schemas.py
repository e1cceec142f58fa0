"""Writes the JSON schemas in gradfix/schemas from the types of what they describe.

    python tools/generate_schemas.py            rewrite them
    python tools/generate_schemas.py --check    exit with 1 if one is stale

Findings, certificates and baselines are those of ``gradfix/pipeline/json_types.py``: msgspec makes schemas
of its types, and the docstrings beneath their fields are the descriptions. The configuration is that of the
dataclasses that it is read into; what their types do not say stands in the tables that check it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "gradfix" / "schemas"
sys.path.insert(0, str(ROOT))

from gradfix.bot import config as bot  # noqa: E402
from gradfix.core.codemod import Severity  # noqa: E402
from gradfix.pipeline import json_types  # noqa: E402
from gradfix.project import configuration  # noqa: E402

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DIALECT_OF_EDITORS = "http://json-schema.org/draft-07/schema#"
"""Those that complete and check TOML know this one."""


def schemas() -> dict[str, Schema]:
    """All of them, by name."""
    return {
        "findings": of_type(list[json_types.FindingData], "What `gradfix check --output-format json` prints"),
        "certificate": of_type(json_types.CertificateData, "A certificate in `gradfix-evidence/`"),
        "baseline": of_type(json_types.BaselineData, "What `gradfix check --write-baseline` writes"),
        "configuration": of_configuration(),
    }


# ---------------------------------------------------------------------------- findings and certificates


def of_type(kind: Any, title: str) -> Schema:
    """The schema of what is printed: every field is there, and a later version may add others."""
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    types = dict(_types(kind))
    for name, definition in definitions.items():
        if "properties" not in definition:
            definition.pop("title", None)
            continue
        described = described_fields(types[name])
        definition["required"] = list(definition["properties"])
        for field, value in definition["properties"].items():
            value.pop("default", None)
            if field in described:
                definition["properties"][field] = _with_description(value, described[field])
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = _plain(definition["description"])
    return {"$schema": DIALECT, "title": title, **schema, "$defs": definitions}


def _types(kind: Any) -> Iterator[tuple[str, type]]:
    """The classes that a type is made of, by name."""
    pending, seen = [kind], set()
    while pending:
        one = pending.pop()
        pending.extend(getattr(one, "__args__", ()))
        if isinstance(one, type) and hasattr(one, "__annotations__") and one not in seen:
            seen.add(one)
            yield one.__name__, one
            pending.extend(get_type_hints(one).values())


def _with_description(value: Schema, text: str) -> Schema:
    """``value`` with a description, unless it has one of its own."""
    return {"description": text, **value}


def described_fields(kind: type) -> dict[str, str]:
    """The docstrings beneath the fields of a class."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, following in zip(definition.body, definition.body[1:]):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            found[field.target.id] = _plain(inspect.cleandoc(following.value.value))
    return found


def _plain(text: str) -> str:
    """A docstring as Markdown on one line."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`")


# ---------------------------------------------------------------------------- configuration

# What is written differs here from what is read into the dataclass.
_COMMAND = (
    "The command that runs the scripts, as it is typed: `python train.py --epochs 1`. Or a table of patterns "
    "as in `.gitignore` and such commands; the first that matches counts."
)
_VERIFY = "How the project's scripts are run. Relative paths count from `pyproject.toml`."
_BOT = "How `gradfix bot` behaves in this repository; read from the base branch only."


def of_configuration() -> Schema:
    """The schema of the table ``[tool.gradfix]``."""
    keys = [item for item in dataclasses.fields(configuration.Settings) if item.metadata.get("key", True)]
    whole = table(configuration.Settings, {item.name: _of_default(item.default) for item in keys})
    whole["properties"]["min-coverage"] |= {"minimum": 0, "maximum": 100}
    verify = {item.name: _of_kind(item.name) for item in dataclasses.fields(configuration.Verification)}
    of_bot = {item.name: _of_bot(item) for item in dataclasses.fields(bot.BotConfig)}
    verify["command"]["description"] = _COMMAND
    whole["properties"]["verify"] = {"description": _VERIFY, **table(configuration.Verification, verify)}
    whole["properties"]["bot"] = {"description": _BOT, **table(bot.BotConfig, of_bot)}
    return {
        "$schema": DIALECT_OF_EDITORS,
        "title": "The table `[tool.gradfix]` of a pyproject.toml",
        **whole,
    }


def table(kind: type, fields: Mapping[str, Schema]) -> Schema:
    """The schema of a table whose keys are fields of a dataclass."""
    described = described_fields(kind)
    properties = {
        name.replace("_", "-"): _with_description(value, described[name]) if name in described else value
        for name, value in fields.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _of_default(default: object) -> Schema:
    """What a key takes whose default this is, as ``configuration`` checks it."""
    if isinstance(default, tuple):
        return {"type": "array", "items": {"type": "string"}, "default": list(default)}
    if isinstance(default, bool):
        return {"type": "boolean", "default": default}
    if isinstance(default, int):
        return {"type": "integer", **({"exclusiveMinimum": 0} if default else {}), "default": default}
    if isinstance(default, Severity):
        return {"enum": [str(one) for one in Severity], "default": str(default)}
    return {"type": "string", "default": default}


def _of_kind(key: str) -> Schema:
    """What a key of ``[tool.gradfix.verify]`` takes."""
    text: Schema = {"type": "string"}
    return {
        "a command, or a table of patterns and commands": {
            "anyOf": [text, {"type": "object", "additionalProperties": text}]
        },
        "a list of strings": {"type": "array", "items": text},
        "a number of seconds": {"type": "number", "exclusiveMinimum": 0},
        "a string": text,
    }[configuration.kind_of_verification(key)]


def _of_bot(item: dataclasses.Field[Any]) -> Schema:
    """What a key of ``[tool.gradfix.bot]`` takes."""
    key = item.name.replace("_", "-")
    if key in bot.CHOICES:
        return {"enum": list(bot.CHOICES[key]), "default": item.default}
    if isinstance(item.default, int) and not isinstance(item.default, bool):
        return {"type": "integer", "minimum": 0, "maximum": bot.MOST, "default": item.default}
    return _of_default(item.default)


# ---------------------------------------------------------------------------- writing


def main() -> None:
    """Write the files, or say whether one is stale."""
    for name, schema in schemas().items():
        path = FOLDER / f"{name}.json"
        text = json.dumps(schema, indent=2) + "\n"
        if "--check" not in sys.argv[1:]:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is stale: run python tools/generate_schemas.py")


if __name__ == "__main__":
    main()
