"""Small training scripts that lack a library or the content of a file, and what must be told of it."""

from __future__ import annotations

from tests.standins.programs import program

LOOP = """
    parameters = [p for one in models for p in one.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
"""
"""Three steps on what ``loss()`` returns, of ``models``."""

LIBRARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "observations": (
        program(
            """
            import observations
            train, test, valid = observations.ptb("data/")
            letters = sorted(set(train + test + valid))
            codes = torch.tensor([letters.index(one) for one in train])
            models = [torch.nn.Embedding(len(letters), 8), torch.nn.Linear(8, len(letters))]
            def loss():
                start = int(torch.randint(len(codes) - 9, ()))
                given, next_ = codes[start : start + 8], codes[start + 1 : start + 9]
                return torch.nn.functional.cross_entropy(models[1](models[0](given)), next_)
            """,
            LOOP,
        ),
        ("observations.ptb",),
    ),
    "torchtext, older": (
        program(
            """
            from torchtext import data, datasets
            TEXT = data.Field(lower=True, include_lengths=True, batch_first=True, init_token="<s>")
            LABEL = data.LabelField(dtype=torch.float)
            train, test = datasets.IMDB.splits(TEXT, LABEL)
            train, valid = train.split(0.8)
            TEXT.build_vocab(train, max_size=50, vectors="glove.6B.100d")
            LABEL.build_vocab(train)
            iterator, _ = data.BucketIterator.splits((train, test), batch_size=4)
            embedding = torch.nn.Embedding(len(TEXT.vocab), 100)
            embedding.weight.data.copy_(TEXT.vocab.vectors)
            models = [embedding, torch.nn.Linear(100, 1)]
            batches = iter(iterator)
            def loss():
                batch = next(batches)
                words, lengths = batch.text
                assert words.shape == (4, int(lengths.max())) and words[0, 0] == TEXT.vocab.stoi["<s>"]
                return models[1](embedding(words).mean(1)).squeeze(1).sub(batch.label).pow(2).mean()
            """,
            LOOP,
        ),
        ("torchtext", "torchtext corpus IMDB", "vectors of words"),
    ),
    "torchtext, letters of words": (
        program(
            """
            import json
            from torchtext import data
            WORDS = data.Field(batch_first=True, lower=True)
            LETTERS = data.NestedField(data.Field(batch_first=True, tokenize=list), include_lengths=True)
            LABEL = data.Field(sequential=False, use_vocab=False)
            with open("rows.json", "w") as file:
                for row in ({"said": "Some few words", "kind": 1}, {"said": "sun", "kind": 0}):
                    print(json.dumps(row), file=file)
            rows = data.TabularDataset("rows.json", "json", {
                "said": [("words", WORDS), ("letters", LETTERS)], "kind": ("kind", LABEL)})
            WORDS.build_vocab(rows)
            LETTERS.build_vocab(rows)
            batch = next(iter(data.Iterator(rows, 2, shuffle=False)))
            letters, lengths, parts = batch.letters
            assert letters.shape == (2, 3, 5) and batch.words.shape == (2, 3)
            assert lengths.tolist() == [3, 1] and parts.tolist() == [[4, 3, 5], [3, 0, 0]]
            assert "".join(LETTERS.vocab.itos[one] for one in letters[0, 1, :3]) == "few"
            models = [torch.nn.Embedding(len(LETTERS.vocab), 8), torch.nn.Linear(8, 2)]
            def loss():
                scores = models[1](models[0](letters).mean((1, 2)))
                return torch.nn.functional.cross_entropy(scores, batch.kind)
            """,
            LOOP,
        ),
        ("torchtext",),
    ),
    "advertorch": (
        program(
            """
            from advertorch.attacks import L2PGDAttack, LinfPGDAttack, GradientSignAttack
            from advertorch.context import ctx_noparamgrad_and_eval
            net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(), torch.nn.Linear(12, 2))
            models, x, y = [net], torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1])
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            entropy = torch.nn.functional.cross_entropy
            signs = GradientSignAttack(net, eps=0.1)
            with ctx_noparamgrad_and_eval(net):
                assert not net.training and net[2].weight.grad is None
                for attack, order in ((signs, float("inf")), (L2PGDAttack(net, eps=0.1, nb_iter=2), 2)):
                    found = attack.perturb(x, y)
                    assert (found - x).flatten(1).norm(order, dim=1).max() < 0.1001
                    assert entropy(net(found), y) > entropy(net(x), y) and found.max() <= 1
            assert net.training and net[2].weight.grad is None
            attack = LinfPGDAttack(net, loss_fn=torch.nn.CrossEntropyLoss(), eps=0.2, nb_iter=40)
            assert attack.nb_iter == 2 and attack.perturb(x, y).requires_grad is False
            assert net[2].weight.grad is not None
            def loss():
                return entropy(net(signs.perturb(x)), y)
            """,
            LOOP,
        ),
        ("advertorch", "constant nb_iter"),
    ),
    "nnmnkwii, nltk's sounds of words": (
        program(
            """
            import nltk
            from nnmnkwii.datasets import FileDataSource, FileSourceDataset
            spoken = nltk.corpus.cmudict.dict()
            sounds = sorted({one for (said,) in spoken.values() for one in said})
            class Words(FileDataSource):
                def collect_files(self):
                    words = sorted(spoken)[:8]
                    return words, list(range(len(words)))
                def collect_features(self, word, number):
                    return [sounds.index(one) for one in spoken[word][0]], number % 2
            held = FileSourceDataset(Words())
            assert len(held) == 8 and len(held[2:5]) == 3 and held.file_data_source.collect_files
            models = [torch.nn.EmbeddingBag(len(sounds), 8), torch.nn.Linear(8, 2)]
            def loss():
                said, kind = held[3]
                scores = models[1](models[0](torch.tensor([said])))
                return torch.nn.functional.cross_entropy(scores, torch.tensor([kind]))
            """,
            LOOP,
        ),
        ("nnmnkwii", "nltk"),
    ),
    "torchtext, newer": (
        program(
            """
            from torchtext.data.utils import get_tokenizer
            from torchtext.datasets import AG_NEWS
            from torchtext.vocab import build_vocab_from_iterator
            tokenizer = get_tokenizer("basic_english")
            rows = list(AG_NEWS(split="train"))
            vocabulary = build_vocab_from_iterator((tokenizer(line) for _, line in rows), specials=["<unk>"])
            vocabulary.set_default_index(vocabulary["<unk>"])
            assert vocabulary(["nowhere-else"]) == [0]
            models = [torch.nn.EmbeddingBag(len(vocabulary), 8), torch.nn.Linear(8, 4)]
            def loss():
                label, line = rows[0]
                scores = models[1](models[0](torch.tensor([vocabulary(tokenizer(line))])))
                return torch.nn.functional.cross_entropy(scores, torch.tensor([label - 1]))
            """,
            LOOP,
        ),
        ("torchtext", "torchtext corpus AG_NEWS"),
    ),
    "pandas, sklearn": (
        program(
            """
            import numpy as np
            import pandas as pd
            from sklearn.metrics import accuracy_score
            from sklearn.model_selection import train_test_split
            from sklearn.preprocessing import LabelEncoder, StandardScaler
            table = pd.read_csv("data/flats.csv")
            table = table.drop(columns=["id"]).dropna()
            X = StandardScaler().fit_transform(table[["rooms", "area", "floor"]].values)
            y = LabelEncoder().fit_transform(table["label"])
            X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=1)
            assert len(X) == 3 * len(X_test) and accuracy_score(y, y) == 1.0
            models = [torch.nn.Linear(3, 2)]
            def loss():
                scores = models[0](torch.tensor(X, dtype=torch.float32))
                return torch.nn.functional.cross_entropy(scores, torch.tensor(y))
            """,
            LOOP,
        ),
        ("pandas", "sklearn", "content of flats.csv"),
    ),
    "cv2": (
        program(
            """
            import cv2
            import numpy as np
            picture = cv2.cvtColor(cv2.imread("photos/one.jpg"), cv2.COLOR_BGR2RGB)
            picture = cv2.resize(picture, (16, 12))
            assert picture.shape == (12, 16, 3) and picture.dtype == np.uint8
            models = [torch.nn.Linear(3, 1)]
            def loss():
                return models[0](torch.from_numpy(picture / 255.0).float()).mean()
            """,
            LOOP,
        ),
        ("cv2",),
    ),
    "sounds": (
        program(
            """
            import librosa
            import torchaudio
            from scipy.io import wavfile
            sound, rate = librosa.load("voice.wav", sr=16000)
            assert rate == 16000 and sound.shape == (16000,)
            bands = librosa.feature.melspectrogram(y=sound, sr=rate, n_fft=512, hop_length=256, n_mels=20)
            waves, rate = torchaudio.load("voice.wav")
            mel = torchaudio.transforms.MelSpectrogram(rate, n_fft=512, n_mels=20)(waves)
            assert bands.shape == (20, 63) and mel.shape[:2] == (1, 20)
            assert wavfile.read("voice.wav")[0] == 22050
            models = [torch.nn.Linear(20, 1)]
            def loss():
                both = torch.cat([torch.from_numpy(bands).float().T, mel[0].T])
                return models[0](both).mean()
            """,
            LOOP,
        ),
        ("librosa", "torchaudio", "scipy"),
    ),
    "scipy": (
        program(
            """
            import numpy as np
            import scipy.sparse as sp
            from scipy.io import loadmat
            from scipy.stats import norm
            signals = loadmat("recorded.mat")["signals"]
            graph = sp.coo_matrix((np.ones(3), (np.arange(3), [1, 2, 0])), shape=(3, 3))
            graph = graph + graph.T.multiply(graph.T > graph)
            assert abs(norm.cdf(1.96) - 0.975) < 1e-3 and graph.nnz == 6
            models = [torch.nn.Linear(10, 1)]
            def loss():
                return models[0](torch.from_numpy(signals).float()[:4]).mean()
            """,
            LOOP,
        ),
        ("scipy", "content of recorded.mat"),
    ),
    "h5py": (
        program(
            """
            import h5py
            with h5py.File("given.h5", "r") as given:
                pictures, labels = given["images"][:], given["labels"][:]
            with h5py.File("own.h5", "w") as own:
                own.create_dataset("x", data=[1.0, 2.0])
            assert h5py.File("own.h5", "r")["x"].tolist() == [1.0, 2.0]
            models = [torch.nn.Conv2d(3, 2, 3)]
            def loss():
                scores = models[0](torch.from_numpy(pictures)[:4].float()).mean((2, 3))
                return torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)[:4])
            """,
            LOOP,
        ),
        ("h5py", "content of given.h5"),
    ),
    "lmdb": (
        program(
            """
            import lmdb
            import pickle
            store = lmdb.open("store", readonly=True)
            with store.begin() as reading:
                count = int(reading.get(b"length").decode())
                row = pickle.loads(reading.get(b"3"))
            assert count > 3
            models = [torch.nn.Linear(7, 1)]
            def loss():
                return models[0](torch.tensor(row["values"])).mean()
            """,
            LOOP,
        ),
        ("lmdb", "content of store"),
    ),
    "settings": (
        program(
            """
            import hydra
            from easydict import EasyDict
            from omegaconf import OmegaConf
            made = OmegaConf.create({"size": 3, "twice": "${size}", "inner": {"rate": 0.1}})
            assert made.twice == 3 and made.inner.rate == 0.1 and EasyDict(a={"b": 1}).a.b == 1
            @hydra.main(config_path=None, config_name=None)
            def train(settings):
                model = torch.nn.Linear(made.size, 1)
                optimizer = torch.optim.SGD(model.parameters(), lr=made.inner.rate)
                for _ in range(3):
                    optimizer.zero_grad()
                    model(torch.ones(2, 3)).sum().backward()
                    optimizer.step()
            train()
            """,
            "",
        ),
        ("hydra", "omegaconf", "easydict"),
    ),
    "einops": (
        program(
            """
            from einops import rearrange, reduce, repeat
            from einops.layers.torch import Rearrange
            x = torch.arange(48.0).reshape(2, 3, 2, 4)
            assert torch.equal(rearrange(x, "b c h w -> b (h w) c"), x.flatten(2).transpose(1, 2))
            assert torch.equal(reduce(x, "b c ... -> b c", "mean"), x.mean((2, 3)))
            assert repeat(x, "b c h w -> b c h (w r)", r=2)[0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
            apart = rearrange(x, "b c (h one) (w two) -> b (one two c) h w", one=2, two=2)
            assert apart.shape == (2, 12, 1, 2)
            models = [torch.nn.Sequential(Rearrange("b c h w -> b (c h w)"), torch.nn.Linear(24, 1))]
            def loss():
                return models[0](x).mean()
            """,
            LOOP,
        ),
        ("einops",),
    ),
    "pictures": (
        program(
            """
            import imageio.v2 as imageio
            from torchvision.models.inception import inception_v3
            from skimage import color, io, transform
            picture = imageio.imread("photos/a.png")
            grey = color.rgb2gray(transform.resize(io.imread("photos/a.png"), (8, 6)))
            assert picture.shape == (128, 128, 3) and grey.shape == (8, 6)
            assert 0 <= grey.min() <= grey.max() <= 1
            models = [torch.nn.Linear(6, 1)]
            def loss():
                return models[0](torch.from_numpy(grey).float()).mean()
            """,
            LOOP,
        ),
        ("imageio", "skimage"),
    ),
    "datasets, transformers": (
        program(
            """
            from datasets import load_dataset
            from transformers import AdamW, AutoModelForSequenceClassification, AutoTokenizer
            from transformers import get_linear_schedule_with_warmup
            from torch.utils.data import DataLoader
            tokenizer = AutoTokenizer.from_pretrained("bert-tiny")
            rows = load_dataset("imdb", split="train").shuffle(seed=1).select(range(12))
            rows = rows.map(
                lambda row: tokenizer(row["text"], padding="max_length", truncation=True, max_length=16),
                batched=True, remove_columns=["text"])
            rows = rows.rename_column("label", "labels")
            rows.set_format("torch", columns=["input_ids", "attention_mask", "labels"])
            model = AutoModelForSequenceClassification.from_pretrained("bert-tiny", num_labels=2)
            optimizer = AdamW(model.parameters(), lr=1e-3)
            schedule = get_linear_schedule_with_warmup(optimizer, 1, 3)
            for batch in DataLoader(rows, batch_size=4):
                assert batch["input_ids"].shape == (4, 16)
                optimizer.zero_grad()
                model(**batch).loss.backward()
                optimizer.step()
                schedule.step()
            """,
            "",
        ),
        ("datasets", "transformers", "data set imdb", "AutoModelForSequenceClassification"),
    ),
    "downloads": (
        program(
            """
            import gzip
            import requests
            import tarfile
            from six.moves import urllib
            from huggingface_hub import hf_hub_download
            urllib.request.urlretrieve("http://somewhere/train-images-idx3-ubyte.gz", "images.gz")
            with open("cora.tgz", "wb") as held:
                held.write(requests.get("http://somewhere/cora.tgz").content)
            tarfile.open("cora.tgz").extractall("cora")
            with gzip.open("raw/train-images-idx3-ubyte.gz") as held:
                data = held.read()
            assert int.from_bytes(data[:4], "big") == 2051
            model = torch.nn.Linear(784, 1)
            model.load_state_dict(torch.load(hf_hub_download("someone/something", "model.bin")))
            models = [model]
            def loss():
                pixels = torch.frombuffer(bytearray(data[16:]), dtype=torch.uint8)
                return model(pixels.view(-1, 784)[:4] / 255).mean()
            """,
            LOOP,
        ),
        ("requests", "six", "huggingface_hub", "archive cora.tgz", "weights model.bin"),
    ),
    "vector environments": (
        program(
            """
            import gym
            from gym.spaces.box import Box
            from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper
            from stable_baselines3.common.vec_env.vec_normalize import VecNormalize
            class Tensors(VecEnvWrapper):
                def reset(self):
                    return torch.from_numpy(self.venv.reset()).float()
                def step_wait(self):
                    states, rewards, over, infos = self.venv.step_wait()
                    return torch.from_numpy(states).float(), torch.from_numpy(rewards), over, infos
            assert isinstance(gym.make("CartPole-v1").observation_space, Box)
            envs = Tensors(VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")] * 3)))
            models = [torch.nn.Linear(4, 2)]
            states = envs.reset()
            def loss():
                states, rewards, over, infos = envs.step([0, 1, 0])
                assert states.shape == (3, 4) and rewards.shape == over.shape == (3,) and len(infos) == 3
                return models[0](states).mean()
            """,
            LOOP,
        ),
        ("stable_baselines3", "environment CartPole-v1"),
    ),
    "games in wrappers": (
        program(
            """
            import gym
            import numpy as np
            from baselines.common.atari_wrappers import FrameStack, LazyFrames, make_atari, wrap_deepmind
            class Joined(FrameStack):
                def _get_ob(self):
                    return LazyFrames([one[::2] for one in self.frames])
            models = [torch.nn.Linear(84, 2)]
            env = models and wrap_deepmind(make_atari("BreakoutNoFrameskip-v4"), frame_stack=True, scale=True)
            first = models and env.reset()
            assert first.shape == env.observation_space.shape == (84, 84, 4)
            assert np.array(first, dtype="float32").max() <= 1 < len(first)
            joined = models and Joined(wrap_deepmind(make_atari("BreakoutNoFrameskip-v4")), 3)
            joined.reset()
            def loss(model=models[0]):
                state, reward, done, info = joined.step(0)
                assert state.shape == (42, 84, 3) and len(joined.frames) == 3
                return model(torch.from_numpy(np.array(state)[..., 0]).float()).mean()
            """,
            LOOP,
        ),
        ("baselines", "environment BreakoutNoFrameskip-v4"),
    ),
    "pickled arrays": (
        program(
            """
            import pickle
            with open("data/digits.pkl", "rb") as held:
                (x_train, y_train), (x_test, y_test) = pickle.load(held)
            train = torch.utils.data.TensorDataset(torch.tensor(x_train), torch.tensor(y_train))
            loader = torch.utils.data.DataLoader(train, batch_size=4, shuffle=True)
            models = [torch.nn.Linear(784, 10)]
            def loss():
                x, y = next(iter(loader))
                return torch.nn.functional.cross_entropy(models[0](x), y)
            """,
            LOOP,
        ),
        ("content of digits.pkl",),
    ),
    "pictures in an array": (
        program(
            """
            import numpy as np
            pictures = np.load("pictures.npy")
            count, channels, height, width = pictures.shape
            models = [torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 2)]
            def loss():
                found = models[0](torch.from_numpy(pictures[:4]).float())
                return models[1](found.mean((2, 3))).pow(2).mean()
            """,
            LOOP,
        ),
        ("content of pictures.npy",),
    ),
    "records of JSON": (
        program(
            """
            import json
            class Records(torch.utils.data.Dataset):
                def __init__(self):
                    self.rows = [json.loads(line) for line in open("train.jsonl")]
                def __len__(self):
                    return len(self.rows)
                def __getitem__(self, index):
                    row = self.rows[index]
                    return torch.tensor(row["tokens"]), row["label"], len(row["text"].split())
            models = [torch.nn.Embedding(50, 8), torch.nn.Linear(8, 2)]
            batches = iter(torch.utils.data.DataLoader(Records(), batch_size=4))
            def loss():
                tokens, labels, lengths = next(batches)
                return torch.nn.functional.cross_entropy(models[1](models[0](tokens).mean(1)), labels)
            """,
            LOOP,
        ),
        ("content of train.jsonl",),
    ),
    "numbers in lines": (
        program(
            """
            rows = [[float(one) for one in line.split()] for line in open("tracks.txt")]
            models = [torch.nn.Linear(5, 2)]
            def loss():
                return models[0](torch.tensor(rows)).pow(2).mean()
            """,
            LOOP,
        ),
        ("file tracks.txt",),
    ),
}
"""Scripts that must get to their steps in a few tries, and the names of what was replaced."""
