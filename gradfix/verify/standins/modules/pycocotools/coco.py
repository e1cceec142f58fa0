"""The annotations of pictures: boxes, outlines and captions; the real ones where their file is there."""

from __future__ import annotations

import collections
import json
import os
from typing import Any

import numpy
import torch

from ... import content, context, media
from ...inert import others

PICTURES = 32
EACH = 2
"""Annotations of a picture."""
CATEGORIES = tuple(
    number for number in range(1, 91) if number not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
)
"""The numbers of the kinds of things, as COCO has them: 80, with gaps (https://cocodataset.org/#format-data)."""
NAMES = ("person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat")


def made_up(run: context.Run, name: str) -> dict[str, Any]:
    """What the file of this name might hold."""
    side = media.side(run)
    generator = run.generator("coco", content.kin(name))
    places = torch.randint(0, side // 2, (PICTURES, EACH, 2), generator=generator).tolist()
    kinds = torch.randint(0, len(CATEGORIES), (PICTURES, EACH), generator=generator).tolist()
    said = media.text(run, name).splitlines()
    images, annotations = [], []
    for number in range(PICTURES):
        picture = {"id": number + 1, "file_name": f"{number + 1:012d}.jpg", "height": side, "width": side}
        images.append({**picture, "coco_url": "http://example.org/" + str(picture["file_name"])})
        for index, (x, y) in enumerate(places[number]):
            wide = side // 4
            outline = [x, y, x + wide, y, x + wide, y + wide, x, y + wide]
            annotations.append(
                {
                    "id": number * EACH + index + 1,
                    "image_id": number + 1,
                    "category_id": CATEGORIES[kinds[number][index]],
                    "bbox": [float(x), float(y), float(wide), float(wide)],
                    "area": float(wide * wide),
                    "iscrowd": 0,
                    "segmentation": [[float(one) for one in outline]],
                    "caption": said[(number * EACH + index) % len(said)],
                    "keypoints": [x, y, 2] * 17,
                    "num_keypoints": 17,
                }
            )
    names = [*NAMES, *(f"thing {number}" for number in range(len(NAMES), len(CATEGORIES)))]
    categories = [
        {"id": number, "name": one, "supercategory": "thing"} for number, one in zip(CATEGORIES, names)
    ]
    return {"info": {}, "images": images, "annotations": annotations, "categories": categories}


def several(value: Any) -> list[Any]:
    """A list of what may be one."""
    return list(value) if isinstance(value, (list, tuple, set, numpy.ndarray)) else [value]


class COCO:
    """The annotations of a file."""

    def __init__(self, annotation_file: Any = None) -> None:
        self.dataset: dict[str, Any] = {}
        if annotation_file is not None:
            run, path = context.run(), os.fspath(annotation_file)
            if os.path.exists(path):
                with open(path) as file:
                    self.dataset = json.load(file)
            else:
                run.used("content of " + os.path.basename(path), "made-up annotations of pictures")
                self.dataset = made_up(run, os.path.basename(path))
        self.createIndex()

    def createIndex(self) -> None:
        """Put everything in its place."""
        self.anns = {one["id"]: one for one in self.dataset.get("annotations", [])}
        self.imgs = {one["id"]: one for one in self.dataset.get("images", [])}
        self.cats = {one["id"]: one for one in self.dataset.get("categories", [])}
        self.imgToAnns: Any = collections.defaultdict(list)
        self.catToImgs: Any = collections.defaultdict(list)
        for one in self.anns.values():
            self.imgToAnns[one["image_id"]].append(one)
            self.catToImgs[one.get("category_id")].append(one["image_id"])

    def getAnnIds(
        self, imgIds: Any = (), catIds: Any = (), areaRng: Any = (), iscrowd: Any = None
    ) -> list[int]:
        """The annotations of some pictures and kinds."""
        pictures, kinds = several(imgIds), several(catIds)
        return [
            one["id"]
            for one in self.anns.values()
            if (not pictures or one["image_id"] in pictures)
            and (not kinds or one["category_id"] in kinds)
            and (iscrowd is None or one["iscrowd"] == iscrowd)
        ]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[int]:
        """The kinds of some names."""
        names, kinds = several(catNms), several(catIds)
        return [
            number
            for number, one in self.cats.items()
            if (not names or one["name"] in names) and (not kinds or number in kinds)
        ]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[int]:
        """The pictures in which some kinds are."""
        found = set(several(imgIds) or self.imgs)
        for kind in several(catIds):
            found &= set(self.catToImgs[kind])
        return sorted(found)

    def loadAnns(self, ids: Any = ()) -> list[Any]:
        """Some annotations."""
        return [self.anns[one] for one in several(ids)]

    def loadCats(self, ids: Any = ()) -> list[Any]:
        """Some kinds."""
        return [self.cats[one] for one in several(ids)]

    def loadImgs(self, ids: Any = ()) -> list[Any]:
        """Some pictures."""
        return [self.imgs[one] for one in several(ids)]

    def annToMask(self, ann: Any) -> Any:
        """Where in its picture something is: its box."""
        shown = self.imgs[ann["image_id"]]
        found = numpy.zeros((shown["height"], shown["width"]), dtype=numpy.uint8)
        x, y, wide, high = (int(one) for one in ann["bbox"])
        found[y : y + high, x : x + wide] = 1
        return found

    def showAnns(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown."""

    def loadRes(self, *args: Any) -> COCO:
        """The same, as if it were what a network found."""
        return self


__getattr__ = others(__name__)
