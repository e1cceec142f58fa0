"""gradfix finds gradient mistakes in PyTorch training code, rewrites them, and proves each rewrite.

From Python it offers :func:`check_text` and :func:`check_paths` (see :mod:`gradfix.pipeline.api`), which are
loaded when they are first asked for.
"""

# Nothing is imported here, not from the standard library either: `python -m gradfix` comes by before it has
# taken the current folder off the import path, where anything may lie.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradfix.core.codemod import Edit, Finding, Fix
    from gradfix.pipeline.api import FileReport, GradfixError, Report, Reported, check_paths, check_text

__version__ = "0.1.0"
__all__ = [
    "Edit",
    "FileReport",
    "Finding",
    "Fix",
    "GradfixError",
    "Report",
    "Reported",
    "__version__",
    "check_paths",
    "check_text",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("Edit", "Finding", "Fix"):
        from gradfix.core import codemod

        return getattr(codemod, name)
    from gradfix.pipeline import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
