"""Takes out every guard of the codemods, and looks which programs of the tests would notice.

    python tests/mutation                           all guards
    python tests/mutation stale_forward diagnosis   those of some files
    python tests/mutation --own stale_forward       ... held against the programs of these mistakes alone

A guard that no program needs is printed with its file and line. What only tells a type is taken out like any
other, but not counted: a type checker asks for it. How many there are in each file is kept in survivors.json,
unless only its own programs were asked. Nothing is run.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent), str(FOLDER.parents[1])]

from session import Session, survey  # noqa: E402

SURVIVORS = FOLDER / "survivors.json"
"""By file, how many guards no program needs."""


def main(arguments: list[str]) -> int:
    """Survey the guards of the files that are named, or all."""
    files = [argument for argument in arguments if argument != "--own"]
    session = Session()
    from examples import examples

    among = {n for n, g in enumerate(session.guards) if not g.narrows and (not files or g.module in files)}
    programs = [example for example in examples() if "--own" not in arguments or example.mistake in files]
    # The programs of a mistake are about what its own guards are for.
    needed = survey(session, sorted(programs, key=lambda example: example.mistake not in files), among)
    survivors = [session.guards[n] for n in sorted(among.difference(needed))]
    for guard in survivors:
        print(f"{guard.module}.py:{guard.line}: no program needs `{guard.text}`")
    print(f"{len(among)} guards: {len(needed)} are needed by a program, {len(survivors)} by none")
    if "--own" not in arguments:
        kept = json.loads(SURVIVORS.read_text(encoding="utf-8")) if SURVIVORS.exists() else {}
        counted = Counter(guard.module for guard in survivors)
        kept = {name: n for name, n in kept.items() if files and name not in files} | counted
        SURVIVORS.write_text(f"{json.dumps(kept, indent=2, sort_keys=True)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
