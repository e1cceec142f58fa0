"""Frameworks that wrap networks and optimizers, or run the training loop: one module for each kind."""

from gradfix.autograd.semantics.frameworks import deepspeed, lightning, preparing

__all__ = ["deepspeed", "lightning", "preparing"]
