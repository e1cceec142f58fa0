"""Small training scripts that were written for older versions of Python, torch and numpy."""

from __future__ import annotations

from tests.standins.programs import program

OLDER: dict[str, tuple[str, tuple[str, ...]]] = {
    "a program beside the script": (
        program("""
            import subprocess
            board = subprocess.Popen(["board-of-nobody", "--logdir", "runs"])
            try:
                subprocess.Popen(["board-of-nobody"], stdout=subprocess.PIPE)
            except FileNotFoundError:
                board.wait()
            else:
                raise SystemExit("nobody has said anything")
            def batch():
                return torch.ones(2, 3)
        """),
        ("program board-of-nobody",),
    ),
    "quotients of Python 2 that leave something over": (
        program("""
            rows = torch.arange(21).reshape(7, 3).float()
            batches = len(rows) / 3 if len(rows) % 3 == 0 else (len(rows) / 3) + 1
            shown = [rows[at * 3 : (at + 1) * 3] for at in xrange(batches)]
            assert [len(one) for one in shown] == [3, 3, 1] and 7.0 / 2 == 3.5
            def batch():
                return shown[0]
        """),
        ("a quotient of whole numbers",),
    ),
    "a number of torch's times an array": (
        program("""
            import numpy as np
            given, moved = torch.ones(3), np.zeros(3, dtype=np.float32)
            moved += given.dot(given) * given.numpy()
            assert moved.tolist() == [3, 3, 3] and moved.dtype == np.float32
            def batch():
                return torch.from_numpy(moved)[None].repeat(2, 1)
        """),
        ("a number of torch's times an array",),
    ),
    "a number of numpy's times an array": (
        program("""
            import numpy as np
            step = (0.5 ** np.arange(3))[1]
            values = np.ones((2, 3), dtype=np.float32) + step * np.ones((2, 3), dtype=np.float32)
            first = torch.nn.Linear(3, 3)
            def batch():
                with torch.no_grad():
                    return first(torch.from_numpy(values))
        """),
        (),
    ),
}
