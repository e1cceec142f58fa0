"""Small training scripts over what is seen: pictures, and files with a number for each of their pixels."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

SEEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "how far pixels move": (
        program(
            """
            import glob
            import numpy as np
            from PIL import Image
            def moved(name):
                with open(name, "rb") as file:
                    assert np.fromfile(file, np.float32, count=1)[0] == 202021.25
                    wide, high = np.fromfile(file, np.int32, count=2)
                    return np.fromfile(file, np.float32).reshape(high, wide, 2)
            names = sorted(glob.glob("pairs/*_flow.flo"))
            assert len(names) > 8 and names[0].endswith("000_flow.flo")
            first, other = (moved(one) for one in names[:2])
            picture = np.array(Image.open("pairs/000_img1.ppm"))
            assert first.shape[:2] == picture.shape[:2] and (first != other).any()
            models = [torch.nn.Conv2d(2, 1, 3)]
            def loss():
                return models[0](torch.from_numpy(first).permute(2, 0, 1)[None]).mean()
            """,
            LOOP,
        ),
        ("folder pairs", "file pairs/*_img*.ppm"),
    ),
    "how far away pixels are": (
        program(
            """
            import numpy as np
            def held(name):
                with open(name, "rb") as file:
                    kind = file.readline().decode().strip()
                    wide, high = map(int, file.readline().decode().split())
                    assert kind in ("PF", "Pf") and float(file.readline().decode()) < 0
                    values = np.fromfile(file, "<f")
                    return values.reshape(high, wide, 3) if kind == "PF" else values.reshape(high, wide)
            away, moves = held("scenes/disparity/0006.pfm"), held("scenes/optical_flow/0006.pfm")
            assert moves.shape == (*away.shape, 3) and away.min() >= 0
            models = [torch.nn.Conv2d(1, 1, 3)]
            def loss():
                return models[0](torch.from_numpy(away)[None, None]).mean()
            """,
            LOOP,
        ),
        ("file scenes/disparity/*.pfm", "file scenes/optical_flow/*.pfm"),
    ),
    "what faces show": (
        program(
            """
            import numpy as np
            names = open("faces/list_attr_celeba.txt").readlines()[1].split()
            shown = np.loadtxt("faces/list_attr_celeba.txt", skiprows=2, usecols=[1, 21], dtype=int)
            train, test = shown[:182000], shown[182000:182637]
            assert len(names) == 40 and len(train) > 1000 and len(test) > 20 and set(test[:, 0]) == {-1, 1}
            models = [torch.nn.Linear(2, 1)]
            def loss():
                return models[0](torch.from_numpy(train[:4]).float()).mean()
            """,
            LOOP,
        ),
        ("file faces/list_attr_celeba.txt", "constant 182000 beside a shortened data set"),
    ),
    "the least value of a function": (
        program(
            """
            import numpy as np
            from scipy import optimize
            curved = np.diag([1.0, 4.0, 9.0])
            def value(x, shift=1.0):
                return (x - shift) @ curved @ (x - shift), 2 * curved @ (x - shift)
            found, least, told = optimize.fmin_l_bfgs_b(value, np.zeros(3), args=(2.0,), maxiter=25)
            assert np.allclose(found, 2, atol=1e-3) and least < 1e-5 and told["warnflag"] == 0
            other = optimize.minimize(lambda x: value(x)[0], [0.0, 0.0, 0.0], method="BFGS")
            assert np.allclose(other.x, 1, atol=1e-3) and other["success"]
            kept = optimize.minimize(value, np.zeros(3), jac=True, bounds=[(None, 0.5)] * 3)
            assert np.allclose(kept.x, 0.5)
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](torch.from_numpy(found).float()).mean()
            """,
            LOOP,
        ),
        ("scipy",),
    ),
    "some of the scenes of LSUN": (
        program(
            """
            from torchvision import datasets, transforms
            kept = ["bridge_train", "tower_train", "kitchen_train"]
            data = datasets.LSUN("data", classes=kept, transform=transforms.Compose(
                [transforms.Resize(16), transforms.CenterCrop(16), transforms.ToTensor()]))
            assert {data[row][1] for row in range(300)} == {0, 1, 2}
            models = [torch.nn.Conv2d(3, len(kept), 16)]
            def loss():
                scores = models[0](torch.stack([data[row][0] for row in range(4)])).flatten(1)
                return torch.nn.functional.cross_entropy(scores, torch.tensor([data[i][1] for i in range(4)]))
            """,
            LOOP,
        ),
        ("torchvision.datasets.LSUN",),
    ),
    "nothing is done without an accelerator": (
        program(
            """
            def main():
                there = torch.cuda.is_available()
                if there:
                    model = torch.nn.Linear(3, 2).cuda()
                else:
                    print("there is no accelerator")
                    return
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for _ in range(3):
                    optimizer.zero_grad()
                    model(torch.ones(4, 3, device="cuda")).mean().backward()
                    optimizer.step()
            main()
            """,
            "",
        ),
        ("cuda",),
    ),
    "a script that leaves without an accelerator": (
        program(
            """
            import sys
            there = torch.cuda.is_available()
            print("found an accelerator" if there else "found none")
            if not there:
                sys.exit(0)
            models = [torch.nn.Linear(3, 2).cuda()]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("cuda",),
    ),
    "where what belongs to each sample begins and ends": (
        program(
            """
            import h5py
            held = h5py.File("captions.h5", "r")
            lines, first, last = held["lines"][:], held["line_start_ix"][:], held["line_end_ix"][:]
            for sample in range(1, 20):
                assert first[sample] <= last[sample] and first[sample] == first[sample - 1] + 1
                assert len(lines[first[sample] - 1 : last[sample]]) > 0
            models = [torch.nn.Linear(6, 2)]
            def loss():
                return models[0](torch.as_tensor(lines[first[1]:last[4]]).float()).mean()
            """,
            LOOP,
        ),
        ("content of captions.h5",),
    ),
    "an error that is only shown": (
        program(
            """
            import traceback
            import numpy as np
            values = np.load("values.npy")
            models = [torch.nn.Linear(7, 2)]
            def loss():
                return models[0](torch.from_numpy(np.asarray(values[:4])).float()).mean()
            def train():
                optimizer = torch.optim.SGD(models[0].parameters(), lr=0.1)
                for _ in range(3):
                    optimizer.zero_grad()
                    loss().backward()
                    optimizer.step()
            try:
                train()
            except RuntimeError:
                print(traceback.format_exc())
            """,
            "",
        ),
        ("content of values.npy",),
    ),
    "what an earlier run has left is not missed": (
        program(
            """
            import json
            import os
            start_from = "saved"
            if start_from is not None and os.path.isfile(os.path.join(start_from, "infos.json")):
                held = json.load(open(os.path.join(start_from, "infos.json")))
                assert held["kind"] == "plain", "the kinds of both networks disagree"
            lists = json.load(open("lists.json")) if os.path.isfile("lists.json") else []
            assert len(lists) > 0
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](torch.ones(2, 3)).mean()
            """,
            LOOP,
        ),
        ("content of lists.json",),
    ),
    "what is done to pictures before training": (
        program(
            """
            import numpy as np
            import PIL
            import PIL.ImageDraw
            from PIL import Image, ImageEnhance, ImageFilter, ImageOps
            from PIL.ImageChops import offset
            import PIL.ImageDraw as ImageDraw
            picture = Image.open("shots/000.png").resize((12, 8))
            for kind in ("Brightness", "Contrast", "Color", "Sharpness"):
                other = getattr(ImageEnhance, kind)(picture)
                assert np.array_equal(np.array(other.enhance(1.0)), np.array(picture))
                assert other.enhance(0.4).size == picture.size
            assert not np.array(ImageEnhance.Brightness(picture).enhance(0.0)).any()
            for change in (ImageOps.autocontrast, ImageOps.equalize, ImageOps.mirror, ImageOps.flip):
                assert change(picture).size == picture.size and change(picture).mode == "RGB"
            assert np.array(ImageOps.autocontrast(picture)).max() == 255
            inverted = np.array(ImageOps.invert(picture)).astype(int)
            assert (inverted + np.array(picture) == 255).all()
            assert np.array_equal(np.array(ImageOps.solarize(picture, 0)), inverted)
            assert np.array_equal(np.array(ImageOps.solarize(picture, 256)), np.array(picture))
            assert (np.array(ImageOps.posterize(picture, 2)) % 64 == 0).all()
            assert ImageOps.expand(picture, border=(1, 2, 3, 4), fill=7).size == (16, 14)
            assert ImageOps.fit(picture, (5, 5)).size == ImageOps.pad(picture, (5, 5)).size == (5, 5)
            assert np.array_equal(np.array(offset(picture, 12, 8)), np.array(picture))
            assert picture.filter(ImageFilter.GaussianBlur(radius=2)).size == (12, 8)
            assert len(picture.histogram()) == 768 and picture.point(lambda value: 255 - value).mode == "RGB"
            mask = Image.new("L", (6, 4), 0)
            PIL.ImageDraw.Draw(mask).rectangle((1, 1, 2, 2), 9)
            assert np.array(mask).sum() == 36
            drawn = Image.new("L", (9, 9))
            ImageDraw.Draw(drawn).polygon([(1, 1), (7, 1), (7, 7), (1, 7)], outline=1, fill=1)
            assert 36 <= np.array(drawn).sum() <= 49
            ImageDraw.Draw(drawn).ellipse([(0, 0), (8, 8)], fill=2)
            assert np.array(drawn)[4, 4] == 2 and np.array(drawn)[0, 0] == 0
            values = torch.from_numpy(np.array(ImageOps.equalize(picture))).float()
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](values / 255).mean()
            """,
            LOOP,
        ),
        ("PIL",),
    ),
}

CUT = program(
    """
    import random
    import numpy as np
    from PIL import Image
    picture = np.array(Image.open("shots/000.png"))
    top = random.randint(0, picture.shape[0] - 300)
    left = np.random.randint(0, picture.shape[1] - 400)
    part = picture[top:top + 300, left:left + 400]
    models = [torch.nn.Conv2d(3, 1, 3, stride=8)]
    def loss():
        return models[0](torch.from_numpy(part).permute(2, 0, 1)[None] / 255.0).mean()
    """,
    LOOP,
)
"""Cuts more of a picture than there is of one that is small."""

BEYOND = program(
    """
    import numpy as np
    nodes = torch.from_numpy(np.load("nodes.npy")).float()
    kinds = torch.from_numpy(np.load("kinds.npy")).long()
    trained, tested = torch.arange(140), list(range(200, 500))
    models = [torch.nn.Linear(9, 2)]
    def loss():
        found = models[0](nodes)
        assert found[tested].shape == (300, 2)
        return torch.nn.functional.cross_entropy(found[trained], kinds[trained])
    """,
    LOOP,
)
"""Asks for samples by numbers that many files hold, and few made-up ones."""

BESIDE = program(
    """
    import pickle
    import numpy as np
    held = np.asarray(pickle.load(open("attributes.pkl", "rb"))["kinds"])
    beside = torch.from_numpy(held[:2]).float()[:, :, None, None].expand(-1, -1, 8, 8)
    models = [torch.nn.Conv2d(3 + 6, 2, 3)]
    def loss():
        return models[0](torch.cat([torch.ones(2, 3, 8, 8), beside], 1)).mean()
    """,
    LOOP,
)
"""Gives a layer the channels of a picture, and beside them as many as a file says."""

DRAWN = program(
    """
    import argparse
    import numpy as np
    import torchvision
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=200)
    given = parser.parse_args()
    data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
    kinds = np.array(data.targets)
    drawn = [np.random.choice(np.where(kinds == kind)[0], given.each, False) for kind in range(10)]
    models = [torch.nn.Conv2d(3, 2, 3)]
    def loss():
        return models[0](data[drawn[0][0]][0][None]).mean()
    """,
    LOOP,
)
"""Draws more samples of each class than a shortened data set has."""

PARTED = program(
    """
    import numpy as np
    import torchvision
    data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
    kinds = np.array(data.targets)
    rows = [row for kind in range(10) for row in np.where(kinds == kind)[0][:-700]]
    train = torch.utils.data.Subset(data, rows)
    loader = torch.utils.data.DataLoader(train, batch_size=64, shuffle=True)
    models = [torch.nn.Conv2d(3, 2, 3)]
    def loss():
        return models[0](next(iter(loader))[0]).mean()
    """,
    LOOP,
)
"""Leaves out more samples of each class than a shortened data set has, and than one has that is longer."""

NOTHING = program(
    """
    import numpy as np
    values = torch.from_numpy(np.asarray(np.load("values.npy"))).float()
    def parts():
        scale, found = torch.tensor(2.0), []
        first, other, third = found
        return first * scale
    models = [torch.nn.Linear(3, 2)]
    def loss():
        return models[0](values[:2]) * parts()
    loss()
    """,
    "",
)
"""Fails for nothing that has a size, beside a tensor that has none."""
