"""What projects state, in each form, and what their scripts import."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from gradfix.environment import distributions, requirements
from gradfix.environment.build import plan
from gradfix.environment.imports import reached
from gradfix.environment.reading import Stated
from gradfix.environment.requirements import LeftOut, Requirement, parse
from gradfix.environment.statements import root_of, stated_for


def stated(root: Path, script: str = "train.py", text: str = "") -> Stated:
    path = root / script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return stated_for(path, root_of(path))


def texts(found: Stated) -> list[str]:
    return [one.text for one in found.requirements]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


# ---------------------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("numpy", "numpy"),
        ("Foo.Bar_baz == 1.0", "foo-bar-baz==1.0"),
        ("numpy (>=1.16, <2)", "numpy>=1.16,<2"),
        ("torch[opt]>=2 ; python_version >= '3.8'", 'torch[opt]>=2 ; python_version >= "3.8"'),
        ("numpy<2,!=1.19.4,>=1.16", "numpy>=1.16,!=1.19.4,<2"),
        ("torch===1.7.1", "torch==1.7.1"),
        ("numpy >= 1.16.*, < 2", "numpy>=1.16.*,<2"),
        ("x[b,a]", "x[a,b]"),
        ("torch==1.4.0+cu92", "torch==1.4.0+cu92"),
        ("x==1.2.*", "x==1.2.*"),
        ("sklearn", "scikit-learn"),
        ("pytorch>=1.0", "torch>=1.0"),
    ],
)
def test_a_requirement_is_taken_apart(line: str, text: str) -> None:
    found = parse(line, "here")
    assert isinstance(found, Requirement) and found.text == text


@pytest.mark.parametrize(
    "line",
    [
        "--index-url http://evil.test",
        "-i http://evil.test",
        "-f .",
        "--no-binary=:all:",
        "git+https://x.test/y.git",
        "https://x.test/y-1.0-py3-none-any.whl",
        "name @ https://x.test/y.whl",
        "name@file:///y",
        "./wheels/y.whl",
        "/y",
        "..",
        "name==1.0 --hash=sha256:0",
        "name --index-url http://evil.test",
        "name; python_version > '3' --index-url x`id`",
        "name; os_name == '# --index-url'",
        "name; colour == 'red'",
        "name===--index-url=x",
        "torch=1.4",
        "two names",
        "name\x00",
        "",
    ],
)
def test_what_is_no_requirement_is_left_out(line: str) -> None:
    assert isinstance(parse(line, "here"), LeftOut)


@pytest.mark.parametrize(
    ("line", "steps"),
    [
        ("numpy", []),
        ("numpy==1.16.2", ["numpy>=1.16.2,<2", "numpy"]),
        ("numpy==1.16.*", ["numpy>=1.16,<2", "numpy"]),
        ("numpy>=1.5,<1.20", ["numpy<2", "numpy"]),
        ("numpy<2", ["numpy"]),
        ("numpy<2.0", ["numpy"]),
        ("numpy>=5", ["numpy"]),
        ("scikit-learn==0.20", ["scikit-learn"]),
        ("torch==1.4.0+cu92", ["torch==1.4.0", "torch"]),
        ("x[a]~=3.1 ; os_name == 'posix'", ["x[a]>=3.1,<4", "x[a]"]),
        ("numpy>=1.16,<2.5", ["numpy<3", "numpy"]),
        ("numpy==1!2.0", ["numpy"]),
        ("numpy>=1.16.*", ["numpy"]),
        ("x==weird", ["x"]),
    ],
)
def test_a_requirement_is_relaxed_step_by_step(line: str, steps: list[str]) -> None:
    found = parse(line, "here")
    assert isinstance(found, Requirement)
    seen = []
    while (looser := requirements.relaxed(found)) is not None:
        assert looser.marker == found.marker
        seen.append(looser.versioned)
        found = looser
    assert seen == steps


# ---------------------------------------------------------------------------- files


def test_metadata_of_the_script_wins(project: Path) -> None:
    write(project, {"requirements.txt": "numpy\n"})
    text = (
        '# /// script\n# requires-python = ">=3.8"\n# dependencies = [\n#   "tqdm<5",\n# ]\n# ///\nimport x\n'
    )
    found = stated(project, text=text)
    assert texts(found) == ["tqdm<5"] and found.python_requires == ">=3.8"
    empty = "# /// script\n# dependencies = []\n# ///\n"
    assert texts(stated(project, "two.py", empty)) == []


def test_pyproject(project: Path) -> None:
    write(
        project,
        {
            "pyproject.toml": """
[project]
requires-python = ">=3.9"
dependencies = ["torch>=2", "x @ git+https://x.test/x", 3]
optional-dependencies = {dev = ["pytest"]}
[tool.poetry.dependencies]
python = "^3.8"
numpy = "^1.21"
pandas = "1.2.*"
scipy = {version = "~1.2", extras = ["a"], markers = "python_version > '3'"}
fork = {git = "https://x.test/fork.git"}
maybe = {version = "*", optional = true}
tqdm = "*"
old = "0.3.1"
zero = "^0.2.3"
[tool.uv]
index-url = "http://evil.test"
""",
        },
    )
    found = stated(project)
    assert texts(found) == [
        "torch>=2",
        "numpy>=1.21,<2",
        "pandas==1.2.*",
        'scipy[a]>=1.2,<1.3 ; python_version > "3"',
        "tqdm",
        "old==0.3.1",
        "zero>=0.2.3,<0.3",
    ]
    assert [one.text for one in found.left_out] == ["x @ git+https://x.test/x", "fork"]
    assert found.python_requires == ">=3.9"


def test_a_pyproject_of_tools_states_nothing(project: Path) -> None:
    write(project, {"pyproject.toml": "[tool.black]\nline-length = 100\n", "requirements.txt": "numpy\n"})
    assert texts(stated(project)) == ["numpy"]
    write(project, {"pyproject.toml": "not [ toml"})
    assert texts(stated(project)) == ["numpy"]


def test_requirements_files(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret\n")
    write(
        project,
        {
            "requirements.txt": """\
# a comment
numpy==1.16.2  # another
torch==1.0 \\
    --hash=sha256:aaaa \\
    --hash=sha256:bbbb
-r more/base.txt
-r ../outside.txt
-r requirements.txt
--index-url http://evil.test
-e .
-e git+https://x.test/y.git#egg=y
""",
            "more/base.txt": "tqdm\n-r ../requirements.txt\n",
            "setup.py": "from setuptools import setup\nsetup(install_requires=['einops'])\n",
            "requirements-dev.txt": "pytest\n",
        },
    )
    found = stated(project)
    assert texts(found) == ["numpy==1.16.2", "torch==1.0", "tqdm", "einops"]
    left = {one.text: one.matters for one in found.left_out}
    assert left == {
        "-r ../outside.txt": True,
        "--index-url http://evil.test": False,
        "-e .": False,
        "git+https://x.test/y.git#egg=y": True,
    }
    assert [path.name for path in found.files] == ["requirements.txt", "base.txt", "setup.py"]


def test_requirements_for_other_purposes_do_not_count(project: Path) -> None:
    for name in ("requirements-dev.txt", "requirements_test.txt", "docs-requirements.txt"):
        (project / name).write_text("wrong\n")
    (project / "requirements-cpu.txt").write_text("right\n")
    (project / "requirements-gpu.txt").write_text("wrong\n")
    assert texts(stated(project)) == ["right"]


def test_a_link_out_of_the_project_is_not_followed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("password\n")
    (project / "requirements.txt").symlink_to(tmp_path / "secrets")
    found = stated(project)
    assert not found.requirements
    assert [(left.origin, left.why) for left in found.left_out] == [
        ("requirements.txt", "it is outside of the project")
    ]


def test_environment_yml(project: Path) -> None:
    write(
        project,
        {
            "environment.yml": """\
name: old
channels:
  - pytorch
dependencies:
  - python=3.7
  - pytorch::pytorch=1.4.0=py3.7_cuda10.1.243_cudnn7.6.3_0   # a comment
  - cudatoolkit=10.1
  - numpy=1.16.2
  - opencv
  - "scipy >=1.2,<2"
  - libgcc-ng=9.1.0=hdf63c60_0
  - tqdm
  - pip
  - pip:
    - einops==0.3
    - git+https://x.test/y.git
  - h5py==2.9.*
prefix: /home/me/old
""",
        },
    )
    found = stated(project)
    assert texts(found) == [
        "torch==1.4.0",
        "numpy==1.16.2.*",
        "opencv-python-headless",
        "scipy>=1.2,<2",
        "tqdm",
        "h5py==2.9.*",
        "einops==0.3",
    ]
    assert {one.text: one.matters for one in found.left_out} == {
        "libgcc-ng=9.1.0=hdf63c60_0": False,
        "git+https://x.test/y.git": True,
    }
    assert found.python_requires == "==3.7.*"


def test_environment_yml_in_other_writings(project: Path) -> None:
    text = "dependencies: [python=3.10, &n numpy=1.20, {pip: [einops, *n, [y]]}, {other: [x]}]\nname: !x y\n"
    write(project, {"environment.yml": text})
    found = stated(project)
    assert texts(found) == ["numpy==1.20.*", "einops"]
    assert [one.text for one in found.left_out] == ["numpy=1.20"]
    assert found.python_requires == "==3.10.*"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "dependencies:\n  - a\n - b\n",
            "it is no YAML: expected <block end>, but found",
        ),
        ("dependencies: [{{ torch }}]\n", "it is no YAML: found unhashable key (line 1"),
        ("dependencies: *nothing\n", "it is no YAML: found undefined alias 'nothing' (line 1, column 15)"),
        ("a: 1\n---\nb: 2\n", "it is no YAML: but found another document (line 2, column 1)"),
        ("name: \x01\n", "it is no YAML: unacceptable character #x0001"),
        (f"dependencies: {'[' * 5000}", "it is no YAML: maximum recursion depth exceeded"),
        ("- numpy\n", "no list of dependencies was found in it"),
        ("dependencies: numpy\n", "no list of dependencies was found in it"),
        ("", "no list of dependencies was found in it"),
    ],
)
def test_an_environment_yml_that_is_none_is_told_of(project: Path, text: str, why: str) -> None:
    write(project, {"environment.yml": text})
    (left,) = stated(project).left_out
    assert left.origin == "environment.yml" and left.why.startswith(why)
    write(project, {"setup.py": "setup(install_requires=['a'])"})
    assert (texts(stated(project)), stated(project).left_out) == (["a"], (left,))


def test_aliases_in_an_environment_yml_do_not_multiply(project: Path) -> None:
    lists = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    maps = "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" for n in range(1, 30))
    start = "l0: &l0 [x]\nm0: &m0 {a: b}\n"
    write(project, {"environment.yml": f"{start}{lists}{maps}dependencies: [numpy, *l29, *m29]\n"})
    assert texts(stated(project)) == ["numpy"]


def test_setup_cfg(project: Path) -> None:
    required = "install_requires =\n  numpy>=1.0\n  # no\n  tqdm; os_name == 'posix'\n"
    write(project, {"setup.cfg": f"[options]\npython_requires = >=3.6\n{required}"})
    found = stated(project)
    assert texts(found) == ["numpy>=1.0", 'tqdm ; os_name == "posix"']
    assert found.python_requires == ">=3.6"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import setuptools\nsetuptools.setup(install_requires=['a', 'b>=1'])", ["a", "b>=1"]),
        ("REQUIRED = ['a']\nMORE = REQUIRED + ['b']\nsetup(install_requires=MORE)", ["a", "b"]),
        ("setup(install_requires='a\\nb')", ["a", "b"]),
        ("setup(install_requires=open('x').read().split() + ['a'])", ["a"]),
        ("setup(install_requires=read())", []),
        ("X = X\nsetup(install_requires=X)", []),
        ("X = ['a']\nX += ['b']\nsetup(install_requires=X)", []),
        ("raise SystemExit('never run')", []),
        ("print 'python 2'", []),
    ],
)
def test_setup_py_is_read_and_never_run(project: Path, text: str, expected: list[str]) -> None:
    write(project, {"setup.py": text})
    assert texts(stated(project)) == expected


def test_pipfile(project: Path) -> None:
    (project / "Pipfile").write_text(
        '[packages]\nnumpy = "==1.2"\ntqdm = "*"\n[dev-packages]\npytest = "*"\n'
    )
    assert texts(stated(project)) == ["numpy==1.2", "tqdm"]


def test_the_nearest_folder_counts(project: Path, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("outside\n")
    assert texts(stated(project)) == []
    write(project, {"requirements.txt": "outer\n", "examples/gan/requirements.txt": "inner\n"})
    assert texts(stated(project, "examples/gan/train.py")) == ["inner"]
    assert texts(stated(project, "examples/vae/train.py")) == ["outer"]
    (project / "examples/gan/requirements.txt").write_text("# nothing\n")
    assert texts(stated(project, "examples/gan/train.py")) == ["outer"]


# ---------------------------------------------------------------------------- imports


def modules(project: Path, script: str = "train.py") -> list[str]:
    path = project / script
    return [one.module for one in reached([path], root_of(path))]


def test_imports_that_a_script_cannot_do_without(project: Path) -> None:
    write(
        project,
        {
            "train.py": """
import os, torch.nn as nn
from typing import TYPE_CHECKING
try:
    import apex
except ImportError:
    import fallback
try:
    import cupy
except (ModuleNotFoundError, OSError):
    cupy = None
try:
    import needed
except ValueError:
    pass
if TYPE_CHECKING:
    import pandas
else:
    import polars
def main():
    import wandb
    from google.protobuf import text_format
    from mpl_toolkits.mplot3d import Axes3D
""",
        },
    )
    assert modules(project) == [
        "fallback",
        "google.protobuf",
        "mpl_toolkits.mplot3d",
        "needed",
        "polars",
        "torch",
        "wandb",
    ]


def test_the_projects_own_modules_are_followed(project: Path) -> None:
    write(
        project,
        {
            "scripts/train.py": "import sys; sys.path.append('../lib')\nimport helper, models.net\n"
            "from core import losses\nfrom datasets import load_dataset\nimport deep_inside\n",
            "scripts/helper.py": "import einops\nimport helper\n",
            "models/__init__.py": "from .blocks import *\n",
            "models/blocks.py": "from . import attention\n",
            "models/attention.py": "import timm\n",
            "models/net.py": "import scipy\n",
            "lib/core/losses.py": "import kornia\n",
            "models/unused.py": "import wandb\n",
            "a/b/deep_inside.py": "import plotly\n",
            "datasets/download.py": "",
        },
    )
    # A folder `datasets` that is no package is not what load_dataset comes from.
    assert modules(project, "scripts/train.py") == ["datasets", "einops", "kornia", "scipy", "timm"]


def test_unreadable_files_are_passed_over(project: Path) -> None:
    write(project, {"train.py": "import two, torch\n", "two.py": "print 'two'\n"})
    assert modules(project) == ["torch"]


def test_what_is_stated_covers_imports_and_the_rest_is_added(project: Path) -> None:
    write(
        project,
        {
            "train.py": "import cv2, PIL, sklearn, apex, odd, known\n",
            "requirements.txt": "opencv-python==4.1\nscikit-learn\nknown\n",
        },
    )
    made = plan([project / "train.py"])
    assert [one.text for one in made.requirements] == [
        "opencv-python==4.1",
        "scikit-learn",
        "known",
        "pillow",
    ]
    assert {one.module.module: one.distribution for one in made.imports} == {
        "cv2": "opencv-python",
        "PIL": "pillow",
        "sklearn": "scikit-learn",
        "apex": "",
        "odd": "",
        "known": "known",
    }


def test_of_a_folder_the_scripts_that_differentiate_count(project: Path) -> None:
    write(project, {"train.py": "import tqdm\nloss.backward()\n", "docs/conf.py": "import sphinx_thing\n"})
    made = plan([project])
    assert [path.name for path in made.scripts] == ["train.py"]
    assert [one.module.module for one in made.imports] == ["tqdm"]


def test_tables_of_distributions_hold_distributions() -> None:
    assert all(distributions.SUPPLIERS.values())
    for name in {*distributions.WELL_KNOWN, *sum(distributions.SUPPLIERS.values(), ())}:
        assert canonicalize_name(name) == name
    assert not {*distributions.NEVER} & {*distributions.SUPPLIERS}
    assert distributions.suppliers("cv2")[0] == "opencv-python-headless"
    assert distributions.suppliers("unheard_of") == ()
