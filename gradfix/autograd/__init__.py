"""The static model of autograd: syntax trees in, what a training step does to gradients out."""

from gradfix.autograd.training_step import Program, analyze

__all__ = ["Program", "analyze"]
