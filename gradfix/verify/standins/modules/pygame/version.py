"""The version whose interface the stand-in has."""

ver, vernum, rev = "2.6.1", (2, 6, 1), ""
SDL = (2, 28, 4)
