"""What an editor has open: a file, or a notebook whose cells are documents of their own.

A notebook is put together to the file that would hold it; what is found there goes back to the cells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lsprotocol import types
from pygls import uris
from pygls.workspace import TextDocument, Workspace

JUPYTER = types.NotebookDocumentFilterWithNotebook(
    types.NotebookDocumentFilterNotebookType("jupyter-notebook")
)
"""Of these all cells are wanted, those of text too, so that their numbers are those that people see."""


@dataclass(frozen=True)
class Opened:
    """A file that is open as one document."""

    document: TextDocument

    @property
    def uri(self) -> str:
        return self.document.uri

    @property
    def version(self) -> int | None:
        return self.document.version

    @property
    def path(self) -> str:
        return self.document.path

    @property
    def text(self) -> str:
        """What the file is to hold."""
        return self.document.source

    @property
    def documents(self) -> Sequence[TextDocument]:
        """The documents that findings may be in."""
        return [self.document]

    def part(self, cell: int | None) -> TextDocument:
        """The document that has the lines of a finding."""
        return self.document


@dataclass(frozen=True)
class OpenNotebook:
    """A notebook that is open cell by cell."""

    notebook: types.NotebookDocument
    cells: Sequence[TextDocument]
    """One for each cell."""

    @property
    def uri(self) -> str:
        return self.notebook.uri

    @property
    def version(self) -> int | None:
        return self.notebook.version

    @property
    def path(self) -> str:
        path = uris.to_fs_path(self.notebook.uri) or self.notebook.uri
        # One that was never saved has no name yet.
        return path if path.endswith(".ipynb") else f"{path}.ipynb"

    @cached_property
    def text(self) -> str:
        """A file that holds it."""
        cells = [
            {
                "cell_type": "code" if cell.kind == types.NotebookCellKind.Code else "markdown",
                "metadata": {"vscode": {"languageId": document.language_id or "python"}},
                "source": document.source,
            }
            for cell, document in zip(self.notebook.cells, self.cells)
        ]
        return json.dumps(
            {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=False
        )

    @property
    def documents(self) -> Sequence[TextDocument]:
        return self.cells

    def part(self, cell: int | None) -> TextDocument:
        return self.cells[(cell or 1) - 1]


def opened(workspace: Workspace, uri: str) -> Opened | OpenNotebook:
    """The file that a document is, or the notebook that it is a cell of; what is not open has no version."""
    notebook = workspace.get_notebook_document(notebook_uri=uri) or workspace.get_notebook_document(
        cell_uri=uri
    )
    if notebook is None:
        return Opened(workspace.get_text_document(uri))
    cells = [workspace.get_text_document(cell.document) for cell in notebook.cells]
    for cell in cells:
        # Of cells, editors send what has changed, whatever was agreed on for files.
        cell._is_sync_kind_incremental = True
    return OpenNotebook(notebook, cells)


def all_opened(workspace: Workspace) -> list[Opened | OpenNotebook]:
    """All files and notebooks that are open."""
    notebooks = list(workspace.notebook_documents.values())
    cells = {cell.document for notebook in notebooks for cell in notebook.cells}
    documents = [one for one in workspace.text_documents.values() if one.uri not in cells]
    return [*map(Opened, documents), *(opened(workspace, one.uri) for one in notebooks)]
