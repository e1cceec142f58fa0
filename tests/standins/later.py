"""Small training scripts whose modules ask for more than the rest of them, and what must be told of them."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

LATER: dict[str, tuple[str, tuple[str, ...]]] = {
    "settings that are taken away": (
        program("""
            import ml_collections
            settings = ml_collections.ConfigDict({"pieces": {"wide": 16}})
            del settings.pieces.wide
            assert "wide" not in settings.pieces and not hasattr(settings.pieces, "wide")
            settings.pieces.grid = (2, 2)
            assert settings.pieces.to_dict() == {"grid": (2, 2)}
            def batch():
                return torch.ones(2, 3)
        """),
        ("ml_collections",),
    ),
    "pictures that are sheared": (
        program("""
            from PIL import Image
            shown = Image.open("photos/first.png")
            sheared = shown.transform(shown.size, Image.AFFINE, (1, 0.2, 0, 0, 1, 0))
            assert sheared.size == shown.size and Image.Transform.AFFINE == Image.AFFINE
            def batch():
                return torch.ones(2, 3)
        """),
        ("PIL",),
    ),
    "masks as arrays": (
        program("""
            import imageio
            from scipy.misc import imread
            from skimage import io
            for read in (imageio.imread, imread, io.imread):
                assert read("street/masks/first.png").ndim == 2, read
                assert read("street/photos/first.png").shape[2:] == (3,), read
            assert imread("street/masks/first.png", mode="RGB").shape[2:] == (3,)
            assert io.imread("street/photos/first.png", as_gray=True).max() <= 1
            def batch():
                return torch.ones(2, 3)
        """),
        ("imageio", "scipy", "skimage"),
    ),
    "classes in grey, from folders of one half of the data": (
        program("""
            import cv2, torch
            import numpy as np
            for place in ("streets/trainannot/first.png", "streets/val_masks/first.png"):
                drawn = cv2.imread(place, cv2.IMREAD_GRAYSCALE)
                assert drawn.shape == (256, 256) and set(np.unique(drawn)) == {0, 1}, np.unique(drawn)
                assert cv2.imread(place).shape == (256, 256, 3)
            assert len(np.unique(cv2.imread("streets/train/first.png"))) > 99
            def batch():
                return torch.ones(2, 3)
        """),
        ("cv2",),
    ),
    "older names of what scipy does to pictures": (
        program("""
            import scipy.ndimage
            import numpy as np
            from scipy.ndimage.filters import gaussian_filter
            from scipy.ndimage.interpolation import zoom
            assert scipy.ndimage.filters.convolve(np.ones((3, 3)), np.ones((2, 2))).shape == (3, 3)
            assert scipy.ndimage.interpolation.zoom(np.ones((3, 3)), 2).shape == (6, 6)
            def batch():
                return torch.from_numpy(zoom(gaussian_filter(np.ones((2, 3)), 1), 1)).float()
        """),
        ("scipy",),
    ),
    "sizes of inputs that are pictures": (
        program("""
            input_size, features = 256, {"input_size": 300}
            assert input_size == 64, input_size
            assert dict(input_size=20) == {"input_size": 20} and dict(input_size=600) == {"input_size": 64}
            def batch():
                return torch.ones(2, 3)
        """),
        ("constant input_size",),
    ),
    "functions with decorators of a missing module": (
        program("""
            import inspect
            import nowhere_at_all
            @torch.no_grad()
            @nowhere_at_all.retry(times=3)
            def shown(model, other=2):
                return model.weight.mean()
            class Report:
                @nowhere_at_all.checked
                @staticmethod
                def title(text):
                    return text
                @nowhere_at_all.checked("no plot")
                def __plot(self):
                    assert self
            assert callable(Report.title) and "other" in inspect.signature(shown).parameters
            def batch():
                return torch.ones(2, 3)
        """),
        ("nowhere_at_all",),
    ),
    "classes of a missing module": (
        program("""
            from nowhere_at_all import Base, Mixed
            from nowhere_at_all.kinds import Kind
            import nowhere_at_all.kinds
            models = [torch.nn.Linear(3, 1)]
            class Both(Base, Mixed):
                def __init__(self, model, size):
                    Base.__init__(self, size, size, size, size=size)
                    Mixed.__init__(self)
                    self.size = model and size
            class Third(Kind, Both):
                pass
            class Whole(nowhere_at_all.kinds, Kind):
                size = 3
            made = [Both(models, 3), Third(models, 3), Whole()]
            def batch():
                return torch.ones(2, sum(one.size for one in made) // len(made))
        """),
        ("nowhere_at_all",),
    ),
    "tensors for numbers": (
        program("""
            import gym
            def shown(loss):
                return loss.data[0]
            kept = torch.nn.Linear(2, 1)
            values = torch.Tensor(tuple(kept(torch.ones(1, 2)) for _ in range(3)))
            assert values.shape == (3,) and shown(torch.tensor(2.0)) == 2
            def batch():
                return torch.ones(2, 3)
        """),
        (),
    ),
    "networks that a hub lists": (
        program("""
            names = ["own"] + torch.hub.list("somebody/networks:main")
            assert names == ["own"]
            def batch():
                return torch.ones(2, 3)
        """),
        ("networks of somebody/networks:main",),
    ),
    "devices by their numbers": (
        program("""
            import copy
            import pickle
            def placed(rank):
                device = torch.device(rank)
                assert isinstance(device, torch.device) and isinstance(torch.device("cpu"), torch.device)
                assert device == torch.device("cuda", rank) and device.index == rank
                assert copy.deepcopy(device) == device == pickle.loads(pickle.dumps(device))
                return torch.ones(2, 3, device=device).to(device)
            def batch():
                return placed(0)
        """),
        ("a device by its number",),
    ),
    "an option that only another one needs": (
        program("""
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--title", default="")
            parser.add_argument("--resume", default="")
            given = parser.parse_args()
            assert not given.title or given.resume
            assert given.resume == ""
            def batch():
                return torch.ones(2, 3)
        """),
        (),
    ),
    "networks that timm makes of usual ones": (
        program("""
            import timm
            from timm.data.auto_augment import rand_augment_transform
            assert "resnet18" in timm.list_models() and timm.is_model("resnet18")
            assert timm.list_models("resnet*") and not timm.list_models("nothing*")
            pictures = torch.rand(2, 3, 64, 64)
            network = timm.create_model("resnet18", pretrained=True, num_classes=7)
            assert network(pictures).shape == (2, 7) and network.num_features == 512
            assert network.forward_features(pictures).shape == (2, 512, 2, 2)
            assert network.get_classifier().in_features == 512
            network.reset_classifier(0, "")
            assert network(pictures).shape == (2, 512, 2, 2)
            assert timm.create_model("resnet18", num_classes=0)(pictures).shape == (2, 512)
            assert timm.create_model("resnet18", in_chans=1)(pictures[:, :1]).shape == (2, 1000)
            assert timm.create_model("densenet121", num_classes=3)(pictures).shape == (2, 3)
            assert timm.create_model("mobilenetv2_100", num_classes=3)(pictures).shape == (2, 3)
            turned = rand_augment_transform("rand-m9-mstd0.5", {})
            from timm.data import create_dataset, create_loader, resolve_data_config
            config = resolve_data_config({"img_size": 32}, model=network)
            loader = create_loader(
                create_dataset("", root="pictures", split="train", is_training=True, batch_size=4),
                input_size=config["input_size"], batch_size=4, is_training=True, mean=config["mean"])
            shown, classes = next(iter(loader))
            assert shown.shape == (4, 3, 32, 32) and classes.shape == (4,) and len(loader) > 10
            from timm.utils import CheckpointSaver, dispatch_clip_grad, get_outdir, update_summary
            assert get_outdir("results", "run") == "results/run"
            network(pictures).mean().backward()
            dispatch_clip_grad(network.parameters(), 1e-4, "value")
            assert max(one.grad.abs().max() for one in network.parameters() if one.grad is not None) <= 1e-4
            kept = CheckpointSaver(model=network, optimizer=None, max_history=2)
            best, epoch = kept.save_checkpoint(3, metric=0.5)
            assert (best, epoch) == (0.5, 3) and kept.save_recovery(3, 7) is None
            assert update_summary(3, {}, {}, "summary.csv") is None
            def batch():
                return network(turned(pictures)).flatten(1).detach()
        """),
        ("timm",),
    ),
    "the way through a text": (
        program("""
            from monotonic_align import mask_from_lens, maximum_path
            from monotonic_align.core import maximum_path_c
            fits = torch.tensor([[[5., 4, 0, 0, 9], [0, 1, 6, 5, 9], [9, 9, 9, 2, 3]]]).repeat(2, 1, 1)
            given = mask_from_lens(fits.requires_grad_(), torch.tensor([3, 2]), torch.tensor([5, 3]))
            assert given.sum((1, 2)).tolist() == [15, 6] and given.shape == fits.shape
            way = maximum_path(fits, given)
            assert not way.requires_grad and way.dtype == fits.dtype
            assert way[0].tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
            assert way[1].tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]
            def batch():
                return way[0]
        """),
        ("monotonic_align",),
    ),
    "how far texts are apart": (
        program("""
            import editdistance
            import jiwer
            import Levenshtein
            import nltk
            from nltk.metrics.distance import edit_distance
            assert edit_distance("abcd", "axd") == nltk.edit_distance("abcd", "axd") == 2
            assert editdistance.eval("abcd", "axd") == Levenshtein.distance("abcd", "axd") == 2
            assert Levenshtein.ratio("ab", "ab") == 1 and jiwer.wer("a b c d", "a x c d") == 0.25
            assert jiwer.cer(["ab", "cd"], ["ab", "cx"]) == 0.25
            def batch():
                return torch.ones(2, 3)
        """),
        ("Levenshtein", "editdistance", "jiwer", "nltk"),
    ),
    "sounds that are looked for": (
        program("""
            import librosa
            import numpy as np
            files = librosa.util.find_files("speech/train", ext="npy")
            assert files and all(name.endswith(".npy") for name in files)
            values = [np.load(name) for name in files]
            def batch():
                return torch.stack([torch.FloatTensor(one).reshape(-1)[:4] for one in values[:2]])
        """),
        ("librosa",),
    ),
    "the size of a picture": (
        program("""
            import torchvision.transforms.functional as F
            from PIL import Image
            picture = Image.new("RGB", (6, 4))
            assert tuple(F.get_image_size(picture)) == (6, 4)
            for one in (torch.ones(3, 4, 6), picture):
                assert tuple(F.get_dimensions(one)) == (3, 4, 6)
            def batch():
                return torch.ones(2, 3)
        """),
        ("torchvision",),
    ),
    "records that refer to others": (
        program("""
            import json
            held = json.load(open("notes.json"))
            kinds = {one["id"]: [] for one in held["categories"]}
            pictures = {one["id"]: one for one in held["images"]}
            for note in held["notes"]:
                kinds[note["category_id"]] += [pictures[note["image_id"]]]
            assert len(pictures) > 1 and all(kinds.values())
            def batch():
                return torch.ones(2, len(next(iter(kinds.values()))))
        """),
        ("content of notes.json",),
    ),
    "letters of both parts": (
        program("""
            from torchvision.datasets import Omniglot
            both = [Omniglot("data", background=one, download=True) for one in (True, False)]
            assert [len(one._characters) for one in both] == [964, 659]
            assert all(both[1][index][1] < 659 for index in range(50))
            def batch():
                return torch.ones(2, 3)
        """),
        ("torchvision.datasets.Omniglot",),
    ),
    "cameras": (
        program("""
            import json
            import math
            import numpy as np
            held = json.load(open("transforms_train.json"))
            poses = np.array([np.array(one["transform_matrix"]) for one in held["frames"]])
            first = held["frames"][0]["intrinsic_matrix"]
            assert isinstance(float(first[0][0]) + float(first[1][2]), float)
            focal = 0.5 * 64 / math.tan(0.5 * float(held["camera_angle_x"]))
            def batch():
                return torch.from_numpy(poses[:2, :3, :4]).float().reshape(2, 12) / focal
        """),
        ("content of transforms_train.json",),
    ),
    "transformations that are parts of a network": (
        program("""
            from torchvision import transforms as T
            class Own(T.RandomCrop):
                def forward(self, picture):
                    return super().forward(picture) + 1
            change = torch.nn.Sequential(
                T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.3), T.RandomGrayscale(p=0.2),
                T.RandomHorizontalFlip(), T.GaussianBlur((3, 3), (1.0, 2.0)), T.CenterCrop(8), Own(4),
                T.Normalize(torch.tensor([0.5] * 3), torch.tensor([0.2] * 3))).to("cpu")
            assert not list(change.parameters()) and len(list(change.modules())) == 8
            def batch():
                found = change(torch.rand(2, 3, 16, 16)).flatten(1)
                assert found.shape == (2, 48) and found.max() > 0.5
                return found
        """),
        ("torchvision",),
    ),
    "a network with fewer blocks": (
        program("""
            from torchvision import models
            whole = models.resnet50(pretrained=True)
            def batch():
                assert len(whole.layer3) == 2 and whole.fc.in_features == 2048
                return whole(torch.ones(2, 3, 64, 64)).detach()
        """),
        ("the blocks of resnet50",),
    ),
    "weights that are taken out": (
        program("""
            held = torch.load("pretrained/net.pth")
            del held["fc.weight"]
            held["fc.bias"] = torch.zeros(3)
            network = torch.nn.Linear(4, 3)
            network.load_state_dict(held, strict=False)
            def batch():
                return network(torch.ones(2, 4)).detach()
        """),
        ("weights net.pth",),
    ),
    "vectors of words": (
        program("""
            import numpy as np
            held = {}
            for line in open("data/glove.6B.50d.txt", encoding="utf-8"):
                word, *values = line.rstrip().split(" ")
                held[word] = np.array([float(one) for one in values])
            assert {len(one) for one in held.values()} == {50} and {"the", "unk"} <= {*held}
            with open("wiki-news-300d-1M.vec") as file:
                count, size = map(int, file.readline().split())
                rows = [line.split() for line in file]
            assert size == 300 and len(rows) == count and {len(one) for one in rows} == {301}
            def batch():
                return torch.from_numpy(np.stack([held["the"], held["of"]])).float()
        """),
        ("file data/glove.*B.*d.txt", "file wiki-news-*d-*M.vec"),
    ),
    "vectors of words as wide as the script now is": (
        program("""
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("--embedding_dim", type=int, default=300)
            given = parser.parse_args()
            vectors = torch.zeros(500, given.embedding_dim)
            for number, line in enumerate(open("glove.840B.300d.txt")):
                vectors[number] = torch.tensor([float(one) for one in line.split(" ")[1:]])
            def batch():
                assert vectors.shape[1] == 96
                return vectors[:2]
        """),
        ("argument embedding_dim", "file glove.*B.*d.txt"),
    ),
    "features that ten heads divide": (
        program("""
            embed_dim, n_layers = 410, 8
            layers = [torch.nn.MultiheadAttention(embed_dim, 10) for _ in range(n_layers)]
            assert n_layers == 2
            held = torch.randn(3, 2, embed_dim)
            def batch():
                return layers[0](held, held, held)[0][0, :, :4].detach()
        """),
        ("constant n_layers",),
    ),
    "the older networks of BERT": (
        program(
            """
            from pytorch_pretrained_bert.modeling import BertModel, BertForSequenceClassification
            from pytorch_pretrained_bert.modeling import BertForQuestionAnswering, BertPreTrainedModel
            from pytorch_pretrained_bert.optimization import BertAdam
            from pytorch_pretrained_bert.tokenization import BertTokenizer
            words = BertTokenizer.from_pretrained("bert-base-uncased", do_lower_case=True)
            numbers = words.convert_tokens_to_ids(["[CLS]", *words.tokenize("so it is"), "[SEP]"])
            assert numbers[0] == words.vocab["[CLS]"] and max(numbers) < len(words.vocab)
            class Pair(BertPreTrainedModel):
                def __init__(self, config, width):
                    super().__init__(config)
                    self.bert = BertModel(config)
                    self.last = torch.nn.Linear(config.hidden_size, width)
                    self.apply(self.init_bert_weights)
                def forward(self, numbers, kinds, mask):
                    states, pooled = self.bert(numbers, kinds, mask, output_all_encoded_layers=False)
                    assert len(self.bert(numbers)[0][-1].shape) == 3
                    return self.last(states).mean() + self.last(pooled).mean()
            pair = Pair.from_pretrained("bert-base-uncased", width=3)
            model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=5)
            spans = BertForQuestionAnswering.from_pretrained("bert-base-uncased")
            numbers = torch.tensor([numbers, numbers])
            kinds, mask, start = torch.zeros_like(numbers), torch.ones_like(numbers), torch.tensor([1, 2])
            assert model(numbers, kinds, mask).shape == (2, 5) and len(spans(numbers)) == 2
            models = [pair, model, spans]
            optimizer = BertAdam([one for it in models for one in it.parameters()], 1e-3, 0.1, 20)
            for step in range(3):
                loss = pair(numbers, kinds, mask) + model(numbers, kinds, mask, torch.tensor([4, 0]))
                (loss + spans(numbers, kinds, mask, start, start + 1)).backward()
                optimizer.step()
                optimizer.zero_grad()
            assert abs(optimizer.get_lr()[0] - 1e-3 * 17 / 18) < 1e-8
            """,
            "",
        ),
        ("pytorch_pretrained_bert", "BertModel"),
    ),
    "transformers under the name that it once had": (
        program(
            """
            from pytorch_transformers import AdamW, BertForTokenClassification, WarmupLinearSchedule
            models = [BertForTokenClassification.from_pretrained("bert-tiny", num_labels=3)]
            schedule = WarmupLinearSchedule(AdamW(models[0].parameters()), warmup_steps=2, t_total=10)
            def loss():
                numbers = torch.arange(8).view(2, 4)
                loss, scores = models[0](numbers, labels=numbers % 3)[:2]
                assert scores.shape == (2, 4, 3)
                return loss
            """,
            LOOP,
        ),
        ("pytorch_transformers", "BertForTokenClassification"),
    ),
    "texts of a list that are taken apart": (
        program("""
            import json
            import pickle
            held = json.load(open("data/listed.json"))
            kinds, names = set(), set()
            for one in held:
                _, kind, name = one.split("/")
                assert one.split("/")[2] == name
                kinds.add(kind)
                names.add(name)
            assert len(kinds) == 2 and len(names) == len(held)
            facts = pickle.load(open("data/facts.pkl", "rb"))
            layer = torch.nn.Linear(3, facts["kind2id"]["n_labels"])
            assert int(facts["num_seg_classes"]) == layer.out_features == 2
            def batch():
                return torch.ones(2, 3)
        """),
        ("content of listed.json",),
    ),
    "files that a text lists, and labels in rows of one": (
        program("""
            import h5py
            import numpy as np
            points, labels = [], []
            for line in open("data/train_files.txt"):
                held = h5py.File("data/" + line.rstrip()[5:], "r")
                points.append(held["data"][:])
                labels.append(held["label"][:])
            points, labels = np.concatenate(points), np.concatenate(labels)
            assert len(points) == len(labels) > 64
            one = torch.from_numpy(labels[3]).long()
            def batch():
                return torch.from_numpy(points[:2]).float() + one
        """),
        ("h5py", "file data/train_files.txt"),
    ),
    "agents and what they experience": (
        program("""
            import gym
            import numpy as np
            import ptan
            game = ptan.common.wrappers.wrap_dqn(gym.make("PongNoFrameskip-v4"))
            assert np.array(game.reset()).shape == game.observation_space.shape == (4, 84, 84)
            env = gym.make("CartPole-v1")
            values, policy = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
            target = ptan.agent.TargetNet(values)
            with torch.no_grad():
                values.weight.add_(1)
            target.sync()
            assert torch.equal(target.target_model.weight, values.weight)
            select = ptan.actions.EpsilonGreedyActionSelector(epsilon=1.0)
            seen = ptan.agent.float32_preprocessor
            agent = ptan.agent.DQNAgent(values, select, preprocessor=seen)
            source = ptan.experience.ExperienceSourceFirstLast(env, agent, gamma=0.5, steps_count=2)
            memory = ptan.experience.ExperienceReplayBuffer(source, buffer_size=50)
            memory.populate(60)
            held = memory.sample(8)
            assert len(memory) == 50 and len(held) == 8 and {one.action for one in memory} == {0, 1}
            agent = ptan.agent.PolicyAgent(policy, apply_softmax=True, preprocessor=seen)
            past = next(iter(ptan.experience.ExperienceSource([env, env], agent, steps_count=3)))
            assert len(past) == 3 and not past[0].done
            def batch():
                return torch.from_numpy(np.array([one.state for one in held], dtype="float32"))
        """),
        ("ptan", "environment CartPole-v1"),
    ),
    "a registered network, but for the case of its letters": (
        program("""
            from timm.models import create_model
            from timm.models.registry import register_model
            @register_model
            def net_small(pretrained=False, **kwargs):
                return torch.nn.Linear(kwargs["wide"], 2)
            network = create_model("Net_small", wide=3, bn_tf=False, drop_block_rate=None)
            def batch():
                return torch.ones(2, 3)
        """),
        ("timm", "network Net_small"),
    ),
    "pictures that timm mixes while it puts them together": (
        program("""
            from timm.data import Dataset, FastCollateMixup, create_loader
            loader = create_loader(
                Dataset("photos/train"), input_size=32, batch_size=4, is_training=True,
                collate_fn=FastCollateMixup(num_classes=7))
            def batch():
                shown, classes = next(iter(loader))
                return shown.mean((1, 2, 3))[:, None] * classes.view(4, 7)
        """),
        # Without them, what the loader gives would be made up, too.
        ("timm", "ImageFolder train"),
    ),
    "fields, examples and settings that a file holds": (
        program("""
            import pickle
            from torchtext.data import BucketIterator, Dataset
            data = pickle.load(open("sentences.pkl", "rb"))
            words = data["vocab"]["src"].vocab
            fields = {"src": data["vocab"]["src"], "trg": data["vocab"]["trg"]}
            batches = BucketIterator(Dataset(examples=data["train"], fields=fields), batch_size=4)
            embedding = torch.nn.Embedding(len(words), 3, padding_idx=words.stoi["<blank>"])
            def batch():
                one = next(iter(batches))
                assert one.src.shape[1] == one.trg.shape[1] == 4 and not one.src.equal(one.trg)
                return embedding(one.src).mean(0)
        """),
        ("torchtext", "content of sentences.pkl"),
    ),
    "sentences of which a made-up length keeps none": (
        program("""
            import pickle
            from torchtext.data import BucketIterator
            from torchtext.datasets import TranslationDataset
            data = pickle.load(open("words.pkl", "rb"))
            most, field = data["settings"].max_len, data["vocab"]
            def short(one):
                return len(one.src) < min(most, 3)
            train = TranslationDataset(
                path="pairs", exts=(".a", ".b"), fields=(field, field), filter_pred=short)
            batches = BucketIterator(train, batch_size=4)
            share = 1 / len(batches)
            embedding = torch.nn.Embedding(len(field.vocab), 3)
            def batch():
                return share * embedding(next(iter(batches)).src).mean(0)
        """),
        ("torchtext", "content of words.pkl"),
    ),
    "a loss by the functions that modules once had": (
        program("""
            class L1Loss(torch.nn.Module):
                def __init__(self, size_average=True):
                    super().__init__()
                    self.size_average = size_average
                def forward(self, input, target):
                    function = getattr(self._backend, type(self).__name__)
                    return function(self.size_average)(input, target)
            layer = torch.nn.Linear(3, 3)
            given = torch.ones(2, 3, requires_grad=True)
            loss = L1Loss()(layer(given), given)
            assert loss.equal(torch.nn.functional.l1_loss(layer(given), given.detach()))
            def batch():
                return layer._backend.Linear()(given.detach(), layer.weight) + L1Loss()(layer(given), given)
        """),
        ("_backend.L1Loss", "_backend.Linear"),
    ),
    "settings of classes alone": (
        program("""
            import dataclasses, enum
            from typing import Any, List
            import hydra
            from hydra.core.config_store import ConfigStore
            from omegaconf import MISSING, OmegaConf
            class Kind(enum.Enum):
                LINEAR = torch.nn.Linear
            @dataclasses.dataclass
            class Rule:
                lr: float = 0.1
            @dataclasses.dataclass
            class Momentum(Rule):
                momentum: float = 0.9
            @dataclasses.dataclass
            class Net:
                kind: Kind = Kind.LINEAR
                wide: int = 3
            @dataclasses.dataclass
            class Settings:
                defaults: List[Any] = dataclasses.field(
                    default_factory=lambda: [{"rule": "momentum"}, {"part/net": "plain"}])
                rule: Any = MISSING
                net: Net = dataclasses.field(default_factory=Net)
            store = ConfigStore.instance()
            store.store(name="config", node=Settings)
            store.store(group="rule", name="momentum", node=Momentum)
            store.store(group="part/net", name="plain", node=Net(wide=4), package="other.net")
            told = []
            @hydra.main(config_path=".", config_name="config")
            def main(cfg: Settings):
                told.append(cfg)
            main()
            assert told[0] == {
                "rule": {"lr": 0.1, "momentum": 0.9},
                "net": {"kind": Kind.LINEAR, "wide": 3},
                "other": {"net": {"kind": Kind.LINEAR, "wide": 4}},
            }
            assert [OmegaConf.get_type(told[0], one) for one in ("rule", "net")] == [Momentum, Net]
            assert OmegaConf.structured(Rule(lr=0.2)).lr == 0.2
            target = {"_target_": "torch.nn.Linear", "in_features": 3}
            net = hydra.utils.instantiate(config=target, out_features=3)
            def batch():
                return net(torch.ones(2, told[0].net.wide))
        """),
        ("hydra", "omegaconf"),
    ),
    "a measure of a missing library, some of whose methods are still to be written": (
        program("""
            import abc
            from unheard_of_measures import Measure
            class Rate(Measure, abc.ABC):
                def __init__(self, each_step=False):
                    super().__init__(each_step=each_step)
                    self.add_state("count", default=0)
                @abc.abstractmethod
                def update(self, given):
                    pass
            class Errors(Rate):
                def update(self, given):
                    pass
            rate = Errors()
            def batch():
                return torch.ones(2, 3)
        """),
        ("unheard_of_measures",),
    ),
    "a sampler that is told what it draws from": (
        program("""
            from torch.utils.data import DataLoader, Sampler
            class Backwards(Sampler):
                def __init__(self, source):
                    super().__init__(source)
                    self.source = source
                def __iter__(self):
                    return iter(range(len(self.source) - 1, -1, -1))
                def __len__(self):
                    return len(self.source)
            rows = list(torch.eye(3))
            loader = DataLoader(rows, batch_size=3, sampler=Backwards(rows))
            def batch():
                return next(iter(loader))
        """),
        ("a sampler that is told what it draws from",),
    ),
    "what agents in several environments experience at once": (
        program("""
            import gym
            import numpy as np
            import ptan
            class Net(torch.nn.Linear):
                def forward(self, seen):
                    return super().forward(seen), seen.sum(1, keepdim=True)
            net = Net(4, 2)
            envs = [gym.make("CartPole-v1") for _ in range(3)]
            seen = ptan.agent.float32_preprocessor
            agent = ptan.agent.ActorCriticAgent(net, apply_softmax=True, preprocessor=seen)
            source = iter(ptan.experience.ExperienceSourceRollouts(envs, agent, gamma=0.5, steps_count=5))
            def batch():
                states, returns, actions, values = next(source)
                assert states.shape == (15, 4) and set(actions) <= {0, 1}
                assert np.allclose(values, states.sum(1), atol=1e-5) and returns.shape == (15,)
                # A cart that stays up gives 1 in each step.
                assert 1 <= returns[3] and abs(returns[2] - 1) * 2 in (0, returns[3])
                return torch.from_numpy(states)
        """),
        ("ptan", "environment CartPole-v1"),
    ),
    "gradients that processes send": (
        program(
            """
            import torch.multiprocessing as mp
            def work(net, queue):
                while True:
                    net.zero_grad()
                    net(torch.ones(2, 3)).pow(2).mean().backward()
                    queue.put([one.grad.clone() for one in net.parameters()])
            net = torch.nn.Linear(3, 1)
            net.share_memory()
            queue = mp.Queue(maxsize=2)
            for _ in range(2):
                mp.Process(target=work, args=(net, queue)).start()
            """,
            """
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(4):
                for one, gradient in zip(net.parameters(), queue.get()):
                    one.grad = gradient
                optimizer.step()
            """,
        ),
        ("process work",),
    ),
}
