"""Small scripts whose training is in the hands of a library, or whose settings or worlds are."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

TRAINERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pytorch_lightning with two optimizers": (
        program(
            """
            import pytorch_lightning as pl
            from pytorch_lightning.callbacks import ModelCheckpoint
            from pytorch_lightning.loggers import TensorBoardLogger
            class Pair(pl.LightningModule):
                def __init__(self, width=2, rate=0.1):
                    super().__init__()
                    self.save_hyperparameters()
                    self.one, self.two = torch.nn.Linear(2, width), torch.nn.Linear(width, 1)
                def training_step(self, batch, batch_idx, optimizer_idx):
                    held = [one.requires_grad for one in (self.one.weight, self.two.weight)]
                    assert held == [optimizer_idx == 0, optimizer_idx == 1]
                    loss = self.two(self.one(batch[0])).mean()
                    self.log("loss", loss)
                    return {"loss": loss}
                def configure_optimizers(self):
                    rate = self.hparams.rate
                    return [torch.optim.SGD(one.parameters(), rate) for one in (self.one, self.two)], []
            data = torch.utils.data.TensorDataset(torch.ones(8, 2))
            shown = TensorBoardLogger("x")
            trainer = pl.Trainer(gpus=1, max_epochs=2, callbacks=[ModelCheckpoint()], logger=shown)
            trainer.fit(Pair(), torch.utils.data.DataLoader(data, batch_size=4))
            """,
            "",
        ),
        ("pytorch_lightning",),
    ),
    "lightning with steps of one's own": (
        program(
            """
            import lightning as L
            class Net(L.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.automatic_optimization = False
                    self.layer = torch.nn.Linear(2, 1)
                def training_step(self, batch):
                    optimizer = self.optimizers()
                    optimizer.zero_grad()
                    self.manual_backward(self.layer(batch[0]).mean())
                    optimizer.step()
                def configure_optimizers(self):
                    return {"optimizer": torch.optim.SGD(self.parameters(), lr=0.1)}
            class Data(L.LightningDataModule):
                def setup(self, stage):
                    self.held = torch.utils.data.TensorDataset(torch.ones(8, 2))
                def train_dataloader(self):
                    return torch.utils.data.DataLoader(self.held, batch_size=2)
            L.seed_everything(0)
            L.Trainer(max_epochs=2, accelerator="auto").fit(Net(), datamodule=Data())
            """,
            "",
        ),
        ("lightning",),
    ),
    "ignite": (
        program(
            """
            from ignite.engine import Engine, Events, create_supervised_evaluator
            from ignite.metrics import Accuracy, RunningAverage
            from ignite.handlers import ModelCheckpoint
            from ignite.contrib.handlers import ProgressBar
            layer = torch.nn.Linear(2, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            def step(engine, batch):
                optimizer.zero_grad()
                layer(batch).mean().backward()
                optimizer.step()
                return {"loss": 0.0}
            trainer = Engine(step)
            RunningAverage(output_transform=lambda held: held["loss"]).attach(trainer, "loss")
            ProgressBar().attach(trainer, metric_names=["loss"])
            judge = create_supervised_evaluator(layer, metrics={"share": Accuracy()})
            told = []
            @trainer.on(Events.ITERATION_COMPLETED(every=2))
            def tell(engine):
                told.append((engine.state.iteration, engine.state.metrics["loss"]))
            trainer.add_event_handler(Events.EPOCH_COMPLETED, ModelCheckpoint("kept", "net"), {"net": layer})
            trainer.run([torch.ones(2, 2)] * 2, max_epochs=1)
            assert told == [(2, 0.0)]
            trainer.run([torch.ones(2, 2)] * 2, max_epochs=1)
            """,
            "",
        ),
        ("ignite",),
    ),
    "gin": (
        program(
            """
            import gin
            @gin.configurable
            class Net(torch.nn.Module):
                def __init__(self, width, kind=None):
                    super().__init__()
                    self.layer = torch.nn.Linear(2, width)
                    assert issubclass(kind, torch.nn.ReLU)
            gin.external_configurable(torch.nn.ReLU, "relu")
            @gin.configurable("fit")
            def train(rate=0.5, widths=(), net=None):
                assert (rate, widths) == (0.1, [2, 3])
                return net
            gin.parse_config(["fit.rate = 0.1", "fit.widths = [2,", " 3]  # widths", "fit.net = @Net()",
                              "Net.width = %size", "size = 3", "Net.kind = @relu"])
            models = [train()]
            assert models[0].layer.out_features == 3 and gin.query_parameter("fit.rate") == 0.1
            def loss():
                return models[0].layer(torch.ones(2, 2)).mean()
            """,
            LOOP,
        ),
        ("gin",),
    ),
    "settings of ruamel": (
        program(
            """
            import io
            import ruamel.yaml
            from ruamel.yaml import YAML
            held = YAML(typ="safe").load(io.StringIO("width: 3"))
            assert held["width"] == ruamel.yaml.safe_load("width: 3")["width"]
            models = [torch.nn.Linear(2, held["width"])]
            def loss():
                return models[0](torch.ones(2, 2)).mean()
            """,
            LOOP,
        ),
        ("ruamel",),
    ),
    "numbers in settings of omegaconf": (
        program(
            """
            from omegaconf import OmegaConf
            held = OmegaConf.create("rate: 1e-1\\nname: e1\\ninner:\\n  least: 1.5E-3")
            assert (held.rate, held.name, held.inner.least) == (0.1, "e1", 0.0015)
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.ones(2, 2)).mean() * held.rate
            """,
            LOOP,
        ),
        ("omegaconf",),
    ),
    "several agents at once": (
        program(
            """
            from pettingzoo.mpe import simple_spread_v3, simple_adversary_v2
            world = simple_spread_v3.parallel_env(N=3, max_cycles=25, continuous_actions=True)
            seen, told = world.reset(seed=1)
            one = world.possible_agents[0]
            assert world.observation_space(one).shape == (18,) and world.action_space(one).shape == (5,)
            other = simple_adversary_v2.parallel_env()
            assert other.action_space("adversary_0").n == 5 and len(other.reset()) == 3
            models = [torch.nn.Linear(18, 5)]
            def loss():
                global seen
                given = {agent: torch.tensor(seen[agent]) for agent in world.agents}
                actions = {agent: models[0](one).detach().numpy() for agent, one in given.items()}
                seen, rewards, ended, cut, told = world.step(actions)
                return models[0](torch.tensor(seen[one])).mean() * rewards[one]
            """,
            LOOP,
        ),
        ("pettingzoo",),
    ),
    "several agents in turn": (
        program(
            """
            from pettingzoo.mpe import simple_reference_v3
            world = simple_reference_v3.env()
            world.reset()
            models = [torch.nn.Linear(21, 50)]
            turns, states = [], []
            for agent in world.agent_iter():
                state, reward, ended, cut, told = world.last()
                turns.append(agent)
                states.append(torch.tensor(state))
                world.step(None if ended or cut else 0)
            assert turns[:3] == ["agent_0", "agent_1", "agent_0"] and len(turns) < 100
            def loss():
                return models[0](torch.stack(states)).mean()
            """,
            LOOP,
        ),
        ("pettingzoo",),
    ),
    "newer worlds of unity": (
        program(
            """
            import numpy as np
            from mlagents_envs.environment import UnityEnvironment
            from mlagents_envs.base_env import ActionTuple
            from mlagents_envs.side_channel.engine_configuration_channel import EngineConfigurationChannel
            world = UnityEnvironment("Crawler.app", side_channels=[EngineConfigurationChannel()])
            world.reset()
            name = list(world.behavior_specs)[0]
            spec = world.behavior_specs[name]
            size, count = spec.observation_specs[0].shape[0], spec.action_spec.continuous_size
            models, steps = [torch.nn.Linear(size, count)], 0
            while True:
                deciding, ended = world.get_steps(name)
                if len(ended):
                    break
                world.set_actions(name, ActionTuple(continuous=np.zeros((len(deciding), count), np.float32)))
                world.step()
                steps += 1
            assert steps == 20 and deciding.obs[0].shape == (12, size) == ended.obs[0].shape
            def loss():
                return models[0](torch.from_numpy(deciding.obs[0])).mean()
            """,
            LOOP,
        ),
        ("mlagents_envs", "environment Crawler"),
    ),
    "an older handle of apex": (
        program(
            """
            from apex import amp
            amp._amp_state.loss_scalers[0]._loss_scale = 2**20
            handle = amp.init(True)
            models = [torch.nn.Linear(2, 2)]
            optimizer = torch.optim.SGD(models[0].parameters(), lr=0.1)
            for _ in range(2):
                with handle.scale_loss(models[0](torch.ones(2, 2)).mean(), optimizer) as scaled:
                    scaled.backward()
                optimizer.step()
            def loss():
                return models[0](torch.ones(2, 2)).mean()
            """,
            LOOP,
        ),
        ("apex",),
    ),
    "rates by layer": (
        program(
            """
            from apex.parallel.LARC import LARC
            models = [torch.nn.Linear(2, 2)]
            sgd = torch.optim.SGD(models[0].parameters(), lr=0.1, weight_decay=0.1)
            optimizer = LARC(sgd, 0.5, clip=False)
            for _ in range(2):
                optimizer.zero_grad()
                models[0](torch.ones(2, 2)).mean().backward()
                weight, gradient = models[0].weight.detach().clone(), models[0].weight.grad.clone()
                optimizer.step()
                ratio = 0.5 * weight.norm() / (gradient.norm() + 0.1 * weight.norm())
                wanted = weight - 0.1 * ratio * (gradient + 0.1 * weight)
                assert torch.allclose(models[0].weight, wanted), (models[0].weight, wanted)
                assert optimizer.param_groups[0]["weight_decay"] == 0.1
            def loss():
                return models[0](torch.ones(2, 2)).mean()
            """,
            LOOP,
        ),
        ("apex",),
    ),
    "pictures that the script wrote itself": (
        program(
            """
            import glob, os
            import cv2, imageio
            import numpy as np
            from PIL import Image
            os.makedirs("parts/left")
            for number, path in enumerate(sorted(glob.glob("pictures/*.png"))):
                pixels = np.array(Image.open(path).convert("RGB"))
                Image.fromarray(pixels[:, : pixels.shape[1] // 2]).save(f"parts/left/{number}.png")
            left = glob.glob("parts/left/*")
            assert left
            cv2.imwrite("one.png", pixels[..., ::-1])
            imageio.imwrite("two.png", pixels)
            for name in ("one.png", "two.png"):
                assert (np.array(Image.open(name)) == pixels).all()
            given = torch.from_numpy(np.array(Image.open(left[0]))).float()
            assert given.shape[0] == 2 * given.shape[1]
            models = [torch.nn.Linear(3, 2)]
            def loss():
                return models[0](given).mean()
            """,
            LOOP,
        ),
        ("folder pictures",),
    ),
    "pictures of which some are four times as large as others": (
        program(
            """
            import torchvision.transforms as T
            from PIL import Image
            large, small = (T.Compose([T.CenterCrop(size), T.ToTensor()]) for size in (400, 100))
            picture = Image.open("given.png").convert("RGB").resize((512, 512))
            models = [torch.nn.Upsample(scale_factor=4), torch.nn.Conv2d(3, 3, 1)]
            def loss():
                return (models[0](models[1](small(picture)[None])) - large(picture)[None]).mean()
            """,
            LOOP,
        ),
        ("pictures of 400", "pictures of 100"),
    ),
    "a queue of what processes send": (
        program(
            """
            import torch.multiprocessing as mp
            layer = torch.nn.Linear(2, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            class Worker(mp.Process):
                def __init__(self, out):
                    super().__init__()
                    self.out = out
                def run(self):
                    for _ in range(3):
                        optimizer.zero_grad()
                        layer(torch.ones(2, 2)).mean().backward()
                        optimizer.step()
                        self.out.put(1.0)
                    self.out.put(None)
            out = mp.Queue()
            worker = Worker(out)
            worker.start()
            while out.get() is not None:
                pass
            worker.join()
            """,
            "",
        ),
        (),
    ),
    "sequences that are longer than what is made up": (
        program(
            """
            import numpy as np
            class Parts(torch.utils.data.Dataset):
                def __init__(self):
                    self.held = torch.from_numpy(np.load("series.npy")).float()
                def __getitem__(self, number):
                    return self.held[number : number + 90, 0]
                def __len__(self):
                    return len(self.held) - 90
            loader = torch.utils.data.DataLoader(Parts(), batch_size=4, shuffle=True)
            models = [torch.nn.Linear(90, 2)]
            def loss():
                return models[0](next(iter(loader))).mean()
            """,
            LOOP,
        ),
        ("content of series.npy",),
    ),
    "a table without the names of its columns": (
        program(
            """
            rows = [line.strip().split("\\t", 1) for line in open("train.tsv")]
            labels = torch.tensor([int(label) for label, _ in rows])
            assert len(labels) == 64
            models = [torch.nn.Embedding(64, 2)]
            def loss():
                return models[0](labels).mean()
            """,
            LOOP,
        ),
        ("content of train.tsv",),
    ),
    "everything of a module": (
        program(
            """
            from torchvision.transforms import *
            models = [torch.nn.Linear(3, 2)]
            prepare = Compose([Resize(4), ToTensor(), Normalize([0.5], [0.5])])
            def loss():
                return models[0](prepare(ToPILImage()(torch.rand(3, 8, 8))).mean((1, 2))).mean()
            """,
            LOOP,
        ),
        ("torchvision",),
    ),
    "a tensor for a list of tensors": (
        program(
            """
            models = [torch.nn.Linear(2, 2)]
            def loss():
                found = models[0](torch.ones(3, 2))
                assert torch.stack(found).shape == (3, 2)
                return torch.stack(found).mean()
            """,
            LOOP,
        ),
        ("torch.stack of a tensor",),
    ),
    "a length that is insisted on": (
        program(
            """
            import pickle
            held = pickle.load(open("spoken.pkl", "rb"))
            frames = held[0]
            assert frames.shape[1] >= 128
            models = [torch.nn.Linear(128, 2)]
            def loss():
                return models[0](torch.as_tensor(frames[:, :128]).float()).mean()
            """,
            LOOP,
        ),
        ("content of spoken.pkl",),
    ),
}
"""Scripts that must get to their steps in a few tries, and the names of what was replaced."""
