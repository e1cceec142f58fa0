"""Where newer versions have what fetches weights."""

from torch.hub import load_state_dict_from_url

__all__ = ["load_state_dict_from_url"]
