"""A language server: findings as diagnostics while one writes, and their fixes as quick fixes.

It speaks the Language Server Protocol over standard input and output. Nothing is run: what a fix is worth,
only `gradfix verify` can say.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from gradfix import __version__
from gradfix.cli.framing import Messages
from gradfix.core.codemod import Effect
from gradfix.pipeline import driver
from gradfix.pipeline.options import Options, Refusal, RequestedOptions
from gradfix.pipeline.results import FileReport
from gradfix.project import source
from gradfix.report import json
from gradfix.report.documentation import in_markdown
from gradfix.rules import catalog

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
PAUSE = 0.4
"""Seconds without a change after which a document is analysed again."""
STACK = 64 << 20
"""Bytes for the stack of the thread that analyses: the model recurses as deep as the program does."""
CONFIGURATION = "**/pyproject.toml"
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.gradfix"

_Json = dict[str, Any]


class Server(LanguageServer):
    """What is known of the documents that an editor has open."""

    def __init__(self) -> None:
        super().__init__("gradfix", __version__)
        self.known: dict[str, tuple[int | None, list[_Json]]] = {}
        """By document, the version that was analysed, and what was found."""
        # One analysis at a time, beside the thread that talks to the editor.
        usual = threading.stack_size(STACK)
        self._analyst = ThreadPoolExecutor(1)
        self._analyst.submit(int).result()
        threading.stack_size(usual)
        self._analysing: dict[str, tuple[int | None, asyncio.Task[list[_Json]]]] = {}
        self.may_exit = False
        """Whether the editor has said that it is going to end it."""

    def serve(self) -> int:
        """Talk to an editor over standard input and output until it has gone; the exit code."""
        # Whatever else prints something is not to end up between two messages.
        output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        incoming = Messages(sys.stdin.buffer, lambda line: print(f"warning: {line}", file=sys.stderr))
        self.start_io(cast(BinaryIO, incoming), output)
        return 0 if self.may_exit else 1

    async def findings(self, uri: str) -> list[_Json]:
        """What is found in a document as it is now, in the shape of ``check --output-format json``.

        Who asks while the same version is being analysed waits for that.
        """
        document = self.workspace.get_text_document(uri)
        known = self.known.get(uri)
        if known is not None and known[0] == document.version:
            return known[1]
        version, task = self._analysing.get(uri, (None, None))
        if task is None or version != document.version:
            task = asyncio.create_task(self._analyse(uri, document.version, document.path, document.source))
            self._analysing[uri] = document.version, task
        return await task

    async def _analyse(self, uri: str, version: int | None, path: str, text: str) -> list[_Json]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._analyst, _found, path, text)
        self.known[uri] = version, found
        if self._analysing.get(uri, (None, None))[1] is asyncio.current_task():
            del self._analysing[uri]
        return found

    async def settled(self, uri: str) -> bool:
        """Whether a document is still the same after a pause: while somebody types, nothing is analysed."""
        before = self.version_of(uri)
        await asyncio.sleep(PAUSE)
        return before is not None and self.version_of(uri) == before

    def version_of(self, uri: str) -> int | None:
        """The version of an open document."""
        document = self.workspace.text_documents.get(uri)
        return None if document is None else document.version

    async def publish(self, uri: str) -> None:
        """Show what is found in a document, unless it has changed meanwhile."""
        version = self.version_of(uri)
        found = await self.findings(uri)
        if version is None or self.version_of(uri) != version:
            return
        document = self.workspace.get_text_document(uri)
        diagnostics = [self.diagnostic(document, one) for one in found]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    async def refresh(self) -> None:
        """Analyse all open documents again: a file that they import, or the configuration, has changed."""
        self.known.clear()
        self._analysing.clear()
        for uri in list(self.workspace.text_documents):
            await self.publish(uri)

    def diagnostic(self, document: TextDocument, one: _Json) -> types.Diagnostic:
        """A finding, with its notes."""
        return types.Diagnostic(
            range=self.range(document, one),
            message=one["message"],
            severity=SEVERITIES[one["severity"]],
            code=one["code"],
            source="gradfix",
            related_information=[
                types.DiagnosticRelatedInformation(
                    types.Location(document.uri, self.range(document, note)), note["message"]
                )
                for note in one["notes"]
            ],
        )

    def quick_fix(self, document: TextDocument, one: _Json) -> types.CodeAction:
        """The fix of a finding, for the version of the document that was looked at."""
        edits = [types.TextEdit(self.range(document, edit), edit["content"]) for edit in one["fix"]["edits"]]
        identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        safe = one["fix"]["applicability"] == "safe"
        changes = " (changes what is learned)" if one["effect"] == Effect.CHANGES else ""
        return types.CodeAction(
            title=f"gradfix: {one['fix']['message']}{changes}",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(document, one)],
            is_preferred=safe,
            edit=types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, edits)]),
        )

    def suppression(self, document: TextDocument, one: _Json) -> types.CodeAction | None:
        """The comment that silences a finding, if its line has no other comment of gradfix."""
        row = one["location"]["row"] - 1
        line = document.lines[row].rstrip("\r\n") if row < len(document.lines) else ""
        if "# gradfix:" in line or one["code"] not in catalog.load().names:
            return None
        end = len(line.rstrip())
        place = types.Range(types.Position(row, end), types.Position(row, len(line)))
        place = document.position_codec.range_to_client_units(document.lines, place)
        edit = types.TextEdit(place, f"  # gradfix: ignore[{one['code']}]")
        identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.CodeAction(
            title=f"gradfix: ignore {one['code']} on this line",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(document, one)],
            edit=types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [edit])]),
        )

    async def fix_all(self, document: TextDocument) -> types.CodeAction | None:
        """Every safe fix at once, if there is any."""
        loop = asyncio.get_running_loop()
        fixed = await loop.run_in_executor(self._analyst, _fixed, document.path, document.source)
        if fixed is None or self.version_of(document.uri) != document.version:
            return None
        lines = document.lines
        end = types.Position(len(lines), 0)
        edit = types.TextEdit(types.Range(types.Position(0, 0), end), fixed)
        identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.CodeAction(
            title="gradfix: apply all safe fixes",
            kind=FIX_ALL,
            edit=types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [edit])]),
        )

    def range(self, document: TextDocument, at: _Json) -> types.Range:
        """A place in the units that the editor counts in."""
        start, end = (
            types.Position(at[which]["row"] - 1, at[which]["column"] - 1)
            for which in ("location", "end_location")
        )
        return document.position_codec.range_to_client_units(document.lines, types.Range(start, end))


_requested = RequestedOptions(verify=False, force_exclude=True)
"""What the command line asks for. There is one server in a process."""


def _options(path: str) -> Options | Refusal:
    """The options for a document, by its configuration as it is now."""
    return driver.prepare([path], _requested)


def _found(path: str, text: str) -> list[_Json]:
    options = _options(path)
    if isinstance(options, Refusal):
        place = {"row": 1, "column": 1}
        shown = {"code": "configuration", "message": options.message, "severity": "error", "fix": None}
        return [{**shown, "location": place, "end_location": place, "notes": [], "effect": None}]
    if options.leaves_out(path):
        return []
    report: FileReport = driver.check_text(path, text.encode("utf-8", "surrogatepass"), options)
    return json.of_file(report)


def _fixed(path: str, text: str) -> str | None:
    """The text with all safe fixes; None if there are none."""
    options = _options(path)
    if isinstance(options, Refusal) or options.leaves_out(path):
        return None
    parsed = source.parse(path, text.encode("utf-8", "surrogatepass"), options.settings.max_file_size)
    if not isinstance(parsed, source.Source):
        return None
    after = driver.repair(parsed, options).after.decode("utf-8", "surrogatepass")
    return after if after != text else None


def explanation(one: _Json) -> str:
    """A finding and the documentation of its codemod, as Markdown."""
    codemod = catalog.load().get(one["code"])
    said = f"**{one['code']}** ({one['severity']}): {one['message']}\n"
    return said if isinstance(codemod, str) else f"{said}\n---\n\n{in_markdown(codemod.in_short)}"


def server(requested: RequestedOptions = _requested) -> Server:
    """A server that waits for nothing but its start, for documents under what is ``requested``."""
    global _requested
    _requested = requested
    made = Server()

    @made.feature(types.SHUTDOWN)
    def going(params: None) -> None:
        made.may_exit = True

    @made.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        workspace = made.client_capabilities.workspace
        files = workspace.did_change_watched_files if workspace is not None else None
        if files is not None and files.dynamic_registration:
            watched = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(CONFIGURATION)])
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = types.Registration("gradfix-configuration", method, watched)
            await made.client_register_capability_async(types.RegistrationParams([registration]))

    @made.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def configured(params: types.DidChangeWatchedFilesParams) -> None:
        await made.refresh()

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await made.publish(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await made.refresh()  # Other documents may import this one.

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        if await made.settled(params.text_document.uri):
            await made.publish(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        made.known.pop(uri, None)
        made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(params: types.HoverParams) -> types.Hover | None:
        document = made.workspace.get_text_document(params.text_document.uri)
        here = types.Range(params.position, params.position)
        found = [one for one in await made.findings(document.uri) if _meet(made.range(document, one), here)]
        if not found:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(map(explanation, found)))
        return types.Hover(content, made.range(document, found[0]))

    @made.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix, FIX_ALL])
    )
    async def actions(params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        version = made.version_of(uri)
        if (uri not in made.known or made.known[uri][0] != version) and not await made.settled(uri):
            return []  # The editor asks again when it has the next version.
        document = made.workspace.get_text_document(uri)
        if only is not None and any(_covers(kind, FIX_ALL) for kind in only):
            everything = await made.fix_all(document)
            return [everything] if everything is not None else []
        here = [
            one
            for one in await made.findings(uri)
            if _meet(made.range(document, one), params.range) and made.version_of(uri) == version
        ]
        fixes = [made.quick_fix(document, one) for one in here if one["fix"] is not None]
        ignored = [action for one in here if (action := made.suppression(document, one)) is not None]
        return [*fixes, *ignored]

    return made


def _covers(kind: str, of: str) -> bool:
    """Whether a kind of code actions is another one, or one above it: ``source.fixAll`` has several."""
    return of == kind or of.startswith(f"{kind}.")


def _meet(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges have a place in common, if only the end of one, where the cursor may stand."""
    return one.start <= other.end and other.start <= one.end
