"""Makes docs/apply.svg, the picture in the README, of what `gradfix apply` prints for the bundled example.

    python tools/generate_picture.py

It runs the command in a terminal of its own, on a copy, and draws what came. rich comes with the test tools.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "apply.svg"
EXAMPLE = "glyph_forge.py"
COLUMNS = 112
DARK = TerminalTheme(
    (22, 24, 29),
    (214, 217, 222),
    [
        *((22, 24, 29), (240, 113, 120), (150, 208, 120), (240, 200, 110)),
        *((115, 170, 250), (200, 150, 240), (110, 205, 210), (214, 217, 222)),
    ],
)
# A picture that fetches a font from elsewhere is not shown by every viewer.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def printed() -> str:
    """What `gradfix apply` prints in a terminal, with its colours."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "examples" / "workshop" / EXAMPLE, folder)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "gradfix", "apply", EXAMPLE],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "NO_COLOR": ""},
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # The other end of a terminal has been closed.
            pass
        if process.wait() != 0:
            sys.exit(f"gradfix apply ended with {process.returncode}")
    return b"".join(parts).decode().replace("\r\n", "\n")


def drawn(output: str) -> str:
    """The picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f"$ gradfix apply {EXAMPLE}", style="bold"))
    console.print(Text.from_ansi(output))
    return console.export_svg(title="gradfix", theme=DARK, code_format=FORMAT, unique_id="apply")


if __name__ == "__main__":
    PICTURE.write_text(drawn(printed()), encoding="utf-8", newline="\n")
