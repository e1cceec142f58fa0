"""The user's project: its files, its configuration, its checkout, and what of it may be started."""
