"""Small training scripts that lean on libraries of agents."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

AGENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "rltorch": (
        program(
            """
            import numpy as np
            from rltorch.memory import MultiStepMemory, PrioritizedMemory
            from rltorch.network import BaseNetwork, create_linear_network
            class Critic(BaseNetwork):
                def __init__(self):
                    super().__init__()
                    self.net = create_linear_network(5, 1, hidden_units=[8, 8], initializer="xavier")
                def forward(self, states, actions):
                    return self.net(torch.cat([states, actions], 1))
            critic, target = Critic(), Critic().eval()
            assert not any(one.requires_grad for one in target.parameters()) and critic.num_params == 129
            assert critic.net[0].bias.eq(0).all() and isinstance(critic.net[3], torch.nn.ReLU)
            plain = MultiStepMemory(20, (3,), (2,), "cpu", gamma=0.5, multi_step=2)
            memory = PrioritizedMemory(20, (3,), (2,), "cpu", gamma=0.9, multi_step=1, beta=0.4)
            for step in range(1, 7):
                seen = np.ones(3) * step
                plain.append(seen, np.zeros(2), 1.0, seen + 1, step == 6, episode_done=step in (3, 6))
                memory.append(seen, np.zeros(2), 1.0, seen + 1, False, step, episode_done=False)
            # Of each episode of three steps the last one has no second reward.
            assert len(plain) == 4 and plain.get()[2][:, 0].tolist() == [1.5] * 4
            assert plain.get()[0][:, 0].tolist() == [1, 2, 4, 5]
            assert plain.get()[3][:, 0].tolist() == [3, 4, 6, 7]
            models = [critic]
            def loss():
                batch, places, weights = memory.sample(4)
                states, actions, rewards, after, dones = batch
                assert weights.shape == (4, 1) and weights.max() == 1 and len(places) == 4
                wanted = rewards + (1 - dones) * 0.9 * target(after, actions)
                error = critic(states, actions) - wanted
                memory.update_priority(places, error.detach().abs().numpy())
                return (error.pow(2) * weights).mean()
            """,
            LOOP,
        ),
        ("rltorch",),
    ),
}
