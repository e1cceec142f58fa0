"""Codemods of one's own: the first files of one, and the programs that it is held to."""
