// Which program serves: what the settings name, the selected interpreter, or what is on PATH.
// Nothing here needs VS Code, so that `node --test` can try it.
"use strict";

const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

// What an interpreter needs for `gradfix lsp`. The folder that VS Code has open is no place to import it from:
// -P keeps it out of sys.path.
const ISOLATED = ["-P"];
const PROBE = [...ISOLATED, "-c", "import gradfix, pygls"];
const TIMEOUT = 20_000;

/** Whether an interpreter has gradfix and what its language server needs. */
function hasGradfix(python) {
  return new Promise((resolve) => {
    execFile(python, PROBE, { timeout: TIMEOUT }, (error) => resolve(!error));
  });
}

/** The file that a name stands for on PATH; undefined if there is none. */
function onPath(name, env = process.env, platform = process.platform) {
  const suffixes = platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  const folders = (env.PATH ?? env.Path ?? "").split(path.delimiter).filter((one) => path.isAbsolute(one));
  for (const folder of folders) {
    for (const suffix of suffixes) {
      const file = path.join(folder, name + suffix);
      try {
        fs.accessSync(file, fs.constants.X_OK);
        if (fs.statSync(file).isFile()) return file;
      } catch {
        // The next folder may have it.
      }
    }
  }
  return undefined;
}

/** Whether a program is a Python interpreter, by its name: python, python3, python3.12, pythonw.exe. */
function isPython(program) {
  return /^(python|pypy)[\d.]*w?(\.exe)?$/i.test(program.split(/[\\/]/).pop());
}

/**
 * The command of the server, as { command, args, from }, or { problem }: a sentence for people.
 *
 * `configured` and `args` are the settings, `python` is the selected interpreter, if there is one.
 */
async function findServer({ configured = "", args = [], python, env = process.env, probe = hasGradfix }) {
  const byModule = (command, from) => ({ command, args: [...ISOLATED, "-m", "gradfix", "lsp", ...args], from });
  if (configured) {
    const program = path.isAbsolute(configured) ? configured : onPath(configured, env);
    if (!program || !fs.existsSync(program)) {
      return { problem: `There is no program ${configured}, which the setting gradfix.path names.` };
    }
    if (!isPython(program)) return { command: program, args: ["lsp", ...args], from: "the setting gradfix.path" };
    if (await probe(program)) return byModule(program, "the setting gradfix.path");
    return { problem: `${program}, which the setting gradfix.path names, has no gradfix: ${howToInstall(program)}` };
  }
  if (python && (await probe(python))) return byModule(python, "the selected interpreter");
  const installed = onPath("gradfix", env);
  if (installed) return { command: installed, args: ["lsp", ...args], from: "PATH" };
  const where = python ? `neither in ${python} nor on PATH` : "not on PATH, and no Python interpreter is selected";
  return { problem: `gradfix is ${where}: ${howToInstall(python ?? "python")}` };
}

function howToInstall(python) {
  return `run ${python} -m pip install ".[lsp]" in a checkout of gradfix (Python 3.11 or newer), or say where it is in gradfix.path.`;
}

module.exports = { findServer, isPython, onPath };
