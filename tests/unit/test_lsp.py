"""The language server, as an editor talks to it."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from gradfix.cli.framing import LARGEST, Messages

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
SECONDS = 30


class Editor(LanguageClient):
    """What an editor hears of its documents."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.heard: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.heard.put_nowait(params)

    async def told(self) -> list[types.Diagnostic]:
        """The diagnostics that come next."""
        return list((await asyncio.wait_for(self.heard.get(), SECONDS)).diagnostics)


def talk(folder: Path, conversation: Callable[[Editor, str], Awaitable[None]]) -> None:
    """Open a document that wastes work, and go on from there."""

    async def session() -> None:
        editor = Editor()
        await editor.start_io(sys.executable, "-m", "gradfix", "lsp", cwd=folder)
        try:
            await editor.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
            editor.initialized(types.InitializedParams())
            uri = (folder / "train.py").as_uri()
            document = types.TextDocumentItem(uri, "python", 1, WASTEFUL)
            editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
            await conversation(editor, uri)
            await editor.shutdown_async(None)
            editor.exit(None)
        finally:
            await editor.stop()

    asyncio.run(session())


@pytest.mark.timeout(60)
def test_a_finding_is_shown_and_its_fix_offered(tmp_path: Path) -> None:
    async def conversation(editor: Editor, uri: str) -> None:
        (found,) = await editor.told()
        assert (found.code, found.severity, found.source) == (
            "needless-retain-graph",
            types.DiagnosticSeverity.Warning,
            "gradfix",
        )
        # An editor counts in UTF-16, where the sign is two units.
        line = WASTEFUL.splitlines()[8]
        start = len(line[: line.index("loss.backward")].encode("utf-16-le")) // 2
        assert found.range.start == types.Position(8, start)
        asked = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), found.range, types.CodeActionContext([])
        )
        action, ignoring = await editor.text_document_code_action_async(asked) or []
        assert isinstance(action, types.CodeAction) and action.is_preferred and action.edit is not None
        assert isinstance(ignoring, types.CodeAction)
        comment = "  # gradfix: ignore[needless-retain-graph]"
        assert edited(WASTEFUL, ignoring) == WASTEFUL.replace("_graph=True)", f"_graph=True){comment}")
        (change,) = action.edit.document_changes or []
        assert isinstance(change, types.TextDocumentEdit) and change.text_document.version == 1
        (edit,) = change.edits
        assert isinstance(edit, types.TextEdit) and edit.new_text == ""
        units = line.encode("utf-16-le")
        gone = units[2 * edit.range.start.character : 2 * edit.range.end.character].decode("utf-16-le")
        assert gone == "retain_graph=True"
        elsewhere = types.Range(types.Position(1, 0), types.Position(1, 0))
        asked = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), elsewhere, types.CodeActionContext([])
        )
        assert not await editor.text_document_code_action_async(asked)

    talk(tmp_path, conversation)


def edited(text: str, action: types.CodeAction) -> str:
    """A text after the one edit of an action."""
    assert action.edit is not None
    (change,) = action.edit.document_changes or []
    assert isinstance(change, types.TextDocumentEdit)
    (edit,) = change.edits
    lines = [*text.splitlines(keepends=True), ""]

    def offset(at: types.Position) -> int:
        units = lines[at.line].encode("utf-16-le")[: 2 * at.character] if at.line < len(lines) else b""
        return sum(map(len, lines[: at.line])) + len(units.decode("utf-16-le"))

    assert isinstance(edit, types.TextEdit)
    return text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]


@pytest.mark.timeout(60)
def test_a_finding_is_explained_and_all_safe_fixes_are_made_at_once(tmp_path: Path) -> None:
    async def conversation(editor: Editor, uri: str) -> None:
        (found,) = await editor.told()
        document = types.TextDocumentIdentifier(uri)
        hover = await editor.text_document_hover_async(types.HoverParams(document, found.range.start))
        assert hover is not None and isinstance(hover.contents, types.MarkupContent)
        assert "**needless-retain-graph** (warning)" in hover.contents.value
        assert "When not to fix it" in hover.contents.value
        nowhere = types.HoverParams(document, types.Position(1, 0))
        assert await editor.text_document_hover_async(nowhere) is None
        context = types.CodeActionContext([], only=[types.CodeActionKind.SourceFixAll])
        asked = types.CodeActionParams(document, found.range, context)
        (action,) = await editor.text_document_code_action_async(asked) or []
        assert isinstance(action, types.CodeAction) and action.kind == "source.fixAll.gradfix"
        assert edited(WASTEFUL, action) == RIGHT

    talk(tmp_path, conversation)


@pytest.mark.timeout(60)
def test_a_saved_helper_and_a_changed_configuration_refresh_all_documents(tmp_path: Path) -> None:
    async def conversation(editor: Editor, uri: str) -> None:
        assert len(await editor.told()) == 1
        (tmp_path / "pyproject.toml").write_text('[tool.gradfix]\nignore = ["needless-retain-graph"]\n')
        change = types.FileEvent((tmp_path / "pyproject.toml").as_uri(), types.FileChangeType.Created)
        editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
        assert await editor.told() == []
        (tmp_path / "pyproject.toml").unlink()
        helper = types.TextDocumentIdentifier((tmp_path / "helper.py").as_uri())
        editor.text_document_did_save(types.DidSaveTextDocumentParams(helper))
        assert len(await editor.told()) == 1

    talk(tmp_path, conversation)


@pytest.mark.timeout(60)
def test_while_somebody_types_nothing_is_analysed(tmp_path: Path) -> None:
    async def conversation(editor: Editor, uri: str) -> None:
        assert len(await editor.told()) == 1
        asked = []
        for version in range(2, 12):
            editor.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(version, uri),
                    [types.TextDocumentContentChangeWholeDocument(WASTEFUL + "#" * version)],
                )
            )
            whole = types.Range(types.Position(0, 0), types.Position(20, 0))
            request = types.CodeActionParams(
                types.TextDocumentIdentifier(uri), whole, types.CodeActionContext([])
            )
            asked.append(asyncio.ensure_future(editor.text_document_code_action_async(request)))
            await asyncio.sleep(0.05)
        answers = await asyncio.gather(*asked)
        # On a slow machine a pause may be long enough for one of them.
        assert answers[-1] and sum(map(bool, answers)) < 5

    talk(tmp_path, conversation)


def test_it_ends_with_0_after_shutdown_and_exit_and_with_1_otherwise(tmp_path: Path) -> None:
    start = framed(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    stop = framed(method="exit")
    for end, code in [(framed(id=2, method="shutdown") + stop, 0), (stop, 1)]:
        command = [sys.executable, "-m", "gradfix", "lsp"]
        done = subprocess.run(command, cwd=tmp_path, input=start + end, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.timeout(60)
def test_what_is_shown_follows_what_is_written(tmp_path: Path) -> None:
    async def conversation(editor: Editor, uri: str) -> None:
        assert len(await editor.told()) == 1
        for version, text in enumerate([RIGHT, "import torch\nloss.backward(:\n"], 2):
            editor.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(version, uri),
                    [types.TextDocumentContentChangeWholeDocument(text)],
                )
            )
            codes = [one.code for one in await editor.told()]
            assert codes == ([] if text == RIGHT else ["syntax-error"])
        editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        assert await editor.told() == []

    talk(tmp_path, conversation)


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
        [sys.executable, "-m", "gradfix", "lsp"],
        input=start + WRONG["more than can be"] + end,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b'"id": 2' in done.stdout or b'"id":2' in done.stdout
    told = "warning: a message is passed over: it is said to have 99,999,999,999,999,999,999 bytes\n"
    assert done.stderr.decode() == told
