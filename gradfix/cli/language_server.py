"""A language server: findings as diagnostics while one writes, and their fixes as quick fixes.

It speaks the Language Server Protocol over standard input and output. Nothing is run: what a fix is worth,
only `gradfix verify` can say.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from gradfix import __version__
from gradfix.cli.framing import Messages
from gradfix.cli.opened import JUPYTER, Opened, OpenNotebook, all_opened, opened
from gradfix.core.codemod import Applicability, Effect
from gradfix.pipeline import driver
from gradfix.pipeline.analysis import problem_of
from gradfix.pipeline.options import Options, Refusal, RequestedOptions
from gradfix.pipeline.results import FileReport, Reported
from gradfix.project import source, traces
from gradfix.project.configuration import Settings
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
_Result = TypeVar("_Result")


@dataclass(eq=False)
class Found:
    """A finding, or what has kept a document from being analysed."""

    data: _Json
    """In the shape of ``check --output-format json``."""
    reported: Reported | None = None
    """``None`` if it is not a finding."""
    others: list[_Json] | None = None
    """The same finding with each other fix that it has, once somebody has asked for them."""

    @property
    def has_choice(self) -> bool:
        """Whether there may be another fix than the one that is chosen."""
        known = self.reported
        return known is not None and any(
            fix != known.fix for fix in (*known.finding.fixes, *known.finding.ways)
        )


class Analysed(NamedTuple):
    """What was found in a version of a document, and what that depends on beside its text."""

    version: int | None = None
    found: Sequence[Found] = ()
    settings: Settings | None = None
    """The configuration; ``None`` if the text alone decides, or there is none."""
    trace: Sequence[bytes] = ()
    """What was read (see :mod:`gradfix.project.traces`)."""


class Server(LanguageServer):
    """What is known of the documents that an editor has open."""

    def __init__(self) -> None:
        # pygls takes a form feed for the end of a line, which no editor does: a change that comes as a range
        # of lines would be made at another place. Whole texts have no such places.
        super().__init__(
            "gradfix",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            notebook_document_sync=types.NotebookDocumentSyncOptions([JUPYTER]),
        )
        self.known: dict[str, Analysed] = {}
        """The last analysis of each file or notebook."""
        # One analysis at a time, beside the thread that talks to the editor.
        usual = threading.stack_size(STACK)
        self._analyst = ThreadPoolExecutor(1)
        self._analyst.submit(int).result()
        threading.stack_size(usual)
        self._analysing: dict[str, tuple[int | None, asyncio.Task[Analysed]]] = {}
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

    def opened(self, uri: str) -> Opened | OpenNotebook:
        """The file that a document is, or the notebook that it is a cell of."""
        return opened(self.workspace, uri)

    async def findings(self, given: Opened | OpenNotebook) -> Sequence[Found]:
        """What is found in a file or notebook as it is now.

        Who asks while the same version is being analysed waits for that.
        """
        known = self.known.get(given.uri)
        if known is not None and known.version == given.version:
            return known.found
        version, task = self._analysing.get(given.uri, (None, None))
        if task is None or version != given.version:
            task = asyncio.create_task(self._analyse(given))
            self._analysing[given.uri] = given.version, task
        return (await task).found

    async def _analyse(self, given: Opened | OpenNotebook) -> Analysed:
        uri, version = given.uri, given.version
        known = Analysed()
        if version is not None and _is_file(uri):
            known = await self._beside(_analysed, given.path, given.text)
        self.known[uri] = known = known._replace(version=version)
        if self._analysing.get(uri, (None, None))[1] is asyncio.current_task():
            del self._analysing[uri]
        return known

    async def _beside(self, work: Callable[..., _Result], *given: object) -> _Result:
        """The result of ``work``, for which the editor need not wait with anything else."""
        return await asyncio.get_running_loop().run_in_executor(self._analyst, work, *given)

    async def settled(self, uri: str) -> bool:
        """Whether a document is still the same after a pause: while somebody types, nothing is analysed."""
        before = self.version_of(uri)
        await asyncio.sleep(PAUSE)
        return before is not None and self.version_of(uri) == before

    def version_of(self, uri: str) -> int | None:
        """The version of a file or notebook; ``None`` if it is not open."""
        return self.opened(uri).version

    async def publish(self, uri: str) -> None:
        """Show what is found in a file or notebook, unless it has changed meanwhile."""
        given = self.opened(uri)
        version = given.version
        found = await self.findings(given)
        if version is None or self.version_of(uri) != version:
            return
        for document in given.documents:
            here = [one.data for one in found if given.part(one.data["cell"]) is document]
            diagnostics = [self.diagnostic(given, one) for one in here]
            shown = types.PublishDiagnosticsParams(document.uri, diagnostics, document.version)
            self.text_document_publish_diagnostics(shown)

    async def refresh(self) -> None:
        """Analyse again what is open and depends on something which has changed: a file that it imports, or
        the configuration."""
        await self._beside(traces.look_again)
        for given in all_opened(self.workspace):
            known = self.known.pop(given.uri, None)
            self._analysing.pop(given.uri, None)
            if known is not None and await self._beside(_still_holds, given.path, known):
                self.known.setdefault(given.uri, known)
            else:
                await self.publish(given.uri)

    def diagnostic(self, given: Opened | OpenNotebook, one: _Json) -> types.Diagnostic:
        """A finding, with its notes."""
        return types.Diagnostic(
            range=self.range(given.part(one["cell"]), one),
            message=one["message"],
            severity=SEVERITIES[one["severity"]],
            code=one["code"],
            code_description=types.CodeDescription(one["url"]) if one["url"] else None,
            source="gradfix",
            related_information=[
                types.DiagnosticRelatedInformation(
                    types.Location(part.uri, self.range(part, note)), note["message"]
                )
                for note in one["notes"]
                for part in [given.part(note["cell"])]
            ],
        )

    async def fixes(self, given: Opened | OpenNotebook, found: Found) -> list[types.CodeAction]:
        """The fix of a finding, and the others that it has, for the version that was looked at."""
        if found.others is None:
            asked = given.path, given.text, found.reported
            found.others = await self._beside(_others, *asked) if found.has_choice else []
        chosen = [] if found.data["fix"] is None else [found.data]
        return [self._fix(given, found, one) for one in (*chosen, *found.others)]

    def _fix(self, given: Opened | OpenNotebook, found: Found, one: _Json) -> types.CodeAction:
        changes = " (changes what is learned)" if one["effect"] == Effect.CHANGES else ""
        return types.CodeAction(
            title=f"gradfix: {one['fix']['message']}{changes}",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(given, found.data)],
            is_preferred=one is found.data and one["fix"]["applicability"] == Applicability.SAFE,
            edit=self.edit(given, one["fix"]["edits"]),
        )

    def suppression(self, given: Opened | OpenNotebook, one: _Json) -> types.CodeAction | None:
        """The comment that silences a finding, if its line has no other comment of gradfix."""
        row = one["location"]["row"]
        line = (*source.split_lines(given.part(one["cell"]).source), "")[row - 1]
        if "# gradfix:" in line or one["code"] not in catalog.load().names:
            return None
        start, end = ({"row": row, "column": column + 1} for column in (len(line.rstrip()), len(line)))
        comment = f"  # gradfix: ignore[{one['code']}]"
        return types.CodeAction(
            title=f"gradfix: ignore {one['code']} on this line",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(given, one)],
            edit=self.edit(
                given,
                [{"cell": one["cell"], "location": start, "end_location": end, "content": comment}],
            ),
        )

    @property
    def resolves(self) -> bool:
        """Whether the editor can ask for the edit of an action when somebody has chosen it."""
        known = self.client_capabilities.text_document
        actions = known.code_action if known is not None else None
        support = actions.resolve_support if actions is not None else None
        return support is not None and "edit" in support.properties

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """An action with its edit: every safe fix at once, if the document is still what it was."""
        asked = cast(_Json, action.data)
        uri, version = asked["uri"], asked["version"]
        given = self.opened(uri)
        if given.version == version:
            edits = await self._beside(_edits_of_all, given.path, given.text)
            if edits and self.version_of(uri) == version:
                action.edit = self.edit(given, edits)
        return action

    def edit(self, given: Opened | OpenNotebook, edits: Sequence[_Json]) -> types.WorkspaceEdit:
        """Changes of a file or notebook, and of no other version of its documents."""
        changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
        for document in given.documents:
            here = [edit for edit in edits if given.part(edit["cell"]) is document]
            made = [types.TextEdit(self.range(document, edit), edit["content"]) for edit in here]
            identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
            changes += [types.TextDocumentEdit(identifier, made)] if made else []
        return types.WorkspaceEdit(document_changes=changes)

    def meets(self, given: Opened | OpenNotebook, one: _Json, uri: str, where: types.Range) -> bool:
        """Whether a finding is in the document ``uri`` of what is open, and there ``where`` is."""
        document = given.part(one["cell"])
        here = self.workspace.get_text_document(uri) is document or document.uri == uri
        return here and _meet(self.range(document, one), where)

    def range(self, document: TextDocument, at: _Json) -> types.Range:
        """A place in the units that the editor counts in."""
        lines = source.split_lines(document.source)
        start, end = (
            types.Position(at[which]["row"] - 1, at[which]["column"] - 1)
            for which in ("location", "end_location")
        )
        return document.position_codec.range_to_client_units(lines, types.Range(start, end))


_requested = RequestedOptions(verify=False, force_exclude=True)
"""What the command line asks for. There is one server in a process."""


def _options(path: str) -> Options | Refusal:
    """The options for a document, by its configuration as it is now."""
    return driver.prepare([path], _requested)


def _is_file(uri: str) -> bool:
    """Whether a document is what a file holds, or will: an editor also shows versions of one, and output."""
    return uri.partition(":")[0] in ("file", "untitled")


def _analysed(path: str, text: str) -> Analysed:
    data = source.encoded(path, text)
    if isinstance(data, bytes) and not source.can_matter(data):
        return Analysed()
    options = _options(path)
    if isinstance(options, Refusal):
        refused = source.Problem(path, options.message)
        (shown,) = json.of_file(FileReport(path, problems=(refused,)))
        return Analysed(found=[Found({**shown, "code": "configuration"})])
    if options.leaves_out(path):
        return Analysed(settings=options.settings)
    if isinstance(data, source.Problem):
        report = FileReport(path, text, problems=(data,))
    else:
        try:
            report = driver.check_text(path, data, options)
        except Exception as error:
            report = FileReport(path, text, problems=(problem_of(path, "the analysis", error),))
    known = [*(None for _ in report.problems), *report.findings]
    found = [Found(one, reported) for one, reported in zip(json.of_file(report), known)]
    return Analysed(None, found, options.settings, traces.trace(os.path.abspath(path)))


def _still_holds(path: str, known: Analysed) -> bool:
    """Whether the same would be found in the same text. (That is never said again of what depends on a file
    that has changed: traces do not forget older answers.)"""
    if any(one.reported is None for one in known.found):
        return False  # What has kept it from being analysed need not do so again.
    if known.settings is None:
        return True
    options = _options(path)
    same = isinstance(options, Options) and options.settings == known.settings
    return same and all(map(traces.holds, known.trace))


def _others(path: str, text: str, chosen: Reported) -> list[_Json]:
    """A finding with each other fix that it has."""
    options, parsed = _options(path), _parsed(path, text)
    if isinstance(options, Refusal) or parsed is None:
        return []
    try:
        return json.of_file(FileReport(path, parsed.text, tuple(driver.other_fixes(parsed, chosen, options))))
    except Exception as error:  # The fix that was chosen is there nevertheless.
        print(f"warning: {problem_of(path, 'the choice of other fixes', error)}", file=sys.stderr)
        return []


def _edits_of_all(path: str, text: str) -> list[_Json]:
    """What all safe fixes change."""
    options, parsed = _options(path), _parsed(path, text)
    if isinstance(options, Refusal) or parsed is None or options.leaves_out(path):
        return []
    repaired = driver.repair(parsed, options)
    return [{**one} for one in json.edits(path, parsed.text, repaired.text)]


def _parsed(path: str, text: str) -> source.Source | None:
    data = source.encoded(path, text)
    parsed = data if isinstance(data, source.Problem) else source.parse(path, data, len(data))
    return None if isinstance(parsed, source.Problem) else parsed


def explanation(one: _Json) -> str:
    """The documentation of a finding's codemod, as Markdown; editors show the message by themselves."""
    codemod = catalog.load().get(one["code"])
    said = f"**{one['code']}** ({one['severity']})\n"
    if isinstance(codemod, str):
        return said
    ways = f"\n**Ways to repair it**\n\n{in_markdown(codemod.ways)}" if len(one["ways"]) > 1 else ""
    return f"{said}\n{in_markdown(codemod.in_short)}{ways}"


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
    async def shown(params: types.DidOpenTextDocumentParams) -> None:
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

    @made.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def notebook_shown(params: types.DidOpenNotebookDocumentParams) -> None:
        await made.publish(params.notebook_document.uri)

    @made.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def notebook_changed(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        for gone in cells.structure.did_close or [] if cells and cells.structure else []:
            made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(gone.uri, []))
        if await made.settled(params.notebook_document.uri):
            await made.publish(params.notebook_document.uri)

    @made.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_closed(params: types.DidCloseNotebookDocumentParams) -> None:
        made.known.pop(params.notebook_document.uri, None)
        for cell in params.cell_text_documents:
            made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(cell.uri, []))

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(params: types.HoverParams) -> types.Hover | None:
        given, uri = made.opened(params.text_document.uri), params.text_document.uri
        here = types.Range(params.position, params.position)
        found = [one.data for one in await made.findings(given) if made.meets(given, one.data, uri, here)]
        if not found:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(map(explanation, found)))
        return types.Hover(content, made.range(given.part(found[0]["cell"]), found[0]))

    kinds = [types.CodeActionKind.QuickFix, FIX_ALL]

    @made.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(kinds, resolve_provider=True))
    async def actions(params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        given = made.opened(uri)
        version = given.version
        if made.known.get(given.uri, Analysed()).version != version and not await made.settled(uri):
            return []  # The editor asks again when it has the next version.
        found = await made.findings(given)
        offered: list[types.CodeAction] = []
        if only is None or _cover(only, types.CodeActionKind.QuickFix):
            here = [one for one in found if made.meets(given, one.data, uri, params.range)]
            offered = [action for one in here for action in await made.fixes(given, one)]
            ignored = [made.suppression(given, one.data) for one in here]
            offered += [action for action in ignored if action is not None]
        if _fixable(found) and (made.resolves if only is None else _cover(only, FIX_ALL)):
            everything = types.CodeAction(
                "gradfix: apply all safe fixes", FIX_ALL, data={"uri": uri, "version": version}
            )
            if made.resolves or (await made.resolve(everything)).edit is not None:
                offered.append(everything)
        return offered if made.version_of(uri) == version else []

    @made.feature(types.CODE_ACTION_RESOLVE)
    async def resolved(action: types.CodeAction) -> types.CodeAction:
        return await made.resolve(action)

    return made


def _cover(kinds: Sequence[str], kind: str) -> bool:
    """Whether a kind of code actions is among ``kinds``, or below one of them, as ``source.fixAll`` is a
    ``source``."""
    return any(kind == one or kind.startswith(f"{one}.") for one in kinds)


def _fixable(found: Sequence[Found]) -> bool:
    fixes = [one.data["fix"] for one in found]
    return any(fix is not None and fix["applicability"] == Applicability.SAFE for fix in fixes)


def _meet(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges have a place in common, if only the end of one, where the cursor may stand."""
    return one.start <= other.end and other.start <= one.end
