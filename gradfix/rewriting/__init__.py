"""Edits to new source text, and patches."""
