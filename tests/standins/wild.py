"""Small training scripts with what older or less usual ones do: empty options, pools, notebooks."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

WILD: dict[str, tuple[str, tuple[str, ...]]] = {
    "marimo": (
        program(
            """
            import marimo
            app = marimo.App(width="full")

            @app.cell
            def _(loss, model):
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for _ in range(3):
                    optimizer.zero_grad()
                    loss().backward()
                    optimizer.step()
                return (optimizer,)

            @app.cell(hide_code=True)
            def _(mo):
                mo.md("# Training")
                wide = mo.ui.slider(2, 9, value=5).value
                return (wide,)

            @app.cell
            def _(wide):
                assert wide == 5
                model = torch.nn.Linear(wide, 2)
                def loss():
                    return model(torch.ones(4, wide)).pow(2).mean()
                return loss, model

            @app.cell
            def _(mo, wide):
                mo.stop(wide == 5)
                never = 1 / 0
                return (never,)

            @app.cell
            def _(never):
                raise AssertionError(never)

            @app.cell
            def _():
                import marimo as mo
                return (mo,)
            """,
            "app.run()\n",
        ),
        ("marimo",),
    ),
    "spacy": (
        program(
            """
            import spacy
            from spacy.lang.en import English
            words = spacy.load("en_core_web_sm")
            found = [word.text for word in words.tokenizer("A dog, two cats.")]
            assert found == ["A", "dog", ",", "two", "cats", "."]
            assert [str(one) for one in English()("it is")] == ["it", "is"]
            assert words("it").vector.shape == (300,) and not words("it")[0].is_punct
            models = [torch.nn.Linear(300, 2)]
            def loss():
                return models[0](torch.as_tensor(words("a dog").vector)[None]).pow(2).mean()
            """,
            LOOP,
        ),
        ("spacy",),
    ),
    "attrs": (
        program(
            """
            import attr
            from attr import Factory, attrib, attrs
            @attrs
            class Settings:
                wide = attrib(default="5", convert=int)
                names = attrib(default=Factory(list))
                deep = attrib(default=2)
                @deep.default
                def _deep(self):
                    return self.wide - 3
            @attr.define
            class Larger(Settings):
                rate: float = 0.1
                held: list = attr.field(factory=list)
            given = Larger(rate=0.5)
            assert given == Larger(rate=0.5) != Larger() and Larger(7).deep == 4
            assert attr.asdict(attr.evolve(given, wide=6))["wide"] == 6 and given.held is not Larger().held
            models = [torch.nn.Linear(given.wide, given.deep)]
            def loss():
                return models[0](torch.ones(4, given.wide)).mean() * given.rate
            """,
            LOOP,
        ),
        ("attr",),
    ),
    "settings of tensorflow": (
        program(
            """
            import tensorflow as tf
            given = tf.contrib.training.HParams(wide=5, batch_size=32, rate=0.1)
            given.parse("wide=6,rate=0.5")
            assert given.batch_size == 4 and given.values() == {"wide": 6, "batch_size": 4, "rate": 0.5}
            models = [torch.nn.Linear(given.wide, 2)]
            def loss():
                return models[0](torch.ones(given.batch_size, given.wide)).mean()
            """,
            LOOP,
        ),
        ("tensorflow", "constant batch_size"),
    ),
    "marks": (
        program(
            """
            import numba
            from beartype import beartype
            from jaxtyping import Float
            from overrides import overrides
            from typeguard import typechecked
            class Network(torch.nn.Linear):
                @overrides
                def forward(self, x: Float[torch.Tensor, "samples 6"]):
                    return super().forward(x)
            @numba.njit(cache=True)
            def total(count):
                found = 0
                for one in numba.prange(count):
                    found += one
                return found
            @typechecked
            @beartype
            def loss():
                return models[0](torch.ones(4, total(4))).pow(2).mean()
            models = [Network(6, 2)]
            """,
            LOOP,
        ),
        ("overrides", "numba", "typeguard", "beartype", "jaxtyping"),
    ),
    "parts of pictures": (
        program(
            """
            import numpy as np
            from skimage.util import view_as_blocks
            from skimage.util.shape import view_as_windows
            pictures = np.arange(2 * 6 * 6).reshape(2, 6, 6)
            models = [torch.nn.Linear(4, 2)]
            def loss(model=models[0]):
                windows = model and view_as_windows(pictures, (1, 4, 4))[:, :, :, 0]
                assert windows.shape == (2, 3, 3, 4, 4) and (windows[1, 2, 1] == pictures[1, 2:6, 1:5]).all()
                assert model and view_as_windows(pictures[0], 2, step=2).shape == (3, 3, 2, 2)
                blocks = model and view_as_blocks(pictures[0], (2, 3))
                assert blocks.shape == (3, 2, 2, 3) and (blocks[2, 1] == pictures[0, 4:, 3:]).all()
                cropped = windows[np.arange(2), [0, 1], [2, 0]].copy()
                return model(torch.from_numpy(cropped).float()).pow(2).mean()
            """,
            LOOP,
        ),
        ("skimage",),
    ),
    "filters of skimage": (
        program(
            """
            import numpy as np
            from skimage import filters, img_as_ubyte, transform
            from skimage.measure import compare_psnr
            from skimage.metrics import structural_similarity
            picture = np.random.default_rng(0).integers(0, 255, (8, 8, 3)).astype(np.uint8)
            smooth = filters.gaussian(picture, sigma=1.0, multichannel=True)
            assert smooth.max() <= 1 and (img_as_ubyte(smooth) == picture).mean() > 0.4
            larger = transform.pyramid_expand(smooth[..., 0], upscale=3, sigma=20)
            smaller = transform.pyramid_reduce(larger, 3)
            assert compare_psnr(picture, picture) > 90 and structural_similarity(picture, picture) > 0.99
            models = [torch.nn.Linear(larger.shape[0] // smaller.shape[1], 2)]
            def loss():
                return models[0](torch.as_tensor(smooth).float()).pow(2).mean()
            """,
            LOOP,
        ),
        ("skimage",),
    ),
    "games of envpool": (
        program(
            """
            import envpool
            games = envpool.make("Pong-v5", env_type="gym", num_envs=2, stack_num=1, img_height=40)
            assert games.observation_space.shape[-3:] == (1, 40, 84)
            assert envpool.make("CartPole-v1", num_envs=2).reset().shape == (2, 4)
            models = [torch.nn.Conv2d(1, 2, 8)]
            def loss():
                return models[0](torch.as_tensor(games.reset()).float()).mean()
            """,
            LOOP,
        ),
        ("envpool", "environment Pong-v5"),
    ),
    "pools": (
        program(
            """
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import Pool, get_context
            started = []
            with Pool(4, started.append, (1,)) as pool:
                assert pool.map(abs, [-1, 2]) == list(pool.imap(abs, [1, -2])) == [1, 2]
                assert pool.starmap(pow, [(2, 3)]) == [8] and pool.apply_async(pow, (2, 4)).get(1) == 16
            with get_context("spawn").Pool(2) as other, ProcessPoolExecutor(2) as executor:
                failed = other.apply_async(int, ("x",))
                assert not failed.successful() and executor.submit(pow, 3, 2).result() == 9
                assert list(executor.map(abs, [-3])) == [3]
            assert started == [1]
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        ("a pool of processes",),
    ),
    "options without a value": (
        program(
            """
            import argparse, os
            from PIL import Image
            parser = argparse.ArgumentParser()
            parser.add_argument("--first_folder")
            parser.add_argument("--second_folder")
            parser.add_argument("--kept_folder")
            parser.add_argument("--kind", choices=["plain", "other"])
            args = parser.parse_args()
            assert args.kept_folder is None and args.kind == "plain"
            def names(folder):
                inner = os.path.join(folder, "all")
                return [os.path.join(inner, one) for one in os.listdir(inner) if ".png" in one]
            both = [names(args.first_folder), names(args.second_folder)]
            assert all(both) and Image.open(both[0][0]).size == (128, 128)
            models = [torch.nn.Linear(len(both), 2)]
            def loss():
                if args.kept_folder:
                    raise OSError
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        ("argument first_folder", "argument second_folder", "argument kind", "folder given/first_folder/all"),
    ),
    "what a script insists on": (
        program(
            """
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--source", default="")
            parser.add_argument("--rest")
            args = parser.parse_args()
            if not args.source:
                raise SystemExit("please say where the data is")
            assert args.rest is None
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        ("argument source",),
    ),
    "what a command insists on": (
        program(
            """
            import click
            @click.command()
            @click.option("--train_dir", default=None)
            @click.option("--classes", default=None)
            def main(train_dir, classes):
                if train_dir is None or len(train_dir) == 0:
                    raise ValueError("please say where the data is")
                assert classes is None
            main()
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        ("click", "argument train_dir"),
    ),
    "betas": (
        program(
            """
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1, betas=(0, 0.9))
            torch.optim.AdamW(model.parameters(), 0.1, (0, 0.9))
            assert optimizer.defaults["betas"] == (0.0, 0.9)
            """,
            """
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.ones(4, 2)).mean().backward()
                optimizer.step()
            """,
        ),
        ("a whole number among betas",),
    ),
    "numbers that were whole": (
        program(
            """
            models = [torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())]
            def loss():
                answers = models[0](torch.ones(4, 2)).reshape(-1)
                labels = torch.full((4,), 1)
                return torch.nn.functional.binary_cross_entropy(answers, labels)
            """,
            LOOP,
        ),
        ("torch.full of a whole number",),
    ),
    "a loss of one element": (
        program(
            """
            import numpy as np
            models = [torch.nn.Linear(2, 2)]
            def loss():
                found = models[0](torch.ones(4, 2)).mean()
                assert found.data.cpu().numpy()[0] == float(found)
                return found
            """,
            LOOP,
        ),
        ("an array without dimensions",),
    ),
    "a view of what lies otherwise": (
        program(
            """
            models = [torch.nn.Linear(2, 3)]
            def loss():
                answers = models[0](torch.ones(4, 2))
                best = answers.topk(2)[1].t()
                right = best.eq(torch.zeros(4, dtype=torch.long).view(1, -1).expand_as(best))
                assert right[:2].view(-1).float().sum(0) >= 0
                return answers.mean()
            """,
            LOOP,
        ),
        ("a view of values that lie in another order",),
    ),
    "pictures and their labels": (
        program(
            """
            import numpy as np
            from pathlib import Path
            from PIL import Image
            pictures = sorted(Path("data/images").glob("*.jpg"))
            masks = sorted(Path("data/masks").rglob("*"))
            assert len(pictures) == len(masks) == 32
            assert Image.open(pictures[0]).mode == "RGB"
            labels = torch.as_tensor(np.array(Image.open(masks[0]))).long()
            assert labels.shape == (128, 128) and sorted(labels.unique().tolist()) == [0, 1]
            assert np.array(Image.open("data/labels/one.png")).max() == 1
            models = [torch.nn.Conv2d(3, 2, 1)]
            def loss():
                picture = torch.as_tensor(np.array(Image.open(pictures[0]))).permute(2, 0, 1).float()
                return torch.nn.functional.cross_entropy(models[0](picture[None]), labels[None])
            """,
            LOOP,
        ),
        ("folder data/images", "folder data/masks", "file data/labels/one.png"),
    ),
    "arrays of the same length": (
        program(
            """
            import numpy as np
            from scipy.io import loadmat
            held = loadmat("digits.mat")
            pictures = np.reshape(held["train"], (55000, 28, 28))
            labels = np.argmax(held["train_labels"], axis=1)
            order = np.random.permutation(len(pictures))
            pictures, labels = pictures[order], labels[order]
            models = [torch.nn.Linear(784, 200)]
            def loss():
                answers = models[0](torch.as_tensor(pictures[:4]).float().flatten(1))
                return torch.nn.functional.cross_entropy(answers, torch.as_tensor(labels[:4]).long())
            """,
            LOOP,
        ),
        ("content of digits.mat", "constant 55000 beside a shortened data set"),
    ),
    "lines of fields": (
        program(
            """
            import os
            def read(name, split="|"):
                with open(name) as file:
                    return [line.strip().split(split) for line in file]
            pairs = [(path, said) for path, number, said in read("lists/train.txt")]
            assert pairs[0][0].endswith(".wav") and len({path for path, _ in pairs}) == len(pairs)
            assert os.path.getsize(pairs[0][0]) == 44 + 2 * 22050
            with open("lists/labels.txt") as file:
                rows = [line.split("|") for line in file]
            labels = [int(row[2]) for row in rows]
            models = [torch.nn.Linear(2, 2)]
            def loss():
                answers = models[0](torch.ones(4, 2))
                return torch.nn.functional.cross_entropy(answers, torch.tensor(labels[:4]))
            """,
            LOOP,
        ),
        ("file lists/train.txt", "file lists/labels.txt", "file *.wav"),
    ),
    "work divided by accelerators": (
        program(
            """
            count = torch.cuda.device_count()
            each = 8 // count
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(each, 2)).mean()
            """,
            LOOP,
        ),
        ("one accelerator",),
    ),
    "pictures of the size that a network is made for": (
        program(
            """
            import torchvision.transforms as transforms
            from torchvision.datasets import ImageFolder
            data = ImageFolder("pictures", transforms.Compose(
                [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]))
            loader = torch.utils.data.DataLoader(data, batch_size=32)
            models = [torch.nn.AvgPool2d(32), torch.nn.Linear(147, 2)]
            def loss():
                pictures, labels = next(iter(loader))
                answers = models[1](models[0](pictures).flatten(1))
                assert pictures.shape == (4, 3, 224, 224)
                return torch.nn.functional.cross_entropy(answers, labels)
            """,
            LOOP,
        ),
        ("ImageFolder pictures", "constant batch_size"),
    ),
    "fewer samples": (
        program(
            """
            from torchvision import datasets, transforms
            data = datasets.MNIST("data", transform=transforms.ToTensor())
            rest = datasets.MNIST("data", train=False)
            assert (len(data), len(rest), len(data.targets), data.data.shape[0]) == (600, 100, 600, 600)
            pictures = torch.stack([picture for picture, _ in data])
            kept, held_out = pictures[:-10000], pictures[-10000:]
            assert (len(kept), len(held_out)) == (500, 100)
            first, second = torch.utils.data.random_split(data, [50000, 10000])
            assert (len(first), len(second)) == (500, 100)
            assert torch.equal(data[59000][0], data[59000 % 600][0])
            assert torch.zeros(2, 4000).view(-1, 2000).shape == (4, 2000)
            assert torch.zeros(2, 5000)[:, :4000].shape == (2, 4000)
            assert [10000][0] == 10000 and len(datasets.CIFAR100("data")) == 50000
            models = [torch.nn.Linear(784, 2)]
            def loss():
                return models[0](kept[:4].flatten(1)).mean()
            """,
            LOOP,
        ),
        ("torchvision.datasets.MNIST", "constant 10000 beside a shortened data set"),
    ),
    "smaller sides": (
        program(
            """
            import argparse, json
            parser = argparse.ArgumentParser()
            parser.add_argument("--input-size", default="1280,720")
            parser.add_argument("--name", default="12,34")
            args = parser.parse_args()
            crop_size = (321, 48)
            def attack(model, perturb_steps=20):
                return perturb_steps
            assert (args.input_size, args.name, crop_size) == ("64,64", "12,34", (65, 48))
            steps = 10
            assert attack(None) == attack(None, perturb_steps=steps) == 2
            held = json.loads('{"batch_size": 32, "encoder_hidden_dim": 512, "hidden": 256, "other": 512}')
            assert held == {"batch_size": 4, "encoder_hidden_dim": 96, "hidden": 96, "other": 512}
            pairs = torch.utils.data.DataLoader(list(range(64)), batch_size=2 * held["batch_size"])
            assert len(next(iter(pairs))) == 8
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(4, 2)).mean()
            """,
            LOOP,
        ),
        ("argument input_size", "constant crop_size", "constant perturb_steps", "setting batch_size"),
    ),
    "settings of yacs": (
        program(
            """
            from yacs.config import CfgNode as CN
            _C = CN()
            _C.NET = CN()
            _C.NET.WIDE = 5
            _C.NET.SIDES = (1, 2)
            _C.BATCH_SIZE = 32
            with open("held.yaml", "w") as file:
                file.write("NET:\\n  WIDE: 6\\n  SIDES: [3, 4]\\n")
            given = _C.clone()
            given.merge_from_file("held.yaml")
            given.merge_from_list(["NET.WIDE", "7"])
            given.freeze()
            assert (given.NET.WIDE, given.NET.SIDES, _C.NET.WIDE, given.BATCH_SIZE) == (7, (3, 4), 5, 4)
            for wrong in (lambda: setattr(given, "MORE", 1), lambda: _C.merge_from_other_cfg({"MORE": 1})):
                try:
                    wrong()
                except (AttributeError, KeyError):
                    continue
                raise AssertionError
            models = [torch.nn.Linear(given.NET.WIDE, 2)]
            def loss():
                return models[0](torch.ones(4, 7)).mean()
            """,
            LOOP,
        ),
        ("yacs", "constant BATCH_SIZE"),
    ),
    "settings of other libraries": (
        program(
            """
            import box, dill, dotmap, ml_collections, msgpack, pickle, regex
            from ml_collections import config_dict
            given = ml_collections.ConfigDict({"net": {"wide": 5}})
            given.update({"net": {"deep": 2}})
            given.net.rate = 0.5
            assert given.to_dict() == {"net": {"wide": 5, "deep": 2, "rate": 0.5}}
            assert type(config_dict.ConfigDict({}).lock()) is ml_collections.ConfigDict
            other = dotmap.DotMap({"a": 1})
            other.b.c = 2
            assert other.toDict() == {"a": 1, "b": {"c": 2}} and box.Box({"a": {"b": 1}}).a.b == 1
            assert dill.loads(pickle.dumps([1])) == [1]
            assert msgpack.unpackb(msgpack.packb([1, {"a": 2}])) == [1, {"a": 2}]
            assert regex.findall(r"[\\p{L}]+|\\p{N}", "ab 1") == ["ab", "1"]
            models = [torch.nn.Linear(given.net.wide, given.net.deep)]
            def loss():
                return models[0](torch.ones(4, 5)).mean() * given.net.rate
            """,
            LOOP,
        ),
        ("ml_collections", "dotmap", "box", "dill", "msgpack", "regex"),
    ),
    "accelerate": (
        program(
            """
            from accelerate import Accelerator
            from accelerate.logging import get_logger
            from accelerate.utils import set_seed
            set_seed(3)
            helper = Accelerator(**{"gradient_" + "accumulation_steps": 2})
            get_logger("it").info("begins", main_process_only=True)
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
            model, optimizer, schedule = helper.prepare(model, optimizer, schedule)
            seen = []
            for turn in range(6):
                before = model.weight.detach().clone()
                with helper.accumulate(model):
                    helper.backward(model(torch.ones(4, 2)).mean())
                    if turn == 0:
                        assert torch.allclose(model.bias.grad, torch.full((2,), 0.25))
                    if helper.sync_gradients:
                        helper.clip_grad_norm_(model.parameters(), 9.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                seen.append(torch.equal(before, model.weight))
            assert seen == [True, False] * 3 and helper.unwrap_model(model) is model
            """,
            "",
        ),
        ("accelerate",),
    ),
    "networks of torchvision": (
        program(
            """
            from torchvision import models as networks
            def weights(network):
                return sum(one.numel() for one in network.parameters())
            assert weights(networks.densenet121()) == 7978856
            held = networks.mobilenet_v2(pretrained=True)
            assert weights(held) == 3504872
            assert "features.1.conv.0.0.weight" in held.state_dict()
            held.classifier[1] = torch.nn.Linear(held.last_channel, 2)
            third = networks.inception_v3(init_weights=False)
            assert weights(third) == 27161264
            assert third.Mixed_6e.branch7x7dbl_2.conv.kernel_size == (7, 1)
            assert isinstance(third.Mixed_5b, networks.inception.InceptionA)
            assert third.eval()(torch.ones(1, 3, 75, 75)).shape == (1, 1000)
            models = [held]
            def loss():
                return models[0](torch.ones(2, 3, 64, 64)).mean()
            """,
            LOOP,
        ),
        ("torchvision", "weights of mobilenet_v2"),
    ),
}
"""By name: a script, and what a run must say that it replaced."""
