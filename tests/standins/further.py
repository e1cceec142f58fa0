"""Small training scripts that lack a smaller library, or pictures and arrays of a kind that nobody named."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

FURTHER: dict[str, tuple[str, tuple[str, ...]]] = {
    "procgen": (
        program(
            """
            import numpy as np
            from procgen import ProcgenEnv
            games = ProcgenEnv(num_envs=2, env_name="coinrun", num_levels=0)
            assert games.action_space.n == 15
            seen = [games.reset()["rgb"]]
            ends = []
            for _ in range(20):
                observation, reward, over, infos = games.step(np.zeros(2, dtype=int))
                seen.append(observation["rgb"])
                ends.append(over.tolist())
            assert reward.shape == (2,) and len(infos) == 2
            assert ends[18:] == [[False] * 2, [True] * 2]
            assert seen[0].shape == (2, 64, 64, 3) and (seen[0] != seen[1]).any()
            models = [torch.nn.Conv2d(3, 2, 8)]
            def loss():
                return models[0](torch.from_numpy(seen[0]).permute(0, 3, 1, 2) / 255).mean()
            """,
            LOOP,
        ),
        ("procgen", "environment coinrun"),
    ),
    "joblib": (
        program(
            """
            import joblib
            from joblib import Parallel, delayed
            joblib.dump({"scale": 2.0}, "kept.joblib")
            assert joblib.load("kept.joblib") == {"scale": 2.0}
            assert Parallel(n_jobs=4)(delayed(pow)(one, 2) for one in range(4)) == [0, 1, 4, 9]
            rows = joblib.load("features.joblib")
            models = [torch.nn.Linear(12, 2)]
            def loss():
                return models[0](torch.as_tensor(rows[:4]).float()).pow(2).mean()
            """,
            LOOP,
        ),
        ("joblib", "content of features.joblib"),
    ),
    "munch": (
        program(
            """
            from munch import DefaultMunch, Munch, munchify, unmunchify
            given = munchify({"net": {"wide": 5}, "rates": [{"first": 0.1}]})
            given.net.deep = 2
            assert given["net"]["deep"] == 2 and given.rates[0].first == 0.1
            assert not hasattr(given, "other") and isinstance(given.net, Munch)
            assert DefaultMunch(7, {"a": 1}).other == 7 and DefaultMunch.fromDict({"a": {}}).a.b is None
            assert type(unmunchify(given)["net"]) is dict and given.copy() == given
            models = [torch.nn.Linear(given.net.wide, given.net.deep)]
            def loss():
                return models[0](torch.ones(4, given.net.wide)).pow(2).mean()
            """,
            LOOP,
        ),
        ("munch",),
    ),
    "addict": (
        program(
            """
            from addict import Dict
            given = Dict({"net": {"wide": 5}})
            given.loss.weights.first = 0.5
            assert not given.nowhere.at_all and "nowhere" not in given
            given.update({"net": {"deep": 2}})
            assert given.to_dict() == {"net": {"wide": 5, "deep": 2}, "loss": {"weights": {"first": 0.5}}}
            other = given.deepcopy()
            other.net.wide = 6
            assert type(given.to_dict()["net"]) is dict and given.net.wide == 5
            models = [torch.nn.Linear(given.net.wide, given.net.deep)]
            def loss():
                return models[0](torch.ones(4, given.net.wide)).mean() * given.loss.weights.first
            """,
            LOOP,
        ),
        ("addict",),
    ),
    "gdown": (
        program(
            """
            import gdown, numpy as np
            place = gdown.download(id="1a2b3c", output="held.npy", quiet=True)
            assert place == "held.npy"
            rows = np.load(place)
            models = [torch.nn.Linear(6, 2)]
            def loss():
                return models[0](torch.from_numpy(rows[:4]).float()).mean()
            """,
            LOOP,
        ),
        ("gdown", "content of held.npy"),
    ),
    "wget": (
        program(
            """
            import os, pickle, wget
            name = wget.download("https://example.org/data/held.pkl")
            assert os.path.basename(name) == "held.pkl"
            rows = pickle.load(open(name, "rb"))
            models = [torch.nn.Linear(6, 2)]
            def loss():
                return models[0](torch.tensor(rows["features"])).mean()
            """,
            LOOP,
        ),
        ("wget", "content of held.pkl"),
    ),
    "unidecode": (
        program(
            """
            from unidecode import unidecode
            assert unidecode("Ślusàrski, René") == "Slusarski, Rene"
            letters = "abcdefghijklmnopqrstuvwxyz"
            codes = torch.tensor([letters.index(one) for one in unidecode("éàü")])
            models = [torch.nn.Embedding(26, 4)]
            def loss():
                return models[0](codes).pow(2).mean()
            """,
            LOOP,
        ),
        ("unidecode",),
    ),
    "mpi4py": (
        program(
            """
            import numpy as np
            from mpi4py import MPI
            world = MPI.COMM_WORLD
            assert (world.Get_rank(), world.Get_size()) == (0, 1)
            sent, received = np.arange(3.0), np.zeros(3)
            world.Allreduce(sent, received, op=MPI.SUM)
            world.Bcast(received, root=0)
            assert received.tolist() == [0.0, 1.0, 2.0] and world.allreduce(5, op=MPI.MAX) == 5
            models = [torch.nn.Linear(3, 1)]
            def loss():
                for one in models[0].parameters():
                    if one.grad is not None:
                        world.Allreduce(one.grad.numpy().copy(), one.grad.numpy(), op=MPI.SUM)
                return models[0](torch.from_numpy(received).float()).sum()
            """,
            LOOP,
        ),
        ("mpi4py",),
    ),
    "horovod": (
        program(
            """
            import horovod.torch as hvd
            hvd.init()
            models = [torch.nn.Linear(3, 1)]
            own = torch.optim.SGD(models[0].parameters(), lr=0.1 * hvd.size())
            hvd.broadcast_parameters(models[0].state_dict(), root_rank=0)
            assert hvd.DistributedOptimizer(own, named_parameters=models[0].named_parameters()) is own
            assert hvd.allreduce(torch.ones(2), name="mean").tolist() == [1.0, 1.0] and hvd.rank() == 0
            def loss():
                return models[0](torch.ones(2, 3)).sum()
            """,
            LOOP,
        ),
        ("horovod",),
    ),
    "pictures without colours": (
        program(
            """
            from PIL import Image
            from torchvision.transforms import transforms
            to_tensor = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
            models = [torch.nn.Conv2d(1, 2, 3)]
            def loss():
                return models[0](to_tensor(Image.open("scans/000.png"))[None]).mean()
            """,
            LOOP,
        ),
        ("file scans/*.png",),
    ),
    "pictures whose values are classes": (
        program(
            """
            import numpy as np
            from PIL import Image
            models = [torch.nn.Conv2d(5, 2, 3)]
            def loss():
                classes = torch.from_numpy(np.array(Image.open("masks/000.png").convert("L"))).long()
                places = torch.zeros(5, *classes.shape).scatter_(0, classes[None], 1.0)
                return models[0](places[None]).mean()
            """,
            LOOP,
        ),
        ("file masks/*.png",),
    ),
    "pictures of the size that a network takes": (
        program(
            """
            import torchvision
            data = torchvision.datasets.ImageFolder("shots", torchvision.transforms.ToTensor())
            models = [torch.nn.Linear(3 * 48 * 48, 2)]
            def loss():
                return models[0](data[0][0].flatten()[None]).mean()
            """,
            LOOP,
        ),
        ("ImageFolder shots",),
    ),
    "pictures of one class": (
        program(
            """
            import torchvision
            data = torchvision.datasets.ImageFolder("faces", torchvision.transforms.ToTensor())
            models = [torch.nn.Embedding(1, 4)]
            def loss():
                return models[0](torch.tensor([data[-1][1]])).sum()
            """,
            LOOP,
        ),
        ("ImageFolder faces",),
    ),
    "folders of which the script knows the names": (
        program(
            """
            import torchvision
            data = torchvision.datasets.ImageFolder("maps", torchvision.transforms.ToTensor())
            again = torchvision.datasets.ImageFolder("maps", torchvision.transforms.ToTensor())
            assert {data.class_to_idx["train"], data.class_to_idx["val"]} == {0, 1}
            assert again.class_to_idx["val"] in (0, 1) and "test" not in data.class_to_idx
            models = [torch.nn.Conv2d(3, 2, 3)]
            def loss():
                return models[0](data[0][0][None]).mean()
            """,
            LOOP,
        ),
        ("ImageFolder maps",),
    ),
    "names in the endings of files": (
        program(
            """
            import pickle
            import numpy as np
            train = np.load("hair_label.npy"), pickle.load(open("hair_label.pkl", "rb"))
            classes = [torch.as_tensor(np.asarray(one)) for one in train]
            assert [(one.dim(), one.is_floating_point()) for one in classes] == [(1, False)] * 2
            models = [torch.nn.Embedding(2, 4)]
            def loss():
                return models[0](classes[0]).mean() + models[0](classes[1]).mean()
            """,
            LOOP,
        ),
        ("content of hair_label.npy", "content of hair_label.pkl"),
    ),
    "more dimensions than were thought of": (
        program(
            """
            import numpy as np
            scans = np.load("scans.npy")
            length = scans.shape[0] + 0 * scans.shape[2]
            models = [torch.nn.Conv1d(7, 2, 3)]
            def loss():
                assert scans.ndim == 3
                return models[0](torch.from_numpy(scans[: min(length, 4)]).float()).mean()
            """,
            LOOP,
        ),
        ("content of scans.npy",),
    ),
    "an array of one element for a number": (
        program(
            """
            import math
            import numpy as np
            kept = np.zeros(4, dtype=np.float32)
            rewards = np.array([0.25])
            held = {}
            kept[1] = rewards
            held["reward"] = rewards
            assert held["reward"].shape == (1,) and kept.tolist() == [0.0, 0.25, 0.0, 0.0]
            assert float(rewards) == 0.25 and math.sqrt(rewards) == 0.5
            models = [torch.nn.Linear(4, 2)]
            def loss():
                return models[0](torch.from_numpy(kept)).mean()
            """,
            LOOP,
        ),
        (),
    ),
}
"""Scripts that must get to their steps in a few tries, and the names of what was replaced."""
