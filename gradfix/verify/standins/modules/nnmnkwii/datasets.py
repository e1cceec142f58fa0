"""What a script says of its files, and the features of each of them."""

from __future__ import annotations

from typing import Any

from ...inert import others


class FileDataSource:
    """Says which files there are, and what their features are."""

    def collect_files(self) -> Any:
        """The files, or several lists of what belongs together."""
        raise NotImplementedError

    def collect_features(self, *args: Any) -> Any:
        """The features of one of them."""
        raise NotImplementedError


class Dataset:
    """Something for each number."""

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class FileSourceDataset(Dataset):
    """The features of each file that a source has."""

    def __init__(self, file_data_source: Any) -> None:
        self.file_data_source = file_data_source
        found = file_data_source.collect_files()
        several = isinstance(found, tuple)
        self.collected_files = [tuple(one) for one in zip(*found)] if several else [(one,) for one in found]

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return [self[number] for number in range(*idx.indices(len(self)))]
        return self.file_data_source.collect_features(*self.collected_files[idx])

    def __len__(self) -> int:
        return len(self.collected_files)


__getattr__ = others(__name__)
