"""A language server: findings as diagnostics while one writes, and their fixes as quick fixes.

It speaks the Language Server Protocol over standard input and output. Nothing is run: what a fix is worth,
only `gradfix verify` can say.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from gradfix import __version__
from gradfix.cli.framing import Messages
from gradfix.core.codemod import Effect
from gradfix.pipeline import driver
from gradfix.pipeline.options import Refusal, RequestedOptions
from gradfix.pipeline.results import FileReport
from gradfix.report import json

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
PAUSE = 0.4
"""Seconds without a change after which a document is looked at again."""

_Json = dict[str, Any]


class Server(LanguageServer):
    """What is known of the documents that an editor has open."""

    def __init__(self) -> None:
        super().__init__("gradfix", __version__)
        self.known: dict[str, tuple[int | None, list[_Json]]] = {}
        """By document, the version that was looked at, and what was found."""
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

    def look_at(self, uri: str) -> list[_Json]:
        """What there is to say of a document as it is now, in the shape of ``check --output-format json``."""
        document = self.workspace.get_text_document(uri)
        known = self.known.get(uri)
        if known is None or known[0] != document.version:
            known = self.known[uri] = document.version, _found(document)
        return known[1]

    def publish(self, uri: str) -> None:
        """Show what there is to say of a document."""
        document = self.workspace.get_text_document(uri)
        diagnostics = [self.diagnostic(document, one) for one in self.look_at(uri)]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics, document.version)
        )

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

    def range(self, document: TextDocument, at: _Json) -> types.Range:
        """A place in the units that the editor counts in."""
        start, end = (
            types.Position(at[which]["row"] - 1, at[which]["column"] - 1)
            for which in ("location", "end_location")
        )
        return document.position_codec.range_to_client_units(document.lines, types.Range(start, end))


def _found(document: TextDocument) -> list[_Json]:
    options = driver.prepare([document.path], RequestedOptions(verify=False))
    if isinstance(options, Refusal):
        place = {"row": 1, "column": 1}
        shown = {"code": "configuration", "message": options.message, "severity": "error", "fix": None}
        return [{**shown, "location": place, "end_location": place, "notes": [], "effect": None}]
    report: FileReport = driver.check_text(
        document.path, document.source.encode("utf-8", "surrogatepass"), options
    )
    return json.of_file(report)


def server() -> Server:
    """A server that waits for nothing but its start."""
    made = Server()

    @made.feature(types.SHUTDOWN)
    def going(params: None) -> None:
        made.may_exit = True

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        made.publish(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        made.known.clear()  # What a file imports may be another one.
        made.publish(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(PAUSE)
        if uri in made.workspace.text_documents and made.workspace.text_documents[uri].version == version:
            made.publish(uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        made.known.pop(uri, None)
        made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @made.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def actions(params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        document = made.workspace.get_text_document(params.text_document.uri)
        wanted = params.range
        return [
            made.quick_fix(document, one)
            for one in made.look_at(document.uri)
            if one["fix"] is not None and _meet(made.range(document, one), wanted)
        ]

    return made


def _meet(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges have a place in common, if only the end of one, where the cursor may stand."""
    return one.start <= other.end and other.start <= one.end
