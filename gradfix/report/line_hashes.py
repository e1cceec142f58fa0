"""The hashes of lines by which GitHub's code scanning knows a result again."""

from __future__ import annotations

from collections import Counter

WINDOW = 100
"""How many characters of a file decide about the hash of a line."""
_BASE = 37
_MODULUS = 1 << 64
_END_OF_FILE = 0xFFFF


def line_hashes(text: str) -> list[str]:
    """Of each line the ``primaryLocationLineHash`` by which GitHub's code scanning knows a result again.

    The action that uploads SARIF (github/codeql-action) computes it as well, and warns where a report has
    another: a polynomial hash of the hundred UTF-16 units from the beginning of the line on that are no
    blanks or tabs, with a number that counts the lines so far that have the same.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "")
    encoded = plain.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(encoded[at : at + 2], "little") for at in range(0, len(encoded), 2)]
    starts = [0, *(at for at, unit in enumerate(units, start=1) if unit == 0x0A)]
    units += [_END_OF_FILE, *[0] * WINDOW]
    sums = [0]
    for unit in units:
        sums.append((sums[-1] * _BASE + unit) % _MODULUS)
    power = pow(_BASE, WINDOW, _MODULUS)
    seen: Counter[int] = Counter()
    hashes = []
    for start in starts:
        found = (sums[start + WINDOW] - sums[start] * power) % _MODULUS
        seen[found] += 1
        hashes.append(f"{found:x}:{seen[found]}")
    return hashes
