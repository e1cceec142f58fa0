"""The language server, as an editor talks to it."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.workspace import TextDocument
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from gradfix.cli import language_server
from gradfix.cli.framing import LARGEST, Messages
from gradfix.cli.opened import Opened
from gradfix.report import addresses

RIGHT = """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    loss, text = net(x).pow(2).mean(), "𝛻"; loss.backward()
    optimizer.step()
"""
WASTEFUL = RIGHT.replace("backward()", "backward(retain_graph=True)")
ADVERSARIAL = """
import torch
from torch import nn

generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
generator_optimizer = torch.optim.Adam(generator.parameters())
critic_optimizer = torch.optim.Adam(critic.parameters())
for real in torch.randn(4, 8, 4):
    fake = generator(torch.randn(8, 2))
    critic_optimizer.zero_grad()
    (critic(fake).mean() - critic(real).mean()).backward()
    critic_optimizer.step()
    generator_optimizer.zero_grad()
    (-critic(fake).mean()).backward()
    generator_optimizer.step()
"""
SERVER = [sys.executable, "-m", "gradfix", "lsp"]
SECONDS = 30
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
EVERYWHERE = types.Range(types.Position(0, 0), types.Position(999, 0))


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER))
async def editor(request: pytest.FixtureRequest, client: LanguageClient) -> AsyncIterator[None]:
    """VS Code, or what a test is parametrized with: one that pytest-lsp knows, or encodings of its own."""
    known = getattr(request, "param", "visual-studio-code")
    if isinstance(known, str):
        capabilities = client_capabilities(known)
    else:
        capabilities = types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=known)
        )
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    begun = await client.initialize_session(types.InitializeParams(capabilities))
    client.units = begun.capabilities.position_encoding or "utf-16"
    yield
    await client.shutdown_session()
    assert client._server.returncode == 0


def open_file(editor: LanguageClient, path: Path | str, text: str = WASTEFUL) -> str:
    uri = path if isinstance(path, str) else path.as_uri()
    document = types.TextDocumentItem(uri, "python", 1, text)
    editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
    return uri


def change(editor: LanguageClient, uri: str, version: int, text: str) -> None:
    identifier = types.VersionedTextDocumentIdentifier(version, uri)
    whole = types.TextDocumentContentChangeWholeDocument(text)
    editor.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [whole]))


async def told(editor: LanguageClient) -> list[types.Diagnostic]:
    """The diagnostics that come next; to be asked for with what brings them, and nothing between."""
    heard = editor.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return list((await asyncio.wait_for(heard, SECONDS)).diagnostics)


async def offered(
    editor: LanguageClient, uri: str, where: types.Range = EVERYWHERE, only: Sequence[str] | None = None
) -> list[types.CodeAction]:
    asked = types.CodeActionParams(
        types.TextDocumentIdentifier(uri), where, types.CodeActionContext([], only)
    )
    found = await editor.text_document_code_action_async(asked) or []
    assert all(isinstance(action, types.CodeAction) for action in found)
    return list(found)


def edited(editor: LanguageClient, text: str, action: types.CodeAction) -> str:
    """A text after an action."""
    (changed,) = action.edit.document_changes
    encoding, size = UNITS[editor.units]
    lines = [*text.splitlines(keepends=True), ""]

    def offset(at: types.Position) -> int:
        within = lines[at.line].encode(encoding)[: size * at.character].decode(encoding)
        return sum(map(len, lines[: at.line])) + len(within)

    for edit in sorted(changed.edits, key=lambda one: offset(one.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


@pytest.mark.timeout(60)
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "editor", ["visual-studio-code", "neovim", "emacs", ["utf-8"], ["utf-32"]], indirect=True, ids=str
)
async def test_a_finding_is_shown_explained_and_repaired(editor: LanguageClient, tmp_path: Path) -> None:
    uri = open_file(editor, tmp_path / "train.py")
    (found,) = await told(editor)
    assert (found.code, found.severity, found.source, found.code_description) == (
        "needless-retain-graph",
        types.DiagnosticSeverity.Warning,
        "gradfix",
        None,
    )
    encoding, size = UNITS[editor.units]
    line = WASTEFUL.splitlines()[8]
    start = len(line[: line.index("loss.backward")].encode(encoding)) // size
    assert found.range.start == types.Position(8, start)
    fix, ignoring, *everything = await offered(editor, uri, found.range)
    assert fix.is_preferred
    assert edited(editor, WASTEFUL, fix) == RIGHT
    comment = "  # gradfix: ignore[needless-retain-graph]"
    assert edited(editor, WASTEFUL, ignoring) == WASTEFUL.replace("_graph=True)", f"_graph=True){comment}")
    for action in everything:  # Its edit is asked for when it is chosen, by editors that know how to.
        assert (action.kind, action.edit) == ("source.fixAll.gradfix", None)
        assert edited(editor, WASTEFUL, await editor.code_action_resolve_async(action)) == RIGHT
    elsewhere = types.Range(types.Position(1, 0), types.Position(1, 0))
    assert {one.kind for one in await offered(editor, uri, elsewhere)} <= {"source.fixAll.gradfix"}
    document = types.TextDocumentIdentifier(uri)
    hover = await editor.text_document_hover_async(types.HoverParams(document, found.range.start))
    assert hover.contents.value.startswith("**needless-retain-graph** (warning)\n")
    assert "When not to fix it" in hover.contents.value
    assert await editor.text_document_hover_async(types.HoverParams(document, types.Position(1, 0))) is None


@pytest.mark.timeout(60)
@pytest.mark.asyncio
async def test_every_way_to_repair_a_finding_is_offered(editor: LanguageClient, tmp_path: Path) -> None:
    uri = open_file(editor, tmp_path / "train.py", ADVERSARIAL)
    (found,) = await told(editor)
    preferred, *others = await offered(editor, uri, found.range, ["quickfix"])
    assert preferred.is_preferred
    assert "critic(fake.detach())" in edited(editor, ADVERSARIAL, preferred)
    moved, restricted, ignoring = others
    assert not any(action.is_preferred for action in others)
    assert moved.diagnostics == preferred.diagnostics == (found,)
    after = edited(editor, ADVERSARIAL, moved)
    assert after.index("generator_optimizer.step()") < after.index("critic_optimizer.zero_grad()")
    assert "backward(inputs=list(critic.parameters()))" in edited(editor, ADVERSARIAL, restricted)
    assert ignoring.title == "gradfix: ignore undetached-fake on this line"
    place = types.HoverParams(types.TextDocumentIdentifier(uri), found.range.start)
    hover = await editor.text_document_hover_async(place)
    assert "Ways to repair it" in hover.contents.value
    assert "reorder: " in hover.contents.value.split("Ways to repair it")[1]


@pytest.mark.timeout(60)
@pytest.mark.asyncio
async def test_what_is_shown_follows_what_is_written_saved_and_configured(
    editor: LanguageClient, tmp_path: Path
) -> None:
    uri = open_file(editor, tmp_path / "train.py")
    assert len(await told(editor)) == 1
    (everything,) = await offered(editor, uri, only=["source.fixAll"])
    versions = count(2)
    for text, code in (
        (RIGHT, None),
        (RIGHT + "loss.backward(:\n", "syntax-error"),
        (WASTEFUL, "needless-retain-graph"),
    ):
        change(editor, uri, next(versions), text)
        assert [one.code for one in await told(editor)] == ([code] if code else [])
    assert (await editor.code_action_resolve_async(everything)).edit is None  # It was for another version.

    def save(path: Path, text: str) -> None:
        path.write_text(text)
        saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        editor.text_document_did_save(saved)

    shown = editor.diagnostics[uri]
    save(tmp_path / "unrelated.py", "import torch\n")
    assert await offered(editor, uri)
    assert editor.diagnostics[uri] is shown  # Nothing has been looked at again.
    helper = tmp_path / "helper.py"
    helper.write_text("def loss_of(net, x):\n    return net(x).pow(2).mean()\n")
    importing = RIGHT.replace("from torch", "from helper import loss_of\nfrom torch")
    change(editor, uri, next(versions), importing.replace("net(x).pow(2).mean()", "loss_of(net, x)"))
    assert await told(editor) == []
    save(helper, helper.read_text().replace("mean()", "mean().detach()"))
    assert [one.code for one in await told(editor)] == ["loss-without-graph"]

    settings = tmp_path / "pyproject.toml"
    event = types.DidChangeWatchedFilesParams(
        [types.FileEvent(settings.as_uri(), types.FileChangeType.Changed)]
    )
    for content, codes in (
        ('ignore = ["loss-without-graph"]', []),
        ('ignore = ["no-such-codemod"]', ["configuration"]),
        ('exclude = ["train.py"]', []),
        ("", ["loss-without-graph"]),
    ):
        settings.write_text(f"[tool.gradfix]\n{content}\n")
        editor.workspace_did_change_watched_files(event)
        assert [one.code for one in await told(editor)] == codes
    editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    assert await told(editor) == []


@pytest.mark.timeout(60)
@pytest.mark.asyncio
async def test_while_somebody_types_nothing_is_analysed(editor: LanguageClient, tmp_path: Path) -> None:
    uri = open_file(editor, tmp_path / "train.py")
    assert len(await told(editor)) == 1
    asked = []
    for version in range(2, 12):
        change(editor, uri, version, WASTEFUL + "#" * version)
        asked.append(asyncio.ensure_future(offered(editor, uri)))
        await asyncio.sleep(0.05)
    answers = await asyncio.gather(*asked)
    # On a slow machine a pause may be long enough for one of them.
    assert answers[-1]
    assert sum(map(bool, answers)) < 5


LATIN = WASTEFUL.replace("𝛻", "é").replace("\n", "# coding: latin-1\n", 1)
STRANGE = {
    "outside of every folder": ("file:///nowhere/at/all/train.py", WASTEFUL),
    "without a file": ("untitled:Untitled-1", WASTEFUL),
    "a path of Windows": ("file:///c%3A/Users/me/train.py", WASTEFUL),
    "characters that are escaped": ("file:///nowhere/caf%C3%A9%20%5B1%5D/train.py", WASTEFUL),
    "a host": ("file://host/share/train.py", WASTEFUL),
    "another encoding": ("file:///nowhere/latin.py", LATIN),
    "form feeds": ("file:///nowhere/form_feed.py", WASTEFUL.replace("net = ", "\f\nnet = ")),
    "lines of Windows": ("file:///nowhere/windows.py", WASTEFUL.replace("\n", "\r\n")),
}


@pytest.mark.timeout(60)
@pytest.mark.asyncio
async def test_no_document_is_too_strange(editor: LanguageClient) -> None:
    for what, (uri, text) in STRANGE.items():
        open_file(editor, uri, text)
        (found,) = await told(editor)
        assert found.code == "needless-retain-graph", what
        fix, *_ = await offered(editor, uri, found.range)
        assert fix.edit.document_changes[0].text_document.uri == uri
        # An editor has no line that ends with a form feed.
        changed = edited(editor, text.replace("\f", "#"), fix)
        assert changed == text.replace("\f", "#").replace("retain_graph=True", ""), what
        (everything,) = await offered(editor, uri, only=["source.fixAll"])
        resolved = await editor.code_action_resolve_async(everything)
        assert edited(editor, text.replace("\f", "#"), resolved) == changed, what
    for uri, text, message in (
        ("git:/nowhere/train.py", WASTEFUL, None),  # An older version, beside the file.
        (
            "file:///nowhere/broken.py",
            "print(:\n",
            None,
        ),  # Others tell of it; there is nothing to differentiate.
        ("file:///nowhere/other.py", LATIN.replace("é", "𝛻"), "'latin-1' codec can't encode character"),
        ("file:///nowhere/unknown.py", LATIN.replace("latin-1", "no-code"), "unknown encoding: no-code"),
    ):
        open_file(editor, uri, text)
        assert [message] * (message is not None) == [
            one.message[: len(message)] for one in await told(editor)
        ]
    missing = types.HoverParams(
        types.TextDocumentIdentifier("file:///nowhere/closed.py"), types.Position(0, 0)
    )
    assert await editor.text_document_hover_async(missing) is None
    assert editor.messages == []


@pytest.mark.timeout(60)
@pytest.mark.asyncio
async def test_folders_of_a_workspace_have_their_own_configuration(
    editor: LanguageClient, tmp_path: Path
) -> None:
    for name, content in (("one", 'ignore = ["needless-retain-graph"]'), ("two", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(f"[tool.gradfix]\n{content}\n")
        folder = types.WorkspaceFolder((tmp_path / name).as_uri(), name)
        added = types.WorkspaceFoldersChangeEvent([folder], [])
        editor.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
        open_file(editor, tmp_path / name / "train.py")
        assert len(await told(editor)) == (name == "two")


def test_a_finding_links_to_its_page_once_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "HOME", "https://forge.example/gradfix")
    (found,) = language_server._analysed("train.py", WASTEFUL).found
    shown = language_server.server().diagnostic(
        Opened(TextDocument("file:///train.py", WASTEFUL)), found.data
    )
    assert shown.code_description is not None
    assert shown.code_description.href.endswith("/docs/codemods.md#needless-retain-graph")


def test_it_ends_with_0_after_shutdown_and_exit_and_with_1_otherwise(tmp_path: Path) -> None:
    start = framed(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    stop = framed(method="exit")
    for end, code in [(framed(id=2, method="shutdown") + stop, 0), (stop, 1)]:
        done = subprocess.run(SERVER, cwd=tmp_path, input=start + end, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (code, b"")


def framed(**message: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


ONE, TWO = framed(id=1), framed(id=2)
WRONG = {
    "more than can be": b"Content-Length: 99999999999999999999\r\n\r\n",
    "more than is read": b"Content-Length: %d\r\n\r\n%b" % (LARGEST + 1, b'{"x": 1}\r\n'),
    "no number that Python reads": b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "less than nothing": b"Content-Length: -1\r\n\r\n{}",
    "nothing": b"Content-Length: 0\r\n\r\n",
    "a body without a header": b"{" + b" " * 70_000 + b"}",
    "a body that is longer": b"Content-Length: 2\r\n\r\n" + b'{"Content-Length: 7\\r\\n": 2}',
    "bytes": bytes(range(256)) * 300,
    "lines": b"\r\n\n\r\n",
}


def bodies(stream: bytes) -> tuple[list[bytes], list[str]]:
    """The bodies of all messages in a stream, read as pygls does, and what was told."""
    told: list[str] = []
    messages, found = Messages(io.BytesIO(stream), told.append), []
    while line := messages.readline():
        length = int(line.removeprefix(b"Content-Length: "))
        assert messages.readline() == b"\r\n"
        found.append(messages.read(length))
    return found, told


@pytest.mark.parametrize("what", WRONG)
def test_a_message_after_what_is_none_is_read(what: str) -> None:
    found, told = bodies(ONE + WRONG[what] + TWO)
    assert [json.loads(body)["id"] for body in found if b"jsonrpc" in body] == [1, 2]
    assert bool(told) == (what in ("more than can be", "more than is read", "no number that Python reads"))


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_a_header_may_be_written_in_other_ways(end: bytes) -> None:
    lines = [b"content-type: application/x; charset=utf-8", b"CONTENT-LENGTH:  2", b"", b"{}"]
    assert bodies(end.join(lines)) == ([b"{}"], [])


@pytest.mark.timeout(60)
def test_the_server_outlives_a_length_that_is_none_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    start = framed(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    end = framed(id=2, method="shutdown", params=None) + framed(method="exit", params=None)
    done = subprocess.run(
        SERVER,
        input=start + WRONG["more than can be"] + end,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b'"id": 2' in done.stdout or b'"id":2' in done.stdout
    told = "warning: a message is passed over: it is said to have 99,999,999,999,999,999,999 bytes\n"
    assert done.stderr.decode() == told


def cell(number: int, text: str = "", language: str = "python") -> types.TextDocumentItem:
    return types.TextDocumentItem(f"vscode-notebook-cell:/a.ipynb#{number}", language, 1, text)


async def shown(editor: LanguageClient, cells: Sequence[types.TextDocumentItem], *codes: list[str]) -> None:
    """Wait until these are shown in the cells."""
    for _ in range(10 * SECONDS):
        known = [editor.diagnostics.get(one.uri) for one in cells]
        if [None if one is None else [found.code for found in one] for one in known] == [*codes]:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(known)


@pytest.mark.timeout(60)
@pytest.mark.asyncio
async def test_the_cells_of_a_notebook_are_one_program(editor: LanguageClient, tmp_path: Path) -> None:
    uri = (tmp_path / "a.ipynb").as_uri()
    head, _, body = WASTEFUL.partition("for x")
    cells = [cell(1, "# Title", "markdown"), cell(2, f"%matplotlib inline\n{head}"), cell(3, f"for x{body}")]
    kinds = [types.NotebookCellKind.Markup, types.NotebookCellKind.Code, types.NotebookCellKind.Code]
    listed = [types.NotebookCell(kind, one.uri) for kind, one in zip(kinds, cells)]
    notebook = types.NotebookDocument(uri, "jupyter-notebook", 1, listed)
    editor.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, cells))
    await shown(editor, cells, [], [], ["needless-retain-graph"])
    fix, ignoring, everything = await offered(editor, cells[2].uri)
    for action in (fix, await editor.code_action_resolve_async(everything)):
        (changed,) = action.edit.document_changes
        assert changed.text_document.uri == cells[2].uri
        assert edited(editor, cells[2].text, action) == cells[2].text.replace("retain_graph=True", "")
    assert "# gradfix: ignore[" in edited(editor, cells[2].text, ignoring)
    assert await offered(editor, cells[1].uri, only=["quickfix"]) == []
    # Of a cell, editors send what has changed alone.
    line = (
        cells[2].text.splitlines().index(next(one for one in cells[2].text.splitlines() if "retain" in one))
    )
    at = cells[2].text.splitlines()[line].index("retain_graph=True")
    encoding, size = UNITS[editor.units]
    at = len(cells[2].text.splitlines()[line][:at].encode(encoding)) // size
    gone = types.Range(types.Position(line, at), types.Position(line, at + len("retain_graph=True")))
    content = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, cells[2].uri),
        [types.TextDocumentContentChangePartial(gone, "")],
    )
    change = types.NotebookDocumentChangeEvent(
        cells=types.NotebookDocumentCellChanges(text_content=[content])
    )
    editor.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(types.VersionedNotebookDocumentIdentifier(2, uri), change)
    )
    await shown(editor, cells, [], [], [])
