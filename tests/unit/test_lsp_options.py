"""The options of `gradfix lsp`, as an editor that starts it with them sees it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

SCRIPT = """\
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


def diagnosed(folder: Path, *options: str) -> list[str]:
    """The codes that are shown of a document in ``folder``."""

    async def session() -> list[str]:
        client = LanguageClient("editor", "1")
        heard: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            heard.put_nowait(params)

        await client.start_io(sys.executable, "-m", "gradfix", "lsp", *options, cwd=folder)
        try:
            await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
            client.initialized(types.InitializedParams())
            document = types.TextDocumentItem((folder / "train.py").as_uri(), "python", 1, SCRIPT)
            client.text_document_did_open(types.DidOpenTextDocumentParams(document))
            shown = await asyncio.wait_for(heard.get(), 30)
            await client.shutdown_async(None)
            client.exit(None)
            return [str(one.code) for one in shown.diagnostics]
        finally:
            await client.stop()

    return asyncio.run(session())


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], ["needless-retain-graph"]),
        (["--config", "other.toml"], []),
        (["--exclude", "train.py"], []),
        (["--select", "stale-forward"], []),
    ],
)
def test_documents_are_looked_at_as_the_options_say(
    tmp_path: Path, options: list[str], shown: list[str]
) -> None:
    (tmp_path / "other.toml").write_text("[tool.gradfix]\nignore = ['needless-retain-graph']\n")
    assert diagnosed(tmp_path, *options) == shown
