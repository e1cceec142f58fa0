"""gradfix finds gradient mistakes in PyTorch training code, rewrites them, and proves each rewrite."""

__version__ = "0.1.0"
