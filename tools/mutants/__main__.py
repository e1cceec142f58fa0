"""Scores gradfix on mutants of real training code. See docs/mutants.md.

python tools/mutants CHECKOUT [CHECKOUT...] [--per-operator N] [--only OPERATOR...]
                     [--json FILE] [--python EXE] [--no-run]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "mutants")]

import faults  # noqa: E402
import score  # noqa: E402


def main() -> None:
    """Read the arguments, score, print the table."""
    parser = argparse.ArgumentParser(prog="python tools/mutants", description=score.__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path, help="folders of training code, or files")
    parser.add_argument("--per-operator", type=int, default=2, help="mutants of each operator in one file")
    parser.add_argument("--files", type=int, default=6, help="files of each checkout at most")
    parser.add_argument(
        "--only", nargs="+", default=list(faults.OPERATORS), help="plant with these operators"
    )
    parser.add_argument("--json", type=Path, help="write a line of JSON for each mutant to this file")
    parser.add_argument("--python", help="the interpreter that has torch")
    parser.add_argument("--no-run", action="store_true", help="decide nothing by running")
    options = parser.parse_args()
    results = score.Results()
    for checkout in options.checkouts:
        score.score(checkout.resolve(), options, results)
        print(f"{checkout.name}: {len(results.rows)} mutants so far", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(results.lines(), encoding="utf-8")
    print(results.table())


main()
