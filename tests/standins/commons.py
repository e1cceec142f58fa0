"""Small training scripts with common ways of preparing data, and what must be told of them."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

COMMONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "all names of a missing module": (
        program("""
            from nltk.stem.porter import *
            from nowhere_at_all.names import *
            stemmer = PorterStemmer()
            assert stemmer.stem("Walking") == "walk"
            shown = Something(3)
            def batch():
                return torch.ones(2, 3)
        """),
        ("nltk", "nowhere_at_all"),
    ),
    "nltk": (
        program("""
            import nltk
            from nltk.corpus import stopwords
            from nltk.translate.bleu_score import corpus_bleu, sentence_bleu, SmoothingFunction
            assert "the" in set(stopwords.words("english"))
            said = "a b c d e".split()
            assert corpus_bleu([[said]], [said]) == 1.0
            assert 0 < sentence_bleu([said], said[:4], smoothing_function=SmoothingFunction().method1) < 1
            assert nltk.FreqDist(said)["a"] == 1 and len(list(nltk.bigrams(said))) == 4
            def batch():
                return torch.ones(2, 3)
        """),
        ("nltk",),
    ),
    "scipy's distributions": (
        program("""
            import numpy as np
            from scipy.stats import beta, gaussian_kde, multivariate_normal, poisson, rankdata
            close = multivariate_normal.pdf(np.zeros((3, 2)), mean=np.zeros(2), cov=4 * np.eye(2))
            assert np.allclose(close, 1 / (8 * np.pi))
            assert np.isclose(multivariate_normal.pdf(0.0, mean=0, cov=1), 1 / np.sqrt(2 * np.pi))
            kde = gaussian_kde(np.random.RandomState(0).randn(2, 200), bw_method=0.3)
            assert kde(np.zeros((2, 5))).shape == (5,) and kde.resample(7).shape == (2, 7)
            assert np.isclose(beta.pdf(0.5, 2, 2), 1.5) and poisson.rvs(3, size=4).shape == (4,)
            assert rankdata([3, 1, 2]).tolist() == [3, 1, 2]
            drawn = multivariate_normal(np.zeros(3), 0.1).rvs(size=2)
            def batch():
                return torch.as_tensor(drawn).float()
        """),
        ("scipy",),
    ),
    "several environments in wrappers": (
        program("""
            import gym
            class Doubled(gym.Wrapper):
                def reset(self, **kwargs):
                    return 2 * self.env.reset(**kwargs)
            envs = gym.vector.make("CartPole-v1", 3, wrappers=Doubled)
            assert envs.single_observation_space.shape == (4,) and isinstance(envs.envs[0], Doubled)
            first = envs.reset()
            def batch():
                return torch.as_tensor(first).float()
        """),
        ("gym",),
    ),
    "a way of its own to divide batches": (
        program(
            """
            class Divided(torch.nn.DataParallel):
                def scatter(self, inputs, kwargs, device_ids):
                    assert len(inputs[0]) == len(device_ids)
                    return [(one,) for one in inputs[0]], [{} for one in inputs[0]]
            models = [Divided(torch.nn.Linear(3, 2), device_ids=[0, 1])]
            def loss():
                return models[0]([torch.ones(2, 3), torch.ones(2, 3)]).mean()
            """,
            LOOP,
        ),
        (),
    ),
    "columns by number and by name": (
        program("""
            import pandas as pd
            table = pd.read_csv("rated.csv", sep="\\t", header=None, names=["user", "item"], usecols=[0, 1])
            wide = table["user"].max() + 1
            def batch():
                return torch.as_tensor(table[["user", "item"]].values[:4]).float()
        """),
        ("pandas",),
    ),
    "arrays of lists of other lengths": (
        program("""
            import numpy as np
            held = np.array([[[1, 2], [3]], [[4], [5, 6, 7]]])
            assert held.shape == (2, 2) and held[1, 1] == [5, 6, 7]
            more = np.array([[1, 2], [3]])
            assert more.shape == (2,)
            def batch():
                return torch.ones(2, 3)
        """),
        ("an array of what differs in length",),
    ),
    "a network that is only there to listen to": (
        program("""
            vocoder = torch.hub.load("somebody/voices", "load_voice").eval()
            def batch():
                return torch.ones(2, 3)
        """),
        ("network of somebody/voices",),
    ),
    "numbers that nobody types": (
        program("""
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--n-shot", type=int)
            parser.add_argument("--noise-dim", type=lambda said: tuple(int(i) for i in said.split(",")))
            parser.add_argument("--bn-eps", type=float)
            args = parser.parse_args()
            wide = args.n_shot + args.noise_dim[0]
            assert 0 < args.bn_eps < 1
            def batch():
                return torch.ones(2, wide)
        """),
        ("argument n_shot", "argument noise_dim"),
    ),
    "what Python 2 gave as lists, and whole": (
        program(
            """
            import random
            held = {"a": 1, "b": 2, "c": 3}
            names = held.keys()
            random.shuffle(names)
            words = map(len, ["one", "three"])
            assert words[1] == 5 and len(zip(words, words)) == 2
            image_size = 64
            noise = torch.FloatTensor(2, image_size / 16)
            assert 3 / 2 == 1.5
            models = [torch.nn.Linear(4, 2)]
            def loss():
                return models[0](torch.zeros_like(noise)).mean()
            """,
            LOOP,
        ),
        ("what Python 2 gave as a list", "a quotient of whole numbers"),
    ),
    "values of one dimension less than a network takes": (
        program(
            """
            import h5py
            import numpy as np
            class Held(torch.utils.data.Dataset):
                def __init__(self):
                    with h5py.File("train.h5", "r") as file:
                        self.keys = list(file.keys())
                def __len__(self):
                    return len(self.keys)
                def __getitem__(self, index):
                    with h5py.File("train.h5", "r") as file:
                        return torch.Tensor(np.array(file[self.keys[index]]))
            loader = torch.utils.data.DataLoader(Held(), batch_size=4)
            models = [torch.nn.Sequential(
                torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3, padding=1),
                torch.nn.BatchNorm2d(4))]
            def loss():
                return models[0](next(iter(loader))).pow(2).mean()
            """,
            LOOP,
        ),
        ("content of train.h5",),
    ),
    "a condition that keeps nothing of what is made up": (
        program(
            """
            import random
            pairs = [line.split("\\t") for line in open("data/eng-fra.txt").read().strip().split("\\n")]
            pairs = [pair for pair in pairs if pair[0].startswith(("i am ", "he is "))]
            said, meant = random.choice(pairs)
            frozen = [torch.nn.Parameter(torch.ones(2))]
            models = [torch.nn.Linear(3, 2)]
            assert len([one for one in frozen if one.grad is not None]) == 0
            def loss():
                return models[0](torch.ones(2, 3)).mean() * len(said + meant)
            """,
            LOOP,
        ),
        ("a list in the script",),
    ),
    "tables of pairs of sentences": (
        program(
            """
            from datasets import load_dataset
            def lengths(rows):
                return {"given": [[len(a), len(b)] for a, b in zip(rows["sentence1"], rows["sentence2"])]}
            raw = load_dataset("glue", "mrpc").map(lengths, batched=True)
            raw = raw.remove_columns(["sentence1", "sentence2", "idx"]).rename_column("label", "labels")
            other = load_dataset("somebody/pairs").map(lengths, batched=True)
            assert "sentence1" in other["train"].column_names
            models = [torch.nn.Linear(2, 2)]
            def loss():
                given = torch.tensor(raw["train"]["given"][:4]).float()
                labels = torch.tensor(raw["train"]["labels"][:4])
                return torch.nn.functional.cross_entropy(models[0](given), labels)
            """,
            LOOP,
        ),
        ("data set glue",),
    ),
    "albumentations, and texts in a table": (
        program("""
            import albumentations as A
            import cv2
            import pandas as pd
            from albumentations.pytorch import ToTensorV2
            table = pd.read_csv(filepath_or_buffer="input/train.csv")
            places = table["image_id"].apply(lambda name: "input/train/" + name + ".jpg").values
            change = A.Compose([
                A.RandomResizedCrop(32, 48), A.OneOf([A.HorizontalFlip(p=0.5), A.GaussNoise()]),
                A.Normalize(), ToTensorV2()])
            def batch():
                found = change(image=cv2.imread(places[0]))["image"]
                assert found.shape == (3, 32, 48) and found.dtype == torch.float32
                return found[None]
        """),
        ("albumentations", "pandas"),
    ),
    "a loop over what a condition keeps none of": (
        program(
            """
            import json
            items = [json.loads(line) for line in open("train_manifest.json")]
            items = [one for one in items if float(one["duration"]) > 5000]
            model = torch.nn.Linear(3, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for one in items:
                optimizer.zero_grad()
                (model(torch.ones(2, 3)).mean() * float(one["duration"])).backward()
                optimizer.step()
            """,
            "",
        ),
        ("content of train_manifest.json", "a list in the script"),
    ),
    "a table of which nothing is said": (
        program("""
            import pandas as pd
            table = pd.read_csv("dataset/ETTh1.csv")
            values = table[table.columns[1:]].values
            def batch():
                return torch.as_tensor(values[:4]).float()
        """),
        ("pandas",),
    ),
}
