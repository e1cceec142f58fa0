"""Small training scripts whose modules ask for more than the rest of them, and what must be told of them."""

from __future__ import annotations

from tests.standins.programs import program

LATER: dict[str, tuple[str, tuple[str, ...]]] = {
    "functions with decorators of a missing module": (
        program("""
            import inspect
            import nowhere_at_all
            @torch.no_grad()
            @nowhere_at_all.retry(times=3)
            def shown(model, other=2):
                return model.weight.mean()
            class Report:
                @nowhere_at_all.checked
                @staticmethod
                def title(text):
                    return text
                @nowhere_at_all.checked("no plot")
                def __plot(self):
                    assert self
            assert callable(Report.title) and "other" in inspect.signature(shown).parameters
            def batch():
                return torch.ones(2, 3)
        """),
        ("nowhere_at_all",),
    ),
}
