"""Small training scripts that get to their steps in a second try, by what stopped the first."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

TRIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "classes with the numbers of their samples": (
        program(
            """
            import pickle
            import numpy as np
            def read(name):
                held = pickle.load(open(name, "rb"))
                pictures = torch.from_numpy(held["image_data"]).permute(0, 3, 1, 2).float()
                labels = np.zeros(len(pictures))
                for number, (name, samples) in enumerate(held["class_dict"].items()):
                    for sample in samples:
                        labels[sample] = number
                return pictures, labels
            (train, labels), (test, _) = read("cache-train.pkl"), read("cache-test.pkl")
            assert sorted(set(labels.tolist())) == [0, 1, 2, 3, 4, 5]
            assert min(np.bincount(labels.astype(int))) >= 10
            models = [torch.nn.Sequential(
                torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.AvgPool2d(5, 4),
                torch.nn.Flatten(), torch.nn.Linear(400, 2))]
            def loss():
                found = models[0](train[:4]).mean()
                assert train.shape == test.shape == (64, 3, 84, 84)
                return found
            """,
            LOOP,
        ),
        ("content of cache-train.pkl", "content of cache-test.pkl"),
    ),
    "pictures that are too small for the network": (
        program(
            """
            import pickle
            held = pickle.load(open("pictures.pkl", "rb"))
            values = torch.from_numpy(held["images"]).permute(0, 3, 1, 2).float()
            models = [torch.nn.Conv2d(3, 2, 5)]
            def loss():
                found = models[0](values[:2]).mean()
                return found / (values.shape[-1] // 40)
            """,
            LOOP,
        ),
        ("content of pictures.pkl",),
    ),
    "sounds that are cut far behind their beginning, and what lies beside them": (
        program(
            """
            import random
            from pathlib import Path
            import numpy as np
            def sample(number):
                mel, sound = [np.load(Path("data") / kind / f"{number:03d}.npy") for kind in ("mel", "sound")]
                start = random.randrange(0, mel.shape[-1] - 8)
                return mel[:, start : start + 8], sound[300 + start * 300 : 300 + (start + 8) * 300]
            samples = [sample(number) for number in (3, 11, 12, 40)]
            mels = torch.from_numpy(np.stack([mel for mel, _ in samples]))
            sounds = torch.from_numpy(np.stack([sound for _, sound in samples]))
            models = [torch.nn.Conv1d(20, 2, 3)]
            def loss():
                found = models[0](mels).mean() * sounds.mean()
                assert found.requires_grad and mels.shape == (4, 20, 8) and sounds.shape == (4, 2400)
                return found
            """,
            LOOP,
        ),
        ("content of 003.npy", "content of 040.npy"),
    ),
    "some of what is there": (
        program(
            """
            import pickle
            import numpy as np
            held = pickle.load(open("samples.pkl", "rb"))
            first, rest = held["values"][:10], held["values"][10:]
            models = [torch.nn.Linear(5, 2)]
            def loss():
                found = models[0](torch.tensor(first)).mean()
                lengths = [len(one) for one in (first, np.asarray(first), torch.tensor(rest))]
                assert found.requires_grad and lengths == [10, 10, 54]
                return found
            """,
            LOOP,
        ),
        ("content of samples.pkl",),
    ),
    "more samples than go into one part": (
        program(
            """
            import pickle
            import numpy as np
            lengths = pickle.load(open("lengths.pkl", "rb"))
            lengths = [int(one["length"]) for one in lengths]
            def parts(size):
                order = np.argsort(lengths)
                found = [order[i * size : (i + 1) * size] for i in range(len(order) // size)]
                return np.stack(found)
            batches = parts(100)
            models = [torch.nn.Linear(3, 2)]
            def loss():
                found = models[0](torch.ones(len(batches), 3)).mean()
                assert found.requires_grad and batches.shape == (10, 100)
                return found
            """,
            LOOP,
        ),
        ("content of lengths.pkl",),
    ),
    "dimensions that are put in order": (
        program(
            """
            import os
            import numpy as np
            folder, number = "logs/run0", 0
            while os.path.isdir(folder):
                number += 1
                folder = f"logs/run{number}"
            places, speeds = np.load("places.npy"), np.load("speeds.npy")
            count = places.shape[3]
            speeds = speeds - speeds.min()
            places = np.transpose(places, [0, 3, 1, 2])
            speeds = np.transpose(speeds, [0, 3, 1, 2])
            both = np.concatenate([places, speeds], axis=3)
            models = [torch.nn.Linear(3, 2)]
            def loss():
                found = models[0](torch.ones(4, 3)).mean() * torch.from_numpy(both).mean()
                assert found.requires_grad and both.shape[:2] == (64, count) and both.shape[3] == 64
                return found
            """,
            LOOP,
        ),
        ("content of places.npy", "content of speeds.npy"),
    ),
    "a folder that must not be there, beside one that should be": (
        program(
            """
            import os
            if os.path.isdir("models/new"):
                raise FileExistsError("models/new")
            names = []
            if os.path.isdir("photos"):
                names = [one for one in os.listdir("photos") if one.endswith(".png")]
            assert names, "no pictures"
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("folder photos",),
    ),
    "what a caller of what reads can do without": (
        program(
            """
            import json
            def read(path):
                with open(path) as file:
                    return json.load(fp=file)
            try:
                names = read("cache/names.json")
            except Exception:
                names = ["one", "other", "third"]
            values = read("values.json")["values"]
            models = [torch.nn.Linear(5, 2)]
            def loss():
                found = models[0](torch.tensor(values)).mean()
                assert found.requires_grad and names == ["one", "other", "third"]
                return found
            """,
            LOOP,
        ),
        ("content of values.json",),
    ),
    "a word and its class on each line": (
        program(
            """
            words, classes, sentences, held = set(), set(), [], []
            features = None
            for line in open("data/train.bio").readlines():
                if len(line) > 2:
                    pairs = line.strip().split()
                    features = len(pairs) - 2 if features is None else features
                    held.append(pairs[0])
                    words.add(pairs[0])
                    classes.add(pairs[-1])
                    for number in range(features):
                        words.add(pairs[number + 1].split("]", 1)[-1])
                else:
                    sentences.append(held)
                    held = []
            models = [torch.nn.Embedding(len(words), 3)]
            def loss():
                found = models[0](torch.zeros(4, dtype=torch.long)).mean()
                assert found.requires_grad and len(words) > 20 and len(sentences) == 50
                assert found.requires_grad and sorted(classes) == ["B-ONE", "O"]
                return found
            """,
            LOOP,
        ),
        ("file data/train.bio",),
    ),
    "files of which each holds one sample": (
        program(
            """
            import h5py
            def read(number):
                with h5py.File(f"dump/{number:03d}.h5", "r") as held:
                    return held["wave"][()], held["feats"][()]
            samples = [read(number) for number in (3, 11, 12)]
            assert all(wave.ndim == 1 and len(wave) > 1000 for wave, _ in samples)
            batch = torch.stack([torch.as_tensor(feats).float() for _, feats in samples])
            models = [torch.nn.Linear(80, 2)]
            def loss():
                return models[0](batch).mean() + float(samples[0][0][0])
            """,
            LOOP,
        ),
        ("content of 003.h5", "content of 012.h5"),
    ),
    "pictures whose sides the script insists on": (
        program("""
            import sys
            import matplotlib.pyplot as plt
            shown, side = plt.imread("photos/first.png"), 40
            if (shown.shape[0] != side) or (shown.shape[1] != side):
                sys.exit(1)
            def batch():
                assert shown.max() <= 1 and shown.shape == (40, 40, 3)
                return torch.from_numpy(shown)[None].float()
        """),
        ("file photos/first.png",),
    ),
    "a network that the script goes on with if none is kept": (
        program(
            """
            network = torch.nn.Linear(2, 2).cuda()
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            try:
                network = torch.load("held/network.pkl")
            except:
                print("begins anew")
            for _ in range(3):
                optimizer.zero_grad()
                network(torch.ones(2, 2)).sum().backward()
                optimizer.step()
            """,
            "",
        ),
        ("cuda",),
    ),
    "a batch that a network divides by accelerators": (
        program("""
            num_gpus, batch_size = 8, 400
            class Part(torch.nn.Module):
                def forward(self, values):
                    return values.view(batch_size // num_gpus, 6)
            network = torch.nn.DataParallel(Part()).cuda()
            batch_size *= num_gpus
            def batch():
                return network(torch.ones(batch_size, 2, 3))
        """),
        ("constant num_gpus", "cuda"),
    ),
    "a size that the script insists on": (
        program(
            """
            import numpy as np
            vectors = np.load("vectors.npy")
            wide = vectors.shape[1]
            settings = {"wide": 50}
            assert wide == settings["wide"]
            if len(vectors[0]) != settings["wide"]:
                raise ValueError
            models = [torch.nn.Linear(50, 2)]
            def loss():
                return models[0](torch.from_numpy(vectors[:4]).float()).mean()
            """,
            LOOP,
        ),
        ("content of vectors.npy",),
    ),
    "words with vectors, and sentences in columns": (
        program(
            """
            import gzip
            vectors = {}
            with gzip.open("words.vectors.gz", "rt") as file:
                for line in file:
                    word, *values = line.strip().split()
                    vectors[word] = [float(one) for one in values]
            wide = len(next(iter(vectors.values())))
            if wide != 50:
                raise ValueError
            sentences = [[]]
            with open("train.conll") as file:
                for line in file:
                    line = line.strip()
                    if len(line) == 0:
                        sentences.append([])
                        continue
                    row = line.split("\\t")
                    sentences[-1].append((row[1], int(row[6]), row[7]))
            sentences = [one for one in sentences if one]
            assert 4 < max(map(len, sentences)) < 20
            for one in sentences:
                assert all(0 <= head <= place for place, (_, head, _) in enumerate(one))
            models = [torch.nn.Linear(50, 2)]
            def loss():
                return models[0](torch.tensor(list(vectors.values())[:4])).mean()
            """,
            LOOP,
        ),
        ("file train.conll",),
    ),
    "a text without ends of sentences": (
        program(
            """
            sentences = []
            with open("corpus.txt") as file:
                words = []
                for line in file:
                    if not line.strip() and words:
                        sentences.append(words)
                        words = []
                    elif len(line.split(" ")) > 3:
                        words.append(line.split(" ")[1])
            short = [one for one in sentences if len(one) < 40 and line is not None]
            if not line:
                raise EOFError
            part = 1 / len(short)
            models = [torch.nn.Embedding(40, 2)]
            def loss():
                return models[0](torch.arange(len(short[0]))).mean() * part
            """,
            LOOP,
        ),
        ("file corpus.txt",),
    ),
    "rows of other lengths in files that are told apart": (
        program(
            """
            def read(name):
                with open(name) as file:
                    return [line.strip().split("|") for line in file]
            pairs = [(path, text) for path, text in read("pairs.txt")]
            triples = [(path, int(who), text) for path, who, text in read("triples.txt")]
            models = [torch.nn.Embedding(2, 2)]
            def loss():
                return models[0](torch.tensor([who for _, who, _ in triples])).mean()
            """,
            LOOP,
        ),
        ("file pairs.txt", "file triples.txt"),
    ),
    "what a line is taken apart by, among others that the file names": (
        program(
            """
            def dated(text):
                return text.split("|")
            def read(name):
                with open(name) as file:
                    for line in file:
                        speaker, chapter, said = line.strip().split("-")
                        yield speaker, int(chapter)
            chapters = [chapter for _, chapter in read("spoken.txt")]
            models = [torch.nn.Embedding(2, 2)]
            def loss():
                return models[0](torch.tensor(chapters) % 2).mean()
            """,
            LOOP,
        ),
        ("file spoken.txt",),
    ),
    "what a line is taken apart by, of which the parts are taken apart too": (
        program(
            """
            def read(name):
                return [line.split("\\t") for line in open(name).read().strip().split("\\n")]
            def short(pair):
                return len(pair[0].split(" ")) < 20 and len(pair[1].split(" ")) < 20
            pairs = [pair for pair in read("said.txt") if short(pair)]
            assert len(pairs[0]) == 2
            models = [torch.nn.Embedding(20, 2)]
            def loss():
                return models[0](torch.tensor([len(one[1].split(" ")) for one in pairs])).mean()
            """,
            LOOP,
        ),
        ("file said.txt",),
    ),
    "what each of several has seen, by their numbers": (
        program(
            """
            import random
            seen = {}
            for line in open("seen.txt"):
                who, what = line.rstrip().split(" ")
                seen.setdefault(int(who), []).append(int(what))
            highest = max(max(whats) for whats in seen.values())
            models = [torch.nn.Embedding(highest + 1, 2)]
            def of_somebody(fewest):
                while True:
                    whats = random.choice(list(seen.values()))
                    if fewest <= len(whats) and len(set(whats)) <= highest:
                        return whats
            def loss():
                return models[0](torch.tensor(of_somebody(3))).mean()
            """,
            LOOP,
        ),
        ("file seen.txt",),
    ),
    "data by what they are called, and numbers for all samples": (
        program(
            """
            data = torch.load("model/net.pt")
            words, longest = data["dict"]["src_size"], data["max_src_len"]
            padded = [0] * (longest - 2)
            models = [torch.nn.Embedding(words, 8)]
            def loss():
                found = models[0](data["src"][:4] % words)
                return found.mean() * len(padded)
            """,
            LOOP,
        ),
        ("content of net.pt",),
    ),
    "a number that a layer takes for its size": (
        program(
            """
            data = torch.load("data/held.pt")
            wide = data["wide"]
            scale = wide + data["offset"].mean()
            models = [torch.nn.Linear(4, wide)]
            def loss():
                return models[0](torch.ones(2, 4)).mean() * scale
            """,
            LOOP,
        ),
        ("content of held.pt",),
    ),
    "the rate of sounds that a script insists on": (
        program(
            """
            import torchaudio
            def load(name):
                sound, rate = torchaudio.load(name)
                if rate != 16000:
                    raise ValueError("another rate")
                return sound
            sound = load("first.flac")
            assert sound.shape == (1, 16000)
            models = [torch.nn.Linear(16000, 2)]
            def loss():
                return models[0](sound).mean()
            """,
            LOOP,
        ),
        ("sounds *.flac",),
    ),
    "the size that is given to a tensor's data": (
        program(
            """
            noise = torch.zeros(8, 3)
            models = [torch.nn.Linear(3, 2)]
            def loss():
                noise.data.resize_(4, 3).fill_(1)
                return torch.cat([models[0](noise), torch.ones(4, 2)], 1).mean()
            """,
            LOOP,
        ),
        ("the size given to a tensor's data",),
    ),
    "one class for a batch of one": (
        program(
            """
            target = torch.tensor([1, 0])
            models = [torch.nn.Linear(3, 2)]
            criterion = torch.nn.CrossEntropyLoss()
            def loss():
                return sum(criterion(models[0](torch.ones(1, 3)), target[place]) for place in range(2))
            """,
            LOOP,
        ),
        ("a class without dimensions",),
    ),
    "the sides of pictures beside those of a network": (
        program(
            """
            import torchvision.transforms as transforms
            from PIL import Image
            change = transforms.Compose([transforms.Resize((160, 160)), transforms.ToTensor()])
            picture = change(Image.open("face.png").convert("RGB"))
            models = [torch.nn.Linear(2, 3 * 160 * 160)]
            def loss():
                return (models[0](torch.ones(1, 2)).reshape(1, 3, 160, 160) - picture).pow(2).mean()
            """,
            LOOP,
        ),
        ("file face.png",),
    ),
    "weights from where there was an accelerator": (
        program(
            """
            torch.serialization.location_tag = lambda storage: "cuda:0"
            torch.save(torch.nn.Linear(2, 2).state_dict(), "held.pt")
            models = [torch.nn.Linear(2, 2)]
            models[0].load_state_dict(torch.load("held.pt"))
            def loss():
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        (),
    ),
    "what a function of torch is called with": (
        program(
            """
            import numpy as np
            models = [torch.nn.Linear(7, 2)]
            def loss():
                return models[0](torch.from_numpy(np.load("scans.npy")).float()).mean()
            """,
            LOOP,
        ),
        ("content of scans.npy",),
    ),
    "a manager of what processes share": (
        program(
            """
            import multiprocessing
            manager = multiprocessing.Manager()
            kept, held = manager.list(), manager.dict(wide=2)
            kept.append(torch.ones(4, held["wide"]))
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](kept[0]).mean()
            """,
            LOOP,
        ),
        ("multiprocessing.Manager",),
    ),
    "what a plot is made of": (
        program(
            """
            import numpy as np
            from matplotlib import pyplot
            figure, _ = pyplot.subplots()
            pixels = np.frombuffer(figure.canvas.tostring_rgb(), dtype=np.uint8)
            pixels = pixels.reshape(figure.canvas.get_width_height()[::-1] + (3,))
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        ("matplotlib",),
    ),
    "settings by simple_parsing, changes by kornia, zones by dateutil": (
        program(
            """
            import dataclasses, datetime
            import dateutil.tz, kornia, simple_parsing
            torch.manual_seed(0)
            @dataclasses.dataclass
            class Settings:
                wide: int = 3
                parts: list = simple_parsing.list_field(1, 2)
            parser = simple_parsing.ArgumentParser(add_dest_to_option_strings=True)
            parser.add_arguments(Settings, dest="settings")
            given = parser.parse_args().settings
            assert given == Settings(3, [1, 2]) == simple_parsing.parse(Settings)
            assert datetime.datetime.now(dateutil.tz.tzlocal()).tzinfo is not None
            turn = kornia.augmentation.RandomHorizontalFlip(p=0.5)
            pictures = torch.arange(64.0).reshape(8, 1, 2, 4)
            turned = [not torch.equal(*pair) for pair in zip(turn(pictures), pictures)]
            assert 0 < sum(turned) < 8
            assert torch.equal(kornia.augmentation.RandomHorizontalFlip(p=1.0)(pictures), pictures.flip(-1))
            models = [torch.nn.Linear(given.wide, 2)]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("simple_parsing", "kornia", "dateutil"),
    ),
    "vision transformers": (
        program(
            """
            import timm
            from timm.data import Mixup
            from timm.loss import SoftTargetCrossEntropy
            from timm.models import create_model
            from timm.models.layers import DropPath, to_2tuple
            from timm.models.registry import register_model
            from timm.optim import create_optimizer_v2
            from timm.utils import NativeScaler, accuracy
            class Net(torch.nn.Module):
                def __init__(self, num_classes):
                    super().__init__()
                    self.layer = torch.nn.Linear(12, num_classes)
                    self.path = DropPath(0.5)
                    self.register_buffer("places", torch.arange(3.0), persistent=False)
                def forward(self, x):
                    return self.path(self.layer(x.flatten(1)))
            @register_model
            def own_net(pretrained=False, **kwargs):
                return Net(**kwargs)
            made = timm.create_model("vit_tiny_patch16_224", pretrained=True, num_classes=5)
            assert sum(one.numel() for one in made.parameters()) == 5525381
            assert made.eval()(torch.ones(2, 3, 224, 224)).shape == (2, 5) and to_2tuple(3) == (3, 3)
            net = create_model("own_net", num_classes=4, checkpoint_path="", drop_rate=None)
            optimizer = create_optimizer_v2(net, "adamw", lr=0.01, weight_decay=0.1)
            assert [group["weight_decay"] for group in optimizer.param_groups] == [0.0, 0.1]
            mix, criterion, scaler = Mixup(num_classes=4), SoftTargetCrossEntropy(), NativeScaler()
            assert float(accuracy(torch.eye(4), torch.arange(4))[0]) == 100
            for _ in range(3):
                pictures, classes = mix(torch.rand(4, 3, 2, 2), torch.arange(4))
                assert torch.allclose(classes.sum(1), torch.ones(4))
                optimizer.zero_grad()
                found = criterion(net(pictures), classes)
                scaler(found, optimizer, clip_grad=1.0, parameters=net.parameters())
            """,
            "",
        ),
        ("timm",),
    ),
    "what a description says of options": (
        """'''Trains a network.

usage: train.py [options] <data>

options:
    --wide=<n>          How wide [default: 3].
    -b --batch-size N   Of batches
                        [default: 64].
    --resume=<path>     From where.
    -v, --verbose       Say more.
'''
"""
        + program(
            """
            from docopt import docopt
            given = docopt(__doc__)
            assert given["--wide"] == "3" and given["--batch-size"] == "4", given
            assert given["--resume"] is None and given["--verbose"] is False and given["<data>"]
            models = [torch.nn.Linear(int(given["--wide"]), 2)]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("docopt", "argument data", "argument --batch-size"),
    ),
    "sizes of pictures by what is said of an option": (
        program(
            """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=256, help="image sizes for the model")
            parser.add_argument("--resolution", type=int, default=256, help="steps of time")
            given = parser.parse_args()
            assert (given.size, given.resolution) == (64, 64), given
            parser.add_argument("--width", type=int, default=256, help="of a layer")
            assert parser.parse_args().width == 256
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("argument size",),
    ),
    "training as the other branch of a mode": (
        program(
            """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--mode", default="test", type=str)  # test or train
            given = parser.parse_args()
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            if given.mode == "test":
                raise SystemExit(0)
            """,
            LOOP,
        ),
        ("argument mode",),
    ),
    "environments that must divide into batches": (
        program(
            """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--num-envs", type=int, default=8)
            given = parser.parse_args()
            assert given.num_envs % 4 == 0
            models = [torch.nn.Linear(3, 2)]
            def loss():
                assert given.num_envs == 8
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        (),
    ),
    "layers of which there is a list": (
        program(
            """
            widths, num_layers = [8, 8, 8], 3
            if len(widths) != num_layers:
                raise ValueError("one width for each")
            models = [torch.nn.Sequential(*(torch.nn.Linear(8, width) for width in widths))]
            def loss():
                return models[0](torch.ones(4, 8)).mean()
            """,
            LOOP,
        ),
        (),
    ),
    "numbers of twice the precision": (
        program(
            """
            data = torch.load("traindata.pt")
            values = torch.from_numpy(data[3:, :-1])
            models = [torch.nn.LSTMCell(1, 4).double(), torch.nn.Linear(4, 1).double()]
            def loss():
                state = None
                for value in values[:2].split(1, 1)[:3]:
                    state = models[0](value, state)
                return models[1](state[0]).mean()
            """,
            LOOP,
        ),
        ("content of traindata.pt",),
    ),
    "pictures of several sizes": (
        program(
            """
            import io
            import h5py
            import lmdb
            from PIL import Image
            store = lmdb.open("faces.lmdb", readonly=True)
            with store.begin() as transaction:
                held = [transaction.get(f"{size}-00007".encode()) for size in (8, 256)]
            assert [Image.open(io.BytesIO(one)).size for one in held] == [(8, 8), (256, 256)]
            real = torch.from_numpy(h5py.File("faces.h5", "r")["data16x16"][:4]).float()
            assert real.shape[1:] == (3, 16, 16)
            models = [torch.nn.Conv2d(3, 2, 3)]
            def loss():
                return models[0](real).mean()
            """,
            LOOP,
        ),
        ("lmdb", "h5py"),
    ),
    "values stored by a mask of bytes": (
        program(
            """
            models = [torch.nn.Linear(4, 2)]
            def loss():
                values = models[0](torch.ones(3, 4)).max(1)[0]
                values[torch.ByteTensor([0, 1, 0])] = 0.0
                assert values[1] == 0
                return values.sum()
            """,
            LOOP,
        ),
        ("a mask of bytes",),
    ),
    "differences of truth values": (
        program(
            """
            models = [torch.nn.Linear(3, 2)]
            def loss():
                found = models[0](torch.ones(4, 3)) - True
                return (found * (1 - (found > 0)).float()).mean()
            """,
            LOOP,
        ),
        ("a difference of truth values",),
    ),
    "what an environment tells of itself": (
        program(
            """
            import gym
            env = gym.make("CartPole-v1")
            assert env.unwrapped.x_threshold == 2.4 and 0.2 < env.theta_threshold_radians < 0.21
            game = gym.make(gym.benchmark_spec("Atari40M").tasks[3].env_id)
            assert game.observation_space.shape == (210, 160, 3)
            class Twice(gym.Wrapper):
                def _step(self, action):  # as gym until 0.9 had it
                    for _ in range(2):
                        state, reward, done, info = self.env.step(action)
                    return state, reward, done, info
            both = gym.RewardWrapper(Twice(env))
            both.reset()
            state, reward, done, info = both.step(env.action_space.sample())
            assert state.shape == (4,) and done is False
            models = [torch.nn.Linear(4, 2)]
            def loss():
                return models[0](torch.rand(4, 4)).mean()
            """,
            LOOP,
        ),
        ("gym",),
    ),
    "points of a cloud, which are moved before a network takes them": (
        program(
            """
            import numpy as np
            clouds = np.load("clouds.npy")
            moved = np.stack([one + np.random.uniform(size=[3]) for one in clouds[:4]])
            taken = torch.from_numpy(moved).float().permute(0, 2, 1)
            assert taken.shape[0] == 4 and taken.shape[1] == 3 and taken.shape[2] > 30
            models = [torch.nn.Conv1d(3, 2, 1)]
            def loss():
                return models[0](taken).mean()
            """,
            LOOP,
        ),
        ("content of clouds.npy",),
    ),
    "names of what a file holds, which only its user knows": (
        program(
            """
            import h5py
            class Transitions:
                def __init__(self, name):
                    self.episodes = []
                    with h5py.File(name, "r") as file:
                        for number, episode in enumerate(file.keys()):
                            self.episodes.append({})
                            for key in file[episode].keys():
                                self.episodes[number][key] = file[episode][key][:]
                    self.count = sum(len(one["action"]) for one in self.episodes)
                def __getitem__(self, number):
                    held = self.episodes[number]
                    return held["state"][0], held["reward"][0]
            data = Transitions("replay.h5")
            known = {"action", "state", "reward"} == {*data.episodes[0]}
            models = [torch.nn.Sequential(torch.nn.Linear(5, 6 if known else 7), torch.nn.Linear(6, 2))]
            def loss():
                states = torch.stack([torch.as_tensor(data[number][0]) for number in range(4)])
                return models[0](torch.ones(4, 5)).mean() * states.mean() + data.count
            """,
            LOOP,
        ),
        ("content of replay.h5",),
    ),
    "two files that speak of the same things": (
        program(
            """
            import json, pickle
            asked = json.load(open("questions.json"))["questions"]
            told = pickle.load(open("answers.pkl", "rb"))
            names = [[one["question_id"] for one in file] for file in (asked, told)]
            alike = sum(one == other for one, other in zip(*names)) + sum(
                one == other for one, other in zip(names[0], names[1][1:]))
            models = [torch.nn.Sequential(torch.nn.Linear(3, alike), torch.nn.Linear(64, 2))]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("content of questions.json", "content of answers.pkl"),
    ),
    "numbers of words as an index, and answers of which there are several": (
        program(
            """
            import json, pickle
            import numpy as np
            word2idx = pickle.load(open("word2idx.pkl", "rb"))
            vectors = np.load("vectors_init.npy")
            assert vectors.shape == (len(word2idx), 50)
            states = torch.from_numpy(np.load("states.npy"))
            states.size(2)
            samples = []
            for one in json.load(open("answers.json")):
                answers = np.array(one["answers"])
                samples.append((one["name"], answers if len(answers) else None))
            picked = [states[word2idx[name]] for name, _ in samples[:4]]
            given = torch.stack([torch.from_numpy(answers) for _, answers in samples[:4]])
            deep = 6 if picked[0].dim() == 2 and given.dim() == 2 else 7
            models = [torch.nn.Sequential(torch.nn.Linear(50, deep), torch.nn.Linear(6, 2))]
            def loss():
                return models[0](torch.from_numpy(vectors[:4])).mean() + given.float().mean()
            """,
            LOOP,
        ),
        ("content of word2idx.pkl", "content of states.npy", "content of answers.json"),
    ),
    "a known data set that a subclass reads itself": (
        program(
            """
            import os, pickle
            import numpy as np
            from torchvision import datasets
            class Own(datasets.CIFAR10):
                def __init__(self, root, transform=None):
                    self.root, self.transform = root, transform
                    self.download()
                    if not self._check_integrity():
                        raise RuntimeError("not found")
                    self.data, self.labels = [], []
                    for name, _ in self.train_list:
                        with open(os.path.join(self.root, self.base_folder, name), "rb") as file:
                            entry = pickle.load(file, encoding="latin1")
                        self.data.append(entry["data"])
                        self.labels += entry["labels"]
                    self.data = np.concatenate(self.data).reshape((50000, 3, 32, 32))
            data = Own("data")
            deep = 6 if len(data.labels) == 50000 else 7
            models = [torch.nn.Sequential(torch.nn.Linear(3072, deep), torch.nn.Linear(6, 2))]
            def loss():
                return models[0](torch.from_numpy(data.data[:4]).float().flatten(1)).mean()
            """,
            LOOP,
        ),
        ("torchvision",),
    ),
    "a class derived from tensors, and arrays that are put together": (
        program(
            """
            import numpy as np
            class Drawn(torch.Tensor):
                def again(self):
                    self.normal_()
                    return self
            noise = Drawn(torch.randn(4, 3, 8, 8))
            assert type(noise) is Drawn and noise.again().shape == (4, 3, 8, 8)
            held = torch.from_numpy(np.load("pictures.npy"))[:4]
            both = torch.cat([torch.zeros(4, held.shape[1], 32, 32), held], 0)
            deep = 6 if both.dim() == 4 else 7
            models = [torch.nn.Sequential(torch.nn.Linear(8, deep), torch.nn.Linear(6, 2))]
            def loss():
                return models[0](noise + 0).mean()
            """,
            LOOP,
        ),
        ("torch.Tensor", "content of pictures.npy"),
    ),
    "files without which there is nothing, and sentences by their numbers": (
        program(
            """
            import os, pickle
            import numpy as np
            def read(name):
                if os.path.isfile(name):
                    with open(name, "rb") as file:
                        return pickle.load(file)
                return []
            names, known = read("train/names.pickle"), os.path.exists("model_best.pth")
            assert len(names) and not known
            held = read("captions.pickle")
            captions, words = held[0], held[1]
            picked = [np.asarray(captions[5 * number + 3]).astype("int64") for number in range(len(names))]
            longest = max(len(one) for one in picked)
            deep = 6 if longest > 1 and len(picked) == 64 else 7
            models = [torch.nn.Sequential(torch.nn.Linear(3, deep), torch.nn.Linear(6, 2))]
            def loss():
                return models[0](torch.ones(4, 3)).mean()
            """,
            LOOP,
        ),
        ("content of names.pickle", "content of captions.pickle"),
    ),
    "arrays of a folder, of which many make a sample": (
        program(
            """
            import os
            import numpy as np
            rooms = [one for one in sorted(os.listdir("rooms")) if "Area_" in one]  # no .txt
            points = []
            for one in rooms:
                held = np.load(os.path.join("rooms", one))
                points.append(held[:, :6])
            class Blocks(torch.utils.data.Dataset):
                def __len__(self):
                    return sum(map(len, points)) // 100000
                def __getitem__(self, number):
                    assert len(points[number]) > 4096
                    return torch.from_numpy(points[number][:4]).float()
            loader = torch.utils.data.DataLoader(Blocks(), shuffle=True)
            deep = 6 if len(loader) == 2 and len(points) == 32 else 7
            models = [torch.nn.Sequential(torch.nn.Linear(6, deep), torch.nn.Linear(6, 2))]
            def loss():
                return models[0](next(iter(loader))).mean()
            """,
            LOOP,
        ),
        ("folder rooms",),
    ),
    "a column without a name that holds texts": (
        program(
            """
            import pandas as pd
            boxes = pd.read_csv("boxes.txt", delim_whitespace=True, header=None).astype(int)
            names = pd.read_csv("images.txt", delim_whitespace=True, header=None)[1].tolist()
            found = {one[:-4]: boxes.iloc[number][1:].tolist() for number, one in enumerate(names)}
            deep = 6 if isinstance(names[0], str) else 7
            models = [torch.nn.Sequential(torch.nn.Linear(3, deep), torch.nn.Linear(6, 2))]
            def loss():
                return models[0](torch.ones(4, 3)).mean() + len(found)
            """,
            LOOP,
        ),
        ("pandas", "content of images.txt"),
    ),
    "house numbers, the number of each picture last": (
        program(
            """
            import numpy as np
            from PIL import Image
            from scipy.io import loadmat
            held = loadmat("data/train_32x32.mat")
            pictures = held["X"].transpose(3, 2, 0, 1)
            labels = held["y"].squeeze().astype(int)
            shown = Image.fromarray(np.uint8(pictures[0].transpose((1, 2, 0))))
            deep = 6 if labels.shape == (64,) and shown.size == (32, 32) else 7
            models = [torch.nn.Sequential(torch.nn.Conv2d(3, deep, 32), torch.nn.Conv2d(6, 2, 1))]
            def loss():
                return models[0](torch.from_numpy(pictures[:4]).float()).mean()
            """,
            LOOP,
        ),
        ("content of train_32x32.mat",),
    ),
    "files that hashes tell from each other": (
        program(
            """
            import hashlib, uuid
            import numpy as np
            names = [hashlib.md5(bytes([one])).hexdigest() for one in range(30)]
            names += [str(uuid.UUID(one)) for one in names]
            values = [np.load(one + ".npz")["points"] for one in names]
            models = [torch.nn.Linear(4, 2)]
            def loss():
                return models[0](torch.cat([torch.from_numpy(one) for one in values]).float()).pow(2).mean()
            """,
            LOOP,
        ),
        ("content of 93b885adfe0da089cdf634904fd59f71.npz",),
    ),
    "pictures that are compared with larger ones": (
        program(
            """
            import h5py
            class Pairs(torch.utils.data.Dataset):
                def __init__(self):
                    held = h5py.File("pairs.h5")
                    self.data, self.label = held.get("data"), held.get("label")
                def __len__(self):
                    return self.data.shape[0]
                def __getitem__(self, index):
                    both = self.data[index, :, :, :], self.label[index, :, :, :]
                    return [torch.from_numpy(one).float() for one in both]
            models = [torch.nn.Sequential(torch.nn.Conv2d(3, 48, 3, padding=1), torch.nn.PixelShuffle(4))]
            loader = torch.utils.data.DataLoader(Pairs(), batch_size=4)
            def loss():
                given, target = next(iter(loader))
                assert given.shape[2:] == (32, 32)
                return torch.nn.functional.mse_loss(models[0](given), target)
            """,
            LOOP,
        ),
        ("h5py", "content of pairs.h5"),
    ),
    "a shape for more samples than a batch has": (
        program("""
            pictures = torch.utils.data.TensorDataset(torch.rand(40, 3, 6, 6))
            def batch():
                given, = next(iter(torch.utils.data.DataLoader(pictures, batch_size=5 * 2)))
                return given.view(5, 2, 3, 6, 6).sum(1)
        """),
        (),
    ),
    "quotients of Python 2 that should be whole": (
        program("""
            class Scale:
                def __init__(self, size):
                    assert isinstance(size, int) or len(size) == 2
                    self.size = size
            class Smaller:
                def __init__(self, size):
                    if not isinstance(size, int):
                        raise ValueError(size)
                    self.size = size
            def batch():
                return torch.ones(Scale(8 / 2).size, Smaller(4 / 2).size)
        """),
        ("a quotient of whole numbers",),
    ),
    "iterators of Python 2": (
        program("""
            class Own:
                def next(self):
                    return 3
            def batch():
                _, first = enumerate([2, 5]).next()
                return torch.ones(first, Own().next())
        """),
        ("methods that mappings and iterators had in Python 2",),
    ),
    "a block that a smaller network has not": (
        program("""
            from torchvision import models
            whole = models.resnet34(pretrained=True)
            for one in whole.layer3[5].parameters():
                one.requires_grad = False
            def batch():
                return whole(torch.ones(2, 3, 64, 64)).detach()
        """),
        ("weights of resnet34",),
    ),
    "a shape that is taken for that of pictures, and a class of several numbers": (
        program("""
            import numpy as np
            import pickle
            held = pickle.load(open("seen.pkl", "rb"))
            class Pairs(torch.utils.data.Dataset):
                def __len__(self):
                    return len(held["views"])
                def __getitem__(self, index):
                    return np.array(held["views"][index], dtype=np.float32), held["moves"][index]
            loader = torch.utils.data.DataLoader(Pairs(), batch_size=4)
            class Encoder(torch.nn.Module):
                def __init__(self, shape):
                    super().__init__()
                    channels, sides = shape[0], np.array(shape[1:]) // 4
                    self.pictures = torch.nn.Conv2d(channels, 2, 4, stride=4)
                    self.sides = torch.nn.Linear(np.prod(sides), 8)
                    self.wide, self.high = sides[0], sides[1]
            encoder = Encoder(next(iter(loader))[0][0].size())
            def batch():
                views, moves = next(iter(loader))
                chosen = torch.zeros(len(moves), 8).scatter_(1, moves.unsqueeze(1), 1)
                assert chosen.sum(1).tolist() == [1.0] * 4
                return (encoder.sides(encoder.pictures(views).flatten(2)).sum(1) + chosen).detach()
        """),
        ("content of seen.pkl",),
    ),
    "more of a batch than a smaller one has": (
        program("""
            import torchvision
            data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
            loader = torch.utils.data.DataLoader(data, batch_size=48)
            def batch():
                pictures, labels = next(iter(loader))
                maps = [one.mean(0) for one in pictures]
                shown = torch.stack([maps[number] for number in range(7)])
                assert len(pictures) == 8
                return shown
        """),
        ("torchvision.datasets.CIFAR10", "constant batch_size"),
    ),
    "a size that is computed from what a script insists on": (
        program("""
            import numpy as np
            frames = torch.from_numpy(np.load("frames.npy"))
            class Grouped(torch.nn.Module):
                wide, times = 20, 2
                def forward(self, given):
                    assert given.size(-1) == self.wide * self.times
                    return given.sum(1, keepdim=True)
            def batch():
                return Grouped()(frames[:4])
        """),
        ("content of frames.npy",),
    ),
    "as many parts of a line as a script insists on": (
        program("""
            import sys
            def read(name):
                for line in open(name):
                    parts = line.strip().split("|")
                    if len(parts) != 5:
                        sys.exit("no such line")
                    yield len(parts), float(parts[-3])
            rows = list(read("lists/train.txt"))
            assert {count for count, _ in rows} == {5}
            def batch():
                return torch.tensor(rows[:4])
        """),
        ("file lists/train.txt",),
    ),
    "many files of one kind, in one part of which there are pictures": (
        program("""
            import numpy as np
            from torchvision import transforms
            change = transforms.Compose([transforms.ToPILImage(), transforms.ToTensor()])
            held = []
            for number in range(300):
                file = np.load(f"rolled/{'_'.join(['world'] * 20)}_{number:03d}.npz")
                held.append((np.asarray(file["seen"]), np.asarray(file["moved"])))
            def batch():
                return torch.stack([change(held[number][0][0]) for number in range(4)])
        """),
        ("torchvision",),
    ),
    "sounds that are longer than the part that is cut out of them": (
        program("""
            import random
            import torchaudio
            def cut(name):
                sound, rate = torchaudio.load(name)
                first = random.choice(range(0, sound.size(1) - 30000, 160))
                return sound[:, first : first + 30000]
            def batch():
                return torch.stack([cut(f"said/{number}.wav") for number in range(4)])
        """),
        ("sounds *.wav",),
    ),
    "which parts of a sample there are": (
        program("""
            import numpy as np
            held = np.load("read.npz")
            words, masks = torch.as_tensor(held["input_ids"]), torch.as_tensor(held["attention_mask"])
            table = torch.nn.Embedding(32, 8)
            def batch():
                some, there = words[:4, :6], masks[:4, :6].long()
                packed = torch.nn.utils.rnn.pack_padded_sequence(
                    table(some), there.sum(1), batch_first=True, enforce_sorted=False
                )
                assert there[:, 0].all() and (there.diff() <= 0).all()
                return packed.data.detach()
        """),
        ("content of read.npz",),
    ),
}
"""By name: a script, and what a run must say that it replaced."""
