"""Training steps whose networks and optimizers come from out of sight, and what is assumed of these."""

from __future__ import annotations

from textwrap import dedent

import pytest
from structures import HEAD, ONE, STRUCTURES, TWO, Trainer

from gradfix.core.codemod import Applicability, Finding, Severity
from gradfix.pipeline import driver
from gradfix.pipeline.driver import Options, RequestedOptions
from gradfix.project import source
from gradfix.project.source import Source

PAIRS = {**ONE, **TWO}


def prepared(certain: bool = False) -> Options:
    asked = RequestedOptions(unsafe_fixes=True, verify=False, min_severity=Severity.INFO, certain=certain)
    found = driver.prepare([], asked)
    assert isinstance(found, Options)
    return found


@pytest.fixture(scope="module")
def options() -> Options:
    return prepared()


def findings(text: str, options: Options) -> list[Finding]:
    parsed = source.parse("script.py", f"{HEAD}\n\n{dedent(text)}".encode(), 1 << 20)
    assert isinstance(parsed, Source), parsed
    return list(driver.findings(parsed, options))


def codes(text: str, options: Options) -> list[str]:
    return [finding.code for finding in findings(text, options)]


def test_a_network_may_be_frozen(options: Options) -> None:
    text = """
        def train(q, target, opt, loader):
            for s, a, r, s2 in loader:
                y = r + 0.99 * target(s2).max(1)[0]
                loss = F.mse_loss(q(s).gather(1, a).squeeze(1), y)
                loss.backward()
                opt.step()
    """
    (finding,) = findings(text, options)
    assert finding.assumption == "`opt` updates at least one of `q` and `target`"


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("mistake", PAIRS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_mistake_is_found_wherever_its_networks_come_from(
    structure: str, mistake: str, options: Options
) -> None:
    assert PAIRS[mistake].code in codes(STRUCTURES[structure](Trainer(PAIRS[mistake].wrong)), options)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("mistake", PAIRS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_nothing_is_found_in_the_mended_twin(structure: str, mistake: str, options: Options) -> None:
    assert codes(STRUCTURES[structure](Trainer(PAIRS[mistake].right)), options) == []


def test_a_finding_says_what_it_assumes(options: Options) -> None:
    (finding,) = findings(STRUCTURES["function"](Trainer(TWO["fake freed"].wrong)), options)
    assumed = "`opt_d` updates `disc`, and `opt_g` updates `gen`"
    assert finding.assumption == assumed
    assert finding.message.endswith(f"(assumes that {assumed})")


def test_an_assumed_finding_is_less_severe_and_none_of_its_fixes_is_safe(options: Options) -> None:
    (seen,) = findings(STRUCTURES["in sight"](Trainer(ONE["stale"].wrong)), options)
    (assumed,) = findings(STRUCTURES["function"](Trainer(ONE["stale"].wrong)), options)
    assert (seen.severity, assumed.severity) == (Severity.ERROR, Severity.WARNING)
    assert [fix.applicability for fix in seen.fixes] == [Applicability.SAFE] * len(seen.fixes)
    assert assumed.fixes
    assert {fix.applicability for fix in assumed.fixes} == {Applicability.UNSAFE}


def test_only_what_is_certain_is_reported_on_request() -> None:
    certain = prepared(certain=True)
    assert codes(STRUCTURES["in sight"](Trainer(ONE["stale"].wrong)), certain) == ["stale-forward"]
    assert codes(STRUCTURES["function"](Trainer(ONE["stale"].wrong)), certain) == []


# -- axioms and preferences -------------------------------------------------------------------

RIGHT = {
    "methods of a network that a base class keeps": """
        from base import Base
        class Trainer(Base):
            def __init__(self, model, rate):
                super().__init__(model)
                self.opt_g = torch.optim.Adam(model.generator.parameters(), rate)
                self.opt_d = torch.optim.Adam(model.discriminator.parameters(), rate)
            def train(self, loader):
                for x, z in loader:
                    fake = self.model.generate(z)
                    loss_d = (self.model.discriminate(fake.detach()) - self.model.discriminate(x)).mean()
                    self.opt_d.zero_grad()
                    loss_d.backward()
                    self.opt_d.step()
                    loss_g = -self.model.discriminate(fake).mean()
                    self.opt_g.zero_grad()
                    loss_g.backward()
                    self.opt_g.step()
    """,
    "a network and a part of it": """
        class Trainer:
            def __init__(self, model, rate):
                self.model = model
                self.opt_g = torch.optim.Adam(model.gen.parameters(), rate)
                self.opt_d = torch.optim.Adam(model.disc.parameters(), rate)
            def train(self, loader):
                for x, z in loader:
                    with torch.no_grad():
                        fake = self.model(z)
                    loss_d = (self.model.judge(fake) - self.model.judge(x)).mean()
                    self.opt_d.zero_grad()
                    loss_d.backward()
                    self.opt_d.step()
                    loss_g = -self.model.judge(self.model(z)).mean()
                    self.opt_g.zero_grad()
                    loss_g.backward()
                    self.opt_g.step()
    """,
    "micro-batches that wait to be synchronized": """
        def train(model, opt, loader, accumulate):
            can_wait = hasattr(model, "no_sync")
            opt.zero_grad()
            for i, (x, y) in enumerate(loader):
                last = i == len(loader) - 1
                closes = last or (i + 1) % accumulate == 0
                if can_wait and not closes:
                    with model.no_sync():
                        loss = F.mse_loss(model(x), y) / accumulate
                        loss.backward()
                else:
                    loss = F.mse_loss(model(x), y) / accumulate
                    loss.backward()
                if not closes:
                    continue
                opt.step()
                opt.zero_grad()
    """,
    "a batch, where the caller may clear": """
        def train_batch(model, opt, x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            opt.step()
        """,
    "a target that may be frozen": """
        def train(q, target, opt, loader):
            for s, a, r, s2 in loader:
                y = r + 0.99 * target(s2).max(1)[0]
                loss = F.mse_loss(q(s).gather(1, a).squeeze(1), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "micro-batches that another method finishes": """
        class Trainer:
            def __init__(self, model, opt):
                self.model = model
                self.opt = opt

            def micro(self, x, y):
                F.mse_loss(self.model(x), y).backward()

            def finish(self):
                self.opt.step()
        """,
    "a state that the network may detach": """
        def train(net, opt, loader, h):
            for x, y in loader:
                out, h = net(x, h)
                loss = F.mse_loss(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "an evaluation whose caller may switch gradients off": """
        def evaluate(model, x, y):
            return F.mse_loss(model(x), y)
        """,
    "two optimizers of one network": """
        def train(net, body, head, loader):
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                body.zero_grad()
                head.zero_grad()
                loss.backward()
                body.step()
                head.step()
        """,
    "a teacher": """
        def distil(student, teacher, opt, loader):
            teacher.eval()
            student.train()
            for x, y in loader:
                out = student(x)
                loss = F.cross_entropy(out, y) + F.mse_loss(out, teacher(x))
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "a schedule that is stepped as well": """
        def train(model, opt, schedule, loader):
            for x, y in loader:
                opt.zero_grad()
                F.mse_loss(model(x), y).backward()
                opt.step()
                schedule.step()
        """,
    "a network that a function out of sight calls": """
        from elsewhere import forward

        def train(model, criterion, opt, loader):
            model.train()
            for x, y in loader:
                model.zero_grad()
                loss = criterion(forward(model, x), y)
                loss.backward()
                opt.step()
        """,
    "a criterion that is put into training mode": """
        def train(model, criterion, opt, loader):
            model.train()
            criterion.train()
            for x, y in loader:
                losses = criterion(model(x), y)
                loss = sum(losses[name] for name in losses)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "a wrapper that is made of the network": """
        from elsewhere import parallelize

        def train(net, loader):
            opt = torch.optim.Adam(net.parameters())
            net = parallelize(net)
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "a loss that is made of the networks": """
        from elsewhere import Loss

        def train(actor, critic, loader):
            compute = Loss(actor, critic)
            actor_opt = torch.optim.Adam(actor.parameters())
            critic_opt = torch.optim.Adam(critic.parameters())
            for batch in loader:
                losses = compute(batch)
                actor_opt.zero_grad()
                critic_opt.zero_grad()
                losses["actor"].backward()
                losses["critic"].backward()
                actor_opt.step()
                critic_opt.step()
        """,
    "an engine that is given the network": """
        def train(net, engine, loader):
            engine.model = net
            opt = torch.optim.Adam(net.parameters())
            for x in loader:
                loss = engine(x)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "turns of two optimizers": """
        def train(trunk, head, for_trunk, for_head, loader):
            for i, (x, y) in enumerate(loader):
                for_trunk.zero_grad()
                for_head.zero_grad()
                loss = F.cross_entropy(head(trunk(x)), y)
                loss.backward()
                if i % 2 == 0:
                    for_trunk.step()
                else:
                    for_head.step()
        """,
    "a network that is frozen here": """
        from elsewhere import make

        def train(net, opt, loader):
            teacher = make().requires_grad_(False)
            sizes = []
            for x in loader:
                wanted = teacher(x)
                loss = (net(x) - wanted).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                sizes.append(wanted.mean())
        """,
    "gradients that are written by hand": """
        def train(net, weights, opt, weights_opt, loader):
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                opt.zero_grad()
                loss.backward()
                weights.value.grad = loss.detach() * weights.share
                weights_opt.step()
                opt.step()
        """,
    "a schedule of another's": """
        def train(model, opt, loader, epoch):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                opt.step()
                opt.zero_grad()
            model.schedule.step(epoch)
        """,
    "an encoder that the critic's optimizer trains as well": """
        def update(encoder, actor, critic, target, actor_opt, critic_opt, buffer):
            for o, a, r, o2 in buffer:
                with torch.no_grad():
                    a2, logp2 = actor(encoder(o2))
                    y = r + target(encoder(o2), a2) - logp2
                loss = F.mse_loss(critic(encoder(o), a), y)
                critic_opt.zero_grad()
                loss.backward()
                critic_opt.step()
                h = encoder(o).detach()
                new, logp = actor(h)
                actor_loss = (logp - critic(h, new)).mean()
                actor_opt.zero_grad()
                actor_loss.backward()
                actor_opt.step()
        """,
    "an optimizer of both players": """
        def train(gen, disc, opt_g, opt_d, opt_info, loader):
            for x, z, c in loader:
                fake = gen(z, c)
                d = F.softplus(-disc(x)[0]).mean() + F.softplus(disc(fake.detach())[0]).mean()
                opt_d.zero_grad()
                d.backward()
                opt_d.step()
                g = F.softplus(-disc(fake)[0]).mean()
                opt_g.zero_grad()
                g.backward()
                opt_g.step()
                info = F.cross_entropy(disc(gen(z, c))[1], c)
                opt_info.zero_grad()
                info.backward()
                opt_info.step()
        """,
    "an optimizer of both players and of a head": """
        def train(gen, disc, head, opt_g, opt_d, opt_info, loader):
            for x, z, c in loader:
                fake = gen(z, c)
                d = F.softplus(-disc(x)).mean() + F.softplus(disc(fake.detach())).mean()
                opt_d.zero_grad()
                d.backward()
                opt_d.step()
                g = F.softplus(-disc(fake)).mean()
                opt_g.zero_grad()
                g.backward()
                opt_g.step()
                info = F.cross_entropy(head(gen(z, c)), c)
                opt_info.zero_grad()
                info.backward()
                opt_info.step()
        """,
    "two parts of a network that are trained in turn": """
        def train(net, opt_g, opt_e, loader):
            for x in loader:
                adversarial, reconstruction = net(x)
                opt_g.zero_grad()
                adversarial.mean().backward()
                opt_g.step()
                opt_e.zero_grad()
                reconstruction.mean().backward()
                opt_e.step()
        """,
    "two parts of a policy whose steps come last": """
        class Trainer:
            def __init__(self, policy):
                self.policy = policy

            def update(self, obs, act, adv, ret):
                values, logp = self.policy.evaluate(obs, act)
                self.policy.actor_opt.zero_grad()
                (-(logp * adv).mean()).backward()
                self.policy.critic_opt.zero_grad()
                F.mse_loss(values, ret).backward()
                self.policy.actor_opt.step()
                self.policy.critic_opt.step()
        """,
    "a network that is cleared instead of its two optimizers": """
        def train(net, body, head, loader):
            for x, y in loader:
                net.zero_grad()
                loss = F.mse_loss(net(x), y)
                loss.backward()
                body.step()
                head.step()
        """,
    "a loss that is an argument, whose caller may clear": """
        class Critic:
            def __init__(self, n):
                self.net = nn.Linear(n, 1)
                self.optimizer = torch.optim.Adam(self.net.parameters())

            def update(self, loss):
                loss.backward()
                self.optimizer.step()
        """,
    "a loss that is an argument, and is kept for others": """
        def descend(loss, optimizer):
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
        """,
    "losses of code that was made of the networks": """
        from elsewhere import Losses

        class Trainer:
            def __init__(self, gen, disc):
                self.opt_g = torch.optim.Adam(gen.parameters())
                self.opt_d = torch.optim.Adam(disc.parameters())
                self.losses = Losses(gen, disc)

            def step(self, x):
                self.opt_d.zero_grad()
                self.losses.disc(x).backward()
                self.opt_d.step()
                self.opt_g.zero_grad()
                self.losses.gen(x).backward()
                self.opt_g.step()
        """,
    "an object that holds its network, and evaluates out of sight": """
        class Trainer(nn.Module):
            def __init__(self, sample, model, evaluate):
                super().__init__()
                self.sample, self.model, self.evaluate = sample, model, evaluate

            def train(self, number):
                opt = torch.optim.Adam(self.parameters())
                for i in range(number):
                    opt.zero_grad()
                    task = self.sample()
                    loss = task.compare(self.model.predict(task.x), task.y)
                    loss.backward()
                    opt.step()
                    if i % 100 == 0:
                        self.evaluate(i, self.model)
        """,
    "a trainer that may clear after each step": """
        def train(trainer, loader):
            for batch in loader:
                loss = trainer.compute(batch)
                loss.backward()
                trainer.optimizer.step()
                trainer.after_step()
        """,
    "callbacks that are shown what holds the optimizer": """
        def train(trainer, callbacks, loader):
            for batch in loader:
                loss = trainer.compute(batch)
                loss.backward()
                trainer.optimizer.step()
                for callback in callbacks:
                    callback.on_step_end(trainer)
        """,
    "an agent that clears all of its parts": """
        def train(agent, loader):
            for obs, act, adv, ret in loader:
                values, logp = agent.evaluate(obs, act)
                agent.reset_grad()
                (-(logp * adv).mean()).backward()
                agent.actor_opt.step()
                agent.reset_grad()
                F.mse_loss(values, ret).backward()
                agent.critic_opt.step()
        """,
    "a network of an agent's that is cleared": """
        def train(agent, loader):
            for batch in loader:
                agent.model.zero_grad()
                loss = agent.compute(batch)
                loss.backward()
                agent.opt.step()
        """,
    "parameters that are cleared one by one": """
        def train(agent, params, loader):
            for batch in loader:
                for p in params:
                    if p.grad is not None:
                        p.grad.zero_()
                loss = agent.compute(batch)
                loss.backward()
                agent.opt.step()
        """,
    "a method that computes with a network of its object": """
        from elsewhere import make

        def train(loader):
            model = make()
            opt = torch.optim.Adam(model.judge.parameters())
            for x, y in loader:
                loss = F.mse_loss(model.compare(x, y), torch.zeros(1))
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "weights of one network that are computed from another's": """
        from elsewhere import make

        def train(loader):
            net, moving = make(1), make(2)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for x, y in loader:
                for name, weight in list(net.named_parameters()):
                    setattr(moving, name, weight * 0.9)
                loss = F.mse_loss(moving(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "a network that nothing here trains beside an unseen one": """
        from elsewhere import Encoder, compute

        def train(optimizer, loader):
            encoder = nn.Linear(4, 4)
            for x in loader:
                loss = compute(encoder(x))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
}
"""Steps that are right in some world, however they look in another."""


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_said_of_what_some_caller_makes_right(name: str, options: Options) -> None:
    assert findings(RIGHT[name], options) == []


WRONG = {
    "an actor that is cut off from its loss": (
        "step-without-gradients",
        """
        class Agent:
            def __init__(self, actor, critic, actor_opt, critic_opt):
                self.actor, self.critic = actor, critic
                self.actor_opt, self.critic_opt = actor_opt, critic_opt
            def learn(self, memory):
                for state, action, value in memory:
                    critic_loss = F.mse_loss(self.critic(torch.cat([state, action], 1)), value)
                    self.critic_opt.zero_grad()
                    critic_loss.backward()
                    self.critic_opt.step()
                    chosen = self.actor(state).detach()
                    actor_loss = -self.critic(torch.cat([state, chosen], 1)).mean()
                    self.actor_opt.zero_grad()
                    actor_loss.backward()
                    self.actor_opt.step()
        """,
    ),
    "a term that trains nobody": (
        "detached-term",
        """
        def train(gen, disc, opt_g, opt_d, loader):
            for z, x in loader:
                fake = gen(z)
                loss_g = F.l1_loss(fake, x) - disc(fake.detach()).mean()
                opt_g.zero_grad()
                loss_g.backward()
                opt_g.step()
                with torch.no_grad():
                    fake = gen(z)
                loss_d = (disc(fake) - disc(x)).mean()
                opt_d.zero_grad()
                loss_d.backward()
                opt_d.step()
        """,
    ),
    "a scaler that a caller may pass": (
        "stale-forward",
        """
        def train(model, opt, loader, amp=False, scaler=None):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                opt.zero_grad()
                if amp and scaler is not None:
                    scaler.scale(loss).backward()
                    scaler.step(opt)
                    scaler.update()
                    loss.backward()
                else:
                    loss.backward()
                    opt.step()
        """,
    ),
    "a network and an optimizer that a constructor has no other value for": (
        "missing-zero-grad",
        """
        class Trainer:
            def __init__(self, net=None, opt=None):
                self.net, self.opt = net, opt
            def train(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(self.net(x), y)
                    loss.backward()
                    self.opt.step()
        """,
    ),
    "a generator's loss that is cut off by a detach": (
        "step-without-gradients",
        """
        from networks import generator, discriminator
        class Trainer:
            def __init__(self, rate):
                self.gen, self.disc = generator(rate), discriminator(rate)
                self.opt_g = torch.optim.Adam(self.gen.parameters(), rate)
                self.opt_d = torch.optim.Adam(self.disc.parameters(), rate)
            def step(self, real, noise):
                fake = self.gen(noise)
                loss_d = (self.disc(fake.detach()) - self.disc(real)).mean()
                self.opt_d.zero_grad()
                loss_d.backward()
                self.opt_d.step()
                loss_g = -self.disc(fake.detach()).mean()
                self.opt_g.zero_grad()
                loss_g.backward()
                self.opt_g.step()
            def train(self, loader):
                for real, noise in loader:
                    self.step(real, noise)
        """,
    ),
    "micro-batches that wait to be synchronized": (
        "missing-zero-grad",
        """
        def train(model, opt, loader, accumulate):
            can_wait = hasattr(model, "no_sync")
            for i, (x, y) in enumerate(loader):
                last = i == len(loader) - 1
                closes = last or (i + 1) % accumulate == 0
                if can_wait and not closes:
                    with model.no_sync():
                        loss = F.mse_loss(model(x), y) / accumulate
                        loss.backward()
                else:
                    loss = F.mse_loss(model(x), y) / accumulate
                    loss.backward()
                if not closes:
                    continue
                opt.step()
        """,
    ),
    "a sum of what a criterion returns by name": (
        "missing-zero-grad",
        """
        def train(model: nn.Module, criterion: nn.Module, opt, loader):
            for x, y in loader:
                losses = criterion(model(x), y)
                loss = sum(losses[name] for name in losses.keys())
                loss.backward()
                opt.step()
        """,
    ),
    "an optimizer in a wrapper from elsewhere": (
        "missing-zero-grad",
        """
        from speed import Lars
        def main(loader):
            net = nn.Linear(3, 1)
            opt = Lars(torch.optim.SGD(net.parameters(), lr=0.1))
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                opt.step()
        """,
    ),
    "an optimizer that is made together with its schedule": (
        "missing-zero-grad",
        """
        from speed import solver
        def main(config, loader):
            net = nn.Linear(3, 1)
            opt, schedule = solver(config, net)
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                opt.step()
        """,
    ),
    "an optimizer and its schedule of a network from elsewhere": (
        "missing-zero-grad",
        """
        from speed import solver, networks
        def main(config, loader):
            net = networks(config)
            made = solver(config, net)
            opt = made.optimizer
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                opt.step()
        """,
    ),
    "a network and its optimizer that a function elsewhere prepares": (
        "missing-zero-grad",
        """
        from speed import half
        def main(loader):
            net = nn.Linear(3, 1)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            net, opt = half(net, opt, level=1)
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                opt.step()
        """,
    ),
    "no clearing in a loop of its own": (
        "missing-zero-grad",
        """
        def train(model, opt, loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                opt.step()
        """,
    ),
    "a target of the very network": (
        "trained-target",
        """
        def train(q, opt, loader):
            for s, a, r, s2 in loader:
                y = r + 0.99 * q(s2).max(1)[0]
                loss = F.mse_loss(q(s).gather(1, a).squeeze(1), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    ),
    "two heads that are only called on features": (
        "missing-zero-grad",
        """
        def train(model, encoder_opt, classifier_opt, discriminator_opt, loader):
            for x, y, d in loader:
                loss = F.nll_loss(model.classifier(model.encoder(x)), y)
                encoder_opt.zero_grad()
                classifier_opt.zero_grad()
                loss.backward()
                encoder_opt.step()
                classifier_opt.step()
                loss_d = F.nll_loss(model.discriminator(model.encoder(x).detach()), d)
                loss_d.backward()
                discriminator_opt.step()
        """,
    ),
    "an evaluation behind the training": (
        "evaluation-with-grad",
        """
        def train(model, loss_function, opt, train_loader, test_loader):
            for x, y in train_loader:
                opt.zero_grad()
                loss_function(model(x), y).backward()
                opt.step()
            model.eval()
            losses = []
            for x, y in test_loader:
                losses.append(loss_function(model(x), y).item())
            return sum(losses)
        """,
    ),
    "one of several networks that may be trained": (
        "missing-zero-grad",
        """
        def train(image, text, opt, loader):
            for x, y in loader:
                loss = (image(x) * text(y)).sum()
                loss.backward()
                opt.step()
        """,
    ),
    "a criterion that gives its losses by name": (
        "missing-zero-grad",
        """
        def train(model, criterion, opt, loader):
            model.train()
            criterion.train()
            for x, y in loader:
                losses = criterion(model(x), y)
                loss = sum(losses[name] * criterion.weights[name] for name in losses)
                loss.backward()
                opt.step()
        """,
    ),
    "networks and optimizers out of dicts that are filled here": (
        "missing-zero-grad",
        """
        from builders import build_net, make_optimizer

        def train(cfg, loader):
            nets = {name: build_net(cfg, name) for name in ("gen", "disc")}
            optims = {name: make_optimizer(cfg, net) for name, net in nets.items()}
            for noise, real in loader:
                fake = nets["gen"](noise)
                g = F.softplus(-nets["disc"](fake)).mean()
                optims["gen"].zero_grad()
                g.backward()
                optims["gen"].step()
                d = F.softplus(-nets["disc"](real)).mean() + F.softplus(nets["disc"](fake.detach())).mean()
                d.backward()
                optims["disc"].step()
        """,
    ),
    "two parts of a policy, of which one is never cleared": (
        "missing-zero-grad",
        """
        def train(policy, loader):
            for obs, act, adv, ret in loader:
                values, logp = policy.evaluate(obs, act)
                policy.actor_opt.zero_grad()
                (-(logp * adv).mean()).backward()
                policy.actor_opt.step()
                F.mse_loss(values, ret).backward()
                policy.critic_opt.step()
        """,
    ),
    "losses that are arguments, in a loop that never clears": (
        "missing-zero-grad",
        """
        def descend(losses, optimizer):
            for loss in losses:
                loss.backward()
                optimizer.step()
        """,
    ),
    "a criterion that is chosen by its name": (
        "missing-zero-grad",
        """
        class Trainer:
            def __init__(self, model, criterion, optimizer, loader):
                self.model, self.criterion = model, criterion
                self.optimizer, self.loader = optimizer, loader

            def train(self):
                for batch in self.loader:
                    batch["out"] = self.model(batch["x"])
                    losses = self.criterion(**batch)
                    for name, value in losses.items():
                        losses[name] = value / 2
                    losses["loss"].backward()
                    self.optimizer.step()
        """,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_reported_that_no_caller_mends(name: str, options: Options) -> None:
    code, text = WRONG[name]
    found = findings(text, options)
    assert [finding.code for finding in found] == [code]
    assert all(finding.assumption for finding in found)
