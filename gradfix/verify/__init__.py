"""Verification by execution: run a script before and after a rewrite and compare the gradients.

``probe`` runs in the user's interpreter, ``recording`` is what it saw, ``runner`` runs and judges.
"""
