"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");

const { findServer, isPython, onPath } = require("../src/server");

const SERVES = ["-P", "-m", "gradfix", "lsp"];
const having = (...pythons) => async (python) => pythons.includes(python);

/** A folder with empty programs of these names. */
function folderWith(t, ...names) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "gradfix-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  for (const name of names) fs.writeFileSync(path.join(folder, name), "", { mode: 0o755 });
  return folder;
}

test("the selected interpreter comes before PATH", async (t) => {
  const folder = folderWith(t, "gradfix");
  const found = await findServer({ python: "/env/bin/python", env: { PATH: folder }, probe: having("/env/bin/python") });
  assert.deepEqual([found.command, found.args], ["/env/bin/python", SERVES]);
});

test("PATH serves where the interpreter has no gradfix, or none is selected", async (t) => {
  const folder = folderWith(t, "gradfix");
  for (const python of ["/env/bin/python", undefined]) {
    const env = { PATH: ["relative", path.join(folder, "missing"), folder].join(path.delimiter) };
    const found = await findServer({ python, args: ["--help"], env, probe: having() });
    assert.deepEqual([found.command, found.args], [path.join(folder, "gradfix"), ["lsp", "--help"]]);
  }
});

test("the setting comes first, and may name an interpreter or the program", async (t) => {
  const folder = folderWith(t, "gradfix", "python3");
  const [program, python] = ["gradfix", "python3"].map((name) => path.join(folder, name));
  const given = { python: "/env/bin/python", probe: having("/env/bin/python", python), env: { PATH: folder } };
  assert.deepEqual((await findServer({ ...given, configured: program })).args, ["lsp"]);
  assert.deepEqual((await findServer({ ...given, configured: python })).args, SERVES);
  assert.equal((await findServer({ ...given, configured: "python3" })).command, python);
});

test("what is missing is said, and how to install it", async (t) => {
  const folder = folderWith(t, "python");
  const env = { PATH: folder };
  const python = path.join(folder, "python");
  const nowhere = await findServer({ env, probe: having() });
  assert.match(nowhere.problem, /not on PATH.*python -m pip install "\.\[lsp\]"/);
  const without = await findServer({ python, env, probe: having() });
  assert.ok(without.problem.includes(`neither in ${python} nor on PATH`));
  const wrong = await findServer({ configured: python, env, probe: having(python + "3") });
  assert.match(wrong.problem, /gradfix\.path names, has no gradfix/);
  assert.match((await findServer({ configured: "/no/such/program", env })).problem, /^There is no program/);
});

test("an interpreter imports nothing from the folder that is open", async (t) => {
  const python = onPath("python3") ?? onPath("python");
  if (!python) return t.skip("there is no Python here");
  const folder = folderWith(t);
  const marks = `open(${JSON.stringify(path.join(folder, "imported"))}, "w")`;
  for (const name of ["gradfix.py", "pygls.py"]) fs.writeFileSync(path.join(folder, name), marks);
  const before = process.cwd();
  process.chdir(folder);
  t.after(() => process.chdir(before));
  await findServer({ python, env: { PATH: "" } });
  assert.ok(!fs.existsSync("imported"));
});

test("interpreters are known by their names", () => {
  for (const name of ["/usr/bin/python3.12", "C:\\env\\python.exe", "python", "pypy3"]) assert.ok(isPython(name), name);
  for (const name of ["/usr/bin/gradfix", "python-wrapper", "C:\\python\\gradfix.exe"]) assert.ok(!isPython(name), name);
});
