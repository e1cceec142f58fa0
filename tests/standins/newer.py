"""Small training scripts that lack newer libraries, or what came with older Pythons."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

NEWER: dict[str, tuple[str, tuple[str, ...]]] = {
    "torchdiffeq": (
        program(
            """
            from torchdiffeq import odeint, odeint_adjoint
            class Change(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = torch.nn.Linear(3, 3)
                def forward(self, time, state):
                    if isinstance(state, tuple):
                        return self.inner(state[0]).tanh(), state[1] * 2
                    return self.inner(state).tanh()
            change = Change()
            models = [change]
            start = torch.rand(4, 3, requires_grad=True)
            times = torch.linspace(0, 1, 3)
            def whole(way, state):
                found = way(change, state, times, method="dopri5", atol=1e-5)
                return found if isinstance(found, torch.Tensor) else torch.cat(found, -1)
            def loss():
                for state in (start, (start, torch.ones(4, 1))):
                    plain, adjoint = (whole(way, state) for way in (odeint, odeint_adjoint))
                    assert plain.shape[:2] == (3, 4) and torch.equal(plain, adjoint)
                    wanted = [start, *change.parameters()]
                    both = [torch.autograd.grad(one.pow(2).sum(), wanted) for one in (plain, adjoint)]
                    assert all(torch.allclose(*pair) for pair in zip(*both))
                return whole(odeint_adjoint, start)[-1].pow(2).mean()
            """,
            LOOP,
        ),
        ("torchdiffeq",),
    ),
    "einx and torch_einops_utils": (
        program(
            """
            import einx
            from torch_einops_utils import (
                and_masks, batched_index_select, lens_to_mask, masked_mean, maybe, pack_with_inverse,
                pad_at_dim, safe_cat, temp_eval, tree_map_tensor)
            from torch_einops_utils.device import module_device
            from torch_einops_utils.nn import Lambda, Sequential
            values, weights = torch.rand(2, 3, 4), torch.rand(3)
            assert torch.equal(einx.multiply("a b c, b -> a b c", values, weights), values * weights[:, None])
            assert torch.equal(einx.multiply("a b c, b", values, weights), values * weights[:, None])
            assert einx.less("j, i -> i j", torch.arange(4), torch.arange(2)).shape == (2, 4)
            mask = lens_to_mask(torch.tensor([1, 3]), 3)
            kept = einx.where("a b, a b c, -> a b c", mask, values, 0.0)
            assert torch.equal(kept, values * mask[..., None])
            assert torch.allclose(einx.sum("a b c -> a c", values), values.sum(1))
            mean = masked_mean(values, mask, dim=1)
            assert torch.allclose(mean[0], values[0, 0]) and torch.allclose(mean[1], values[1].mean(0))
            assert and_masks([None, mask, ~mask]).any() == False
            assert pad_at_dim(values, (1, 0), dim=1).shape == (2, 4, 4)
            assert safe_cat([None, values]) is values and maybe(None)(1) == 1
            chosen = batched_index_select(values, torch.tensor([[2], [0]]))
            assert torch.equal(chosen[:, 0], values[[0, 1], [2, 0]])
            packed, back = pack_with_inverse(values, "* d")
            assert packed.shape == (6, 4) and torch.equal(back(packed), values)
            models = [Sequential(torch.nn.Linear(4, 2), None, Lambda(lambda one: one * 2))]
            assert module_device(models[0]).type == "cpu"
            with temp_eval(models[0]):
                assert not models[0].training
            def loss():
                return models[0](tree_map_tensor(lambda one: one + 1, [kept])[0]).mean()
            """,
            LOOP,
        ),
        ("einx", "torch_einops_utils"),
    ),
    "path": (
        program(
            """
            from path import Path
            root = Path("data") / "scenes"
            place = Path("out") / "log"
            place.makedirs_p()
            (place / "seen.txt").open("w").write("1")
            assert place.files("*.txt") == ["out/log/seen.txt"] and place.name == "log" and place.isdir()
            assert (place / "seen.txt").stripext().basename() == "seen"
            pictures = sorted(root.files("*.png"))
            assert pictures and all(one.ext == ".png" and isinstance(one, str) for one in pictures)
            def batch():
                return torch.ones(2, len(pictures))
            """
        ),
        ("path", "folder data/scenes"),
    ),
    "a network of the script's own, derived from one of transformers": (
        program(
            """
            from transformers import AlbertConfig, AlbertModel, BertPreTrainedModel
            class Reader(AlbertModel):
                def forward(self, *args):
                    return super().forward(*args).last_hidden_state
            class Plain(BertPreTrainedModel):
                def __init__(self, config):
                    super().__init__(config)
                    self.only = torch.nn.Linear(config.hidden_size, 2)
            config = AlbertConfig(vocab_size=20, hidden_size=12)
            models = [Reader(config), Plain(config)]
            assert len(list(models[0].parameters())) > 4 and len(list(models[1].parameters())) == 2
            def loss():
                return models[1].only(models[0](torch.zeros(2, 3, dtype=torch.long))).mean()
            """,
            LOOP,
        ),
        ("transformers", "Reader"),
    ),
    "the cosine transform of torchaudio": (
        program(
            """
            from torchaudio.functional import create_dct
            turned = create_dct(n_mfcc=8, n_mels=8, norm="ortho")
            assert torch.allclose(turned.T @ turned, torch.eye(8), atol=1e-5)
            assert create_dct(4, 6, None).shape == (6, 4)
            def batch():
                return turned
            """
        ),
        ("torchaudio",),
    ),
    "boxes in pictures": (
        program(
            """
            import pickle
            import xml.etree.ElementTree as tree
            import numpy as np
            from PIL import Image
            from scipy.misc import toimage
            kept = pickle.load(open("kept.pkl", "rb"))
            torch.set_default_tensor_type("torch.FloatTensor")
            for name in ("000001", "000002"):
                found = tree.parse("VOC2007/Annotations/" + name + ".xml").getroot()
                width, height = Image.open("VOC2007/JPEGImages/" + name + ".jpg").size
                for one in found.iter("object"):
                    assert one.find("name").text == "person" and one.find("difficult").text == "0"
                    box = one.find("bndbox")
                    corners = [int(box.find(end).text) for end in ("xmin", "ymin", "xmax", "ymax")]
                    assert 0 < corners[0] < corners[2] <= width and 0 < corners[1] < corners[3] <= height
            assert toimage(np.zeros((4, 4), np.uint8), high=255, low=0).size == (4, 4)
            def batch():
                return torch.tensor([corners, corners]).float()
            """
        ),
        ("file VOC2007/Annotations/*.xml",),
    ),
    "an option that is only joined under a name": (
        program(
            """
            import argparse, os
            parser = argparse.ArgumentParser()
            parser.add_argument("--expname", type=str)
            args = parser.parse_args()
            expname = args.expname
            os.makedirs(os.path.join("logs", expname))
            def batch():
                return torch.ones(2, 2)
            """
        ),
        ("argument expname",),
    ),
    "an option whose first choice there is not": (
        program(
            """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--kind", choices=["wide_one", "narrow_one"], required=True)
            wide = {"narrow_one": 2}[parser.parse_args().kind]
            def batch():
                return torch.ones(2, wide)
            """
        ),
        ("argument kind",),
    ),
    "an array that as a whole has a shape": (
        program(
            """
            import numpy as np
            camera = np.genfromtxt("scene/cam.txt").astype(np.float32).reshape((3, 3))
            def batch():
                return torch.from_numpy(camera)
            """
        ),
        ("content of cam.txt",),
    ),
    "groups, neighbours and linear models of sklearn": (
        program(
            """
            import numpy as np
            from sklearn.cluster import KMeans
            from sklearn.linear_model import LinearRegression, LogisticRegression
            from sklearn.manifold import TSNE
            from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
            from sklearn.svm import SVC
            classes = np.array([0, 1] * 10)
            points = torch.from_numpy(np.random.randn(20, 3) / 10 + 5 * classes[:, None])
            groups = KMeans(2, random_state=0).fit(points)
            assert (groups.labels_ == classes).all() or (groups.labels_ != classes).all()
            assert (groups.predict(points) == groups.labels_).all()
            assert groups.cluster_centers_.shape == (2, 3)
            for kind in (KNeighborsClassifier(3), LogisticRegression(max_iter=9), SVC(kernel="rbf")):
                assert kind.fit(points, classes).score(points, classes) == 1
                assert kind.predict_proba(points).shape == (20, 2)
            far, near = NearestNeighbors(n_neighbors=2).fit(points).kneighbors(points)
            assert (near[:, 0] == np.arange(20)).all() and far[:, 1].min() > 0
            line = LinearRegression().fit(points, points.sum(1))
            assert line.score(points, points.sum(1)) > 0.99
            assert TSNE(n_components=2).fit_transform(points).shape == (20, 2)
            def batch():
                return torch.from_numpy(groups.cluster_centers_).float()
            """
        ),
        ("sklearn",),
    ),
    "pycocotools": (
        program(
            """
            from PIL import Image
            from pycocotools.coco import COCO
            coco = COCO("annotations/instances_train2017.json")
            kinds = {one: place for place, one in enumerate(coco.getCatIds())}
            people = coco.getCatIds(catNms=["person"])
            assert len(kinds) == 80 and coco.loadCats(people)[0]["name"] == "person"
            boxes = []
            for number in coco.getImgIds():
                shown = coco.loadImgs(number)[0]
                held = coco.loadAnns(coco.getAnnIds(imgIds=number))
                assert held == coco.imgToAnns[number] and coco.annToMask(held[0]).sum() == held[0]["area"]
                boxes += [one["bbox"] for one in held if one["category_id"] in kinds]
            picture = Image.open("train2017/" + shown["file_name"])
            assert picture.size == (shown["width"], shown["height"]) and isinstance(held[0]["caption"], str)
            def batch():
                return torch.tensor(boxes)
            """
        ),
        ("pycocotools", "content of instances_train2017.json"),
    ),
    "boxes with their classes": (
        program(
            """
            import json
            held = json.load(open("TRAIN_objects.json"))
            for number in range(3):
                boxes = torch.FloatTensor(held[number]["boxes"])
                labels = torch.LongTensor(held[number]["labels"])
                assert boxes.shape == (len(labels), 4) and (boxes[:, 2:] > boxes[:, :2]).all()
            def batch():
                return boxes
            """
        ),
        ("content of TRAIN_objects.json",),
    ),
    "an array of what differs in length": (
        program(
            """
            import io
            import numpy as np
            rows = np.array([[1, 2], [3]])
            np.save(io.BytesIO(), [[1, 2], [3]])
            assert rows.shape == (2,) and rows[1] == [3]
            assert np.random.choice((None, (0.1, None), (0.3, None))) in (None, (0.1, None), (0.3, None))
            def batch():
                return torch.ones(2, 2)
            """
        ),
        ("an array of what differs in length",),
    ),
    "pkg_resources": (
        program(
            """
            import pkg_resources
            from pkg_resources import DistributionNotFound, get_distribution, parse_version
            try:
                get_distribution("nothing_of_this_name")
                raise AssertionError
            except DistributionNotFound:
                pass
            assert parse_version(get_distribution("torch").version) >= parse_version("1.0")
            assert pkg_resources.require("nothing_of_this_name>=1", "torch")[0].version == "0.0.0"
            def batch():
                return torch.ones(2, 2)
            """
        ),
        ("pkg_resources",),
    ),
    "modules of Python 2": (
        program(
            """
            import cPickle
            from Queue import Queue
            from StringIO import StringIO
            held = cPickle.load(open("train.pkl", "rb"))
            assert StringIO("a").read() == "a" and Queue().empty()
            def batch():
                return torch.as_tensor(held["values"][:4]).float()
            """
        ),
        ("cPickle", "Queue", "StringIO", "content of train.pkl"),
    ),
    "a download whose hash is checked": (
        program(
            """
            import hashlib
            import os
            import urllib.request
            import numpy as np
            def sound(name, wanted):
                found = hashlib.sha1()
                with open(name, "rb") as file:
                    while True:
                        data = file.read(1 << 20)
                        if not data:
                            break
                        found.update(data)
                return found.hexdigest()[:8] == wanted[:8]
            if not os.path.exists("values.npz"):
                urllib.request.urlretrieve("https://example.org/values.npz", "values.npz")
            if not sound("values.npz", "0123456789abcdef"):
                raise ValueError("another hash")
            assert hashlib.md5(b"a").hexdigest() == "0cc175b9c0f1b6a831c399e269772661"
            try:
                values = np.load("values.npz")["values"]
            except FileNotFoundError:
                print("it should have been downloaded")
            def batch():
                return torch.as_tensor(values[:4]).float()
            """
        ),
        ("hash of a download", "content of values.npz"),
    ),
    "as many bytes as were asked for": (
        program(
            """
            import gzip
            import numpy as np
            with gzip.open("data/letters.gz") as file:
                held = np.frombuffer(file.read(int(3e5)), dtype=np.uint8).copy()
            train, test = np.split(held, [int(2e5)])
            with open("data/more.dat", "rb") as file:
                more = np.frombuffer(file.read(), dtype=np.float32)
            def batch():
                assert len(train) == 200000 and len(test) == 100000 and len(more) > 1000
                return torch.from_numpy(train[:64]).float().reshape(2, 32)
            """
        ),
        (),
    ),
    "texts within JSON": (
        program(
            """
            import json
            import re
            held = json.load(open("questions.json"))["data"]
            words, kept = set(), []
            for article in held:
                for paragraph in article["paragraphs"]:
                    for answer in paragraph["answers"]:
                        words.update(re.findall(r"[a-z]+", answer["text"]))
                        kept.append({"id": answer["id"], "text": answer["text"]})
            with open("kept.json", "w") as file:
                json.dump(kept, file)
            def batch():
                assert len(words) > 20
                return torch.ones(2, 2)
            """
        ),
        ("content of questions.json",),
    ),
    "a file of numbers in each line": (
        program(
            """
            places = {}
            for line in open("labels.txt"):
                parts = line.split(",")
                places[int(parts[0])] = int(parts[1])
            def batch():
                assert len(places) > 10
                return torch.ones(2, 2)
            """
        ),
        ("file labels.txt",),
    ),
    "square arrays": (
        program(
            """
            import pickle
            import numpy as np
            held = pickle.load(open("cameras.pkl", "rb"))
            turned = np.linalg.inv(held["camera"][0])
            def batch():
                return torch.as_tensor(turned).float()
            """
        ),
        ("content of cameras.pkl",),
    ),
    "as many batches as there should be": (
        program(
            """
            import torchvision
            data = torchvision.datasets.MNIST("data", transform=torchvision.transforms.ToTensor())
            loader = torch.utils.data.DataLoader(data, batch_size=4)
            held = iter(loader)
            seen = [next(held) for _ in range(40)]
            assert len(seen) == 40
            assert sum(1 for _ in loader) == 16
            def batch():
                return seen[0][0]
            """
        ),
        ("torchvision.datasets.MNIST",),
    ),
}
