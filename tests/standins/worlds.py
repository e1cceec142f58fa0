"""Small training scripts whose environments are those of packages that are not there, or of nobody."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

POLICY = """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = env.reset()
    for _ in range(3):
        chances = torch.softmax(model(seen(state)), -1)
        state, reward, done, info = env.step(act(chances))
        optimizer.zero_grad()
        (chances.sum() * reward).backward()
        optimizer.step()
"""
"""Three steps, each after one of an environment."""

WORLDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "robots of MuJoCo with rewards of the script's own": (
        program(
            """
            import gym
            import numpy as np
            from gym.envs.mujoco import AntEnv, half_cheetah, mujoco_env
            from gym.envs.registration import load, register
            from gym.wrappers import TimeLimit
            class Pace(half_cheetah.HalfCheetahEnv):
                def __init__(self, pace=1.0):
                    self.pace = pace
                    super().__init__()
                def _get_obs(self):
                    held = self.sim.data
                    parts = [held.qpos.flat[1:], held.qvel.flat, self.get_body_com("torso").flat]
                    return np.concatenate(parts).astype(np.float32).flatten()
                def step(self, action):
                    before = self.sim.data.qpos[0]
                    self.do_simulation(action, self.frame_skip)
                    speed = (self.sim.data.qpos[0] - before) / self.dt
                    over = not np.isfinite(self.state_vector()).all()
                    return self._get_obs(), -abs(speed - self.pace), over, {"pace": self.pace}
            class Hop(mujoco_env.MujocoEnv):
                def __init__(self):
                    mujoco_env.MujocoEnv.__init__(self, "hopper.xml", 4)
                def _get_obs(self):
                    return np.concatenate([self.data.qpos.flat[1:], self.data.qvel.flat])
                def step(self, action):
                    self.do_simulation(action, self.frame_skip)
                    return self._get_obs(), 0.0, bool(self.sim.data.qpos[1] < 0.7), {}
                def reset_model(self):
                    self.set_state(self.init_qpos, self.init_qvel)
                    return self._get_obs()
            assert Hop().reset().shape == (11,) and not Hop().step(np.zeros(3))[2]
            assert AntEnv().reset().shape == (111,) and abs(AntEnv().dt - 0.05) < 1e-9
            def limited(entry_point, **settings):
                return TimeLimit(load(entry_point)(**settings), max_episode_steps=6)
            register("Pace-v1", entry_point=limited, kwargs={"entry_point": "__main__:Pace"})
            register("Pace-v2", entry_point=Pace, max_episode_steps=9)
            for name, steps in (("Pace-v1", 6), ("Pace-v2", 9)):
                env = gym.make(name, pace=2.0)
                env.reset()
                ends = [env.step(env.action_space.sample())[2] for _ in range(steps)]
                assert ends == [False] * (steps - 1) + [True] and env.unwrapped.pace == 2.0
            assert env.observation_space.shape == (20,) and env.observation_space.dtype == np.float32
            model = torch.nn.Linear(20, 6)
            def seen(state):
                return torch.from_numpy(state)
            def act(chances):
                return chances.detach().numpy()
            """,
            POLICY,
        ),
        ("MuJoCo's model half_cheetah.xml", "MuJoCo's model hopper.xml", "MuJoCo's model ant.xml"),
    ),
    "several environments at once that go on as the script says": (
        program(
            """
            import gym
            import numpy as np
            from gym.vector import SyncVectorEnv
            from gym.vector.utils import concatenate, create_empty_array
            class UntilOver(SyncVectorEnv):
                def step_wait(self):
                    seen, rewards, acting = [], [], iter(self._actions)
                    for number, env in enumerate(self.envs):
                        if not self._dones[number]:
                            state, reward, self._dones[number], _ = env.step(next(acting))
                            seen.append(state)
                            rewards.append(reward)
                    states = create_empty_array(self.single_observation_space, n=len(seen), fn=np.zeros)
                    concatenate(seen, states, self.single_observation_space)
                    return states, np.array(rewards), np.copy(self._dones), {}
            several = UntilOver([lambda: gym.make("CartPole-v1")] * 3)
            states = several.reset()
            assert not several._dones.any()
            while not several._dones.all():
                states, rewards, _, _ = several.step(np.zeros(int((~several._dones).sum()), dtype=int))
                assert states.shape == (len(rewards), 4)
            env, model = gym.make("CartPole-v1"), torch.nn.Linear(4, 2)
            def seen(state):
                return torch.from_numpy(state)
            def act(chances):
                return int(chances.argmax())
            """,
            POLICY,
        ),
        ("environment CartPole-v1",),
    ),
    "a game that is drawn": (
        program(
            """
            import numpy as np
            import pygame
            from pygame import Rect, surfarray
            from pygame.locals import K_SPACE, QUIT, USEREVENT

            class Game:
                def __init__(self):
                    pygame.init()
                    self.screen = pygame.display.set_mode((40, 30))
                    self.clock, self.font = pygame.time.Clock(), pygame.font.Font(None, 10)
                    self.ball = pygame.image.load("sprites/ball.png").convert_alpha()
                    self.wall = pygame.Surface((4, 30))
                    self.wall.fill((0, 255, 0))
                    self.place = Rect(0, 0, 8, 6)
                    self.place.center = 20, 15
                def play(self, action):
                    assert not any(one.type == QUIT for one in pygame.event.get())
                    assert not pygame.key.get_pressed()[K_SPACE] and self.clock.tick(50) == 20
                    self.place.move_ip(2 * action - 1, 0)
                    over = self.place.collidelist([Rect(0, 0, 4, 30), Rect(36, 0, 4, 30)]) >= 0
                    self.screen.fill((0, 0, 0))
                    self.screen.blits([(self.wall, (0, 0)), (self.wall, (36, 0))])
                    self.screen.blit(pygame.transform.scale(self.ball, self.place.size), self.place)
                    self.screen.blit(self.font.render("2", True, (9, 9, 9)), (10, 0))
                    pygame.draw.rect(self.screen, pygame.Color("red"), (10, 20, 3, 2))
                    pygame.display.flip()
                    return surfarray.array3d(pygame.display.get_surface()), float(not over), over

            class Thing(pygame.sprite.Sprite):
                def __init__(self, at):
                    super().__init__()
                    self.image = pygame.Surface((6, 6), pygame.SRCALPHA)
                    pygame.draw.circle(self.image, (1, 2, 3), (3, 3), 3)
                    self.rect = self.image.get_rect(center=at)

            one, other, far = Thing((9, 9)), Thing((12, 12)), Thing((30, 9))
            group = pygame.sprite.Group(other, far)
            assert pygame.sprite.spritecollide(one, group, False) == [other]
            assert pygame.sprite.collide_mask(one, other) is not None and one.image.get_at((0, 0)).a == 0
            assert pygame.mask.from_surface(one.image).count() == 32
            pygame.event.post(pygame.event.Event(USEREVENT, told=1))
            assert [one.told for one in pygame.event.get()] == [1] and pygame.event.poll().type == 0
            shape = pygame.transform.rotate(pygame.Surface((5, 3)), 90).get_size()
            assert shape == (3, 5) and pygame.math.Vector2(3, 4).length() == 5

            game = Game()
            turns = [game.play(number % 2) for number in range(4)]
            seen = turns[0][0]
            assert seen.shape == (40, 30, 3) and seen[0, 0].tolist() == [0, 255, 0]
            assert seen[11, 21].tolist() == [255, 0, 0] and seen[19, 15].any()
            assert (turns[0][0] != turns[1][0]).any() and (turns[1][0] == turns[3][0]).all()
            states = torch.from_numpy(np.stack([seen for seen, _, _ in turns])).float() / 255
            models = [torch.nn.Linear(3600, 2)]
            def loss():
                rewards = torch.tensor([reward for _, reward, _ in turns])
                return (models[0](states.flatten(1))[:, 0] - rewards).pow(2).mean()
            """,
            LOOP,
        ),
        ("pygame", "pictures of pygame"),
    ),
    "an unknown environment whose actions are numbered": (
        program(
            """
            import gym
            env = gym.make("OfNobody-v0")
            assert 0 <= env.action_space.sample() < env.action_space.n
            model = torch.nn.Linear(4, env.action_space.n)
            def seen(state):
                return torch.from_numpy(state).float()
            def act(chances):
                return int(chances.argmax())
            """,
            POLICY,
        ),
        ("environment OfNobody-v0",),
    ),
    "an unknown environment that is seen": (
        program(
            """
            import gym
            env = gym.make("OfNobody-v0")
            first = torch.nn.Conv2d(3, 4, 8, 4)
            model = torch.nn.Sequential(first, torch.nn.Flatten(), torch.nn.Linear(1600, 3))
            def seen(state):
                return torch.from_numpy(state.transpose(2, 0, 1)).float()[None]
            def act(chances):
                return int(chances.argmax(-1))
            """,
            POLICY,
        ),
        ("environment OfNobody-v0",),
    ),
    "methods that wrappers had at first": (
        program(
            """
            import gym
            class Floats(gym.ObservationWrapper):
                def _observation(self, state):
                    return (state / 2).astype("float32")
            class Rewards(gym.RewardWrapper):
                def _reward(self, reward):
                    return 2.0
            env = Rewards(Floats(gym.make("OfNobody-v0")))
            assert env.reset().dtype == "float32" and env.step(env.action_space.sample())[1] == 2.0
            model = torch.nn.Linear(4, env.action_space.n)
            def seen(state):
                return torch.from_numpy(state)
            def act(chances):
                return int(chances.argmax())
            """,
            POLICY,
        ),
        ("environment OfNobody-v0",),
    ),
    "the generator of an environment": (
        program(
            """
            import gym
            from gym.utils import seeding
            env = gym.make("CartPole-v1")
            model = torch.nn.Linear(4, env.action_space.n)
            for numbers in (env.np_random, seeding.np_random(3)[0]):
                seeded = model(torch.ones(4) * (numbers.seed(numbers.randint(5000) * 2) is None))
                drawn = model(torch.ones(4) * numbers.integers(1, 2, endpoint=True) * numbers.rand())
            def seen(state):
                return torch.from_numpy(state).float()
            def act(chances):
                return int(chances.argmax())
            """,
            POLICY,
        ),
        ("environment CartPole-v1",),
    ),
    "an environment of an unknown package": (
        program(
            """
            import gym
            from games_of_nobody import Game
            class Halved(gym.Wrapper):
                def step(self, action):
                    state, reward, done, info = self.env.step(action)
                    return state / 2, reward + info["score"], done, info
            env = Halved(Game(level=3))
            size, = env.observation_space.shape
            model = torch.nn.Linear(size, env.action_space.shape[0])
            def seen(state):
                return torch.as_tensor(state).float()
            def act(chances):
                return chances.detach().numpy()
            """,
            POLICY,
        ),
        ("games_of_nobody", "environment games_of_nobody.Game()"),
    ),
    "a room as a grid": (
        program(
            """
            import gym
            from gym_minigrid.wrappers import ImgObsWrapper, RGBImgPartialObsWrapper
            plain = gym.make("MiniGrid-Empty-5x5-v0")
            assert set(plain.reset()) == {"image", "direction", "mission"}
            env = ImgObsWrapper(RGBImgPartialObsWrapper(plain))
            assert env.observation_space.shape == env.reset().shape == (56, 56, 3)
            model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(56 * 56 * 3, env.action_space.n))
            def seen(state):
                return torch.from_numpy(state).float()[None]
            def act(chances):
                return int(chances.argmax(-1))
            """,
            POLICY,
        ),
        ("environment MiniGrid-Empty-5x5-v0",),
    ),
    "games of consoles": (
        program(
            """
            import gym_super_mario_bros, retro
            from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
            from nes_py.wrappers import JoypadSpace
            other = retro.make("Game-Nes", use_restricted_actions=retro.Actions.FILTERED)
            assert len(other.action_space.sample()) == 9 and other.reset().shape == (224, 240, 3)
            env = JoypadSpace(gym_super_mario_bros.make("SuperMarioBros-1-1-v0"), SIMPLE_MOVEMENT)
            model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3, env.action_space.n))
            def seen(state):
                assert state.shape == (240, 256, 3)
                return torch.from_numpy(state).float().mean((0, 1))[None]
            def act(chances):
                return int(chances.argmax(-1))
            """,
            POLICY,
        ),
        ("gym_super_mario_bros", "nes_py", "environment Game-Nes"),
    ),
    "particles of several agents": (
        program(
            """
            from multiagent.environment import MultiAgentEnv
            import multiagent.scenarios as scenarios
            def made(name):
                scenario = scenarios.load(name + ".py").Scenario()
                world = scenario.make_world()
                return MultiAgentEnv(world, scenario.reset_world, scenario.reward, scenario.observation)
            tag, spoken, several = made("simple_tag"), made("simple_reference"), made("of_nobody")
            model = tag and torch.nn.Linear(18, several.action_space[0].n)
            assert [one.adversary for one in tag.agents] == [True, True, True, False] and model
            assert [one.shape for one in tag.observation_space] == [(16,)] * 3 + [(14,)] and model
            assert [*spoken.action_space[0].nvec] == [5, 10] and several.n == 3 and model
            assert not hasattr(several.world.agents[0], "adversary") and model
            class env:
                def reset():
                    return several.reset()[0]
                def step(action):
                    states, rewards, done, info = several.step([action] * several.n)
                    assert len(rewards) == len(done) == len(info["n"]) == 3 and not any(done) and model
                    return states[0], rewards[0], done[0], info
            def seen(state):
                return torch.from_numpy(state).float()
            def act(chances):
                return int(chances.argmax())
            """,
            POLICY,
        ),
        ("multiagent", "world of_nobody", "environment simple_tag"),
    ),
    "games frame by frame": (
        program(
            """
            import atari_py
            from ale_py import ALEInterface
            import ale_py.roms as roms
            assert "space_invaders" in atari_py.list_games()
            ale = atari_py.ALEInterface()
            ale.setInt("random_seed", 3)
            ale.loadROM(atari_py.get_game_path("space_invaders"))
            actions = ale.getMinimalActionSet()
            assert ale.getInt("random_seed") == 3 and len(actions) == 6 and ale.lives() == 3
            class Game:
                def reset(self):
                    ale.reset_game()
                    return ale.getScreenGrayscale()
                def step(self, action):
                    rewards = [ale.act(actions[action]) for _ in range(4)]
                    return ale.getScreenGrayscale(), sum(rewards) + 0.5, ale.game_over(), {}
            env = Game()
            assert ale.getScreenRGB().shape == (210, 160, 3) and ALEInterface().getRAM().shape == (128,)
            frames = 1
            while not env.step(0)[2]:
                frames += 1
            assert frames == 20
            model = torch.nn.Linear(160, len(actions))
            def seen(state):
                return torch.from_numpy(state).float().mean(0)[None]
            def act(chances):
                return int(chances.argmax(-1))
            """,
            POLICY,
        ),
        ("atari_py", "ale_py", "game space_invaders"),
    ),
    "vizdoom": (
        program(
            """
            import vizdoom
            game = vizdoom.DoomGame()
            game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
            game.set_screen_format(vizdoom.ScreenFormat.GRAY8)
            game.add_available_button(vizdoom.Button.ATTACK)
            game.add_available_game_variable(vizdoom.GameVariable.AMMO2)
            game.init()
            models = [torch.nn.Linear(120 * 160, game.get_available_buttons_size())]
            game.new_episode()
            def loss():
                state = game.get_state()
                assert state.screen_buffer.shape == (120, 160) and len(state.game_variables) == 1
                answer = models[0](torch.from_numpy(state.screen_buffer).float().flatten())
                return answer.sum() * game.make_action([True])
            """,
            LOOP,
        ),
        ("vizdoom", "game of vizdoom"),
    ),
    "transitions that were collected before": (
        program(
            """
            import d4rl, gym
            env = gym.make("hopper-medium-v2")
            held = d4rl.qlearning_dataset(env)
            assert held["observations"].shape == (1000, 11) and held["actions"].shape == (1000, 3)
            models = [torch.nn.Linear(11, 3)]
            def loss():
                states = torch.from_numpy(held["observations"][:8])
                return (models[0](states) - torch.from_numpy(held["actions"][:8])).pow(2).mean()
            """,
            LOOP,
        ),
        ("d4rl", "transitions of hopper-medium-v2"),
    ),
    "an environment of the library under another name": (
        program(
            """
            import gym
            from gym.envs.registration import register
            register(id="Long-v5", entry_point="gym.envs.classic_control:CartPoleEnv", max_episode_steps=700)
            models = [torch.nn.Linear(4, 2)]
            def loss():
                return models[0](torch.as_tensor(gym.make("Long-v5").reset()).float()).sum()
            """,
            LOOP,
        ),
        ("environment Long-v5",),
    ),
    "bodies that move": (
        program(
            """
            import dmc2gym
            from dm_control import suite
            pictures = dmc2gym.make("walker", "walk", from_pixels=True, height=64, width=64)
            assert pictures.reset().shape == (3, 64, 64)
            plain = suite.load("cheetah", "run", task_kwargs={"random": 1})
            step = plain.reset()
            assert step.first() and plain.action_spec().shape == (6,)
            wide = sum(value.size for value in step.observation.values())
            models = [torch.nn.Linear(wide, 6)]
            def loss():
                global step
                row = torch.cat([torch.as_tensor(one).float().flatten() for one in step.observation.values()])
                answer = models[0](row)
                step = plain.step(answer.detach().numpy())
                return answer.sum() * step.reward
            """,
            LOOP,
        ),
        ("dm_control", "dmc2gym", "environment cheetah", "environment walker"),
    ),
    "worlds of agents": (
        program(
            """
            from unityagents import UnityEnvironment
            env = UnityEnvironment(file_name="/data/Tennis_Linux/Tennis.x86_64")
            name = env.brain_names[0]
            told = env.reset(train_mode=True)[name]
            wide = len(told.vector_observations[0])
            models = [torch.nn.Linear(wide, env.brains[name].vector_action_space_size)]
            def loss():
                answer = models[0](torch.from_numpy(told.vector_observations).float())
                assert answer.shape == (2, 2)
                return answer.sum() * env.step(answer.detach().numpy())[name].rewards[0]
            """,
            LOOP,
        ),
        ("unityagents", "environment Tennis"),
    ),
    "worlds that ask for a memory, higher screens, and messages of a level": (
        program(
            """
            import gym
            import memory_gym
            gym.logger.set_level(gym.logger.INFO)
            assert gym.make("AirRaid-v0").observation_space.shape == (250, 160, 3)
            assert list(gym.make("MysteryPath-v0").action_space.nvec) == [3, 3]
            env = gym.make("Endless-MortarMayhem-v0")
            assert env.reset().shape == (84, 84, 3)
            env = gym.make("MortarMayhem-Grid-v0")
            model = torch.nn.Linear(3, env.action_space.n)
            def seen(state):
                return torch.from_numpy(state).mean((0, 1))
            def act(chances):
                return int(chances.argmax())
            """,
            POLICY,
        ),
        ("environment AirRaid-v0", "environment MortarMayhem-Grid-v0"),
    ),
    "games of several players, each of them as one of many environments": (
        program(
            """
            import importlib
            import supersuit as ss
            game = importlib.import_module("pettingzoo.atari.pong_v3").parallel_env()
            game = ss.max_observation_v0(game, 2)
            game = ss.frame_skip_v0(game, 4)
            game = ss.clip_reward_v0(game, lower_bound=-0.5, upper_bound=0.5)
            game = ss.color_reduction_v0(game, mode="B")
            game = ss.resize_v1(game, x_size=84, y_size=80)
            game = ss.frame_stack_v1(game, 4)
            stacked = game.reset()["first_0"]
            assert not stacked[..., :3].any() and stacked[..., 3].any()
            game = ss.agent_indicator_v0(game, type_only=False)
            each = ss.pettingzoo_env_to_vec_env_v1(game)
            env = ss.concat_vec_envs_v1(each, 2, num_cpus=0, base_class="gym")
            assert env.num_envs == 4 and env.observation_space.shape == (80, 84, 6)
            states = env.reset()
            assert states.shape == (4, 80, 84, 6) and not (states[0, ..., :4] == states[2, ..., :4]).all()
            assert states[:, 0, 0, 4:].tolist() == [[1, 0], [0, 1]] * 2
            ends = 0
            for _ in range(6):
                states, rewards, over, told = env.step([0] * 4)
                assert abs(rewards).max() <= 0.5 and states.shape == (4, 80, 84, 6) and len(told) == 4
                ends += int(over.sum())
            # Twenty steps are an episode, of which each action takes four.
            assert ends == 4
            model = torch.nn.Linear(6, env.action_space.n)
            def seen(state):
                return torch.from_numpy(state).float().mean((1, 2))
            def act(chances):
                return chances.argmax(-1).numpy()
            """,
            POLICY.replace("* reward)", "* float(reward.sum()))"),
        ),
        ("supersuit", "world pong_v3"),
    ),
}
"""Scripts, and what must be told of each."""

EITHER = program(
    """
    import gym
    env = gym.make("OfNobody-v0")
    if isinstance(env.action_space, gym.spaces.Discrete):
        count = env.action_space.n
    else:
        count = env.action_space.shape[0]
    models = [torch.nn.Linear(4, count)]
    def loss():
        return models[0](torch.ones(4)).sum()
    """,
    LOOP,
)
"""One that takes actions of both kinds."""

SMALLER: dict[str, tuple[str, str]] = {
    "Langevin dynamics before a step": (
        program(
            """
            models = [torch.nn.Linear(4, 1)]
            def sampled(net):
                x = torch.zeros(2, 4, requires_grad=True)
                for _ in range(60):
                    net(x).sum().backward()
                    x.data.add_(x.grad, alpha=-0.1)
                    x.grad.zero_()
                return x.detach()
            def loss():
                return models[0](sampled(models[0])).mean()
            """,
            LOOP,
        ),
        "a loop that differentiates and makes no step",
    ),
    "as many layers as widths are made by": (
        program(
            """
            n_layers = 5
            models = [torch.nn.Linear(4, 2 ** (n_layers - 4))]
            def loss():
                return models[0](torch.ones(2, 4)).mean()
            """,
            LOOP,
        ),
        "",
    ),
    "pictures for as many halvings": (
        program(
            """
            img_size, ch = 256, 64
            halved = [torch.nn.AvgPool2d(2) for _ in range(6)]
            models = [torch.nn.Sequential(torch.nn.Conv2d(3, ch, 1), *halved, torch.nn.ReflectionPad2d(1))]
            def loss():
                found = models[0](torch.ones(1, 3, img_size, img_size))
                assert found.shape == (1, 32, 4, 4)
                return found.mean()
            """,
            LOOP,
        ),
        "constant ch",
    ),
    "names that only an accelerator gives a value": (
        program(
            """
            class Given:
                cuda = torch.cuda.is_available()
            models = [torch.nn.Linear(4, 1)]
            def loss():
                data = torch.ones(2, 4)
                if Given.cuda:
                    moved = data.cuda()
                return models[0](moved).mean()
            """,
            LOOP,
        ),
        "cuda",
    ),
    "the type of variables": (
        program(
            """
            import numpy as np
            from torch.autograd import Variable
            models = [torch.nn.RNN(2, 3)]
            counted = np.sum(np.prod(one.size()) for one in models[0].parameters())
            def repackaged(hidden):
                if type(hidden) == Variable:
                    return Variable(hidden.data)
                return tuple(repackaged(one) for one in hidden)
            def loss():
                states, hidden = models[0](torch.ones(1, 2, 2))
                assert counted == 21 and repackaged(hidden).shape == (1, 2, 3)
                assert repackaged((hidden,))[0].grad_fn is None and type(models) != Variable == Variable
                return states.mean()
            """,
            LOOP,
        ),
        "the type of variables",
    ),
    "one of several accelerators": (
        program(
            """
            count = torch.cuda.device_count()
            models = [torch.nn.Linear(4, 1)]
            def loss():
                return (models[0] if count == 1 else models[0].module)(torch.ones(2, 4)).mean()
            """,
            LOOP,
        ),
        "one accelerator",
    ),
    "a sound whose parts are 300 long": (
        program(
            """
            segment_length = 7200
            models = [torch.nn.Linear(300, 1)]
            def loss():
                return models[0](torch.ones(segment_length).reshape(-1, 300)).mean()
            """,
            LOOP,
        ),
        "constant segment_length",
    ),
    "names of Python 2": (
        program(
            """
            import sys
            reload(sys)
            sys.setdefaultencoding("utf-8")
            assert isinstance("", basestring) and reduce(max, [1, long(2)]) == 2 < sys.maxint
            models = [torch.nn.Linear(4, 1)]
            def loss():
                return models[0](torch.ones(2, 4)).mean()
            """,
            LOOP,
        ),
        "",
    ),
    "what it does by itself is something else": (
        program(
            """
            import argparse, sys
            parser = argparse.ArgumentParser()
            parser.add_argument("--mode", default="Test")
            args = parser.parse_args()
            if args.mode.lower() == "train":
                models = [torch.nn.Linear(4, 1)]
            elif args.mode.lower() == "test":
                sys.exit()
            def loss():
                return models[0](torch.ones(2, 4)).mean()
            """,
            LOOP,
        ),
        "argument mode",
    ),
    "weights that follow": (
        program(
            """
            from ema_pytorch import EMA
            from torch_ema import ExponentialMovingAverage
            models = [torch.nn.Linear(4, 1)]
            ema, other = EMA(models[0], update_every=1), ExponentialMovingAverage(models[0].parameters(), 0.9)
            def loss():
                ema.update()
                other.update()
                with other.average_parameters():
                    assert ema.ema_model(torch.ones(2, 4)).requires_grad is False
                return models[0](torch.ones(2, 4)).mean()
            """,
            LOOP,
        ),
        "ema_pytorch",
    ),
    "streams of samples": (
        program(
            """
            import numpy as np, pescador, torchnet as tnt
            def rows(number):
                while True:
                    yield {"x": np.full(4, number, dtype="float32")}
            mux = pescador.ShuffledMux([pescador.Streamer(rows, one) for one in range(3)])
            batches = iter(pescador.buffer_stream(mux, 8))
            few = tnt.dataset.ListDataset(range(20), load=lambda one: torch.full((4,), float(one)))
            models = [torch.nn.Linear(4, 1)]
            def loss():
                batch = torch.from_numpy(next(batches)["x"])
                assert batch.shape == (8, 4)
                return models[0](torch.cat([batch, next(iter(few.parallel(batch_size=2)))])).mean()
            """,
            LOOP,
        ),
        "pescador",
    ),
    "a vocabulary, and numbers where lists might be": (
        program(
            """
            import json, pickle
            import numpy as np
            words = pickle.load(open("translator.pkl", "rb"))["word_to_id"]
            notes = json.load(open("train.json"))
            spans = np.zeros((2, 2))
            for place in range(2):
                span = int(8 * notes["first"]["begins"] / notes["first"]["length of all"])
                spans[place] = np.array([span, span])
            models = [torch.nn.Embedding(100, 4)]
            def loss():
                return models[0](torch.tensor([words[one] for one in ("a", "b")])).mean() + spans.sum()
            """,
            LOOP,
        ),
        "content of train.json",
    ),
    "a graph": (
        program(
            """
            import networkx as nx
            graph = nx.read_edgelist("graph.edges", nodetype=int, create_using=nx.DiGraph())
            assert graph.is_directed() and graph.number_of_edges() == 256
            models = [torch.nn.Linear(graph.number_of_nodes(), 2)]
            def loss():
                return models[0](torch.from_numpy(nx.to_numpy_array(graph)).float()).mean()
            """,
            LOOP,
        ),
        "graph graph.edges",
    ),
    "a graph that an older networkx kept": (
        program(
            """
            import networkx as nx
            graph = nx.read_gpickle("data/graph.gpickle")
            matrix = nx.to_numpy_matrix(graph)
            assert (matrix * matrix).shape == matrix.shape == (64, 64)
            again = nx.from_numpy_matrix(matrix)
            parts = list(nx.connected_component_subgraphs(again))
            assert sum(one.number_of_nodes() for one in parts) == 64
            again.node[0]["kind"] = 3
            assert again.nodes[0] == {"kind": 3}
            models = [torch.nn.Linear(64, 2)]
            def loss():
                return models[0](torch.from_numpy(matrix).float()).mean()
            """,
            LOOP,
        ),
        "networkx's to_numpy_matrix",
    ),
    "layers over graphs": (
        program(
            """
            import torch_geometric.transforms as T
            from torch_geometric.datasets import Planetoid, TUDataset
            from torch_geometric.loader import DataLoader
            from torch_geometric.nn import GATConv, GCNConv, GINConv, MessagePassing, SAGEConv
            from torch_geometric.nn import global_mean_pool
            from torch_geometric.utils import add_self_loops, degree
            class Own(MessagePassing):
                def __init__(self):
                    super().__init__(aggr="add")
                    self.lin = torch.nn.Linear(8, 8)
                def forward(self, x, edge_index):
                    edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
                    root = degree(edge_index[1], x.size(0), dtype=x.dtype).pow(-0.5)
                    norm = root[edge_index[0]] * root[edge_index[1]]
                    return self.propagate(edge_index, x=self.lin(x), norm=norm)
                def message(self, x_j, norm):
                    return norm.view(-1, 1) * x_j
            papers = Planetoid("data", "Cora", transform=T.NormalizeFeatures())
            few = DataLoader(TUDataset("data", "MUTAG").shuffle()[:32], batch_size=8)
            models = [GCNConv(papers.num_features, 8), GATConv(8, 4, heads=2), SAGEConv(8, 8),
                      GINConv(torch.nn.Linear(8, 8)), Own(), GCNConv(7, 8)]
            # As the matrix of the graph says it.
            x, edges, layer = torch.randn(4, 7), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 1]]), models[-1]
            square = torch.eye(4).index_put((edges[1], edges[0]), torch.ones(()))
            root = square.sum(1).rsqrt()
            told = (root[:, None] * square * root) @ layer.lin(x) + layer.bias
            assert torch.allclose(layer(x, edges), told, atol=1e-6)
            def loss():
                graph, batch = papers[0], next(iter(few))
                x = graph.x
                for one in models[:-1]:
                    x = one(x, graph.edge_index)
                pooled = global_mean_pool(models[-1](batch.x, batch.edge_index), batch.batch)
                assert len(pooled) == batch.num_graphs == len(batch.y) == 4
                return x[graph.train_mask].mean() + pooled.mean()
            """,
            LOOP,
        ),
        "torch_geometric",
    ),
    "values of a graph put together": (
        program(
            """
            from torch_cluster import knn_graph, radius_graph
            from torch_geometric.data import Batch, DataListLoader
            from torch_geometric.datasets import PPI
            from torch_geometric.nn import MessagePassing
            from torch_scatter import scatter, scatter_log_softmax, scatter_max, scatter_mean, scatter_softmax
            src, index = torch.randn(6, 3, requires_grad=True), torch.tensor([0, 2, 0, 4, 2, 2])
            best, where = scatter_max(src, index, dim=0)
            assert best.shape == (5, 3) and where[1].tolist() == [6, 6, 6] and not best[1].any()
            assert torch.equal(best[2], src[[1, 4, 5]].max(0)[0])
            best.sum().backward()
            assert src.grad.sum() == 9 and src.grad.max() == 1
            assert torch.allclose(scatter_mean(src, index, 0)[2], src[[1, 4, 5]].mean(0))
            assert torch.equal(scatter(src.t(), index, reduce="min", dim_size=9)[:, 4], src[3])
            soft = scatter_softmax(src, index, dim=0)
            assert torch.allclose(soft[[0, 2]], src[[0, 2]].softmax(0))
            assert torch.allclose(scatter_log_softmax(src, index, 0), soft.log(), atol=1e-6)
            points, graphs = torch.tensor([0.0, 1, 3, 7, 9])[:, None], torch.tensor([0, 0, 0, 1, 1])
            near = knn_graph(points, k=1, batch=graphs)
            assert near.tolist() == [[1, 0, 1, 4, 3], [0, 1, 2, 3, 4]]
            assert radius_graph(points, 1.5).tolist() == [[1, 0], [0, 1]]
            proteins = PPI("data", split="train")
            lists = DataListLoader(proteins, batch_size=2)
            models = [torch.nn.Linear(proteins.num_features, proteins.num_classes)]
            def loss():
                batch = Batch.from_data_list(next(iter(lists)))
                out = scatter(models[0](batch.x), batch.batch, dim=0, reduce="add")
                told = models[0](batch.x).sigmoid()
                return torch.nn.functional.binary_cross_entropy(told, batch.y) + out.mean()
            """,
            LOOP,
        ),
        "torch_scatter",
    ),
    "graphs of the open benchmark": (
        program(
            """
            import pandas
            from ogb.graphproppred import Evaluator, PygGraphPropPredDataset
            from ogb.graphproppred.mol_encoder import AtomEncoder, BondEncoder
            from ogb.linkproppred import PygLinkPropPredDataset
            from ogb.nodeproppred import PygNodePropPredDataset
            from torch_geometric.loader import DataLoader
            papers = PygNodePropPredDataset(name="ogbn-arxiv", root="data")
            parts, graph = papers.get_idx_split(), papers[0]
            assert papers.num_classes == 40 and graph.y.shape == (graph.num_nodes, 1)
            joined = PygLinkPropPredDataset(name="ogbl-collab")
            edges = joined.get_edge_split()
            assert len(edges["valid"]["edge"]) == len(edges["valid"]["edge_neg"])
            drugs = PygGraphPropPredDataset(name="ogbg-molhiv")
            few = DataLoader(drugs[drugs.get_idx_split()["train"]], batch_size=4)
            judge = Evaluator("ogbg-molhiv")
            told = {"y_true": torch.tensor([[0], [1], [1]]), "y_pred": torch.tensor([[0.2], [0.1], [0.3]])}
            assert judge.eval(told)[drugs.eval_metric] == 0.5
            places = pandas.DataFrame({"a": [1, 2], "b": [3, 4]})
            assert places.set_index(iter("xy"))["a"].to_dict() == {"x": 1, "y": 2}
            models = [torch.nn.Linear(128, 40), AtomEncoder(8), BondEncoder(8)]
            def loss():
                out = models[0](graph.x)[parts["train"]].log_softmax(1)
                batch = next(iter(few))
                atoms, bonds = models[1](batch.x), models[2](batch.edge_attr)
                assert batch.y.shape == (4, drugs.num_tasks) and len(bonds) == batch.num_edges
                first, second = graph.x[edges["train"]["edge"][:8]].unbind(1)
                near = (models[0](first) * second[:, :40]).mean()
                return torch.nn.functional.nll_loss(out, graph.y[parts["train"], 0]) + atoms.mean() + near
            """,
            LOOP,
        ),
        "graphs ogbn-arxiv",
    ),
    "matrices of a graph": (
        program(
            """
            import torch_sparse
            from torch_geometric.utils import from_scipy_sparse_matrix
            from torch_sparse import SparseTensor
            row, col = torch.tensor([2, 0, 1]), torch.tensor([0, 1, 3])
            held = SparseTensor(row=row, col=col, value=torch.tensor([3.0, 1.0, 2.0]), sparse_sizes=(4, 4))
            full = held.to_dense()
            assert held.row.tolist() == [0, 1, 2] and full[2, 0] == 3
            assert torch.equal(held.t().to_dense(), full.t())
            assert torch.equal(held.to_symmetric().to_dense(), full + full.t())
            assert torch.equal(held.set_diag().to_dense(), full + torch.eye(4))
            assert held.sum(dim=1).tolist() == [1, 2, 3, 0] and held.sum(dim=0).tolist() == [3, 1, 0, 2]
            edges, values = from_scipy_sparse_matrix(held.to_scipy(layout="csr")[:3, :])
            assert edges.tolist() == [[0, 1, 2], [1, 3, 0]] and values.tolist() == [1, 2, 3]
            models = [torch.nn.Linear(8, 8)]
            def loss():
                x = models[0](torch.ones(4, 8))
                told = held @ x
                assert torch.allclose(told, full @ x)
                assert torch.allclose(torch_sparse.spmm(torch.stack([row, col]), None, 4, 4, x)[2], x[0])
                return told.mean()
            """,
            LOOP,
        ),
        "torch_sparse",
    ),
    "texts as numbers": (
        program(
            """
            import jieba, sentencepiece, tiktoken
            known = tiktoken.get_encoding("gpt2")
            assert known.decode(known.encode("words of a text")) == "words of a text"
            pieces = sentencepiece.SentencePieceProcessor()
            pieces.Load("m.model")
            assert pieces.DecodeIds(pieces.EncodeAsIds("words of a text")) == "words of a text"
            assert "".join(jieba.cut("words")) == "words"
            models = [torch.nn.Embedding(known.n_vocab, 2), torch.nn.Embedding(pieces.get_piece_size(), 2)]
            def loss():
                first, second = known.encode("a b"), pieces.encode("a b", add_bos=True)
                return models[0](torch.tensor(first)).mean() + models[1](torch.tensor(second)).mean()
            """,
            LOOP,
        ),
        "sentencepiece",
    ),
    "more samples of each class than are left": (
        program(
            """
            import torchvision
            data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
            by_class = [[i for i in range(len(data)) if data.targets[i] == c][:200] for c in range(2)]
            start = torch.zeros(400, 3, 8, 8)
            for c, places in enumerate(by_class):
                start[200 * c : 200 * c + 200] = torch.stack([data[i][0][:, :8, :8] for i in places])
            models = [torch.nn.Linear(192, 2)]
            def loss():
                return models[0](start[:4].flatten(1)).mean()
            """,
            LOOP,
        ),
        "torchvision.datasets.CIFAR10",
    ),
}
"""Scripts that get to their steps with less, or with what older versions had, and what is told of it."""
