"""A script that writes and removes files does under the overlay what it does in plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradfix.verify.jobs import Job

ACTIONS = {
    "touch": "Path('fresh').touch(); print(Path('fresh').exists(), sorted(os.listdir()))",
    "an exclusive open": "open('real/a.txt', 'x')",
    "append": "open('real/a.txt', 'a').write('more'); print(open('real/a.txt').read())",
    "read and write": """
with open('real/a.txt', 'r+') as file: file.write('X')
print(open('real/a.txt').read())
""",
    "removed": "os.remove('real/a.txt'); print(os.path.exists('real/a.txt'), os.listdir('real'))",
    "removed, and opened in vain": """
os.remove('real/a.txt')
try: open('real/a.txt', 'r+')
except FileNotFoundError as error: print(error.filename)
print(os.path.exists('real/a.txt'))
""",
    "a folder that is not empty": "os.rmdir('real')",
    "a folder as a file": "os.remove('real')",
    "a file as a folder": "os.mkdir('real/a.txt/x')",
    "a folder that is opened to write": "open('real', 'w')",
    "a file over a folder": "open('n', 'w').close(); os.replace('n', 'real')",
    "a tree is removed": """
open('real/a.txt', 'w').write('changed')
shutil.rmtree('real')
print(os.path.exists('real'), os.path.exists('real/a.txt'))
os.makedirs('real'); print(os.listdir('real'))
""",
    "a tree is moved": """
open('real/new', 'w').write('n')
os.rename('real', 'moved')
print(sorted(os.listdir('moved')), os.path.exists('real'), open('moved/deep/b.txt').read())
os.makedirs('real'); print(os.listdir('real'))
""",
    "a tree is copied": "shutil.copytree('real', 'copy'); print(sorted(os.walk('copy')))",
    "a walk over both": """
os.makedirs('real/more'); open('real/more/c.txt', 'w').close()
print([(top, sorted(inner), sorted(names)) for top, inner, names in sorted(os.walk('real'))])
print(sorted(map(str, Path('real').rglob('*.txt'))), sorted(glob.glob('real/**/*.txt', recursive=True)))
print(sorted(entry.path for entry in os.scandir('real')))
""",
    "a working directory of its own": """
os.makedirs('out/in'); os.chdir('out'); print(open('../numbers.txt').read(), os.path.basename(os.getcwd()))
os.chdir('in'); open('x', 'w').close(); os.chdir('../..'); print(os.listdir('out/in'), os.path.exists('real'))
""",
    "a working directory of both": """
open('real/new', 'w').close(); os.chdir('real'); print(open('a.txt').read(), sorted(os.listdir()))
open('newer', 'w').close(); print(sorted(os.listdir('.')), os.path.exists('../real/newer'))
""",
    "names with colons": """
open('t1:23', 'w').write('1'); open('t12:3', 'w').write('2')
print(open('t1:23').read(), sorted(os.listdir()))
""",
    "a link to what comes later": """
os.symlink('m.pt', 'best.pt'); print(os.path.islink('best.pt'), os.path.exists('best.pt'))
open('m.pt', 'w').write('w'); print(open('best.pt').read())
""",
    "a folder that is gone": "shutil.rmtree('real'); os.listdir('real')",
    "what is saved": """
import numpy, torch
numpy.savetxt('real/t.txt', [1.0]); numpy.save('real/n.npy', [2.0]); torch.save({'a': 3}, 'real/m.pt')
print(numpy.loadtxt('real/t.txt'), numpy.load('real/n.npy'), torch.load('real/m.pt'))
print(sorted(os.listdir('real')))
""",
    "archives": """
import tarfile, zipfile
with tarfile.open('all.tar', 'w') as file: file.add('real')
with zipfile.ZipFile('all.zip', 'w') as file: file.write('numbers.txt')
print(sorted(tarfile.open('all.tar').getnames()), zipfile.ZipFile('all.zip').namelist())
""",
}
HEAD = """
import glob, os, shutil
from pathlib import Path
try:
"""
TAIL = """
except OSError as error:
    print(type(error).__name__, error.errno)
"""


def program(action: str) -> str:
    lines = action.strip("\n").split("\n")
    return HEAD + "".join(f"    {line}\n" for line in lines) + TAIL


def project(folder: Path) -> Path:
    (folder / "real" / "deep").mkdir(parents=True)
    (folder / "real" / "a.txt").write_text("abc")
    (folder / "real" / "deep" / "b.txt").write_text("b")
    (folder / "numbers.txt").write_text("12")
    (folder / "pyproject.toml").touch()
    return folder


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, sharing: Any) -> dict[str, str]:
    """What each program prints under the overlay, in a project that has to stay as it is."""
    folder = project(tmp_path_factory.mktemp("overlaid"))
    before = sorted(os.walk(folder))
    jobs = [Job(folder / "train.py", program(action)) for action in ACTIONS.values()]
    found = sharing.run(jobs)
    assert sorted(os.walk(folder)) == before and (folder / "real" / "a.txt").read_text() == "abc"
    return {name: one.output + str(one.uncaught or "") for name, one in zip(ACTIONS, found)}


@pytest.mark.parametrize("name", ACTIONS)
def test_it_is_as_in_plain_python(name: str, outputs: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", program(ACTIONS[name])]
    plain = subprocess.run(command, cwd=project(tmp_path), capture_output=True, text=True, check=True)
    assert outputs[name] == plain.stdout
