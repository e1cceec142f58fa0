"""The expressions of torch that programs are made of.

``{}`` stands for a tensor of shape (2, 3), and so does every result that is not a loss.
"""

from __future__ import annotations


def _listed(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split(" ; ") if part.strip()]


PRELUDE = """import copy
import itertools
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
ONE = torch.ones(2, 3)
ZERO = torch.zeros(2, 3)
MASK = torch.tensor([[True, False, True], [False, True, False]])
LABELS = torch.tensor([0, 2])
INDEX = torch.tensor([1, 0])
COLUMN = torch.tensor([[0], [2]])
criterion = nn.MSELoss()
bce = nn.BCEWithLogitsLoss()
"""

GLOBAL = frozenset(
    """torch F nn itertools copy ONE ZERO MASK LABELS INDEX COLUMN criterion bce print float sum range list
    tuple enumerate zip freeze filter self detached update dict blend
    both""".split()
)
"""Names that are the same in every function."""

LAYERS = _listed("""
nn.Linear(3, 3)
nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 3))
nn.Sequential(nn.Linear(3, 4), nn.ReLU(True), nn.Linear(4, 3))
nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU(0.2))
nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU(0.2, inplace=True))
nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU(0.2, True), nn.Linear(3, 3), nn.Tanh())
nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 3))
nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.3), nn.Linear(3, 3), nn.Softplus())
nn.Sequential(nn.Linear(3, 3), nn.PReLU(), nn.Linear(3, 3))
nn.Sequential(nn.Linear(3, 3, bias=False), nn.ELU(), nn.Linear(3, 3))
nn.Sequential(nn.Linear(3, 3), nn.Identity(), nn.Softmax(dim=1))
nn.Sequential(*[nn.Linear(3, 3) for _ in range(2)])
nn.Conv1d(2, 2, 3, padding=1)
nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.GELU(), nn.Conv1d(2, 2, 1))
nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
nn.Linear(3, 3, bias=False)
nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.SiLU()), nn.Linear(3, 3))
nn.BatchNorm1d(3)
nn.ConvTranspose1d(2, 2, 3, padding=1)
nn.Sequential(nn.Linear(3, 3), nn.Unflatten(1, (3, 1)), nn.Flatten(), nn.Linear(3, 3))
nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.3, inplace=True), nn.ELU(0.5, True), nn.Linear(4, 3))
nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Dropout(0.0, inplace=True))
nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5, True), nn.Linear(4, 3))
""")

UNARY = _listed("""
torch.tanh({}) ; {}.tanh() ; torch.sigmoid({}) ; {}.sigmoid() ; torch.relu({}) ; F.relu({}) ; {}.relu()
{} * 0.5 ; 0.5 * {} ; {} + 1 ; 1 - {} ; -{} ; {} / 2 ; {} ** 2 ; {}.pow(2) ; {}.exp() ; {}.abs()
torch.exp(-{})
F.softmax({}, dim=1) ; {}.softmax(-1) ; {}.clone() ; {}.view(3, 2).view(2, 3) ; {}.reshape(2, 3)
{}.t().t()
{}.flip(0) ; {}[[1, 0]] ; {}.clamp(-1, 1) ; {}.contiguous() ; F.leaky_relu({}, 0.2) ; F.dropout({}, 0.5)
F.normalize({}, dim=1) ; {}.unsqueeze(0).squeeze(0) ; F.layer_norm({}, (3,)) ; torch.sqrt({}.abs() + 1)
({}.exp() + 1).log() ; {}.mean(0, keepdim=True) + ONE ; {}[:1] + ONE ; {}[0] + ONE ; {}.square()
{}.float()
{}.sum(1, keepdim=True) * ONE ; {}.masked_fill(MASK, 0.0) ; torch.where(MASK, {}, ZERO)
{}.flatten().view(2, 3)
F.elu({}) ; {}.log_softmax(1) ; {}.chunk(2, dim=0)[0] + ONE ; {}.transpose(0, 1).transpose(0, 1)
{}.expand(2, 3)
{}.cos() ; {}.sin() ; {}.max(dim=1, keepdim=True)[0] + ONE ; {}.cumsum(0) ; {}.norm() + ONE ; {}.std() + ONE
{}.mean() + ONE ; F.gelu({}) ; F.silu({}) ; F.softplus({}) ; {}.repeat(1, 1) ; {}.view(-1).view(2, 3)
{}.neg()
{}.mul(0.5) ; {}.add(1) ; {}.sub(1) ; {}.div(2) ; {}.index_select(0, INDEX) ; {}.gather(1, COLUMN) + ONE
torch.roll({}, 1, 0) ; {}.tril() ; {}.detach() ; {}.type_as(ONE) ; F.relu6({}) ; F.hardtanh({})
{}.sigmoid().log()
torch.log1p({}.abs()) ; {}.reciprocal() ; {}.view_as(ONE) ; {}[:, 1:2] + ONE ; {}[..., None].squeeze(-1)
{}.logsumexp(1, keepdim=True) + ONE ; {}.prod(1, keepdim=True) + ONE ; torch.flatten({}).view(2, 3)
torch.clamp({}, 0, 1) ; torch.softmax({}, 1) ; {}.unbind(0)[1] + ONE ; {}.split(1)[0] + ONE
torch.mul({}, 2)
{}.permute(1, 0).permute(1, 0) ; torch.transpose({}, 0, 1).t() ; {}.narrow(0, 0, 1) + ONE ; {}.min() + ONE
{}.sum().expand(2, 3) ; torch.nn.functional.relu({}) ; torch.atan({}) ; F.logsigmoid({}) ; F.softsign({})
{}.expand_as(ONE) ; {}.reshape(-1).reshape(2, 3) ; {}.max(1)[0].unsqueeze(1) + ONE ; {}[MASK].sum() + ONE
{}.half_free() ; {}.sign() + {}.detach() ; {}.clamp(min=0) ; {}.to(torch.float32)
{}.var(1, keepdim=True) + ONE
{}.double().float() ; F.pad({}, (1, 0))[:, :3] ; {}.sort(1)[0] ; {}.topk(1, 1)[0] + ONE ; {}[INDEX]
{}.rsqrt_free()
""")
UNARY = [t for t in UNARY if "_free" not in t and t.count("{}") == 1]

BINARY = _listed("""
{} + {} ; {} - {} ; {} * {} ; {} / ({}.abs() + 1) ; torch.cat([{}, {}])[:2] ; torch.stack([{}, {}]).mean(0)
torch.max({}, {}) ; torch.minimum({}, {}) ; torch.add({}, {}) ; torch.mul({}, {}) ; {}.add({}) ; {}.mul({})
torch.lerp({}, {}, 0.5) ; torch.where(MASK, {}, {}) ; 0.9 * {} + 0.1 * {} ; {} @ {}.t() @ ONE
{}.sub({}, alpha=0.5)
torch.cat([{}, {}], dim=1)[:, :3] ; torch.matmul({}, {}.t()).matmul(ONE) ; {} * torch.sigmoid({})
torch.addcmul(ONE, {}, {}) ; torch.einsum('ij,ij->ij', {}, {}) ; {}.mm({}.t()).mm(ONE) ; {}.maximum({})
torch.cat(({}, {}), 0).view(2, 2, 3).sum(0) ; torch.bmm({}[None], {}.t()[None])[0] @ ONE ; torch.sub({}, {})
torch.hstack([{}, {}])[:, 3:] ; {}.where({} > 0, ZERO) ; {}.masked_fill({} > 0, 0.0)
torch.stack(({}, {}), 1)[:, 0]
torch.stack([{}, {}]).sum(dim=0) ; torch.stack([{}, {}]).max(0)[0] ; torch.dist({}, {}) + ONE ; {}.atan2({})
""")

LOSSES_ONE = _listed("""
{}.mean() ; {}.pow(2).mean() ; {}.sum() ; ({} ** 2).mean() ; {}.abs().mean() ; -{}.mean()
{}.square().sum()
torch.mean({}) ; {}.tanh().sum() ; {}.norm() ; {}.var() ; {}.exp().mean() ; F.softplus({}).mean()
F.cross_entropy({}, LABELS) ; F.binary_cross_entropy_with_logits({}, ONE) ; criterion({}, ONE)
bce({}, ZERO)
{}.log_softmax(1).mean() ; F.nll_loss(F.log_softmax({}, dim=1), LABELS) ; {}[0].sum() ; {}[0, 1] * 2
{}.max()
{}.logsumexp(1).mean() ; F.relu(1 - {}).mean() ; {}.std() ; F.binary_cross_entropy({}.sigmoid(), ONE)
nn.CrossEntropyLoss()({}, LABELS) ; nn.BCELoss()(torch.sigmoid({}), ZERO) ; torch.sum({})
{}.mean(1).mean(0)
F.softplus(-{}).mean() ; torch.norm({}) ; (1 - {}).pow(2).sum() ; {}.view(-1)[0] ; {}.sum(1).mean()
{}.min()
F.mse_loss({}, torch.ones_like(ONE)) ; bce({}.view(-1), torch.zeros(6)) ; F.multi_margin_loss({}, LABELS)
""")

LOSSES_TWO = _listed("""
F.mse_loss({}, {}) ; criterion({}, {}) ; ({} - {}).pow(2).mean() ; F.l1_loss({}, {})
F.smooth_l1_loss({}, {})
({} * {}).sum() ; ({} - {}).abs().mean() ; torch.nn.functional.huber_loss({}, {}) ; {}.mean() + {}.mean()
{}.mean() - {}.mean() ; ({} * {}).mean() ; F.kl_div({}, {}.softmax(1)) ; F.cosine_similarity({}, {}).mean()
nn.MSELoss()({}, {}) ; F.triplet_margin_loss({}, {}, ONE) ; nn.L1Loss(reduction='sum')({}, {})
torch.dist({}, {})
F.pairwise_distance({}, {}).mean() ; ({} @ {}.t()).trace() ; F.mse_loss({}, {}, reduction='sum')
({} / ({}.exp() + 1)).sum()
""")

LOSSES_MORE = _listed("""
{0} + {1} ; {0} + 0.1 * ({1}) ; {1} + {0} ; torch.stack([{0}, {1}]).sum() ; sum([{0}, {1}]) ; ({0}) * ({1})
({0} + {1}) / 2 ; torch.stack([{0}, {1}]).mean() ; {0} - {1} ; torch.max({0}, {1}) ; {0}.detach() + {1}
""")

INPLACE_METHODS = _listed("""
add_(1) ; mul_(0.5) ; sub_(0.1) ; div_(2) ; zero_() ; relu_() ; tanh_() ; sigmoid_() ; exp_()
clamp_(-1, 1) ; neg_()
fill_(0.5) ; abs_() ; add_(ONE) ; mul_(ONE) ; copy_(ONE) ; clamp_(min=0) ; masked_fill_(MASK, 0.0)
square_()
add_(ONE, alpha=0.5) ; pow_(2) ; sin_() ; normal_() ; uniform_() ; div_(ONE) ; lerp_(ONE, 0.5)
addcmul_(ONE, ONE)
""")
INPLACE_VIEWS = _listed("[0] ; [:1] ; .view(3, 2) ; .t() ; .detach() ; .data ; [:, 1] ; .view(-1)")
INPLACE_FUNCTIONS = _listed("""
F.relu_({0}) ; torch.relu_({0}) ; F.elu_({0}) ; torch.sigmoid_({0}) ; F.relu({0}, inplace=True)
F.leaky_relu_({0}) ; F.dropout({0}, 0.5, inplace=True) ; nn.ReLU(inplace=True)({0}) ; torch.exp_({0})
F.elu({0}, 1.0, True) ; F.dropout({0}, 0.5, False, True) ; F.dropout({0}, p=0.0, inplace=True)
nn.Hardtanh(0.0, 1.0, True)({0}) ; nn.Dropout(0.5, True).eval()({0}) ; nn.SELU(True)({0})
""")

CUT = [
    (8.0, "{0}.detach()"),
    (1.5, "torch.autograd.Variable({0})"),
    (0.5, "torch.autograd.Variable({0}, volatile=True)"),
]
DETACHED = [
    (8.0, "{0} = {0}.detach()"),
    (1, "{0}.detach()"),
    (1, "{0}.detach_()"),
    (1, "{0} = {0}.data"),
    (1, "{0} = {0}.detach().clone()"),
    (0.7, "{0} = {0}.clone().detach()"),
    (1, "{0} = {0}.detach().requires_grad_()"),
    (0.5, "{0} = torch.tensor({0}.tolist())"),
    (0.5, "{0} = detached({0})"),
    (0.3, "{0} = torch.autograd.Variable({0}.data)"),
    (0.6, "{0} = torch.autograd.Variable({0})"),
    (0.3, "{0} = torch.autograd.Variable({0}, requires_grad=True)"),
    (0.3, "{0} = {0}.detach() + 0"),
]
DETACHED_TUPLES = _listed("""
{0} = tuple(s.detach() for s in {0}) ; {0} = ({0}[0].detach(), {0}[1].detach())
{0} = tuple([s.detach() for s in {0}]) ; {0} = detached({0}) ; {0} = tuple(map(lambda s: s.detach(), {0}))
""")

WRITES = _listed("""
{}.mul_(0.9) ; {}.add_(0.1) ; {}.data.mul_(0.9) ; {}.copy_({} * 0.5) ; {}.data.clamp_(-0.1, 0.1)
{}.clamp_(-1, 1)
{} *= 0.9 ; {} += 0.1 ; {}.data = {}.data * 0.9 ; nn.init.zeros_({}) ; nn.init.normal_({}) ; {}.zero_()
""")

CONDITIONS = _listed("""
{0} % 2 == 0 ; {0} % 2 == 1 ; {0} > 0 ; {0} == 0 ; ({0} + 1) % 2 == 0 ; {0} < 2 ; {0} != 1 ; not {0} % 2
{0} >= 1 and {0} < 3 ; {0} in (0, 2) ; {0} == 0 or {0} == 2 ; 0 < {0} <= 2 ; bool({0}) ; {0} // 2 == 0
""")

LOSS_OF_PHASE = _listed("""
F.mse_loss({0}, {1}) ; criterion({0}, {1}) ; {0}.mean() ; ({0} - {1}).pow(2).mean() ; bce({0}, ONE)
-{0}.mean()
""")

FROM_LISTS = _listed("""
torch.stack({0}).mean(0) ; sum({0}) ; torch.cat({0})[:2] ; {0}[0] + {0}[-1]
torch.stack([s * 0.5 for s in {0}]).sum(0)
torch.stack({0}, dim=1)[:, 0] ; torch.stack(tuple({0})).sum(0) ; {0}[-1] ; sum(s for s in {0})
torch.cat({0}, 0)[-2:]
""")

ON_WEIGHTS = _listed("""
sum(p.pow(2).sum() for p in {0}.parameters()) ; torch.stack([p.norm() for p in {0}.parameters()]).sum()
sum([p.abs().sum() for p in {0}.parameters()]) ; torch.cat([p.view(-1) for p in {0}.parameters()]).norm()
sum((p ** 2).sum() for n, p in {0}.named_parameters()) ; next({0}.parameters()).sum()
torch.nn.utils.parameters_to_vector({0}.parameters()).pow(2).sum()
""")

LEAVES = _listed("""
torch.randn(2, 3, requires_grad=True) ; torch.zeros(2, 3).requires_grad_()
torch.ones(2, 3, requires_grad=True)
torch.autograd.Variable(torch.randn(2, 3), requires_grad=True) ; ONE.clone().requires_grad_()
""")
