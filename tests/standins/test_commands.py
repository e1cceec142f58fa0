"""What a project says of how it is started, and modules of it that are elsewhere, left out or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.verify.runner import Runner
from tests.standins.programs import program
from tests.standins.test_projects import project, run, steps

BATCH = "def batch():\n    return torch.ones(2, 2)\n"


OPTIONS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--kind")
parser.add_argument("--mode")
parser.add_argument("--rate", type=float, default=0.1)
given = parser.parse_args()
widths = {"narrow": 2, "wide": 3}
width = widths[given.kind]
if given.mode.startswith("train"):
    width += 1
assert (width, given.rate) == (4, 0.5)
"""
SHOWN = {
    "README.md": "# Project\n\npython fit.py --kind $KIND\npython -u fit.py --kind wide \\\n  --rate 0.5\n",
    "scripts/fit.sh": "python fit.py --kind wide --rate 0.5  # as in the paper\n",
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_the_project_shows_is_typed(name: str, running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {name: SHOWN[name]})
    found = run(running, tmp_path / "fit.py", program(OPTIONS + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "arguments: as the project types them: --kind wide --rate 0.5" in found.standins


def test_what_a_user_has_to_fill_in_is_left_out(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"README.md": "python fit.py --kind=DATA_SET_NAME --mode train --rate 0.5\n"})
    text = OPTIONS.replace('"--kind"', '"--kind", default="wide"')
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "arguments: as the project types them: --mode train --rate 0.5" in found.standins


def test_nothing_more_is_typed_where_the_rest_of_a_line_may_be_empty(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {})
    text = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--root", required=True)
parser.add_argument("opts", default=None, nargs=argparse.REMAINDER)
given = parser.parse_args()
assert given.opts == []
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)


def test_a_place_without_which_another_file_gives_up(running: Runner, tmp_path: Path) -> None:
    sets = """
        def load(*, data_dir, size):
            if not data_dir:
                raise ValueError("unspecified data directory")
            return data_dir, size
    """
    project(tmp_path, {"sets.py": sets})
    text = """
import argparse
import sets
parser = argparse.ArgumentParser()
for name, value in {"data_dir": "", "kept_dir": "", "size": 64}.items():
    parser.add_argument(f"--{name}", default=value, type=type(value))
given = parser.parse_args()
assert sets.load(data_dir=given.data_dir, size=given.size)[0] and not given.kept_dir
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)


def test_a_value_that_is_called_as_its_option_is_left_out(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"README.md": "python fit.py --kind KIND --mode train --rate 0.5\n"})
    text = OPTIONS.replace('"--kind"', '"--kind", default="wide"')
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "arguments: as the project types them: --mode train --rate 0.5" in found.standins


def test_what_does_something_else_than_train_is_left_out(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"README.md": "python fit.py --mode test --kind wide --rate 0.5\n"})
    text = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="train")
parser.add_argument("--kind")
parser.add_argument("--rate", type=float, default=0.1)
given = parser.parse_args()
assert (given.kind, given.mode, given.rate) == ("wide", "train", 0.5)
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "arguments: as the project types them: --kind wide --rate 0.5" in found.standins


@pytest.mark.parametrize("typed", ["--resume", "--test 1", "--test=True"])
def test_an_option_that_does_something_else_is_not_typed(typed: str, running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"README.md": f"python fit.py {typed}\n"})
    text = """
import argparse
import os
parser = argparse.ArgumentParser()
parser.add_argument("--other_path", action="store", dest="other_path")
parser.add_argument("--resume", action="store_true")
parser.add_argument("--test", default=0)
given = parser.parse_args()
if given.resume or given.test:
    raise SystemExit("there is nothing yet")
def read(place):
    return os.path.basename(place)
name = read(place=given.other_path)
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert not any(one.startswith("arguments: as the project types them") for one in found.standins)


def test_a_required_name_is_the_one_that_the_project_types(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"README.md": "Run `python fit.py --kind wide --root /path/to/data`.\n"})
    text = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--kind", required=True)
parser.add_argument("--root", required=True)
given = parser.parse_args()
assert given.kind == "wide" and given.root.endswith("given/root")
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "argument kind: 'wide'" in found.standins


def test_a_script_that_gives_up_where_nothing_is_typed(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {})
    text = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--show", action="store_true")
parser.add_argument("--width", type=int, default=2)
given = parser.parse_args()
if len(sys.argv) == 1:
    parser.print_help()
    exit()
assert given.width == 2 and not given.show
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert "argument --width: 2" in found.standins


def test_as_many_arguments_as_a_script_wants(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {})
    text = """
import sys
if len(sys.argv) not in [4, 5]:
    sys.exit("usage: fit.py model words epochs")
if len(sys.argv) == 4:
    checked = False
epochs = int(sys.argv[-1])
assert epochs == 2 and len(sys.argv) == 4
"""
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)


PROJECTS: dict[str, tuple[dict[str, str], str, str]] = {
    "a name that its package leaves out": (
        {"parts/__init__.py": "from .one import One\n", "parts/one.py": "class One:\n    pass\n",
         "parts/second.py": "def two():\n    return 2\n"},
        "from parts import One, two\nassert two() == 2\n",
        "import of two: that of parts.second",
    ),
    "an option that names a module which there is not": (
        {"data/__init__.py": "", "data/base_set.py": "", "data/pairs_set.py": "width = 2\n"},
        "import argparse, importlib\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--kind', default='lines')\ngiven = parser.parse_args()\nimport data\n"
        "assert importlib.import_module('data.' + given.kind + '_set').width == 2\n",
        "argument kind: 'pairs'",
    ),
    "a module of data that there is not": (
        {"data/__init__.py": ""},
        "from data.pictures import Pictures\n"
        "loader = torch.utils.data.DataLoader(Pictures('somewhere'), batch_size=2)\n",
        "data.pictures: objects without values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROJECTS)
def test_modules_of_the_project(name: str, running: Runner, tmp_path: Path) -> None:
    files, text, told = PROJECTS[name]
    project(tmp_path, files)
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert told in found.standins, (found.uncaught, found.standins)
    assert steps(found) == 3, (found.uncaught, found.output)


def test_a_network_that_is_not_there_is_not_made_up(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"models/__init__.py": ""})
    text = "from models.nets import Net\nnet = Net()\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 0
    assert found.uncaught is not None and "models.nets is missing" in found.uncaught.message


def test_a_part_of_a_project_that_describes_itself(running: Runner, tmp_path: Path) -> None:
    for name in ("README.md", "part/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("It learns.\n")
    (tmp_path / "shared.py").write_text("width = 2\n")
    found = run(
        running, tmp_path / "part" / "fit.py", program("from shared import *\nassert width == 2\n" + BATCH)
    )
    assert steps(found) == 3, (found.uncaught, found.output)


COMMANDS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--kind", required=True)
parser.add_argument("--width")
commands = parser.add_subparsers(dest="command")
commands.required = True
commands.add_parser("eval").add_argument("picture")
learns = commands.add_parser(COMMAND)
learns.add_argument("--root", required=True)
learns.add_argument("--rate", type=float, default=0.1)
given = parser.parse_args()
kind = given.kind
assert kind in ("wider", "wide"), "there is no " + kind
width = {"narrow": 2, "wide": 3}[given.width]
assert (kind, width, given.rate, given.command) == ("wide", 3, 0.5, COMMAND)
"""


@pytest.mark.parametrize("command", ["train", "go"])
def test_commands_are_given_with_what_the_project_types_for_both_parsers(
    command: str, running: Runner, tmp_path: Path
) -> None:
    """The project shows a kind that the script does not know today."""
    shown = f"python fit.py --kind wide2 --width wide {command} --root somewhere --rate 0.5\n"
    project(tmp_path, {"README.md": shown})
    found = run(running, tmp_path / "fit.py", program(COMMANDS.replace("COMMAND", repr(command)) + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert {"argument kind: 'wide'", "argument command: the one to " + command} <= set(found.standins)


TABLE = """
import os
def read(root):
    assert os.path.exists(root), "no folder " + root
    pictures, table = [], None
    for above, _, names in os.walk(root):
        pictures += [os.path.join(above, name) for name in names if name.endswith(".jpg")]
        for name in names:
            table = os.path.join(above, name) if name == "list_attr_celeba.txt" else table
    assert table is not None, "no table"
    with open(table) as file:
        assert int(file.readline()) == len(pictures) and len(file.readline().split()) == 40
    return pictures
KINDS = {"people": read}
"""


def test_what_a_description_requires_is_what_the_script_looks_up(running: Runner, tmp_path: Path) -> None:
    project(tmp_path, {"kinds/__init__.py": "from .people import KINDS\n", "kinds/people.py": TABLE})
    text = '''
import os
import kinds
from docopt import docopt
given = docopt("""Fit.

Usage:
    fit.py <kind> <the_root>
""")
kind = given["<kind>"]
root = given["<the_root>"]
assert kind in kinds.KINDS, "no kind " + kind
assert os.path.exists(root), "no folder " + root
read = kinds.KINDS[kind]
assert len(read(root)) > 1000
'''
    found = run(running, tmp_path / "fit.py", program(text + BATCH))
    assert steps(found) == 3, (found.uncaught, found.output)
    assert {"argument kind: 'people'", "folder given/the_root: an empty one"} <= set(found.standins)
    assert not any("code that makes it failed" in one for one in found.standins)
