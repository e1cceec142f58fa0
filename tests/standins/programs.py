"""Small training scripts, each of which lacks something, and what a run must say that it replaced."""

from __future__ import annotations

import textwrap

STEP = """
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(2))
    model(batch())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(batch()).pow(2).mean().backward()
        optimizer.step()
"""
"""Three steps on what ``batch()`` returns."""


def program(text: str, step: str = STEP) -> str:
    """A script: ``text`` defines ``batch``, and the steps follow."""
    return "import torch\n" + textwrap.dedent(text) + textwrap.dedent(step)


REACHED: dict[str, tuple[str, tuple[str, ...]]] = {
    "torchvision": (
        program("""
            import torchvision.transforms as transforms
            from torchvision import datasets
            from torchvision.utils import save_image
            data = datasets.MNIST("data", train=True, download=True, transform=transforms.Compose(
                [transforms.Resize(32), transforms.ToTensor(), transforms.Normalize([0.5], [0.5])]))
            assert len(data) == 600
            loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, shuffle=True)
            def batch():
                pictures, labels = next(iter(loader))
                assert pictures.shape == (4, 1, 32, 32) and labels.shape == (4,)
                save_image(pictures, "out/grid.png")
                return pictures
        """),
        ("torchvision.datasets.MNIST", "constant batch_size"),
    ),
    "folder": (
        program("""
            import torchvision
            data = torchvision.datasets.ImageFolder("pictures", torchvision.transforms.Compose(
                [torchvision.transforms.CenterCrop(64), torchvision.transforms.ToTensor()]))
            def batch():
                return torch.stack([data[i][0] for i in range(4)])
        """),
        ("ImageFolder pictures",),
    ),
    "weights": (
        program("""
            from torchvision import models
            network = models.resnet18(pretrained=True)
            network.load_state_dict(torch.load("checkpoint.pth"))
            network.eval()
            def batch():
                return network(torch.ones(2, 3, 64, 64)).detach()
        """),
        ("weights checkpoint.pth",),
    ),
    "files": (
        program("""
            import os
            from PIL import Image
            names = sorted(name for name in os.listdir("photos") if name.endswith(".png"))
            def batch():
                picture = Image.open(os.path.join("photos", names[0])).convert("RGB").resize((16, 8))
                assert picture.size == (16, 8)
                return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(1, -1) / 255
        """),
        ("folder photos",),
    ),
    "text": (
        program("""
            words = open("corpus/train.txt").read().split()
            vocabulary = sorted(set(words))
            def batch():
                return torch.tensor([[float(vocabulary.index(word)) for word in words[:12]]])
        """),
        ("file corpus/train.txt",),
    ),
    "arguments": (
        program("""
            import argparse
            parser = argparse.ArgumentParser()
            parser.add_argument("corpus")
            parser.add_argument("--size", type=int, required=True)
            parser.add_argument("--kind", choices=["small", "large"], required=True)
            parser.add_argument("--batch-size", type=int, default=256)
            given = parser.parse_args()
            assert given.kind == "small" and given.size == 2
            def batch():
                return torch.ones(given.batch_size, given.size)
        """),
        ("argument corpus", "argument size", "argument kind", "argument batch_size"),
    ),
    "cuda": (
        program("""
            device = torch.device("cuda:0")
            network = torch.nn.DataParallel(torch.nn.Linear(3, 3).cuda(), device_ids=[0, 1])
            def batch():
                torch.cuda.synchronize()
                return network(torch.randn(4, 3, device=device)).to("cuda", non_blocking=True).detach()
        """),
        ("cuda",),
    ),
    "distributed": (
        program("""
            import torch.distributed as dist
            dist.init_process_group("nccl")
            from torch.nn.parallel import DistributedDataParallel as Parallel
            network = Parallel(torch.nn.Linear(3, 3), device_ids=[dist.get_rank()])
            def batch():
                dist.barrier()
                return network(torch.ones(4, 3)).detach()
        """),
        ("torch.distributed", "DistributedDataParallel"),
    ),
    "gym": (
        program("""
            import gym
            env = gym.make("CartPole-v1")
            def batch():
                states, over = [env.reset()], False
                while not over:
                    state, reward, over, info = env.step(env.action_space.sample())
                    states.append(state)
                return torch.stack([torch.as_tensor(state) for state in states])
        """),
        ("environment CartPole-v1",),
    ),
    "gym as it is now": (
        program("""
            import gym
            env = gym.make("Pendulum-v1")
            def batch():
                for _ in range(2):
                    state, _ = env.reset()
                    state, reward, ended, cut, info = env.step(env.action_space.sample())
                return torch.as_tensor(state)[None]
        """),
        ("environment Pendulum-v1",),
    ),
    "gymnasium": (
        program("""
            import gymnasium
            envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("HalfCheetah-v4")] * 2)
            assert envs.single_action_space.shape == (6,)
            def batch():
                states, info = envs.reset(seed=1)
                states, rewards, ended, cut, info = envs.step(envs.action_space.sample())
                return torch.as_tensor(states)
        """),
        ("environment HalfCheetah-v4",),
    ),
    "logging": (
        program("""
            import matplotlib.pyplot as plt
            import wandb
            from tensorboardX import SummaryWriter
            from tqdm import tqdm
            wandb.init(project="p")
            figure, axes = plt.subplots(1, 2)
            axes[0].plot([1, 2])
            writer = SummaryWriter("runs")
            def batch():
                for value in tqdm([1.0], desc="one"):
                    writer.add_scalar("value", value, 0)
                    plt.savefig("plot.png")
                return torch.full((2, 2), value)
        """),
        ("wandb", "matplotlib", "tensorboardX", "tqdm"),
    ),
    "settings": (
        program("""
            from absl import app, flags
            import yaml
            flags.DEFINE_integer("batch_size", 64, "")
            settings = yaml.safe_load("size: 3\\nlayers: [1, 2]\\nnames:\\n  - a\\n  - b: 1.5\\n")
            assert settings == {"size": 3, "layers": [1, 2], "names": ["a", {"b": 1.5}]}
            def batch():
                return torch.ones(flags.FLAGS.batch_size, settings["size"])
        """),
        ("absl", "argument batch_size"),
    ),
    "sizes": (
        program("""
            batch_size = 512
            def batch():
                assert batch_size == 4
                return torch.ones(batch_size, 2)
        """),
        ("constant batch_size",),
    ),
    "old names": (
        program("""
            import collections
            assert collections.Mapping and list(xrange(2)) == [0, 1]
            def batch():
                return torch.full((2, 2), float(torch.tensor(2.0).data[0]))
        """),
        ("indexing a tensor without dimensions",),
    ),
    "process": (
        program(
            """
            import torch.multiprocessing as mp
            def batch():
                return torch.ones(2, 2)
            def work(rank):
                model = torch.nn.Linear(2, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for _ in range(3):
                    optimizer.zero_grad()
                    model(batch()).sum().backward()
                    optimizer.step()
            if __name__ == "__main__":
                workers = [mp.Process(target=work, args=(rank,)) for rank in range(2)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
            """,
            "",
        ),
        ("process work",),
    ),
    "caller": (
        program(
            """
            def train(steps=3, batch_size=64):
                model = torch.nn.Linear(2, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for _ in range(steps):
                    optimizer.zero_grad()
                    model(torch.ones(batch_size, 2)).sum().backward()
                    optimizer.step()
            """,
            "",
        ),
        ("a caller of train",),
    ),
}
"""Scripts that must get to their steps, and the names of what was replaced."""

STOPPED: dict[str, tuple[str, str]] = {
    "a loader without batches": (
        program("""
            def batches(loader):
                while True:
                    for one in loader:
                        yield one
            held = batches(torch.utils.data.DataLoader([1.0, 2.0], batch_size=3, drop_last=True))
            def batch():
                return next(held)
        """),
        "a loader that is asked again and again has no batches",
    ),
    "value": (
        program("""
            import instrument_of_nobody
            def batch():
                return torch.ones(2, 2) * instrument_of_nobody.read()
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "condition": (
        program("""
            import instrument_of_nobody
            def batch():
                return torch.ones(2, 2 if instrument_of_nobody.fine() else 3)
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "network": (
        program("""
            import instrument_of_nobody
            instrument_of_nobody.prepare(torch.nn.Linear(1, 1))
            def batch():
                return torch.ones(2, 2)
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "a base's network": (
        program("""
            import instrument_of_nobody
            class Own(instrument_of_nobody.Base):
                def __init__(self, net):
                    instrument_of_nobody.Base.__init__(self, net)
            Own(torch.nn.Linear(1, 1))
            def batch():
                return torch.ones(2, 2)
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "caught": (
        program("""
            import instrument_of_nobody
            def batch():
                try:
                    return torch.ones(2, 2) + instrument_of_nobody.read()
                except BaseException:
                    return torch.ones(2, 2)
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "decorated": (
        program("""
            import instrument_of_nobody
            numbers = open("numbers.txt").read()
            models = [torch.nn.Linear(2, 2)]
            @instrument_of_nobody.often
            def scaled():
                models[0](torch.ones(1, 2)).sum().backward()
            scaled()
            def batch():
                return torch.ones(2, 2)
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "a decorated attribute": (
        program("""
            import instrument_of_nobody
            class Settings:
                @instrument_of_nobody.attribute
                def wide(self):
                    return True
            def batch():
                return torch.ones(2, 2 if Settings().wide else 3)
        """),
        "instrument_of_nobody is missing and its values are needed at line",
    ),
    "environment": (
        program("""
            import gym
            env = gym.make("OfNobody-v0")
            def batch():
                return torch.ones(2, 2)
        """),
        "the environment OfNobody-v0 is not here",
    ),
}
"""Scripts that need what nobody can know, and the reason that must be given."""
