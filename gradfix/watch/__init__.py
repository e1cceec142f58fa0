"""A script that runs under watch: what has happened, and what it means."""
