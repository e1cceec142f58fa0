"""Files of public data sets in their own formats, known by their names: MNIST's and CIFAR's."""

from __future__ import annotations

import gzip
import pickle
import re
import struct
import sys

import torch

from . import context, media, samples

SHORT = 6000
"""Samples in a file: a tenth of the real one's."""


def known(run: context.Run, name: str) -> bytes | None:
    """The content of a file of a known data set, ``None`` if the name is not that of one."""
    found = re.fullmatch(r"(train|t10k)-(images|labels)[-.]idx[13]-ubyte(\.gz)?", name)
    if found:
        data = digits(run, found[1], found[2])
        return gzip.compress(data, 1) if found[3] else data
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if re.fullmatch(r"data_batch_\d|test_batch", name):
        return colours(run, name, 10, "labels")
    return None


def digits(run: context.Run, part: str, what: str) -> bytes:
    """A file of MNIST: big-endian sizes, then bytes."""
    count = SHORT if part == "train" else SHORT // 6
    if what == "labels":
        values = samples.labels(run, "MNIST" + part, count, 10).to(torch.uint8)
        return struct.pack(">II", 2049, count) + media.raw(values)
    pictures = samples.pictures(run, "MNIST" + part, count, samples.KINDS["MNIST"])
    return struct.pack(">IIII", 2051, count, 28, 28) + media.raw(pictures)


def colours(run: context.Run, name: str, classes: int, key: str) -> bytes:
    """A file of CIFAR: a pickled dictionary with one row of 3,072 bytes for each picture."""
    count = 1000
    pictures = samples.pictures(run, name, count, samples.KINDS["CIFAR10"])
    rows = pictures.permute(0, 3, 1, 2).reshape(count, -1).numpy()
    labels = samples.labels(run, name, count, classes).tolist()
    return pickle.dumps({b"data": rows, key.encode(): labels, b"batch_label": name.encode()}, protocol=2)
