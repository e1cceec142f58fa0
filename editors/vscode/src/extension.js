// The client of `gradfix lsp` in VS Code.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { findServer } = require("./server");

const PYTHON = "ms-python.python";
const SELECTOR = [
  { language: "python", scheme: "file" },
  { language: "python", scheme: "untitled" },
  { language: "python", notebook: "jupyter-notebook" },
];

let client;
let log;
let turn = Promise.resolve();

async function activate(context) {
  log = vscode.window.createOutputChannel("gradfix", { log: true });
  const { registerCommand } = vscode.commands;
  context.subscriptions.push(
    log,
    registerCommand("gradfix.restart", restart),
    registerCommand("gradfix.showLog", () => log.show()),
    registerCommand("gradfix.fixAll", () =>
      vscode.commands.executeCommand("editor.action.sourceAction", { kind: "source.fixAll.gradfix", apply: "first" }),
    ),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("gradfix.path") || event.affectsConfiguration("gradfix.args")) restart();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
  );
  const environments = (await pythonExtension())?.environments;
  if (environments) {
    context.subscriptions.push(environments.onDidChangeActiveEnvironmentPath(restart));
  }
  await restart();
}

/** Start the server anew, one start after the other. */
function restart() {
  turn = turn.then(stop).then(start).catch((error) => log.error(error));
  return turn;
}

async function start() {
  const settings = vscode.workspace.getConfiguration("gradfix");
  const found = await findServer({
    configured: settings.get("path", ""),
    args: settings.get("args", []),
    python: await selectedInterpreter(),
  });
  if (found.problem) {
    log.error(found.problem);
    tell(found.problem);
    return;
  }
  log.info(`${found.command} ${found.args.join(" ")} (from ${found.from})`);
  const server = { command: found.command, args: found.args, options: { cwd: firstFolder() } };
  client = new LanguageClient("gradfix", "gradfix", server, { documentSelector: SELECTOR, outputChannel: log });
  await client.start();
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.dispose();
}

async function tell(problem) {
  const chosen = await vscode.window.showErrorMessage(problem, "Settings", "Try Again");
  if (chosen === "Settings") vscode.commands.executeCommand("workbench.action.openSettings", "gradfix");
  if (chosen === "Try Again") restart();
}

async function pythonExtension() {
  const extension = vscode.extensions.getExtension(PYTHON);
  return extension?.isActive ? extension.exports : extension?.activate();
}

async function selectedInterpreter() {
  const environments = (await pythonExtension())?.environments;
  if (!environments) return undefined;
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const chosen = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
  return chosen?.executable?.uri?.fsPath;
}

function firstFolder() {
  return vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file")?.uri.fsPath;
}

module.exports = { activate, deactivate: stop };
