"""Right and wrong repairs of small programs of many kinds: schedules, averages, hooks, mixed precision, players.

What a wrong one does is plausible, and silences the error. None is accepted, and every right one is.
The programs are written as tersely as their kind allows.
"""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest

from judging.test_judging import Original, judged
from judging.test_rule import Edits

HEAD = """\
import copy
import torch
from torch import nn
from torch.distributions import Categorical, Normal
import torch.nn.functional as F
torch.manual_seed(0)
def mlp(a, b):
    return nn.Sequential(nn.Linear(a, 8), nn.Tanh(), nn.Linear(8, b))
"""

PROGRAMS: dict[str, tuple[str, Edits | None, tuple[Edits, ...]]] = {
    "three heads": (
        """
t, a, b, c = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.Adam([*t.parameters(), *a.parameters(), *b.parameters(), *c.parameters()])
for _ in range(5):
    h = t(torch.randn(8, 4)).tanh()
    first = F.mse_loss(a(h), torch.randn(8, 1)); second = F.mse_loss(b(h), torch.randn(8, 1)); third = F.l1_loss(c(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    third.backward()
    opt.step()
""",
        (
            (
                "first.backward()\n    second.backward()\n    third.backward()",
                "(first + second + third).backward()",
            ),
        ),
        (
            (("b(h)", "b(h.detach())"), ("c(h)", "c(h.detach())")),
            (
                (
                    "first.backward()\n    second.backward()\n    third.backward()",
                    "(first + second).backward()",
                ),
            ),
            (
                ("first.backward()", "first.backward(retain_graph=True)"),
                ("second.backward()", "opt.step(); opt.zero_grad(); second.backward(retain_graph=True)"),
            ),
        ),
    ),
    "a schedule": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.Adam([*t.parameters(), *a.parameters(), *b.parameters()], lr=.01)
sch = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
for _ in range(6):
    h = t(torch.randn(8, 4)).tanh()
    first = F.mse_loss(a(h), torch.randn(8, 1)); second = F.mse_loss(b(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
    sch.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("    sch.step()\n", ""),
            ),
            (("first.backward()\n    second.backward()", "(0.5 * first + 0.5 * second).backward()"),),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("StepLR(opt, 2, 0.5)", "StepLR(opt, 20, 0.5)"),
            ),
        ),
    ),
    "mixed precision": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD([*t.parameters(), *a.parameters(), *b.parameters()], lr=.05)
for _ in range(5):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = t(torch.randn(8, 4)).tanh()
        first = F.mse_loss(a(h).float(), torch.randn(8, 1)); second = F.mse_loss(b(h).float(), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (("b(h)", "b(h.detach())"), ("a(h)", "a(h.detach())")),
            (("first.backward()\n    second.backward()", "(first + 1.1 * second).backward()"),),
        ),
    ),
    "a closure": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.LBFGS([*t.parameters(), *a.parameters(), *b.parameters()], lr=.1, max_iter=3)
x, y = torch.randn(8, 4), torch.randn(8, 1)
def closure():
    opt.zero_grad()
    h = t(x).tanh()
    first = F.mse_loss(a(h), y); second = F.mse_loss(b(h), y)
    first.backward()
    second.backward()
    return first + second
for _ in range(4):
    opt.step(closure)
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (("first.backward()\n    second.backward()", "second.backward()"),),
            (("b(h)", "b(h.detach())"),),
        ),
    ),
    "hooks on parameters": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
for p in t.parameters():
    p.register_hook(lambda g: g.clamp(-.05, .05))
opt = torch.optim.SGD([*t.parameters(), *a.parameters(), *b.parameters()], lr=.1)
for _ in range(5):
    h = t(torch.randn(8, 4)).tanh()
    first = 3 * F.mse_loss(a(h), torch.randn(8, 1)); second = 3 * F.mse_loss(b(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()", "first.backward(retain_graph=True)"),),
        (
            (("b(h)", "b(h.detach())"),),
            (
                ("first.backward()", "first.backward(retain_graph=True)"),
                ("for p in t.parameters():\n    p.register_hook(lambda g: g.clamp(-.05, .05))\n", ""),
            ),
        ),
    ),
    "tied weights": (
        """
emb = nn.Embedding(12, 8); out = nn.Linear(8, 12, bias=False); out.weight = emb.weight; mid = mlp(8, 8); aux = nn.Linear(8, 1)
opt = torch.optim.Adam([*emb.parameters(), *mid.parameters(), *aux.parameters()], lr=.01)
for _ in range(5):
    i = torch.randint(12, (16,)); y = torch.randint(12, (16,))
    h = mid(emb(i))
    first = F.cross_entropy(out(h), y); second = F.mse_loss(aux(h), torch.randn(16, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (("aux(h)", "aux(h.detach())"),),
            (
                ("h = mid(emb(i))", "h = mid(emb(i).detach())"),
                ("first.backward()", "first.backward(retain_graph=True)"),
            ),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("out.weight = emb.weight; ", ""),
            ),
        ),
    ),
    "an average of weights": (
        """
net, head = mlp(4, 8), nn.Linear(8, 1); aux = nn.Linear(8, 1)
avg = copy.deepcopy(net)
opt = torch.optim.SGD([*net.parameters(), *head.parameters(), *aux.parameters()], lr=.1)
for _ in range(6):
    x = torch.randn(8, 4)
    h = net(x).tanh()
    first = F.mse_loss(head(h), torch.randn(8, 1)); second = F.mse_loss(aux(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(net.parameters(), avg.parameters()):
            q.mul_(.9).add_(p, alpha=.1)
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("q.mul_(.9).add_(p, alpha=.1)", "pass"),
            ),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("q.mul_(.9).add_(p, alpha=.1)", "q.mul_(.1).add_(p, alpha=.9)"),
            ),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("q.mul_(.9).add_(p, alpha=.1)", "p.mul_(.9).add_(q, alpha=.1)"),
            ),
        ),
    ),
    "a penalty of gradients": (
        """
G, D = mlp(3, 2), mlp(2, 1)
og, od = torch.optim.Adam(G.parameters(), lr=.01), torch.optim.Adam(D.parameters(), lr=.01)
for _ in range(5):
    real, fake = torch.randn(8, 2), G(torch.randn(8, 3))
    u = torch.rand(8, 1)
    mix = (u * real + (1 - u) * fake).detach().requires_grad_()
    grad, = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
    gp = (grad.norm(dim=1) - 1).pow(2).mean()
    d_loss = D(fake).mean() - D(real).mean() + gp
    od.zero_grad()
    d_loss.backward()
    od.step()
    og.zero_grad()
    g_loss = -D(fake).mean()
    g_loss.backward()
    og.step()
""",
        (("d_loss = D(fake)", "d_loss = D(fake.detach())"),),
        (
            (("d_loss = D(fake)", "d_loss = D(fake.detach())"), ("create_graph=True", "create_graph=False")),
            (("d_loss = D(fake)", "d_loss = D(fake.detach())"), (" + gp\n", "\n")),
            (("g_loss = -D(fake)", "g_loss = -D(fake.detach())"),),
            (("d_loss = D(fake).mean() -", "d_loss = -"),),
            (
                ("d_loss = D(fake)", "d_loss = D(fake.detach())"),
                ("g_loss = -D(fake)", "g_loss = -D(G(torch.zeros(8, 3)))"),
            ),
        ),
    ),
    "learned weights of losses": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1); s = nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([*t.parameters(), *a.parameters(), *b.parameters(), s], lr=.01)
for _ in range(5):
    h = t(torch.randn(8, 4)).tanh()
    l1 = F.mse_loss(a(h), torch.randn(8, 1)); l2 = F.mse_loss(b(h), torch.randn(8, 1))
    first = torch.exp(-s[0]) * l1 + s[0]; second = torch.exp(-s[1]) * l2 + s[1]
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (("torch.exp(-s[0]) * l1", "torch.exp(-s[0]) * l1.detach()"),),
            (("first.backward()\n    second.backward()", "(first.detach() + second).backward()"),),
            (
                ("torch.exp(-s[1])", "torch.exp(-s[1].detach())"),
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
            ),
        ),
    ),
    "an encoder of two tasks": (
        """
enc, dec, cls = mlp(4, 6), mlp(6, 4), nn.Linear(6, 3)
o1 = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=.01)
o2 = torch.optim.Adam(cls.parameters(), lr=.01)
for _ in range(5):
    x = torch.randn(8, 4); y = torch.randint(3, (8,))
    z = enc(x)
    first = F.mse_loss(dec(z), x); second = F.cross_entropy(cls(z), y)
    o1.zero_grad(); o2.zero_grad()
    first.backward()
    second.backward()
    o1.step(); o2.step()
""",
        None,
        (
            (("cls(z)", "cls(z.detach())"), ("dec(z)", "dec(z.detach())")),
            (
                ("first.backward()", "first.backward(retain_graph=True)"),
                ("F.cross_entropy(cls(z), y)", "F.cross_entropy(cls(z).detach().requires_grad_(), y)"),
            ),
        ),
    ),
    "a first pass": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD([*t.parameters(), *a.parameters(), *b.parameters()], lr=.1)
for i in range(6):
    h = t(torch.randn(8, 4)).tanh()
    first = F.mse_loss(a(h), torch.randn(8, 1)); second = F.mse_loss(b(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (("first.backward()\n    second.backward()", "(first + second if i < 3 else first).backward()"),),
            (
                (
                    "first.backward()\n    second.backward()",
                    "(first + second).backward()\n    if i == 4: opt.zero_grad()",
                ),
            ),
            (
                (
                    "first.backward()\n    second.backward()",
                    "(first + second).backward()\n    if i == 40: opt.zero_grad()",
                ),
            ),
            (
                (
                    "first.backward()\n    second.backward()",
                    "(first + (second if i else second.detach())).backward()",
                ),
            ),
        ),
    ),
    "a stale forward": (
        """
G, D = mlp(3, 2), mlp(2, 1)
og, od = torch.optim.Adam(G.parameters(), lr=.01), torch.optim.Adam(D.parameters(), lr=.01)
for i in range(8):
    fake = G(torch.randn(8, 3))
    out = D(fake)
    d_loss = F.softplus(out).mean() + F.softplus(-D(torch.randn(8, 2))).mean()
    g_loss = F.softplus(-out).mean()
    od.zero_grad(); d_loss.backward(retain_graph=True); od.step()
    og.zero_grad(); g_loss.backward(); og.step()
""",
        (
            ("out = D(fake)", "out = D(fake.detach())"),
            ("    g_loss = F.softplus(-out).mean()\n", ""),
            ("retain_graph=True", ""),
            ("og.zero_grad(); g_loss", "g_loss = F.softplus(-D(fake)).mean(); og.zero_grad(); g_loss"),
        ),
        (
            (("od.step()\n", "\n"), ("og.step()", "od.step(); og.step()")),
            (
                ("out = D(fake)", "out = D(fake.detach())"),
                ("    g_loss = F.softplus(-out).mean()\n", ""),
                ("retain_graph=True", ""),
                (
                    "og.zero_grad(); g_loss",
                    "g_loss = F.softplus(-copy.deepcopy(D)(fake)).mean().detach().requires_grad_(); og.zero_grad(); g_loss",
                ),
            ),
            (
                ("out = D(fake)", "E = copy.deepcopy(D) if i == 0 else E; out = D(fake.detach())"),
                ("g_loss = F.softplus(-out)", "g_loss = F.softplus(-E(fake))"),
                ("retain_graph=True", ""),
            ),
            (
                ("out = D(fake)", "out = D(fake.detach())"),
                ("g_loss = F.softplus(-out)", "g_loss = F.softplus(-D(fake.detach()))"),
                ("retain_graph=True", ""),
            ),
        ),
    ),
    "gradients that are never cleared": (
        """
net = mlp(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=.05)
for i in range(8):
    loss = F.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    opt.step()
""",
        (("    loss.backward()", "    opt.zero_grad()\n    loss.backward()"),),
        (
            (("    loss.backward()", "    if i % 2 == 0: opt.zero_grad()\n    loss.backward()"),),
            (("    loss.backward()", "    loss.backward()\n    opt.zero_grad()"),),
            (("    opt.step()", "    opt.step()\n    net[0].zero_grad()"),),
            (("    loss.backward()", "    if i < 5: opt.zero_grad()\n    loss.backward()"),),
        ),
    ),
    "two optimizers of one network": (
        """
net, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
ps = [*net.parameters(), *a.parameters(), *b.parameters()]
o1 = torch.optim.SGD([p for p in ps if p.dim() > 1], lr=.1)
o2 = torch.optim.Adam([p for p in ps if p.dim() == 1], lr=.01)
for i in range(5):
    h = net(torch.randn(8, 4)).tanh()
    first = F.mse_loss(a(h), torch.randn(8, 1)); second = F.mse_loss(b(h), torch.randn(8, 1))
    o1.zero_grad(); o2.zero_grad()
    first.backward()
    second.backward()
    o1.step(); o2.step()
""",
        None,
        (
            (("b(h)", "b(h.detach())"),),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("o1.zero_grad(); o2.zero_grad()", "o1.zero_grad()"),
            ),
        ),
    ),
    "an actor and a critic": (
        """
actor, critic = mlp(4, 2), mlp(4, 1)
oa, oc = torch.optim.Adam(actor.parameters(), lr=.01), torch.optim.Adam(critic.parameters(), lr=.01)
for _ in range(5):
    s, r = torch.randn(16, 4), torch.randn(16)
    dist = Categorical(logits=actor(s)); act = dist.sample()
    adv = r - critic(s).squeeze(1)
    first = adv.pow(2).mean()
    second = -(dist.log_prob(act) * adv).mean() - 0.01 * dist.entropy().mean()
    oa.zero_grad(); oc.zero_grad()
    first.backward()
    second.backward()
    oa.step(); oc.step()
""",
        (("log_prob(act) * adv", "log_prob(act) * adv.detach()"),),
        (
            (("first.backward()\n    second.backward()", "(first + second).backward()"),),
            (
                (
                    "first.backward()\n    second.backward()",
                    "second.backward(retain_graph=True)\n    oc.zero_grad()\n    first.backward()\n    if _ > 2: oa.zero_grad()",
                ),
            ),
            (
                (
                    "log_prob(act) * adv).mean() - 0.01 * dist.entropy().mean()",
                    "log_prob(act) * adv.detach()).mean()",
                ),
            ),
            (
                ("adv = r - critic(s).squeeze(1)", "adv = r - critic(s).squeeze(1).mean()"),
                ("log_prob(act) * adv", "log_prob(act) * adv.detach()"),
            ),
        ),
    ),
    "a Gaussian policy": (
        """
pi, vf = mlp(4, 2), mlp(4, 1)
opt = torch.optim.Adam([*pi.parameters(), *vf.parameters()], lr=.01)
for _ in range(5):
    s, r = torch.randn(16, 4), torch.randn(16)
    dist = Normal(pi(s), 1.0); act = dist.sample()
    v = vf(s).squeeze(1)
    first = F.mse_loss(v, r)
    second = -(dist.log_prob(act).sum(-1) * (r - v)).mean()
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("* (r - v))", "* (r - v).detach())"),),
        (
            (("first.backward()", "first.backward(retain_graph=True)"),),
            (("first.backward()\n    second.backward()", "(first + second).backward()"),),
            (("F.mse_loss(v, r)", "F.mse_loss(v.detach(), r)"),),
            (("* (r - v))", "* (r - v.mean()).detach())"),),
        ),
    ),
    "a policy written by hand": (
        """
pi, vf = mlp(4, 2), mlp(4, 1)
opt = torch.optim.Adam([*pi.parameters(), *vf.parameters()], lr=.01)
for _ in range(5):
    s, r = torch.randn(16, 4), torch.randn(16)
    logp = F.log_softmax(pi(s), 1)
    act = torch.multinomial(logp.exp().detach(), 1)
    adv = r - vf(s).squeeze(1)
    first = adv.pow(2).mean()
    second = -(logp.gather(1, act).squeeze(1) * adv).mean()
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        None,
        (
            (("first.backward()", "first.backward(retain_graph=True)"),),
            (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        ),
    ),
    "a target that stands first": (
        """
teacher, student = mlp(4, 3), nn.Linear(4, 3)
opt = torch.optim.Adam([*teacher.parameters(), *student.parameters()], lr=.01)
for _ in range(5):
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    t, s = teacher(x), student(x)
    first, second = F.cross_entropy(t, y), F.mse_loss(t, s)
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        None,
        (
            (("F.mse_loss(t, s)", "F.mse_loss(t, s.detach())"),),
            (("first.backward()", "first.backward(retain_graph=True)"),),
            (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        ),
    ),
    "a sum that is never reset": (
        """
net = mlp(4, 2)
opt = torch.optim.SGD(net.parameters(), .1)
for _ in range(5):
    loss = 0
    for t in range(2):
        loss = loss + F.cross_entropy(net(torch.randn(5, 4)), torch.randint(0, 2, (5,)))
    opt.zero_grad()
    loss.backward()
    for t in range(2):
        loss = loss + F.cross_entropy(net(torch.randn(5, 4)), torch.randint(0, 2, (5,)))
    loss.backward()
    opt.step()
""",
        (("    loss.backward()\n    for t", "    loss.backward()\n    loss = 0\n    for t"),),
        (
            (("    loss.backward()\n    for t", "    loss.backward(retain_graph=True)\n    for t"),),
            (
                ("    loss.backward()\n    for t", "    for t"),
                ("    loss.backward()\n    opt", "    (2*loss).backward()\n    opt"),
            ),
            (("    loss.backward()\n    for t", "    opt.step(); opt.zero_grad(); loss = 0\n    for t"),),
        ),
    ),
    "several critics": (
        """
G = mlp(3, 2); Ds = [mlp(2, 1) for _ in range(2)]
og = torch.optim.Adam(G.parameters(), lr=.01); ods = [torch.optim.Adam(D.parameters(), lr=.01) for D in Ds]
for _ in range(4):
    fake = G(torch.randn(8, 3))
    for D, od in zip(Ds, ods):
        d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(torch.randn(8, 2))).mean()
        od.zero_grad(); d_loss.backward(); od.step()
    og.zero_grad()
    g_loss = sum(F.softplus(-D(fake)).mean() for D in Ds)
    g_loss.backward(); og.step()
""",
        (("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),),
        (
            (
                ("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),
                ("for D in Ds)", "for D in Ds[:1])"),
            ),
            (
                ("d_loss.backward()", "d_loss.backward(retain_graph=True)"),
                ("g_loss = sum(F.softplus(-D(fake)", "g_loss = sum(F.softplus(-D(fake.detach())"),
            ),
            (
                ("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),
                ("zip(Ds, ods)", "zip(Ds[:1], ods)"),
            ),
        ),
    ),
    "a carried state": (
        """
cell, head = nn.GRUCell(3, 5), nn.Linear(5, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=.1)
h = torch.zeros(4, 5)
for _ in range(8):
    h = cell(torch.randn(4, 3), h)
    loss = F.mse_loss(head(h), torch.randn(4, 1))
    opt.zero_grad(); loss.backward(); opt.step()
""",
        (("loss.backward(); opt.step()", "loss.backward(); opt.step(); h = h.detach()"),),
        (
            (
                ("head(h)", "head(h.detach())"),
                ("loss.backward(); opt.step()", "loss.backward(); opt.step(); h = h.detach()"),
            ),
            (("loss.backward(); opt.step()", "loss.backward(); opt.step(); h = torch.zeros(4, 5)"),),
            (
                ("loss.backward()", "loss.backward(retain_graph=True)"),
                ("opt.step()", "opt.step(); h = h.clone()"),
            ),
            (
                (
                    "    h = cell(torch.randn(4, 3), h)",
                    "    with torch.no_grad(): h = cell(torch.randn(4, 3), h)",
                ),
            ),
        ),
    ),
    "two makers": (
        """
A, B, D = mlp(2, 2), mlp(2, 2), mlp(2, 1)
og = torch.optim.Adam([*A.parameters(), *B.parameters()], lr=.01); od = torch.optim.Adam(D.parameters(), lr=.01)
for _ in range(5):
    x = torch.randn(8, 2)
    fake = A(x); back = B(fake)
    first = F.softplus(-D(fake)).mean(); second = F.l1_loss(back, x)
    og.zero_grad()
    first.backward()
    second.backward()
    og.step()
    od.zero_grad()
    d = F.softplus(D(fake.detach())).mean() + F.softplus(-D(x)).mean()
    d.backward(); od.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (("back = B(fake)", "back = B(fake.detach())"),),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("    od.zero_grad()\n", ""),
            ),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("od.step()", "od.step(); od.step()"),
            ),
        ),
    ),
    "a normalization": (
        """
t, a, b = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD([*t.parameters(), *a.parameters(), *b.parameters()], lr=.1)
for _ in range(5):
    x = torch.randn(8, 4)
    h = t(x)
    first = F.mse_loss(a(h), torch.randn(8, 1)); second = F.mse_loss(b(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("h = t(x)", "t.eval(); h = t(x)"),
            ),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("h = t(x)", "h = t(x); [m.eval() for m in t]"),
            ),
            (("b(h)", "b(t(x).detach())"),),
        ),
    ),
    "noise": (
        """
t, a, b = nn.Sequential(nn.Linear(4, 8), nn.Dropout(.5), nn.Tanh()), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD([*t.parameters(), *a.parameters(), *b.parameters()], lr=.1)
for _ in range(5):
    x = torch.randn(8, 4)
    h = t(x)
    first = F.mse_loss(a(h), x[:, :1]); second = F.mse_loss(b(h), x[:, 1:2])
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("nn.Dropout(.5)", "nn.Dropout(.1)"),
            ),
            (("b(h)", "b(h.detach())"),),
        ),
    ),
    "clipped gradients": (
        """
t, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
ps = [*t.parameters(), *a.parameters(), *b.parameters()]
opt = torch.optim.SGD(ps, lr=.1)
for _ in range(5):
    h = t(torch.randn(8, 4)).tanh()
    first = F.mse_loss(a(h), torch.randn(8, 1)); second = F.mse_loss(b(h), torch.randn(8, 1))
    opt.zero_grad()
    first.backward()
    second.backward()
    torch.nn.utils.clip_grad_norm_(ps, .5)
    opt.step()
""",
        (("first.backward()\n    second.backward()", "(first + second).backward()"),),
        (
            (
                (
                    "first.backward()\n    second.backward()\n    torch.nn.utils.clip_grad_norm_(ps, .5)",
                    "torch.nn.utils.clip_grad_norm_(ps, .5)\n    (first + second).backward()",
                ),
            ),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("clip_grad_norm_(ps, .5)", "clip_grad_norm_(ps, 5.)"),
            ),
            (
                ("first.backward()", "first.backward(retain_graph=True)"),
                ("second.backward()", "torch.nn.utils.clip_grad_norm_(ps, .1); second.backward()"),
            ),
        ),
    ),
    "a network that follows": (
        """
on, pr, tg = mlp(4, 6), mlp(6, 6), mlp(4, 6)
opt = torch.optim.SGD([*on.parameters(), *pr.parameters()], lr=.1)
for _ in range(5):
    x1, x2 = torch.randn(8, 4), torch.randn(8, 4)
    z1, z2 = on(x1), on(x2)
    first = 1 - F.cosine_similarity(pr(z1), tg(x2).detach()).mean(); second = 1 - F.cosine_similarity(pr(z2), z1).mean()
    opt.zero_grad()
    first.backward()
    second.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(on.parameters(), tg.parameters()): q.lerp_(p, .1)
""",
        None,
        (
            (("pr(z2), z1)", "pr(z2.detach()), z1.detach())"),),
            (
                ("first.backward()\n    second.backward()", "(first + second).backward()"),
                ("q.lerp_(p, .1)", "pass"),
            ),
        ),
    ),
    "wasted work": (
        """
G, D = mlp(3, 2), mlp(2, 1)
og, od = torch.optim.Adam(G.parameters(), lr=.01), torch.optim.Adam(D.parameters(), lr=.01)
for i in range(8):
    fake = G(torch.randn(8, 3))
    d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(torch.randn(8, 2))).mean()
    od.zero_grad(); d_loss.backward(); od.step()
    og.zero_grad()
    g_loss = F.softplus(-D(G(torch.randn(8, 3)))).mean()
    g_loss.backward(); og.step()
""",
        (("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),),
        (
            (("F.softplus(D(fake)).mean() +", "F.softplus(D(fake).detach()).mean() +"),),
            (
                ("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),
                ("og.zero_grad()\n", "og.zero_grad(); od.zero_grad(); D.requires_grad_(False)\n"),
            ),
            (
                (
                    "    fake = G(torch.randn(8, 3))",
                    "    fake = G(torch.randn(8, 3)) if i < 5 else torch.randn(8, 2)",
                ),
                ("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),
            ),
            (
                ("F.softplus(D(fake)).mean() +", "F.softplus(D(fake.detach())).mean() +"),
                ("og.step()", "og.step() if i % 2 else None"),
            ),
        ),
    ),
    "a temperature": (
        """
pi, q = mlp(4, 2), mlp(6, 1); log_a = nn.Parameter(torch.zeros(()))
op, oq, oal = torch.optim.Adam(pi.parameters(), lr=.01), torch.optim.Adam(q.parameters(), lr=.01), torch.optim.Adam([log_a], lr=.01)
for _ in range(5):
    s = torch.randn(8, 4); r = torch.randn(8, 1)
    mu = pi(s); dist = Normal(mu, 1.); a = dist.rsample(); lp = dist.log_prob(a).sum(1, keepdim=True)
    pl = (log_a.exp().detach() * lp - q(torch.cat([s, a], 1))).mean()
    al = -(log_a * (lp + 2)).mean()
    op.zero_grad(); pl.backward(); op.step()
    oal.zero_grad(); al.backward(); oal.step()
    oq.zero_grad(); F.mse_loss(q(torch.cat([s, a.detach()], 1)), r).backward(); oq.step()
""",
        (("(lp + 2)", "(lp + 2).detach()"),),
        (
            (
                ("pl.backward()", "pl.backward(retain_graph=True)"),
                ("al.backward()", "op.zero_grad(); al.backward(inputs=[log_a])"),
                ("(lp + 2)", "(lp + 3)"),
            ),
            (
                ("log_a * (lp + 2)", "log_a.detach() * (lp + 2)"),
                ("pl.backward()", "pl.backward(retain_graph=True)"),
            ),
            (("log_a * (lp + 2)", "log_a * (lp.mean() - lp.mean().detach() + 2).detach()"),),
        ),
    ),
    "a teacher": (
        """
T, S = mlp(4, 3), mlp(4, 3)
ot, os_ = torch.optim.SGD(T.parameters(), lr=.1), torch.optim.SGD(S.parameters(), lr=.1)
for _ in range(5):
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    t = T(x)
    first = F.cross_entropy(t, y)
    ot.zero_grad(); first.backward(); ot.step()
    second = F.mse_loss(S(x), t)
    os_.zero_grad(); second.backward(); os_.step()
""",
        (("F.mse_loss(S(x), t)", "F.mse_loss(S(x), t.detach())"),),
        (
            (
                ("first.backward()", "first.backward(retain_graph=True)"),
                ("ot.step()\n", "\n"),
                ("os_.step()", "os_.step(); ot.step()"),
            ),
            (("F.mse_loss(S(x), t)", "F.mse_loss(S(x).detach(), t.detach()) + 0 * S(x).sum()"),),
            (("F.mse_loss(S(x), t)", "F.mse_loss(S(x), y[:, None].float().expand(8, 3))"),),
        ),
    ),
}

QUICK = ("mixed precision", "a normalization", "a policy written by hand")
"""The others take some minutes together."""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in PROGRAMS]
)
def test_right_repairs_are_accepted_and_wrong_ones_are_not(
    name: str, original: Original, tmp_path: Path
) -> None:
    text, right, wrong = PROGRAMS[name]
    amiss = []
    for edits in (right, *wrong):
        if edits is None:
            continue
        after = text
        for old, new in edits:
            assert old in after, old
            after = after.replace(old, new)
        found = judged(original(HEAD + text), HEAD + after, tmp_path, seeds=(0, 1, 2))
        if (edits is right) != all(outcome == "accepted" for outcome, _ in found):
            amiss.append((edits, found))
    assert not amiss
