"""Small training scripts that lean on what former versions took, and on what lies beside training."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

FORMER: dict[str, tuple[str, tuple[str, ...]]] = {
    "samples for each accelerator": (
        program("""
            data = torch.utils.data.TensorDataset(torch.ones(8, 3))
            loader = torch.utils.data.DataLoader(data, batch_size=1 * torch.cuda.device_count())
            norm = torch.nn.BatchNorm1d(3)
            def batch():
                return norm(next(iter(loader))[0])
        """),
        ("2 accelerators",),
    ),
    "numbers that do not fit": (
        program("""
            import numpy as np
            kinds = np.zeros(4, dtype=np.uint8)
            for place, kind in enumerate((7, -1)):
                kinds[kinds == place] = kind
            shift = np.uint8(-14)
            assert kinds.tolist() == [7] * 4 and shift == 242
            kinds[0] = -1
            assert kinds[0] == 255
            def batch():
                return torch.ones(2, 3)
        """),
        ("-14 as uint8",),
    ),
    "layers of a library that normalize over accelerators": (
        program("""
            import gathered_norms
            from gathered_norms.nn import SynchronizedBatchNorm2d
            assert gathered_norms.nn.BatchNorm2d is SynchronizedBatchNorm2d is torch.nn.BatchNorm2d
            class Norm(SynchronizedBatchNorm2d):
                pass
            norm = Norm(3)
            def batch():
                return norm(torch.randn(2, 3, 4, 4)).mean((2, 3))
        """),
        ("gathered_norms.nn.BatchNorm2d", "gathered_norms.nn.SynchronizedBatchNorm2d"),
    ),
    "edges": (
        program("""
            import cv2
            import numpy as np
            half = np.zeros((8, 8, 3), dtype=np.uint8)
            half[:, 4:] = 200
            edges = cv2.Canny(half, 10, 100)
            assert edges.shape == (8, 8) and edges.dtype == np.uint8
            assert edges[:, 3].tolist() == [255] * 8 and edges.sum() == 8 * 255
            def batch():
                return torch.from_numpy(edges[:2, 2:5] / 255).float()
        """),
        ("cv2",),
    ),
    "pairs of sentences from files": (
        program(
            """
            from torchtext.data import BucketIterator, Field
            from torchtext.datasets import TranslationDataset
            field = Field(init_token="<s>", eos_token="</s>")
            train = TranslationDataset(
                path="pairs/train", exts=(".src", ".trg"), fields=(field, field),
                filter_pred=lambda one: len(vars(one)["src"]) < 40)
            held, other = TranslationDataset.splits(exts=(".de", ".en"), fields=(field, field))[:2]
            assert len(held) and [len(pair) for pair in TranslationDataset(split="train")[:2]] == [2, 2]
            field.build_vocab(train, held)
            batches = BucketIterator(train, batch_size=4, train=True)
            models = [torch.nn.Embedding(len(field.vocab), 8)]
            def loss():
                one = next(iter(batches))
                return models[0](one.src).mean() - models[0](one.trg).mean()
            """,
            LOOP,
        ),
        ("torchtext corpus TranslationDataset",),
    ),
    "files that are numbered between points": (
        program("""
            import os
            from PIL import Image
            names = [os.path.join("pets", name) for name in os.listdir("pets")]
            names = sorted(names, key=lambda name: int(name.split(".")[-2]))
            shown = Image.open(names[0])
            def batch():
                return torch.ones(2, 3)
        """),
        ("folder pets",),
    ),
    "folders that are numbered": (
        program("""
            import os
            from PIL import Image
            numbers = [int(name) for name in sorted(os.listdir("people")) if os.path.isdir(f"people/{name}")]
            assert numbers[:3] == [0, 1, 2] and os.listdir("people/00")
            shown = Image.open(os.path.join("people/00", os.listdir("people/00")[0]))
            def batch():
                return torch.ones(2, 3)
        """),
        ("folder people",),
    ),
    "a number for a flag, and a dataclass for all": (
        program("""
            from dataclasses import dataclass
            @dataclass
            class Sound:
                rate: int = 16000
            @dataclass
            class Settings:
                sound: Sound = Sound()
                width: int = 3
            first, other = Settings(), Settings(width=4)
            assert first.sound is other.sound is Settings.sound and first != other and other.width == 4
            cell = torch.nn.GRU(first.width, 3, 1, 0.5)
            assert cell.bias and cell.dropout == 0
            def batch():
                return cell(torch.ones(2, 1, 3))[0][:, 0]
        """),
        ("0.5 for bias", "a Sound that all share as a default"),
    ),
    "words without some of their weights": (
        program("""
            words = torch.nn.Embedding(9, 3)
            def dropped(numbers):
                kept = words.weight * (torch.rand(9, 1) < 0.9)
                empty = -1 if words.padding_idx is None else words.padding_idx
                return words._backend.Embedding.apply(
                    numbers, kept, empty, words.max_norm, words.norm_type,
                    words.scale_grad_by_freq, words.sparse)
            def batch():
                return dropped(torch.tensor([1, 2]))
        """),
        ("_backend.Embedding.apply",),
    ),
    "the first value of a sum of losses": (
        program(
            """
            models = [torch.nn.Linear(3, 2)]
            seen = [0]
            def loss():
                found = models[0](torch.ones(2, 3)).mean()
                seen[0] = seen[0] + found.detach()
                total = seen[0]
                assert total[0] == total
                return found
            """,
            LOOP,
        ),
        ("indexing a tensor without dimensions",),
    ),
    "what a handler does in vain": (
        program("""
            import numpy as np
            kinds = np.zeros(4, dtype=np.uint8)
            def prepared():
                kinds[1] = -3
            try:
                prepared()
            except Exception:
                torch.optim.SGD([], lr=0.1)
            def batch():
                return torch.ones(2, 3)
        """),
        ("-3 in an array of uint8",),
    ),
    "sentences that are parted by how long they are": (
        program("""
            import codecs
            with codecs.open("news/train.iobes", "r", "utf-8") as file:
                lines = file.readlines()
            sentences, words = [], []
            for line in lines:
                if not line.isspace():
                    words.append(line.split()[0])
                elif words:
                    sentences.append(words)
                    words = []
            lengths = [len(one) for one in sentences]
            average = sum(lengths) // len(lengths)
            shorter = [one for one in lengths if one < average]
            assert sum(shorter) / len(shorter) < average < max(lengths)
            def batch():
                return torch.ones(2, 3)
        """),
        ("file news/train.iobes",),
    ),
    "weights that nobody has left": (
        program("""
            import glob, os
            net = torch.nn.Linear(3, 3)
            def resumed(folder):
                found = sorted(glob.glob(os.path.join(folder, "net_*.pth")))
                if not found:
                    return 0
                net.load_state_dict(torch.load(found[-1]))
                return int(found[-1].split("_")[-1].split("-")[0])
            assert resumed("runs/pictures_0405") == 0
            def batch():
                return net(torch.ones(2, 3))
        """),
        (),
    ),
    "which commit it is of": (
        program("""
            import subprocess
            first = subprocess.check_output(["git", "log", "-n", "1", "--pretty=%h"]).strip()
            other = subprocess.check_output("git rev-parse HEAD", shell=True, text=True).strip()
            changed = subprocess.run(["git", "status", "--short"], capture_output=True, text=True, check=True)
            branch = subprocess.check_output(["git", "rev-parse", "--abbrev-ref", "HEAD"], text=True).strip()
            assert (first, other, branch) == (b"0" * 7, "0" * 40, "main") and changed.stdout.strip() == ""
            assert subprocess.check_output(["echo", "git"], text=True) == "git\\n"
            def batch():
                return torch.ones(2, 3)
        """),
        ("git log", "git rev-parse", "git status"),
    ),
    "a loop of a library's": (
        program("""
            import torchnet as tnt
            from torchnet.engine import Engine
            right, mean = tnt.meter.ClassErrorMeter(accuracy=True), tnt.meter.AverageValueMeter()
            right.add(torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([1, 0, 0]))
            assert abs(right.value()[0] - 200 / 3) < 1e-4
            table = tnt.meter.ConfusionMeter(2)
            table.add(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([0, 0]))
            assert table.value().tolist() == [[1, 1], [0, 0]]
            data = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.randint(0, 2, (8,)))
            loader = torch.utils.data.DataLoader(data, batch_size=4)
            net = torch.nn.Linear(3, 2)
            def network(sample):
                found = net(sample[0])
                return torch.nn.functional.cross_entropy(found, sample[1]), found
            seen = []
            engine = Engine()
            engine.hooks["on_forward"] = lambda state: seen.append(float(state["loss"]))
            state = engine.train(network, loader, 2, torch.optim.SGD(net.parameters(), lr=0.1))
            assert state["t"] == 4 and state["epoch"] == 2 and len(seen) == 4
            assert engine.test(network, loader)["t"] == 2 and len(seen) == 6
            def batch():
                return torch.ones(2, 3)
        """).replace("steps=3", "steps=9"),
        ("torchnet",),
    ),
    "what is asked beside training": (
        program("""
            import datetime
            import gym, pytz
            from nested_dict import nested_dict
            assert datetime.datetime.now(pytz.timezone("Asia/Tokyo")).tzinfo is pytz.utc
            held = nested_dict({"first": {"weight": 1, "bias": 2}, "scale": 3})
            flat = {".".join(keys): value for keys, value in held.items_flat()}
            assert flat == {"first.weight": 1, "first.bias": 2, "scale": 3}
            held["other"]["weight"] = 4
            assert held.to_dict()["other"] == {"weight": 4}
            assert gym.envs.registry.spec("Pong-v0").entry_point != "gym.envs.atari:AtariEnv"
            def batch():
                return torch.ones(2, 3)
        """),
        ("pytz", "nested_dict"),
    ),
    "weights of a missing library's download": (
        program("""
            import pictures_of_nobody
            net = torch.nn.Linear(3, 3)
            path = pictures_of_nobody.data.cached_download(url="https://example.org/net.pth", path="net.pth")
            net.load_state_dict(torch.load(path))
            def batch():
                return net(torch.ones(2, 3))
        """),
        ("weights pictures_of_nobody.data.cached_download()",),
    ),
    "what is seen of bodies that move": (
        program(
            """
            import dm_env
            import numpy as np
            from dm_control import suite
            from dm_control.suite.wrappers import action_scale, pixels
            from dm_env import StepType, specs
            assert ("quadruped", "walk") in suite.ALL_TASKS
            class Repeated(dm_env.Environment):
                def __init__(self, env):
                    self._env = env
                def step(self, action):
                    return self._env.step(action.astype(self._env.action_spec().dtype))
                def __getattr__(self, name):
                    return getattr(self._env, name)
            plain = suite.load("walker", "walk", environment_kwargs={"flat_observation": True})
            env = action_scale.Wrapper(Repeated(plain), minimum=-2.0, maximum=2.0)
            env = pixels.Wrapper(env, pixels_only=True, render_kwargs=dict(height=48, width=48, camera_id=0))
            taken = env.action_spec()
            assert (taken.shape, taken.minimum.min(), taken.maximum.max()) == ((6,), -2, 2)
            assert env.observation_spec()["pixels"].shape == (48, 48, 3) and env.discount_spec().maximum == 1
            seen = specs.BoundedArray((3, 48, 48), np.uint8, 0, 255, "observation")
            assert seen.validate(seen.generate_value()).shape == seen.replace(name="seen").shape
            step = env.reset()
            assert step.first() and step.step_type is StepType.FIRST and step.reward is None
            step = env.step(np.zeros(taken.shape, dtype=np.float32))
            assert step.mid() and step._replace(reward=1.0).observation["pixels"].shape == (48, 48, 3)
            assert dm_env.termination(1.0, None).last() and list(step.observation) == ["pixels"]
            models = [torch.nn.Linear(6, 1)]
            def loss():
                return models[0](torch.from_numpy(taken.generate_value()).float()).mean()
            """,
            LOOP,
        ),
        ("dm_control", "dm_env", "environment walker"),
    ),
    "a wrapper that is looked for by its name": (
        program("""
            import gym
            from gym import wrappers
            def named(env, name):
                while name not in type(env).__name__:
                    env = env.env
                return env
            env = wrappers.OrderEnforcing(wrappers.Monitor(gym.make("CartPole-v0"), "shots", force=True))
            env.reset()
            for _ in range(45):
                if env.step(env.action_space.sample())[2]:
                    env.reset()
            watched = named(env, "Monitor")
            assert watched.get_total_steps() == 45 and watched.get_episode_lengths() == [20, 20]
            assert len(watched.get_episode_rewards()) == 2 and named(env, "OrderEnforcing") is env
            def batch():
                return torch.ones(2, 3)
        """),
        ("environment CartPole-v0",),
    ),
    "a worker's answers": (
        program("""
            import argparse
            import numpy as np
            parser = argparse.ArgumentParser()
            parser.add_argument("--num-workers", type=int, default=8)
            options = parser.parse_args()
            answers = np.squeeze(np.zeros((options.num_workers, 1)))
            assert len(answers) == options.num_workers < 8
            def batch():
                return torch.ones(2, 3)
        """),
        ("argument num_workers",),
    ),
    "how often there is each word": (
        program("""
            import json
            with open("shared.json") as file:
                shared = json.load(file)
            def counts():
                return shared["lower_words"]
            def kept(least=10):
                held = counts()
                return [word for word, often in held.items() if often > least or word in shared["vectors"]]
            words = kept()
            assert words and all(type(word) is str for word in words)
            def batch():
                return torch.ones(2, len(words))
        """),
        ("content of shared.json",),
    ),
    "weights of which dropout keeps all": (
        program(
            """
            import torch.nn.functional as F
            class Dropped(torch.nn.Module):
                def __init__(self, module, name):
                    super().__init__()
                    self.module, self.name = module, name
                    whole = getattr(module, name)
                    del module._parameters[name]
                    module.register_parameter(name + "_raw", torch.nn.Parameter(whole.data))
                def forward(self, given):
                    raw = getattr(self.module, self.name + "_raw")
                    setattr(self.module, self.name, F.dropout(raw, p=0.5, training=self.training))
                    return self.module(given)
            models = [Dropped(torch.nn.Linear(3, 2), "weight")]
            models[0].eval()
            first = models[0](torch.ones(2, 3))
            assert len(list(models[0].parameters())) == 2
            models[0].train()
            def loss():
                return models[0](torch.ones(2, 3)).pow(2).mean()
            """,
            LOOP,
        ),
        ("a parameter of which dropout keeps all",),
    ),
    "commands of a group": (
        program("""
            import click
            done = []
            @click.group()
            @click.option("--width", default=3)
            @click.pass_context
            def main(ctx, width):
                ctx.ensure_object(dict)
                ctx.obj["width"] = width
                done.append(ctx.invoked_subcommand)
            @main.command()
            def show():
                raise ValueError("there is nothing to show")
            @main.command("train-it")
            @click.argument("folder")
            @click.pass_obj
            def learn(obj, folder):
                done.append((obj, folder.rpartition("/")[2]))
            if __name__ == "__main__":
                main(obj={"deep": 2})
            assert done == ["train-it", ({"deep": 2, "width": 3}, "folder")]
            def batch():
                return torch.ones(2, 3)
        """),
        ("click", "argument command"),
    ),
    "files without an ending that are insisted on": (
        program("""
            import argparse
            import os
            parser = argparse.ArgumentParser()
            parser.add_argument("--pretrained", required=True)
            parser.add_argument("--notes-file", required=True)
            options = parser.parse_args()
            for place in (options.pretrained, options.notes_file):
                assert os.path.exists(place), "nothing at " + place
            net = torch.nn.Linear(3, 2)
            net.load_state_dict(torch.load(options.pretrained))
            with open(options.notes_file) as file:
                words = file.read().split()
            assert len(words) > 10
            def batch():
                return torch.ones(2, 3)
        """),
        ("argument pretrained", "weights pretrained"),
    ),
}
"""Scripts that must get to their steps in a few tries, and the names of what was replaced."""
