"""Verification by execution: run a script before and after a rewrite and compare the gradients.

``runner`` runs jobs in the user's interpreter, ``recording`` holds what was seen there, ``claims`` compares
recordings. ``verification`` proves rewrites, ``judging`` judges repairs by others.
"""
