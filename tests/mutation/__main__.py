"""Takes out every guard of the codemods, and looks which programs of the tests would notice.

    python tests/mutation                           all guards; writes survivors.txt
    python tests/mutation stale_forward diagnosis   those of some files; writes nothing
    python tests/mutation --check FILE...           exits with 1 if one is not noticed and no survivor

A guard that no program needs is printed with its file and line. What only tells a type is taken out like any
other, but counted apart: a type checker asks for it. Nothing is run.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent), str(FOLDER.parents[1])]

from session import Session, survey  # noqa: E402

SURVIVORS = FOLDER / "survivors.txt"


def main(arguments: list[str]) -> int:
    """Survey the guards of the files that are named, or all."""
    check = "--check" in arguments
    files = [argument for argument in arguments if argument != "--check"]
    session = Session()
    from examples import examples

    among = [n for n, guard in enumerate(session.guards) if not files or guard.module in files]
    known = set(SURVIVORS.read_text(encoding="utf-8").splitlines()) if SURVIVORS.exists() else set()
    if check:
        among = [n for n in among if session.guards[n].key not in known and not session.guards[n].narrows]
    # The fixtures of a codemod are about what its own guards are for.
    ordered = sorted(examples(), key=lambda example: example.name.partition("/")[0] not in files)
    needed = survey(session, ordered, among)
    left = [session.guards[n] for n in among if n not in needed]
    survivors = [guard for guard in left if not guard.narrows]
    for guard in survivors:
        print(f"{guard.module}.py:{guard.line}: no program needs `{guard.text}`")
    print(
        f"{len(among)} guards: {len(needed)} are needed by a program, {len(survivors)} by none, "
        f"and {len(left) - len(survivors)} more tell a type"
    )
    if not files and not check:
        keys = sorted({guard.key for guard in survivors})
        SURVIVORS.write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
    return int(check and bool(survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
