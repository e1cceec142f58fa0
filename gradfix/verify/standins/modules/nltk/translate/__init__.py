"""Measures of translations."""

from . import bleu_score
from .bleu_score import corpus_bleu, sentence_bleu

__all__ = ["bleu_score", "corpus_bleu", "sentence_bleu"]
