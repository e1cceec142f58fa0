"""The schema of a run: everything that is made up, reduced or replaced, as JSON, and how it grows.

=================  =====================================================================================
``files``          by path (below the project's root relative to it): how an absent file or folder is
                   made, see ``files.py``
``sizes``          by place, such as ``train.npz['x']``: the sizes of an array, where an error has told
``types``          by place: ``int`` where floating-point numbers were not taken, or the other way round
``keys``           by place of a mapping, table or archive: the names that were asked for
``rows``           how many rows and elements there are where nothing says it
``pictures``       the ``side`` and the ``channels`` of pictures
``datasets``       the classes of torchvision that stand without their files
``hub``            by name of a data set of Hugging Face's: its columns
``modules``        absent modules that only log or draw
``paths``          folders of the project whose packages can be imported
``accelerator``    ``used``: what is sent to an accelerator stays on the CPU; ``insisted on``: and the script
                   is told that there is one
``world``          whether the run is the only process of a distributed one
``samples``        samples in a data set of torchvision's, at most
``alone``          whether data loaders work without further processes
``batch``          samples in a batch of a data loader, at most
``handed``         whether a driver calls one step alone, with all that it is handed made up
``absent``         modules that are not there, and that a driver does without
``gaps``           statements that fail, and whose values are made up in a driver's runs
``globals``        names that the program of a file sets before an entry of it is called
``numbers``        by place: the size that a setting says, where two that were made up had to agree
``words``          by argument that nobody gives: which of the words it is that the script knows
``setup``          methods that are called before the entry, for they set what it reads
``seen``           digests of the schemas before this one: none is tried twice
=================  =====================================================================================
"""

from __future__ import annotations

import json
import zlib
from typing import Any

Schema = dict[str, Any]


def parsed(text: str) -> Schema:
    """The schema in a job."""
    found: Schema = json.loads(text) if text else {}
    return found


def with_entry(schema: Schema, part: str, name: str, entry: Any) -> Schema:
    """``schema`` with one entry of one of its parts changed."""
    return {**schema, part: {**schema.get(part, {}), name: entry}}


def with_listed(schema: Schema, part: str, *names: str) -> Schema:
    """``schema`` with further names in one of its lists."""
    return {**schema, part: list(dict.fromkeys([*schema.get(part, []), *names]))}


def fresh(run: Any, schema: Schema) -> str | None:
    """``schema`` as text, ``None`` if it has been tried: two errors may ask for contrary things."""
    plain = {name: entry for name, entry in run.schema.items() if name != "seen"}
    wanted = {name: entry for name, entry in schema.items() if name != "seen"}
    seen = [*run.schema.get("seen", []), _digest(plain)]
    return None if _digest(wanted) in seen else json.dumps({**wanted, "seen": seen}, sort_keys=True)


def _digest(schema: Schema) -> int:
    return zlib.crc32(json.dumps(schema, sort_keys=True).encode())
