"""What tells findings apart, and stays the same when they move within their file.

Services that compare reports of two commits go by it, to tell a new finding from a known one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from gradfix.project.source import split_lines

if TYPE_CHECKING:
    from gradfix.pipeline.json_types import FindingData

WINDOW = 100
"""How many characters of a file decide about the hash of a line."""
_BASE = 37
_MODULUS = 1 << 64
_END_OF_FILE = 0xFFFF


class Fingerprints:
    """Names findings, in the order of a report."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, one: FindingData, text: str, path: str) -> str:
        """A digest of where a finding is (``path``), of what kind it is, and of the line that it is on.

        It has no line's number in it, nor has it the message, which may name one. Equal findings on equal
        lines are told apart by their order. Of a problem, which has no ``text``, the message counts instead.
        """
        row, lines = one["location"]["row"], split_lines(text)
        what = lines[row - 1].strip() if 0 < row <= len(lines) else one["message"]
        known = "\0".join((path, one["code"], what))
        material = f"{known}\0{self._seen[known]}".encode("utf-8", "surrogatepass")
        self._seen[known] += 1
        return hashlib.sha256(material).hexdigest()


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
