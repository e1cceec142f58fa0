"""The same under the name of the second version."""

from . import get_writer, imread, imsave, imwrite, mimsave, mimwrite

__all__ = ["get_writer", "imread", "imsave", "imwrite", "mimsave", "mimwrite"]
