"""Files of public data sets in their own formats, known by their names: MNIST's, CIFAR's, CelebA's, D4RL's,
and vectors of words."""

from __future__ import annotations

import gzip
import pickle
import re
import string
import struct
import sys
from typing import Any

import torch

from . import content, context, environments, media, samples, worlds

ATTRIBUTES = (
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair "
    "Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup "
    "High_Cheekbones Male Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose "
    "Receding_Hairline Rosy_Cheeks Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat "
    "Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young"
)
"""The columns of CelebA's table."""
SHARE = 10
"""Times as many samples as here there are in the real files."""


def short(count: int) -> int:
    """The samples in a file of so many: as many, where the run failed as it insists on that."""
    content.book.shortened |= not content.book.planned("files", "whole")
    return count if content.book.planned("files", "whole") else count // SHARE


def known(run: context.Run, name: str) -> bytes | None:
    """The content of a file of a known data set, ``None`` if the name is not that of one."""
    found = re.fullmatch(r"(train|t10k)-(images|labels)[-.]idx[13]-ubyte(\.gz)?", name)
    if found:
        data = digits(run, found[1], found[2])
        return gzip.compress(data, 1) if found[3] else data
    if name == "list_attr_celeba.txt":
        # A hundredth of the real one's lines: numbers by which a script divides these are divided as well.
        run.shortened |= run.small
        return attributes(run, media.FILES + 2000)
    if (of_words := VECTORS.fullmatch(name)) is not None:
        return vectors(run, name, int(of_words["glove"] or of_words["fasttext"] or 300))
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if re.fullmatch(r"data_batch_\d|test_batch", name):
        return colours(run, name, 10, "labels")
    if re.search(r"-v\d\.pkl$", name) and (offline := worlds.OFFLINE_ID.match(name)) is not None:
        return episodes(run, name, environments.CONTROL[worlds.REAL[offline[1]]])
    return None


VECTORS = re.compile(
    r"glove[\w.-]*?(?<!\d)(?P<glove>\d{2,4})d(?![a-z])[\w.-]*\.txt|"
    r"[\w.-]*?(?:(?<!\d)(?P<fasttext>\d{2,4})d(?![a-z]))?[\w.-]*\.vec"
)
"""Names of files with vectors of words, as those of GloVe and fastText are called
(https://nlp.stanford.edu/projects/glove, https://fasttext.cc/docs/en/english-vectors.html)."""


def vectors(run: context.Run, name: str, size: int) -> bytes:
    """A word and its vector on each line; those of fastText begin with how many of both there are."""
    from . import sizes

    # What the script calls so, and is smaller here, is meant for them.
    size = next((now for kind, now, was in sizes.SMALLER if (kind, was) == ("width", size)), size)
    words = [*media.WORDS, *string.punctuation, *string.ascii_lowercase, *map(str, range(100))]
    words = list(dict.fromkeys([*words, "unk", "<unk>"]))
    values = torch.randn(len(words), size, generator=run.generator("vectors", name)) * 0.4
    rows = [word + "".join(f" {one:.4f}" for one in row) for word, row in zip(words, values.tolist())]
    heading = [f"{len(words)} {size}"] if name.endswith(".vec") else []
    return ("\n".join([*heading, *rows]) + "\n").encode()


def attributes(run: context.Run, count: int, kind: str = ".jpg") -> bytes:
    """CelebA's table: the number of pictures, the names of the attributes, 1 or -1 for each."""
    drawn = torch.randint(0, 2, (count, 40), generator=run.generator("attributes")) * 2 - 1
    rows = [f"{i:03d}{kind} " + " ".join(str(one) for one in row) for i, row in enumerate(drawn.tolist())]
    return "\n".join([str(count), ATTRIBUTES, *rows, ""]).encode()


def boxes(run: context.Run, name: str) -> bytes:
    """What is to be seen in a picture, as Pascal VOC has it: two people."""
    side = media.side(run)
    low = torch.randint(0, side // 2, (2, 2), generator=run.generator("boxes", name))
    high = low + side // 4
    shown = "".join(
        "<object><name>person</name><pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult><bndbox>"
        f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
        for (x, y), (right, bottom) in zip(low.tolist(), high.tolist())
    )
    size = f"<size><width>{side}</width><height>{side}</height><depth>3</depth></size>"
    stem = name.rpartition(".")[0]
    return (
        f"<annotation><folder>VOC</folder><filename>{stem}.jpg</filename>{size}<segmented>0</segmented>"
        f"{shown}</annotation>"
    ).encode()


STEPS = 100
"""The least steps of an episode that was kept; the longest have twice as many."""


def episodes(run: context.Run, name: str, spaces: tuple[int, Any]) -> bytes:
    """One of D4RL's data sets as decision transformers keep it: a pickled list with a dictionary of arrays
    for each episode (https://github.com/kzl/decision-transformer, ``download_d4rl_datasets.py``)."""
    generator, (states, (actions, bound)) = run.generator("episodes", name), spaces
    kept = []
    for count in torch.randint(STEPS, 2 * STEPS, (content.samples(),), generator=generator).tolist():
        seen = torch.randn(count + 1, states, generator=generator)
        done = (torch.rand(count, actions, generator=generator) * 2 - 1) * bound
        ends = torch.arange(count) == count - 1
        held = {"observations": seen[:-1], "next_observations": seen[1:], "actions": done}
        held |= {"rewards": torch.rand(count, generator=generator), "terminals": ends}
        kept.append({key: values.numpy() for key, values in held.items()})
    return pickle.dumps(kept)


def digits(run: context.Run, part: str, what: str) -> bytes:
    """A file of MNIST: big-endian sizes, then bytes."""
    count = short(60000 if part == "train" else 10000)
    if what == "labels":
        values = samples.labels(run, "MNIST" + part, count, 10).to(torch.uint8)
        return struct.pack(">II", 2049, count) + media.raw(values)
    pictures = samples.pictures(run, "MNIST" + part, count, samples.KINDS["MNIST"])
    return struct.pack(">IIII", 2051, count, 28, 28) + media.raw(pictures)


def colours(run: context.Run, name: str, classes: int, key: str) -> bytes:
    """A file of CIFAR: a pickled dictionary with one row of 3,072 bytes for each picture."""
    count = short(10000)
    pictures = samples.pictures(run, name, count, samples.KINDS["CIFAR10"])
    rows = pictures.permute(0, 3, 1, 2).reshape(count, -1).numpy()
    labels = samples.labels(run, name, count, classes).tolist()
    return as_python_2({key: labels, "batch_label": name, "data": rows})


def as_python_2(held: dict[str, Any]) -> bytes:
    """A pickled dictionary with the keys as Python 2 wrote them: texts or bytes, as the reader wants them."""
    found = pickle.dumps(held, protocol=2)
    for key in held:
        short = b"U" + bytes([len(key)]) + key.encode()
        found = found.replace(b"X" + struct.pack("<I", len(key)) + key.encode(), short, 1)
    return found
