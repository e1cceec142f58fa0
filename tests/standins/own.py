"""Small training scripts whose own code all runs: nothing of what it gives is made up."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

OWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "lines of parts within parts": (
        program(
            """
            def read(path):
                with open(path) as file:
                    text = file.read().strip().split("\\n")
                for line in text:
                    words, kinds = line.split("\\t")
                    words = [one.split(":") for one in words.split(" ")]
                    kinds = tuple(map(int, kinds.split(" ")))
                    letters, codes = zip(*[([*map(int, one.split("+"))], int(code)) for one, code in words])
                    assert len(letters) == len(codes) == len(kinds) and max(map(len, letters)) > 1
                    yield codes, kinds
            def sparse(path):
                rows = []
                for line in open(path):
                    parts = line.strip().split()
                    row = torch.zeros(16)
                    for one in parts[1:]:
                        place, value = one.split(":")
                        row[int(place)] = float(value)
                    rows.append((row, float(parts[0])))
                return rows
            texts, rows = list(read("data/tagged.txt")), sparse("data/a9a")
            assert len({kind for _, kind in rows}) > 1
            models = [torch.nn.Embedding(16, 4), torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)]
            def loss():
                codes, kinds = (torch.tensor(one) for one in texts[0])
                told = torch.nn.functional.cross_entropy(models[1](models[0](codes)), kinds)
                return told + models[2](torch.stack([row for row, _ in rows[:8]])).pow(2).mean()
            """,
            LOOP,
        ),
        ("file data/tagged.txt", "file data/a9a"),
    ),
    "gpustat": (
        program(
            """
            import gpustat
            found = gpustat.GPUStatCollection.new_query()
            free = {one.entry["index"]: one.memory_total - one["memory.used"] for one in found}
            best = max(free, key=free.get)
            assert len(found) == gpustat.gpu_count() and found[best].memory_free == free[best] > 0
            models = [torch.nn.Linear(3, 2).cuda(best)]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("gpustat",),
    ),
    "devices that a batch is divided among by hand": (
        program(
            """
            from torch.nn.parallel import gather, parallel_apply, replicate, scatter
            from torch.nn.parallel._functions import Broadcast
            net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).cuda()
            devices = [0, 1]
            def divided(batch):
                parts = scatter({"rows": batch}, devices)
                assert [len(one["rows"]) for one in parts] == [2, 2]
                found = parallel_apply(replicate(net, devices), [one["rows"] for one in parts])
                return gather(found, devices[0])
            batch = torch.randn(4, 3)
            assert divided(batch).shape == (4, 4) and net[1].num_batches_tracked == 1
            copies = Broadcast.apply(devices, *net[0].parameters())
            assert len(copies) == 4 and torch.equal(copies[0], copies[2])
            (copies[0].sum() + copies[2].sum()).backward()
            assert (net[0].weight.grad == 2).all()
            with torch.cuda.device(1):
                models = [net]
            def loss():
                return divided(batch.cuda()).pow(3).mean()
            """,
            LOOP,
        ),
        ("torch.nn.parallel",),
    ),
    "tensors that are there only with an accelerator": (
        program(
            """
            CUDA = torch.cuda.is_available()
            zeros = lambda *size: torch.zeros(*size).cuda() if CUDA else torch.zeros
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return (models[0](torch.ones(4, 3)) - zeros(4, 2)).pow(2).mean()
            """,
            LOOP,
        ),
        ("cuda",),
    ),
    "linear algebra that left torch": (
        program(
            """
            torch.manual_seed(0)
            wide, tall = torch.randn(3, 3), torch.randn(5, 3)
            whole, right = wide @ wide.t() + torch.eye(3), torch.randn(3, 2)
            found, _ = torch.solve(right, whole)
            assert torch.allclose(whole @ found, right, atol=1e-4)
            assert torch.allclose(right.solve(whole).solution, found)
            wanted = tall @ right + 0.1
            fitted = torch.lstsq(wanted, tall)[0]
            assert fitted.shape == (5, 2)
            assert torch.allclose(fitted[:3], torch.linalg.pinv(tall) @ wanted, atol=1e-4)
            values, vectors = torch.symeig(whole, eigenvectors=True)
            assert torch.allclose(vectors @ values.diag() @ vectors.t(), whole, atol=1e-4)
            assert whole.symeig()[1].numel() == 0
            assert torch.matrix_rank(whole) == torch.matrix_rank(whole, 1e-9) == 3
            turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
            assert torch.eig(turn)[0].tolist() == [[0.0, 1.0], [0.0, -1.0]]
            real, imagined = torch.eig(turn, eigenvectors=True)[1].t()
            assert torch.allclose(turn @ real, -imagined) and torch.allclose(turn @ imagined, real)
            models = [torch.nn.Linear(3, 3)]
            def loss():
                curved = models[0](wide).pow(2).diag().diag() + torch.eye(3)
                return torch.solve(right, curved)[0].pow(2).sum()
            """,
            LOOP,
        ),
        ("torch.solve", "torch.lstsq", "torch.symeig", "torch.eig", "torch.matrix_rank"),
    ),
    "lines of other lengths left out, and a store that is opened again": (
        program(
            """
            import lmdb
            import numpy as np
            FEATURES = 19
            def build(place):
                with lmdb.open(place, map_size=1 << 20) as store, open("data/clicks.txt") as file:
                    count = 0
                    for line in file:
                        parts = line.rstrip("\\n").split("\\t")
                        if len(parts) != FEATURES + 1:
                            continue
                        row = np.array([int(one) % 7 for one in parts[1:-1]], dtype=np.uint32)
                        with store.begin(write=True) as filling:
                            filling.put(b"%05d" % count, row.tobytes())
                        count += 1
            build(".clicks")
            store = lmdb.open(".clicks", create=False, readonly=True)
            with store.begin(write=False) as reading:
                assert reading.stat()["entries"] > 64 and reading.get(b"nothing") is None
                keys = [key for key, _ in reading.cursor()]
                rows = [np.frombuffer(reading.get(key), dtype=np.uint32) for key in keys]
            assert keys[:2] == [b"00000", b"00001"]
            codes = torch.from_numpy(np.stack(rows).astype(np.int64))
            models = [torch.nn.Embedding(7, 4)]
            def loss():
                return models[0](codes[:8]).sum(1).pow(2).mean()
            """,
            LOOP,
        ),
        ("lmdb", "file data/clicks.txt"),
    ),
    "episodes of D4RL": (
        program(
            """
            import gym
            import pickle
            import random
            import numpy as np
            with open("data/hopper-medium-replay-v2.pkl", "rb") as file:
                episodes = pickle.load(file)
            env = gym.make("Hopper-v3")
            wide, many = env.observation_space.shape[0], env.action_space.shape[0]
            LENGTH = 20
            class Parts(torch.utils.data.Dataset):
                def __len__(self):
                    return len(episodes)
                def __getitem__(self, number):
                    one = episodes[number]
                    begin = random.randint(0, len(one["rewards"]) - LENGTH)
                    left = np.cumsum(one["rewards"][::-1])[::-1].copy()
                    seen, done = one["observations"], one["actions"]
                    assert (seen[1:] == one["next_observations"][:-1]).all() and one["terminals"].sum() == 1
                    return [torch.from_numpy(values[begin : begin + LENGTH]) for values in (seen, done, left)]
            loader = torch.utils.data.DataLoader(Parts(), batch_size=64, shuffle=True, drop_last=True)
            models = [torch.nn.Linear(wide + 1, many)]
            def loss():
                seen, done, left = next(iter(loader))
                given = torch.cat([seen, left[..., None]], -1)
                return torch.nn.functional.mse_loss(models[0](given), done)
            """,
            LOOP,
        ),
        ("file data/hopper-medium-replay-v*.pkl",),
    ),
    "labels in folders outside the project": (
        program(
            """
            import xml.etree.ElementTree as tree
            import numpy as np
            from PIL import Image
            root = "/sets/of/pictures/VOC2007/"
            people = tree.parse(root + "Annotations/000012.xml").findall("object")
            assert [one.find("name").text for one in people] == ["person", "person"]
            shown = Image.open(root + "JPEGImages/000012.jpg")
            parts = Image.open(root + "SegmentationClass/000012.png")
            assert np.asarray(shown).ndim == 3 and np.asarray(parts).ndim == 2
            def batch():
                return torch.from_numpy(np.array(parts)).float()[None]
            """
        ),
        ("file *.xml",),
    ),
    "a schedule that is looked at before the training": (
        program(
            """
            import missing_plots
            wide = torch.nn.Linear(1, 1)
            only = torch.optim.Adam(wide.parameters(), lr=1.0)
            falling = torch.optim.lr_scheduler.LambdaLR(only, lambda step: 1 / (1 + step))
            rates = []
            for _ in range(500):
                rates.append(only.param_groups[0]["lr"])
                only.step()
                falling.step()
            assert rates[1] == 0.5 and rates[-1] == 0.002
            def batch():
                return torch.ones(4, 3)
            """
        ),
        ("missing_plots",),
    ),
    "settings of labml": (
        program(
            """
            from labml import experiment, lab, logger, monit, tracker
            from labml.configs import BaseConfigs, aggregate, calculate, hyperparams, meta_config, option
            from labml.configs import FloatDynamicHyperParam
            from labml.internal.monitor import Loop
            from labml.logger import Text
            from labml.utils.download import download_file
            from labml.utils.pytorch import get_modules

            class Steps(BaseConfigs):
                rate: float = 0.5
                kind: str = "plain"
                weights: list
                optimizer: torch.optim.SGD
                def __init__(self):
                    super().__init__(_primary="optimizer")

            @option(Steps.optimizer, "plain")
            def _plain(c: Steps):
                return torch.optim.SGD(c.weights, lr=c.rate)

            class Configs(BaseConfigs):
                width: int = 2
                depth: int
                text: str
                words: list = "few"
                model: torch.nn.Module
                optimizer: Steps
                low, high = 0, 0
                both: tuple
                size: str = "small"
                rate: float = FloatDynamicHyperParam(0.25)
                loader: str = "texts"
                def run(self):
                    self.model.train()
                    seen = []
                    for epoch in monit.loop(3):
                        for number, it in monit.enum("Train", torch.ones(1, 4, self.width)):
                            self.optimizer.zero_grad()
                            self.model(it).pow(2).mean().backward()
                            self.optimizer.step()
                            tracker.save(epoch, "loss", number)
                        for name, value in monit.mix(3, ("train", 3), (seen.append, 3)):
                            assert (name, value) == ("train", len(seen))

            @option(Configs.words)
            def many(c: Configs):
                raise AssertionError("there are few")

            @option(Configs.words)
            def few():
                return ["a", "b"]

            @option(Configs.model)
            def _model(c: Configs):
                return torch.nn.Linear(c.width, len(c.words))

            @option(Configs.optimizer)
            def _optimizer(c: Configs):
                steps = Steps()
                steps.weights = list(c.model.parameters())
                return steps

            calculate([Configs.low, Configs.high], "ends", [Configs.depth], lambda depth: (-depth, depth))
            calculate(Configs.both, [Configs.low, Configs.high], lambda low, high: (low, high))
            aggregate(Configs.size, "large", (Configs.depth, 9))
            aggregate(Configs.size, "small", (Configs.depth, 4))
            hyperparams(Configs.width, is_hyperparam=False)
            meta_config(Configs.loader)

            class Later(Configs):
                loader: str = "more"

            @Later.calc(Configs.size, "wide")
            def never(c: Later):
                raise AssertionError("nothing is wide")

            @option(Later.loader)
            def more(c: Later):
                download_file("https://example.org/a.txt", lab.get_data_path() / "a.txt")
                logger.log("loaded", Text.value)
                return open(lab.get_data_path() / "a.txt").read().split()

            experiment.create(name="later", writers={"screen"})
            conf = Later()
            said = {"width": 3, "optimizer.rate": 0.25, "size": "large", "low": "ends", "high": "ends"}
            experiment.configs(conf, said)
            experiment.add_pytorch_models(get_modules(conf))
            assert list(get_modules(conf)) == ["model"]
            with experiment.start():
                assert (conf.width, conf.model.in_features, conf.both, conf.rate()) == (3, 3, (-9, 9), 0.25)
                assert isinstance(conf.optimizer, torch.optim.SGD)
                assert conf.optimizer.param_groups[0]["lr"] == 0.25 and tracker.get_global_step() == 0
                assert len(conf.loader) > 9 and list(iter(Loop([1, 2]))) == [1, 2]
                with monit.section("Training"):
                    conf.run()
            try:
                conf.width = 4
            except ValueError:
                tracker.add_global_step(2)
            assert tracker.get_global_step() == 4
            """,
            "",
        ),
        ("labml",),
    ),
    "a port that is free": (
        program(
            """
            import os
            import socket
            import torch.distributed as dist
            def free():
                try:
                    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                    end.bind(("", 0))
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    return end.getsockname()[1]
                finally:
                    end.close()
            def used(port):
                with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
                    return end.connect_ex(("localhost", port)) == 0
            port = free()
            assert port > 1024 and not used(port)
            os.environ["MASTER_PORT"] = str(port)
            dist.init_process_group("nccl", init_method="env://", rank=0, world_size=1)
            def batch():
                return torch.ones(2, 2)
            """
        ),
        ("torch.distributed",),
    ),
    "files wherever they are": (
        program(
            """
            import blobfile as bf
            from PIL import Image
            import numpy as np
            def found(folder):
                for name in sorted(bf.listdir(folder)):
                    path = bf.join(folder, name)
                    if bf.isdir(path):
                        yield from found(path)
                    elif name.endswith(".png"):
                        yield path
            paths = list(found("/sets/of/faces"))
            with bf.BlobFile(paths[0], "rb") as file:
                picture = Image.open(file)
                picture.load()
            bf.makedirs("kept")
            with bf.BlobFile(bf.join("kept", "model.pt"), "wb") as file:
                torch.save({"steps": 1}, file)
            assert bf.exists("kept/model.pt") and bf.basename(bf.dirname("kept/model.pt")) == "kept"
            def batch():
                return torch.from_numpy(np.array(picture)).float()[None]
            """
        ),
        ("blobfile", "folder faces"),
    ),
    "a weight file that a script asks for by the length of its name": (
        program(
            """
            import argparse
            from missing_plots import show
            parser = argparse.ArgumentParser()
            parser.add_argument("--resume", default="", type=str)
            parser.add_argument("--test-only", action="store_true")
            given = parser.parse_args()
            memory = torch.nn.Linear(2, 2)
            if given.test_only or len(given.resume) > 0:
                memory = torch.load("./kept/" + given.resume)["memory"]
            def batch():
                return memory(torch.ones(2, 2)) + torch.tensor([1.0, 2.0], device=0)
            """
        ),
        ("missing_plots", "cuda"),
    ),
    "lists of pictures and of what is in them": (
        program(
            """
            import os
            import cv2
            import numpy as np
            def pairs(root, path, split="train"):
                found = []
                for line in open(path).readlines():
                    parts = line.strip().split(" ")
                    if split == "test":
                        if len(parts) != 1:
                            raise RuntimeError("a line that is wrong: " + line)
                        found.append((os.path.join(root, parts[0]),) * 2)
                    else:
                        if len(parts) != 2:
                            raise RuntimeError("a line that is wrong: " + line)
                        found.append((os.path.join(root, parts[0]), os.path.join(root, parts[1])))
                return found
            shown, classes = pairs("/sets/streets", "streets/train.txt")[3]
            picture, target = cv2.imread(shown), cv2.imread(classes, cv2.IMREAD_GRAYSCALE)
            assert picture.ndim == 3 and target.ndim == 2 and len(np.unique(target)) < 20
            corners = np.float32([[0, 0], [4, 0], [0, 2]])
            moved = cv2.getAffineTransform(corners, corners * 2 + 1)
            assert np.allclose(moved, [[2, 0, 1], [0, 2, 1]])
            assert np.allclose(cv2.invertAffineTransform(moved), [[0.5, 0, -0.5], [0, 0.5, -0.5]])
            def batch():
                return torch.from_numpy(picture.copy()).float()[None]
            """
        ),
        ("cv2", "file streets/train.txt"),
    ),
    "the kinds of things in COCO": (
        program(
            """
            from pycocotools.coco import COCO
            held = COCO("annotations/instances_train2017.json")
            kinds = held.getCatIds()
            assert len(kinds) == 80 and kinds[-1] == 90 and 26 not in kinds
            numbers = {kind: place for place, kind in enumerate(kinds)}
            found = [numbers[one["category_id"]] for one in held.loadAnns(held.getAnnIds())]
            def batch():
                return torch.nn.functional.one_hot(torch.tensor(found), 80).float()
            """
        ),
        ("pycocotools",),
    ),
}
"""By name: a script, and what a run must say that it replaced."""
