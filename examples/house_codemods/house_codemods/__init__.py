"""Codemods of our own for gradfix."""
