"""Environments for the scripts that gradfix runs: what they need, installed from wheels by uv, and kept."""
