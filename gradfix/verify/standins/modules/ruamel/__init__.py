"""ruamel: its one package is ``yaml``."""
