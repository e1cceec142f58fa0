"""The bot: pull requests with proved rewrites, in two phases that share only a file.

``plan`` runs the code of the repository and holds no token; ``publish`` holds the token and runs nothing of
the repository. Everything that ``publish`` writes, it has computed itself from the base branch.
"""
