"""Find out by running torch what each operation saves for backward, and write the operator table.

    python tools/generate_operators.py            rewrite gradfix/autograd/operator_table.py
    python tools/generate_operators.py --check    print what differs and exit with 1

Each line of ``CALLS`` and ``MODULES`` is a way to call some operations on small tensors. It is run
for every combination of operands that require grad, feeding gradients straight into the results so
that nothing but the operation itself is in the graph:

* backward twice without ``retain_graph``: an error means that something was saved;
* one operand, or the result, has its version counter moved after the forward, as a later in-place
  change would: an error means that this very tensor was saved.

Lines with the same name are joined: what holds in all of them is sure, the rest is possible.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import operator
import re
import string
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "gradfix" / "autograd" / "operator_table.py"

# Where to look, and under which name the program finds it. A trailing underscore asks for the
# in-place forms (`mul` -> `mul_`). A name that a place does not have is passed over. Operators go by
# the names of their `ast` classes.
PLACES: dict[str, tuple[Any, str]] = {
    "torch": (torch, "torch."),
    "Tensor": (torch.Tensor, "Tensor."),
    "F": (F, "torch.nn.functional."),
    "linalg": (torch.linalg, "torch.linalg."),
    "fft": (torch.fft, "torch.fft."),
    "special": (torch.special, "torch.special."),
    "binary": (
        SimpleNamespace(
            Add=operator.add,
            Sub=operator.sub,
            Mult=operator.mul,
            Div=operator.truediv,
            Mod=operator.mod,
            FloorDiv=operator.floordiv,
            Pow=operator.pow,
            MatMult=operator.matmul,
            Eq=operator.eq,
            NotEq=operator.ne,
            Lt=operator.lt,
            LtE=operator.le,
            Gt=operator.gt,
            GtE=operator.ge,
            BitAnd=operator.and_,
            BitOr=operator.or_,
            BitXor=operator.xor,
        ),
        "binary.",
    ),
    "augmented": (
        SimpleNamespace(
            Add=operator.iadd,
            Sub=operator.isub,
            Mult=operator.imul,
            Div=operator.itruediv,
            Mod=operator.imod,
            FloorDiv=operator.ifloordiv,
            Pow=operator.ipow,
            MatMult=operator.imatmul,
        ),
        "augmented.",
    ),
    "unary": (
        SimpleNamespace(USub=operator.neg, UAdd=operator.pos, Not=operator.not_, Invert=operator.invert),
        "unary.",
    ),
}

# places | names | arguments. An operand is written with its shape: `input[2,3]`; further words say
# what is in it (see `Operand.make`): `pos` 0.5 to 1.5, `prob` sums to 1, `list` two such tensors in a list.
CALLS = """
# -- elementwise
torch Tensor torch_ Tensor_ F F_ special | abs absolute neg negative sin cos sinh tanh sigmoid exp exp2 expm1
  square erf erfc sinc relu sgn sign round floor ceil trunc fix frac rad2deg deg2rad nan_to_num i0
  conj_physical expit ndtr softsign tanhshrink logsigmoid relu6 silu mish selu hardswish hardsigmoid elu celu
  gelu softplus leaky_relu hardshrink softshrink hardtanh sinh tan cosh asinh arcsinh atan arctan positive i0e
  i1 i1e erfcx log_ndtr angle bessel_j0 bessel_j1 signbit isnan isinf isfinite isposinf isneginf isreal
  logical_not zero rrelu | input[2,3]
torch Tensor torch_ Tensor_ F special | log log2 log10 log1p sqrt rsqrt reciprocal asin acos arcsin arccos
  atanh arctanh erfinv logit lgamma gammaln digamma psi entr ndtri bernoulli | input[2,3,unit]
torch Tensor torch_ Tensor_ | acosh arccosh | input[2,3]
torch special | polygamma | 1, input[2,3,pos]
Tensor Tensor_ | polygamma | input[2,3,pos], 1
torch Tensor Tensor_ special | mvlgamma multigammaln | input[2,3,pos], 1
torch | real | input[2,3]
torch | real | input[2,3,complex]
torch | imag | input[2,3,complex]
torch Tensor Tensor_ | conj resolve_conj resolve_neg | input[2,3]
torch | view_as_real | input[2,3,complex]
torch | view_as_complex | input[3,2]
torch | complex | real[2,3], imag[2,3]
torch | polar | abs[2,3], angle[2,3]

torch Tensor Tensor_ | add sub subtract mul multiply div divide true_divide maximum minimum fmax fmin
  max.other min.other atan2 arctan2 hypot logaddexp logaddexp2 copysign fmod remainder floor_divide nextafter
  ldexp | input[2,3], other[2,3]
torch Tensor Tensor_ | add sub subtract mul multiply div divide true_divide fmod remainder | input[2,3],
  other[3]
torch Tensor Tensor_ | add sub subtract | input[2,3], other[2,3], alpha=2
torch Tensor Tensor_ | div divide | input[2,3], other[2,3], rounding_mode='floor'
torch Tensor Tensor_ special | xlogy xlog1py zeta gammainc gammaincc igamma igammac | input[2,3,pos],
  other[2,3,pos]
torch Tensor Tensor_ | heaviside | input[2,3], values[2,3]
torch Tensor Tensor_ | pow | input[2,3,pos], exponent[2,3]
torch Tensor | float_power | input[2,3,pos], exponent[2,3]
torch Tensor Tensor_ | add.scalar sub.scalar subtract.scalar mul.scalar multiply.scalar div.scalar
  divide.scalar true_divide.scalar fmod.scalar remainder.scalar floor_divide.scalar pow.scalar xlogy.scalar
  copysign.scalar | input[2,3,pos], 2
torch Tensor Tensor_ | pow pow.scalar | input[2,3,pos], 0.5
torch Tensor | float_power.scalar | input[2,3,pos], 2
torch | pow.scalar_base float_power.scalar_base | 2, exponent[2,3]
torch | xlogy.scalar_base | 2, other[2,3,pos]
torch | rsub | input[2,3], other[2,3]
torch | rsub.scalar | input[2,3], 2
torch Tensor Tensor_ | clamp clip | input[2,3], -0.5, 0.5
torch Tensor Tensor_ | clamp clip | input[2,3], min=0.1
torch Tensor Tensor_ | clamp clip | input[2,3], max=0.1
torch Tensor Tensor_ | clamp clip | input[2,3], min[2,3], max[2,3]
torch Tensor torch_ Tensor_ | clamp_min clamp_max | input[2,3], 0.1
torch Tensor torch_ Tensor_ | clamp_min | input[2,3], min[2,3]
torch Tensor torch_ Tensor_ | clamp_max | input[2,3], max[2,3]
torch Tensor Tensor_ | lerp | input[2,3], end[2,3], weight[2,3]
torch Tensor Tensor_ | lerp lerp.scalar | input[2,3], end[2,3], 0.9
torch Tensor Tensor_ | addcmul addcdiv | input[2,3], tensor1[2,3], tensor2[2,3,pos]
torch Tensor Tensor_ | addcmul addcdiv | input[2,3], tensor1[2,3], tensor2[2,3,pos], value=0.5
torch Tensor | frexp | input[2,3]
torch F torch_ F_ | threshold | input[2,3], 0.1, 0.0
torch Tensor Tensor_ | renorm | input[2,3], 2, 0, 0.1
torch Tensor | logcumsumexp cumsum cumprod cummax cummin | input[2,3], 1
Tensor_ | cumsum cumprod | input[2,3], 1

# -- in place only
Tensor_ | copy | input[2,3], other[2,3]
Tensor_ | fill | input[2,3], 2.0
Tensor_ | fill | input[2,3], value[scalar]
torch torch_ | fill | input[2,3], value[scalar]
torch torch_ | fill | input[2,3], 2.0
Tensor_ | normal uniform exponential cauchy log_normal bernoulli random | input[2,3]
Tensor_ | geometric | input[2,3], 0.5
Tensor_ | fill_diagonal | input[3,3], 0.0
Tensor_ | t | input[2,3]
Tensor_ | transpose swapaxes swapdims | input[2,3], 0, 1
Tensor_ | squeeze | input[2,1,3]
Tensor_ | unsqueeze | input[2,3], 0
Tensor_ | eq ne lt le gt ge greater less greater_equal less_equal not_equal | input[2,3], other[2,3]
Tensor_ | logical_and logical_or logical_xor | input[2,3], other[2,3]

# -- comparisons and other things without a gradient
torch Tensor | eq ne lt le gt ge greater less greater_equal less_equal not_equal isclose logical_and
  logical_or logical_xor | input[2,3], other[2,3]
torch Tensor | eq ne lt le gt ge greater less greater_equal less_equal not_equal | input[2,3], 0
torch Tensor | equal allclose is_same_size | input[2,3], other[2,3]
torch Tensor | argmax argmin argsort | input[2,3]
torch Tensor | argmax argmin argsort | input[2,3], 1
torch Tensor | all any nonzero argwhere count_nonzero | input[2,3]
torch Tensor | all any count_nonzero | input[2,3], 1
torch | nonzero.as_tuple | input[2,3], as_tuple=True
torch Tensor | bincount | input[6,long]
torch Tensor | histc | input[6]
torch Tensor | unique unique_consecutive | input[6]
torch Tensor | multinomial | input[6,pos], 2
torch | bucketize | input[3], boundaries[4]
torch | searchsorted | sorted_sequence[4], input[3]
torch | isin | elements[3], test_elements[3]
F | one_hot | tensor[3,long]
torch | zeros_like ones_like empty_like rand_like randn_like | input[2,3]
torch | full_like | input[2,3], 2.0
torch | randint_like | input[2,3], 5
torch | normal | mean[2,3], std[2,3,pos]
torch | normal | mean[2,3], 1.0
torch | normal.mean_scalar | 0.0, std[2,3,pos]
torch | poisson | input[2,3,pos]
torch | binomial | count[2,3,pos], prob[2,3,unit]
Tensor | new_zeros new_ones new_empty | input[2,3], (2, 3)
Tensor | new_full | input[2,3], (2, 3), 1.0
Tensor | new_tensor | input[2,3], [1.0]
Tensor | item | input[1]
Tensor | tolist dim ndimension numel nelement size stride is_contiguous is_floating_point is_complex
  element_size data_ptr storage_offset get_device untyped_storage is_nonzero | input[1]
torch | is_tensor numel is_floating_point is_complex is_nonzero typename | input[1]
Tensor torch | bitwise_and bitwise_or bitwise_xor | input[2,3,bool], other[2,3,bool]
Tensor torch | bitwise_not | input[2,3,bool]
Tensor_ | bitwise_and bitwise_or bitwise_xor | input[2,3,bool], other[2,3,bool]
Tensor torch | bitwise_left_shift bitwise_right_shift | input[3,long], other[3,long]
Tensor | numpy | input[2,3]
torch Tensor Tensor_ | index_reduce | input[4,5], 0, index[2,index], source[2,5], 'mean'
torch Tensor | gcd lcm | input[3,long], other[3,long]
torch | result_type | input[1], other[1]
expr | torch.from_numpy | torch.from_numpy(torch.zeros(3).numpy())

# -- copies, casts and cuts
torch Tensor | detach | input[2,3]
torch Tensor | clone | input[2,3]
Tensor | contiguous | input[2,3]
Tensor | contiguous | swapped(input[2,3])
Tensor | float | input[2,3]
Tensor | float | input[2,3,double]
Tensor | double half bfloat16 | input[2,3]
Tensor | double | input[2,3,double]
Tensor | half | input[2,3,half]
Tensor | bfloat16 | input[2,3,bfloat16]
Tensor | long int short char byte bool | input[2,3]
Tensor | cfloat cdouble | input[2,3]
Tensor | type | input[2,3], torch.float64
Tensor | type | input[2,3], torch.float32
Tensor | type_as | input[2,3], other[2,3]
Tensor | type_as | input[2,3], other[2,3,double]
Tensor | to | input[2,3], 'cpu'
Tensor | to | input[2,3], torch.float64
Tensor | to | input[2,3], torch.float32
Tensor | to.other | input[2,3], other[2,3]
Tensor | to.other | input[2,3], other[2,3,double]
torch | as_tensor | data[2,3]
torch | as_tensor | data[2,3], dtype=torch.float64
torch | asarray | obj[2,3]
torch | asarray | obj[2,3], dtype=torch.float64
torch | tensor | data[2,3]
torch | scalar_tensor | 2.0

# -- shape
Tensor | view reshape | input[2,6], 3, 4
Tensor | view reshape | input[2,6], (3, 4)
Tensor | reshape | swapped(input[2,6]), 12
torch | reshape | input[2,6], (3, 4)
torch | reshape | swapped(input[2,6]), (12,)
Tensor | view_as reshape_as | input[2,6], other[3,4]
Tensor | reshape_as | swapped(input[2,6]), other[3,4]
Tensor | view.dtype | input[2,6], torch.int32
torch Tensor | flatten ravel | input[2,3,2]
torch Tensor | flatten ravel | swapped(input[2,3,2])
torch Tensor | flatten | input[2,3,2], 1
torch Tensor | unflatten | input[2,6], 1, (2, 3)
torch Tensor | squeeze | input[2,1,3]
torch Tensor | squeeze | input[2,1,3], 1
torch Tensor | unsqueeze | input[2,3], 0
torch Tensor | transpose swapaxes swapdims | input[2,3], 0, 1
torch Tensor | movedim moveaxis | input[2,3], 0, 1
torch Tensor | t adjoint | input[2,3]
torch | permute | input[2,3,4], (2, 0, 1)
Tensor | permute | input[2,3,4], 2, 0, 1
Tensor | expand | input[2,1], 2, 3
torch Tensor | broadcast_to | input[2,1], (2, 3)
Tensor | expand_as | input[2,1], other[2,3]
Tensor | repeat tile | input[2,3], 2, 2
torch | tile | input[2,3], (2, 2)
torch Tensor | repeat_interleave | input[2,3], 2
torch Tensor | repeat_interleave | input[2,3], 2, 1
torch Tensor | repeat_interleave.tensor | input[2,3], repeats[3,long], 1
Tensor | sum_to_size | input[2,3], 1, 3
torch Tensor | as_strided | input[2,3], (2,), (1,)
Tensor | unfold | input[6], 0, 2, 1
torch Tensor | narrow | input[4,3], 0, 1, 2
torch Tensor | narrow_copy | input[4,3], 0, 1, 2
torch Tensor | select | input[4,3], 0, 1
torch Tensor | diagonal | input[3,3]
torch Tensor | diag | input[3,3]
torch Tensor | diag | input[3]
torch Tensor | diag_embed diagflat | input[2,3]
torch Tensor Tensor_ | tril triu | input[3,3]
torch Tensor | flip | input[2,3], (0,)
torch Tensor | fliplr flipud | input[2,3]
torch Tensor | roll | input[2,3], 1, 0
torch Tensor | rot90 | input[2,3]
torch Tensor | chunk split tensor_split unsafe_chunk unsafe_split | input[4,6], 2
torch Tensor | chunk split tensor_split unsafe_chunk unsafe_split | input[4,6], 1
torch Tensor | split | input[4,6], [1, 3]
torch Tensor | split_with_sizes | input[4,6], [1, 3]
torch Tensor | split_with_sizes | input[4,6], [1, 2, 1]
torch Tensor | hsplit vsplit | input[4,6], 2
torch Tensor | hsplit vsplit | input[4,6], 1
torch Tensor | dsplit | input[4,6,2], 2
torch Tensor | dsplit | input[4,6,2], 1
torch Tensor | unbind | input[2,3]
torch Tensor | unbind | input[3,3]
expr | Tensor.__iter__ | list(input[2,3])
expr | Tensor.__iter__ | list(input[3,3])
torch | cat concat concatenate stack hstack vstack dstack column_stack row_stack | tensors[2,3,list]
torch | atleast_1d atleast_2d atleast_3d | input[2]
torch | broadcast_tensors meshgrid | *tensors[2,list]
torch | broadcast_tensors meshgrid | *tensors[2,triple]
torch | cartesian_prod block_diag | *tensors[2,list]
torch | combinations | input[3]
F | pad | input[2,3], (1, 1)
F | pad#reflect | input[1,2,3,3], (1, 1, 1, 1), mode='reflect'
F | pad#replicate | input[1,2,3,3], (1, 1, 1, 1), mode='replicate'
F | pad#circular | input[1,2,3,3], (1, 1, 1, 1), mode='circular'

# -- indexing and choice
expr | Tensor.getitem.int_or_slice | index(input[4,5], 0)
expr | Tensor.getitem.int_or_slice | index(input[4,5], slice(1, 3))
expr | Tensor.getitem.int_or_slice | index(input[4,5], (slice(None), None, 2))
expr | Tensor.getitem.int_or_slice | index(input[4,5], Ellipsis)
expr | Tensor.getitem.list | index(input[4,5], [0, 2])
expr | Tensor.getitem.tensor | index(input[4,5], indices[3,long])
expr | Tensor.getitem.tensor | index(input[4,5], (slice(None), indices[3,long]))
expr | Tensor.getitem.tensor_scalar | index(input[4,5], indices[long])
expr | Tensor.getitem.tensors | index(input[4,5], (rows[3,long], columns[3,long]))
expr | Tensor.getitem.mask | index(input[4,5], mask[4,5,bool])
expr | Tensor.getitem.mask | index(input[4,5], mask[4,bool])
expr | Tensor.setitem.int_or_slice | setitem(input[4,5], 0, value[5])
expr | Tensor.setitem.int_or_slice | setitem(input[4,5], slice(0, 2), value[2,5])
expr | Tensor.setitem.int_or_slice | setitem(input[4,5], (slice(None), 2), value[4])
expr | Tensor.setitem.list | setitem(input[4,5], [0, 1], value[2,5])
expr | Tensor.setitem.tensor | setitem(input[4,5], indices[3,long], value[3,5])
expr | Tensor.setitem.tensors | setitem(input[4,5], (rows[3,long], columns[3,long]), 1.0)
expr | Tensor.setitem.tensors | setitem(input[4,5], (rows[3,long], columns[3,long]), value[3])
expr | Tensor.setitem.mask | setitem(input[4,5], mask[4,5,bool], value[scalar])
expr | Tensor.setitem.int_or_slice | setitem(input[4,5], 0, 1.0)
expr | Tensor.setitem.list | setitem(input[4,5], [0, 1], 1.0)
expr | Tensor.setitem.tensor | setitem(input[4,5], indices[3,long], 1.0)
expr | Tensor.setitem.mask | setitem(input[4,5], mask[4,5,bool], 1.0)
torch Tensor | index_select | input[4,5], 0, index[3,long]
torch Tensor | gather | input[4,5], 1, index[4,2,long]
torch Tensor | take | input[4,5], index[3,long]
torch Tensor | take_along_dim | input[4,5], index[4,2,long], 1
torch Tensor | masked_select | input[4,5], mask[4,5,bool]
torch Tensor Tensor_ | masked_fill | input[4,5], mask[4,5,bool], 0.0
torch Tensor Tensor_ | masked_fill | input[4,5], mask[4,5,bool], value[scalar]
torch Tensor Tensor_ | masked_scatter | input[4,5], mask[4,5,bool], source[4,5]
torch | where | condition[2,3,bool], input[2,3], other[2,3]
torch | where | condition[2,3,bool], input[2,3], 0.0
torch | where | condition[2,3,bool], 0.0, other[2,3]
torch | where.condition | condition[2,3,bool]
Tensor | where | input[2,3], condition[2,3,bool], other[2,3]
Tensor | where | input[2,3], condition[2,3,bool], 0.0
torch Tensor Tensor_ | scatter scatter_add | input[4,5], 1, index[4,2,long], src[4,2]
torch Tensor Tensor_ | scatter | input[4,5], 1, index[4,2,long], 1.0
torch Tensor Tensor_ | scatter_reduce | input[4,5], 1, index[4,2,long], src[4,2], 'sum'
torch Tensor Tensor_ | scatter_reduce | input[4,5], 1, index[4,2,long], src[4,2], 'amax'
torch Tensor Tensor_ | index_add index_copy | input[4,5], 0, index[2,index], source[2,5]
torch Tensor Tensor_ | index_fill | input[4,5], 0, index[2,index], 1.0
torch Tensor Tensor_ torch_ | index_put | input[4,5], (indices[2,index],), values[2,5]
torch Tensor Tensor_ | put | input[4,5], index[2,index], source[2]
torch Tensor | select_scatter | input[4,5], src[5], 0, 1
torch Tensor | slice_scatter | input[4,5], src[2,5], 0, 0, 2
torch Tensor | diagonal_scatter | input[4,4], src[4]

# -- reductions
torch Tensor | sum mean nansum nanmean prod std var max min median nanmedian amax amin norm | input[2,3]
torch Tensor | sum mean nansum nanmean prod std var amax amin | input[2,3], 1
torch Tensor | sum mean nansum nanmean prod std var amax amin logsumexp | input[2,3], 1, keepdim=True
torch Tensor special | logsumexp softmax log_softmax | input[2,3], 1
F | softmax log_softmax softmin | input[2,3], 1
torch Tensor | max.dim min.dim median.dim nanmedian.dim mode.dim | input[2,3], 1
torch Tensor | max.dim min.dim | input[2,3], 1, keepdim=True
torch Tensor | aminmax mode msort sort | input[2,3]
torch Tensor | sort | input[2,3], 1
torch Tensor | kthvalue topk | input[2,3], 1
torch Tensor | topk | input[2,3], 2, dim=1
torch | std_mean var_mean | input[2,3]
torch | std_mean var_mean | input[2,3], 1
torch Tensor | norm | input[2,3], 2
torch Tensor | norm | input[2,3], 1
torch Tensor | norm | input[2,3], 2, 1
torch Tensor | norm | input[2,3], 'fro'
torch Tensor | dist | input[2,3], other[2,3]
torch Tensor | quantile nanquantile | input[6], 0.3
torch Tensor | trace | input[3,3]
torch Tensor | diff | input[2,3]
torch | gradient | input[3]
torch | trapezoid trapz cumulative_trapezoid | y[2,3]
torch Tensor | cov corrcoef | input[2,3]
torch | renorm | input[2,3], 2, 0, 0.1

# -- linear algebra
torch Tensor linalg | matmul | input[2,3], other[3,4]
torch Tensor linalg | matmul | input[3], other[3]
torch Tensor linalg | matmul | input[2,3], other[3]
torch Tensor linalg | matmul | input[2,2,3], other[3,4]
torch Tensor linalg | matmul | input[2,2,3], other[2,3,4]
torch Tensor | mm | input[2,3], mat2[3,4]
torch Tensor | bmm | input[2,2,3], mat2[2,3,4]
torch Tensor | mv | input[2,3], vec[3]
torch Tensor | dot | input[3], tensor[3]
torch Tensor | vdot inner | input[3], other[3]
torch Tensor | inner | input[2,3], other[4,3]
torch Tensor | outer ger | input[2], vec2[3]
torch Tensor Tensor_ | addmm | input[2,4], mat1[2,3], mat2[3,4]
torch Tensor Tensor_ | addmv | input[2], mat[2,3], vec[3]
torch Tensor Tensor_ | addr | input[2,3], vec1[2], vec2[3]
torch Tensor Tensor_ | baddbmm | input[2,2,4], batch1[2,2,3], batch2[2,3,4]
torch Tensor Tensor_ | addbmm | input[2,4], batch1[2,2,3], batch2[2,3,4]
torch | einsum | 'ij,jk->ik', input[2,3], other[3,4]
torch | einsum | 'bij,bjk->bik', input[2,2,3], other[2,3,4]
torch | einsum | 'i,j->ij', input[2], other[3]
torch | einsum#1 | 'ii->i', input[3,3]
torch | einsum#1 | 'ij->ji', input[3,3]
torch | einsum#3 | 'ij,jk,kl->il', input[2,3], other[3,4], third[4,2]
torch | tensordot | a[2,3], b[3,4], dims=1
torch Tensor linalg | cross | input[2,3], other[2,3], dim=1
torch Tensor | kron | input[2,2], other[2,2]
torch | chain_matmul | *matrices[3,3,list]
linalg | multi_dot | tensors[3,3,list]
torch | cdist | x1[2,3], x2[4,3]
linalg | vecdot | x[2,3], y[2,3]
torch Tensor | inverse pinverse det logdet slogdet cholesky matrix_exp qr svd | input[3,3,spd]
torch Tensor | matrix_power | input[3,3,spd], 3
linalg | inv pinv det slogdet cholesky matrix_exp eig eigh eigvals eigvalsh svd svdvals qr cond matrix_norm
  matrix_rank | A[3,3,spd]
linalg | matrix_power | A[3,3,spd], 3
linalg | norm vector_norm | x[2,3]
linalg | norm vector_norm | x[2,3], dim=1
linalg | norm vector_norm | x[2,3], 1
linalg | solve | A[3,3,spd], B[3,2]
linalg | lstsq | input[3,3,spd], b[3,2]
linalg | solve_triangular | input[3,3,tril], B[3,2], upper=False
linalg | lu_factor | A[3,3,spd]
linalg | diagonal | A[3,3,spd]
linalg | tensorsolve | input[3,3,spd], other[3]
torch Tensor | triangular_solve | input[3,2], A[3,3,tril], upper=False
torch Tensor | cholesky_solve | input[3,2], input2[3,3,tril]
torch Tensor | cholesky_inverse | input[3,3,tril]

# -- spectra
fft | fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn ihfft | input[4,4]
fft | irfft irfft2 irfftn hfft | input[4,4,complex]
fft | fftshift ifftshift | input[4]
torch Tensor | stft | input[16], 4, 2, 4, None, False, return_complex=True

# -- torch.nn.functional
F | linear | input[2,3], weight[4,3], bias[4]
F | linear | input[2,3], weight[4,3]
F | linear | input[2,2,3], weight[4,3], bias[4]
F | linear | input[2,2,3], weight[4,3]
F | linear | input[3], weight[4,3], bias[4]
F torch | bilinear | input1[2,3], input2[2,4], weight[5,3,4], bias[5]
F torch | conv1d | input[2,3,5], weight[4,3,2], bias[4]
F torch | conv2d | input[2,3,5,5], weight[4,3,2,2], bias[4]
F torch | conv2d | input[2,3,5,5], weight[4,3,2,2], bias[4], padding=1, stride=2
F torch | conv2d | input[2,3,5,5], weight[3,1,2,2], bias[3], groups=3
F torch | conv3d | input[1,2,3,3,3], weight[2,2,2,2,2], bias[2]
F torch | conv_transpose1d | input[2,3,5], weight[3,4,2], bias[4]
F torch | conv_transpose2d | input[2,3,5,5], weight[3,4,2,2], bias[4]
F torch | conv_transpose3d | input[1,2,3,3,3], weight[2,2,2,2,2], bias[2]
F torch | max_pool1d avg_pool1d | input[1,2,4], 2
F torch | max_pool2d avg_pool2d | input[1,2,4,4], 2
F torch | max_pool3d avg_pool3d | input[1,2,4,4,4], 2
F | max_pool1d#return_indices | input[1,2,4], 2, return_indices=True
F | max_pool2d#return_indices | input[1,2,4,4], 2, return_indices=True
F torch | adaptive_avg_pool1d adaptive_max_pool1d | input[1,2,4], 2
F | adaptive_avg_pool2d adaptive_max_pool2d | input[1,2,4,4], 2
F | adaptive_avg_pool2d adaptive_max_pool2d | input[1,2,4,4], 1
F | adaptive_avg_pool3d adaptive_max_pool3d | input[1,2,4,4,4], 2
F | lp_pool1d | input[1,2,4], 2.0, 2
F | lp_pool3d | input[1,2,4,4,4], 2.0, 2
F | fractional_max_pool2d | input[1,2,4,4], 2, output_size=2
F | lp_pool2d | input[1,2,4,4], 2.0, 2
F | max_unpool1d | input[1,1,2], indices[1,1,2,index], 2
F | max_unpool2d | input[1,1,2,2], indices[1,1,2,2,index], 2
F | unfold | input[1,2,4,4], 2
F | fold | input[1,8,9], (4, 4), 2
F | interpolate upsample | input[1,2,4,4], scale_factor=2
F | interpolate upsample | input[1,2,4,4], size=(6, 6)
F | interpolate#bilinear upsample#bilinear | input[1,2,4,4], scale_factor=2, mode='bilinear'
F | interpolate#bicubic | input[1,2,4,4], scale_factor=2, mode='bicubic'
F | interpolate#area | input[1,2,4,4], size=2, mode='area'
F | interpolate#linear | input[1,2,4], scale_factor=2, mode='linear'
F | upsample_nearest upsample_bilinear | input[1,2,4,4], scale_factor=2
F | grid_sample | input[1,2,4,4], grid[1,3,3,2]
F | affine_grid | theta[1,2,3], (1, 1, 4, 4)
F torch | pixel_shuffle | input[1,4,2,2], 2
F torch | pixel_unshuffle | input[1,1,4,4], 2
F torch | channel_shuffle | input[1,4,2,2], 2
F | relu#inplace relu6#inplace elu#inplace celu#inplace selu#inplace leaky_relu#inplace silu#inplace
  mish#inplace hardtanh#inplace hardswish#inplace hardsigmoid#inplace rrelu#inplace | input[2,3], inplace=True
F | threshold#inplace | input[2,3], 0.1, 0.0, inplace=True
F | rrelu#train | input[2,3], training=True
F | gelu | input[2,3], approximate='tanh'
F | glu | input[2,4]
F torch | prelu | input[2,3], weight[1]
F torch | prelu | input[2,3], weight[3]
Tensor | prelu | input[2,3], weight[1]
F | gumbel_softmax | logits[2,3]
F | gumbel_softmax#hard | logits[2,3], hard=True
F | normalize | input[2,3]
F | dropout dropout1d alpha_dropout feature_alpha_dropout | input[2,3,4], 0.5
F | dropout2d | input[2,3,4,4], 0.5
F | dropout3d | input[1,2,3,4,4], 0.5
F | alpha_dropout#train feature_alpha_dropout#train | input[2,3,4], 0.5, True
F torch | dropout#eval dropout1d#eval alpha_dropout#eval feature_alpha_dropout#eval | input[2,3,4], 0.5, False
F | dropout2d#eval | input[2,3,4,4], 0.5, False
F | dropout3d#eval | input[1,2,3,4,4], 0.5, False
F | dropout#inplace dropout1d#inplace alpha_dropout#inplace feature_alpha_dropout#inplace
  | input[2,3,4], 0.5, True, True
F | dropout#inplace#eval dropout1d#inplace#eval alpha_dropout#inplace#eval
  feature_alpha_dropout#inplace#eval | input[2,3,4], 0.5, False, True
F | dropout2d#inplace | input[2,3,4,4], 0.5, True, True
F | dropout2d#inplace#eval | input[2,3,4,4], 0.5, False, True
F | dropout3d#inplace | input[1,2,3,4,4], 0.5, True, True
F | dropout3d#inplace#eval | input[1,2,3,4,4], 0.5, False, True
torch | dropout | input[2,3,4], 0.5, True
F | batch_norm | input[4,3], running_mean[3], running_var[3,pos], weight[3], bias[3]
F | batch_norm | input[4,3,2,2], running_mean[3], running_var[3,pos], weight[3], bias[3]
F | batch_norm#train | input[4,3], running_mean[3], running_var[3,pos], weight[3], bias[3], True
F | batch_norm#train | input[4,3,2,2], running_mean[3], running_var[3,pos], weight[3], bias[3], True
F | instance_norm | input[4,3,5]
F | instance_norm | input[4,3,5], None, None, weight[3], bias[3]
F torch | layer_norm | input[2,3], (3,), weight[3], bias[3]
F torch | layer_norm | input[2,3], (3,)
F torch | rms_norm | input[2,3], (3,), weight[3]
F torch | rms_norm | input[2,3], (3,)
F torch | group_norm | input[2,4,3], 2, weight[4], bias[4]
F torch | group_norm | input[2,4,3], 2
F | local_response_norm | input[2,4,3], 2
F | embedding | input[3,long], weight[4,5]
F | embedding_bag | input[2,3,long], weight[4,5]
F | scaled_dot_product_attention | query[1,2,4,8], key[1,2,4,8], value[1,2,4,8]
F | scaled_dot_product_attention | query[2,4,8], key[2,4,8], value[2,4,8]
F | scaled_dot_product_attention | query[1,2,4,8], key[1,2,4,8], value[1,2,4,8], is_causal=True
F | scaled_dot_product_attention | query[1,2,4,8], key[1,2,4,8], value[1,2,4,8], dropout_p=0.5
F | scaled_dot_product_attention | query[1,2,4,8], key[1,2,4,8], value[1,2,4,8], attn_mask[4,4,bool]
F | multi_head_attention_forward | query[4,2,8], key[4,2,8], value[4,2,8], 8, 2, in_proj_weight[24,8],
  in_proj_bias[24], None, None, False, 0.0, out_proj_weight[8,8], out_proj_bias[8]
F torch | cosine_similarity | x1[2,3], x2[2,3]
F torch | pairwise_distance | x1[2,3], x2[2,3]
F torch | pdist | input[4,3]

# -- losses
F | mse_loss l1_loss smooth_l1_loss huber_loss | input[2,3], target[2,3]
F | mse_loss l1_loss smooth_l1_loss huber_loss | input[2,3], target[2,3], reduction='sum'
F | mse_loss l1_loss smooth_l1_loss huber_loss | input[2,3], target[2,3], reduction='none'
F | poisson_nll_loss soft_margin_loss | input[2,3], target[2,3,pos]
F | poisson_nll_loss soft_margin_loss | input[2,3], target[2,3,pos], reduction='none'
F | hinge_embedding_loss | input[2,3], target[2,3,pos]
F | kl_div | input[2,3], target[2,3,prob]
F | kl_div | input[2,3], target[2,3,prob], reduction='batchmean'
F | kl_div | input[2,3], target[2,3,prob], reduction='none'
F | kl_div#log_target | input[2,3], target[2,3], log_target=True
F | gaussian_nll_loss | input[2,3], target[2,3], var[2,3,pos]
F | cross_entropy nll_loss | input[4,3], target[4,long]
F | cross_entropy nll_loss | input[4,3], target[4,long], weight[3,pos]
F | cross_entropy nll_loss | input[4,3], target[4,long], reduction='sum'
F | cross_entropy nll_loss | input[4,3], target[4,long], reduction='none'
F | cross_entropy nll_loss | input[4,3,2,2], target[4,2,2,long]
F | cross_entropy | input[4,3], target[4,long], label_smoothing=0.1
F | cross_entropy.probabilities | input[4,3], target[4,3,prob]
F | binary_cross_entropy | input[2,3,unit], target[2,3,unit]
F | binary_cross_entropy | input[2,3,unit], target[2,3,unit], reduction='sum'
F | binary_cross_entropy | input[2,3,unit], target[2,3,unit], reduction='none'
F | binary_cross_entropy | input[2,3,unit], target[2,3,unit], weight[2,3,pos]
F | binary_cross_entropy_with_logits | input[2,3], target[2,3,unit]
F | binary_cross_entropy_with_logits | input[2,3], target[2,3,unit], reduction='sum'
F | binary_cross_entropy_with_logits | input[2,3], target[2,3,unit], reduction='none'
F | binary_cross_entropy_with_logits | input[2,3], target[2,3,unit], weight[2,3,pos]
F | margin_ranking_loss | input1[4], input2[4], target[4,pos]
F | cosine_embedding_loss | input1[4,3], input2[4,3], target[4,pos]
F | triplet_margin_loss triplet_margin_with_distance_loss | anchor[4,3], positive[4,3], negative[4,3]
F | multi_margin_loss | input[4,3], target[4,long]
F | multilabel_margin_loss | input[4,3], target[4,3,long]
F | multilabel_soft_margin_loss | input[4,3], target[4,3,unit]
F | ctc_loss | log_probs[6,2,4], targets[2,3,ones], input_lengths[2,six], target_lengths[2,three]

# -- sequences of different lengths
expr | torch.nn.utils.rnn.pad_sequence | call(sequences[2,3,list])
expr | torch.nn.utils.parameters_to_vector | call(parameters[2,3,list])
expr | torch.nn.utils.rnn.pack_padded_sequence | call(input[3,2,4], [3, 2])
expr | torch.nn.utils.rnn.pack_padded_sequence | call(input[3,2,4], [2, 3], enforce_sorted=False)
expr | torch.nn.utils.rnn.pack_sequence | call(sequences[2,3,list])
expr | torch.nn.utils.rnn.pad_packed_sequence | call(packed(sequence[3,2,4]))

# -- operators
binary | Add Sub Mult Div Mod FloorDiv Pow | left[2,3,pos], right[2,3,pos]
binary | Add.right Sub.right Mult.right Div.right Mod.right FloorDiv.right Pow.right | left[2,3,pos], 2
binary augmented | Pow | left[2,3,pos], 2
binary | Add.left Sub.left Mult.left Div.left Mod.left FloorDiv.left Pow.left | 2, right[2,3,pos]
binary | MatMult | left[2,3], right[3,4]
binary | MatMult | left[2,2,3], right[3,4]
binary | MatMult | left[2,2,3], right[2,3,4]
binary | Eq NotEq Lt LtE Gt GtE | left[2,3], right[2,3]
binary | Eq.right NotEq.right Lt.right LtE.right Gt.right GtE.right | left[2,3], 2
binary | Eq.left NotEq.left Lt.left LtE.left Gt.left GtE.left | 2, right[2,3]
binary | BitAnd BitOr BitXor | left[2,3,bool], right[2,3,bool]
augmented | Add Sub Mult Div Mod FloorDiv Pow | left[2,3,pos], right[2,3,pos]
augmented | MatMult | left[3,3], right[3,3]
augmented | Add.scalar Sub.scalar Mult.scalar Div.scalar Mod.scalar FloorDiv.scalar Pow.scalar |
  left[2,3,pos], 2
unary | USub UAdd | operand[2,3]
unary | Not | operand[1]
unary | Invert | operand[2,3,bool]
expr | attribute.T | (input[2,3]).T
expr | attribute.mT | (input[2,3]).mT
expr | attribute.H | (input[2,3]).H
expr | attribute.mH | (input[2,3]).mH
expr | attribute.real | (input[2,3]).real
expr | attribute.real | (input[2,3,complex]).real
expr | attribute.imag | (input[2,3,complex]).imag

# -- creation
torch | zeros ones empty rand randn | 2, 3
torch | full | (2, 3), 1.0
torch | eye arange randperm hann_window hamming_window blackman_window kaiser_window bartlett_window | 4
torch | range | 0, 4
torch | linspace logspace | 0, 1, 5
torch | randint | 0, 5, (2, 3)
torch | tril_indices triu_indices | 3, 3
torch | empty_strided | (2, 3), (3, 1)
torch | Tensor FloatTensor DoubleTensor LongTensor IntTensor ByteTensor BoolTensor HalfTensor | 2, 3
torch | frombuffer | bytearray(8), dtype=torch.float32
fft | fftfreq rfftfreq | 4
expr | torch.autograd.Variable | torch.autograd.Variable(data[2,3])

# -- torch.distributions. Where a constructor computes (Categorical normalises), it has a row of its
# own, because calls of several methods share the nodes that it made.
expr | torch.distributions.Normal.rsample | D.Normal(loc[3], scale[3,pos]).rsample()
expr | torch.distributions.Normal.log_prob | D.Normal(loc[3], scale[3,pos]).log_prob(value[3])
expr | torch.distributions.Normal.entropy | D.Normal(loc[3], scale[3,pos]).entropy()
expr | torch.distributions.Normal.sample | D.Normal(loc[3], scale[3,pos]).sample()
expr | torch.distributions.Normal.cdf | D.Normal(loc[3], scale[3,pos]).cdf(value[3])
expr | torch.distributions.Laplace.rsample | D.Laplace(loc[3], scale[3,pos]).rsample()
expr | torch.distributions.Laplace.log_prob | D.Laplace(loc[3], scale[3,pos]).log_prob(value[3])
expr | torch.distributions.Laplace.entropy | D.Laplace(loc[3], scale[3,pos]).entropy()
expr | torch.distributions.Laplace.sample | D.Laplace(loc[3], scale[3,pos]).sample()
expr | torch.distributions.Laplace.cdf | D.Laplace(loc[3], scale[3,pos]).cdf(value[3])
expr | torch.distributions.Cauchy.rsample | D.Cauchy(loc[3], scale[3,pos]).rsample()
expr | torch.distributions.Cauchy.log_prob | D.Cauchy(loc[3], scale[3,pos]).log_prob(value[3])
expr | torch.distributions.Cauchy.entropy | D.Cauchy(loc[3], scale[3,pos]).entropy()
expr | torch.distributions.Cauchy.sample | D.Cauchy(loc[3], scale[3,pos]).sample()
expr | torch.distributions.Cauchy.cdf | D.Cauchy(loc[3], scale[3,pos]).cdf(value[3])
expr | torch.distributions.Gumbel.rsample | D.Gumbel(loc[3], scale[3,pos]).rsample()
expr | torch.distributions.Gumbel.log_prob | D.Gumbel(loc[3], scale[3,pos]).log_prob(value[3])
expr | torch.distributions.Gumbel.entropy | D.Gumbel(loc[3], scale[3,pos]).entropy()
expr | torch.distributions.Gumbel.sample | D.Gumbel(loc[3], scale[3,pos]).sample()
expr | torch.distributions.Gumbel.cdf | D.Gumbel(loc[3], scale[3,pos]).cdf(value[3])
expr | torch.distributions.Normal.mean torch.distributions.Normal.loc | D.Normal(loc[3], scale[3,pos]).mean
expr | torch.distributions.Normal.scale torch.distributions.Normal.stddev | D.Normal(loc[3],
  scale[3,pos]).stddev
expr | torch.distributions.LogNormal.rsample | D.LogNormal(loc[3], scale[3,pos]).rsample()
expr | torch.distributions.LogNormal.log_prob | D.LogNormal(loc[3], scale[3,pos]).log_prob(value[3,pos])
expr | torch.distributions.Uniform.rsample | D.Uniform(low[3,unit], high[3,large]).rsample()
expr | torch.distributions.Uniform.sample | D.Uniform(low[3,unit], high[3,large]).sample()
expr | torch.distributions.Exponential.rsample | D.Exponential(rate[3,pos]).rsample()
expr | torch.distributions.Exponential.log_prob | D.Exponential(rate[3,pos]).log_prob(value[3,pos])
expr | torch.distributions.Gamma.rsample | D.Gamma(concentration[3,pos], rate[3,pos]).rsample()
expr | torch.distributions.Gamma.log_prob | D.Gamma(concentration[3,pos], rate[3,pos]).log_prob(value[3,pos])
expr | torch.distributions.Beta.rsample | D.Beta(concentration1[3,pos], concentration0[3,pos]).rsample()
expr | torch.distributions.Beta.log_prob | D.Beta(concentration1[3,pos],
  concentration0[3,pos]).log_prob(value[3,unit])
expr | torch.distributions.Beta.entropy | D.Beta(concentration1[3,pos], concentration0[3,pos]).entropy()
expr | torch.distributions.Poisson.log_prob | D.Poisson(rate[3,pos]).log_prob(value[3,long])
expr | torch.distributions.Categorical | D.Categorical(probs[2,3,pos]).probs
expr | torch.distributions.Categorical#logits | D.Categorical(logits=logits[2,3]).logits
expr | torch.distributions.Categorical.log_prob | holding(D.Categorical,
  probs=probs[2,3,prob]).log_prob(value[2,long])
expr | torch.distributions.Categorical.entropy | holding(D.Categorical, probs=probs[2,3,prob]).entropy()
expr | torch.distributions.Categorical.sample | holding(D.Categorical, probs=probs[2,3,prob]).sample()
expr | torch.distributions.Categorical.log_prob#logits | holding(D.Categorical,
  logits=logits[2,3]).log_prob(value[2,long])
expr | torch.distributions.Categorical.entropy#logits | holding(D.Categorical, logits=logits[2,3]).entropy()
expr | torch.distributions.Categorical.sample#logits | holding(D.Categorical, logits=logits[2,3]).sample()
expr | torch.distributions.Bernoulli.log_prob | holding(D.Bernoulli,
  probs=probs[2,3,prob]).log_prob(value[2,3,float_ones])
expr | torch.distributions.Bernoulli.entropy | holding(D.Bernoulli, probs=probs[2,3,prob]).entropy()
expr | torch.distributions.Bernoulli.sample | holding(D.Bernoulli, probs=probs[2,3,prob]).sample()
expr | torch.distributions.Bernoulli.log_prob#logits | holding(D.Bernoulli,
  logits=logits[2,3]).log_prob(value[2,3,float_ones])
expr | torch.distributions.Bernoulli.entropy#logits | holding(D.Bernoulli, logits=logits[2,3]).entropy()
expr | torch.distributions.Bernoulli.sample#logits | holding(D.Bernoulli, logits=logits[2,3]).sample()
expr | torch.distributions.kl_divergence.Normal | D.kl_divergence(D.Normal(p_loc[3], p_scale[3,pos]),
  D.Normal(q_loc[3], q_scale[3,pos]))
expr | torch.distributions.kl_divergence.Categorical#logits | D.kl_divergence(holding(D.Categorical,
  logits=p[2,3]), holding(D.Categorical, logits=q[2,3]))
expr | torch.distributions.MultivariateNormal.log_prob | D.MultivariateNormal(loc[3],
  covariance_matrix[3,3,spd]).log_prob(value[3])
expr | torch.distributions.MultivariateNormal.entropy | D.MultivariateNormal(loc[3],
  covariance_matrix[3,3,spd]).entropy()
expr | torch.distributions.MultivariateNormal.rsample | D.MultivariateNormal(loc[3],
  covariance_matrix[3,3,spd]).rsample()
expr | torch.distributions.MultivariateNormal.sample | D.MultivariateNormal(loc[3],
  covariance_matrix[3,3,spd]).sample()
expr | torch.distributions.Dirichlet.rsample | D.Dirichlet(concentration[3,pos]).rsample()
expr | torch.distributions.Dirichlet.log_prob | D.Dirichlet(concentration[3,pos]).log_prob(value[3,prob])
"""

# names | constructor | arguments
MODULES = """
Identity ReLU ReLU6 ELU CELU SELU GELU SiLU Mish Sigmoid Tanh LogSigmoid Softplus Softsign Softshrink
  Hardshrink Hardtanh Hardswish Hardsigmoid Tanhshrink LeakyReLU RReLU PReLU Dropout AlphaDropout Flatten | |
  input[2,3]
GELU | approximate='tanh' | input[2,3]
GLU | | input[2,4]
Softmax LogSoftmax Softmin | 1 | input[2,3]
Softmax2d | | input[1,2,3,3]
Threshold | 0.1, 0.0 | input[2,3]
ReLU#inplace ReLU6#inplace ELU#inplace CELU#inplace SELU#inplace SiLU#inplace Mish#inplace Hardtanh#inplace
  Hardswish#inplace Hardsigmoid#inplace LeakyReLU#inplace RReLU#inplace Dropout#inplace AlphaDropout#inplace |
  inplace=True | input[2,3]
Threshold#inplace | 0.1, 0.0, inplace=True | input[2,3]
Dropout1d FeatureAlphaDropout | | input[2,3,4]
Dropout2d | | input[2,3,4,4]
Dropout3d | | input[1,2,3,4,4]
Dropout1d#inplace FeatureAlphaDropout#inplace | inplace=True | input[2,3,4]
Dropout2d#inplace | inplace=True | input[2,3,4,4]
Dropout3d#inplace | inplace=True | input[1,2,3,4,4]
Flatten | | input[2,3,4]
Flatten | | swapped(input[2,3,4])
Unflatten | 1, (2, 3) | input[2,6]
Linear | 3, 4 | input[2,3]
Linear | 3, 4, bias=False | input[2,3]
Linear | 3, 4 | input[2,2,3]
Linear | 3, 4, bias=False | input[2,2,3]
Linear | 3, 4 | input[3]
Bilinear | 3, 4, 5 | input1[2,3], input2[2,4]
Conv1d | 3, 4, 2 | input[2,3,5]
Conv2d | 3, 4, 2 | input[2,3,5,5]
Conv2d | 3, 4, 2, bias=False | input[2,3,5,5]
Conv2d | 3, 4, 3, 2, 1 | input[2,3,5,5]
Conv2d | 3, 4, 1 | input[2,3,5,5]
Conv2d | 3, 3, 3, groups=3 | input[2,3,5,5]
Conv2d#reflect | 3, 4, 3, padding=1, padding_mode='reflect' | input[2,3,5,5]
Conv3d | 2, 2, 2 | input[1,2,3,3,3]
ConvTranspose1d | 3, 4, 2 | input[2,3,5]
ConvTranspose2d | 3, 4, 2 | input[2,3,5,5]
ConvTranspose2d | 3, 4, 4, 2, 1, bias=False | input[2,3,5,5]
ConvTranspose3d | 2, 2, 2 | input[1,2,3,3,3]
BatchNorm1d | 3 | input[4,3]
BatchNorm1d | 3 | input[4,3,5]
SyncBatchNorm#eval | 3 | input[4,3]
BatchNorm2d | 3 | input[4,3,2,2]
BatchNorm3d | 3 | input[4,3,2,2,2]
BatchNorm1d.plain | 3, affine=False | input[4,3]
BatchNorm2d.plain | 3, affine=False | input[4,3,2,2]
InstanceNorm1d InstanceNorm1d.plain | 3 | input[4,3,5]
InstanceNorm2d InstanceNorm2d.plain | 3 | input[4,3,2,2]
InstanceNorm3d InstanceNorm3d.plain | 3 | input[4,3,2,2,2]
InstanceNorm1d | 3, affine=True | input[4,3,5]
InstanceNorm2d | 3, affine=True | input[4,3,2,2]
InstanceNorm3d | 3, affine=True | input[4,3,2,2,2]
LayerNorm | 3 | input[2,3]
RMSNorm | 3 | x[2,3]
RMSNorm.plain | 3, elementwise_affine=False | x[2,3]
LayerNorm | (2, 3) | input[4,2,3]
RMSNorm | (2, 3) | x[4,2,3]
LayerNorm.plain | 3, elementwise_affine=False | input[2,3]
GroupNorm | 2, 4 | input[2,4,3]
GroupNorm.plain | 2, 4, affine=False | input[2,4,3]
LocalResponseNorm | 2 | input[2,4,3]
CrossMapLRN2d | 2 | input[2,4,3,3]
Embedding | 4, 5 | input[2,3,long]
Embedding | 4, 5, padding_idx=0 | input[2,3,long]
EmbeddingBag | 4, 5 | input[2,3,long]
RNNCell GRUCell | 3, 4 | input[2,3]
RNNCell GRUCell | 3, 4 | input[2,3], hx[2,4]
RNNCell | 3, 4, nonlinearity='relu' | input[2,3], hx[2,4]
LSTMCell | 3, 4 | input[2,3]
LSTMCell | 3, 4 | input[2,3], (h_0[2,4], c_0[2,4])
RNN#packed GRU#packed LSTM#packed | 3, 4 | packed(input[5,2,3])
RNN#packed GRU#packed | 3, 4 | packed(input[5,2,3]), hx[1,2,4]
LSTM#packed | 3, 4 | packed(input[5,2,3]), (h_0[1,2,4], c_0[1,2,4])
RNN GRU | 3, 4 | input[5,2,3]
RNN GRU | 3, 4 | input[5,2,3], hx[1,2,4]
RNN GRU | 3, 4 | input[1,2,3], hx[1,2,4]
RNN GRU | 3, 4, num_layers=2, batch_first=True | input[2,5,3], hx[2,2,4]
RNN GRU | 3, 4, bidirectional=True | input[5,2,3], hx[2,2,4]
LSTM | 3, 4 | input[5,2,3]
LSTM | 3, 4 | input[5,2,3], (h_0[1,2,4], c_0[1,2,4])
LSTM | 3, 4 | input[1,2,3], (h_0[1,2,4], c_0[1,2,4])
LSTM | 3, 4, num_layers=2, batch_first=True | input[2,5,3], (h_0[2,2,4], c_0[2,2,4])
LSTM | 3, 4, bidirectional=True | input[5,2,3], (h_0[2,2,4], c_0[2,2,4])
MultiheadAttention | 8, 2 | query[4,2,8], key[4,2,8], value[4,2,8]
MultiheadAttention | 8, 2, batch_first=True | query[2,4,8], key[2,4,8], value[2,4,8]
MultiheadAttention | 8, 2, dropout=0.1 | query[4,2,8], key[4,2,8], value[4,2,8]
MultiheadAttention#need_weights=False | 8, 2 | query[4,2,8], key[4,2,8], value[4,2,8], need_weights=False
TransformerEncoderLayer | 8, 2, 16 | src[4,2,8]
TransformerEncoderLayer | 8, 2, 16, batch_first=True, norm_first=True | src[2,4,8]
TransformerEncoder | nn.TransformerEncoderLayer(8, 2, 16), 2 | src[4,2,8]
TransformerDecoderLayer | 8, 2, 16 | tgt[4,2,8], memory[4,2,8]
TransformerDecoder | nn.TransformerDecoderLayer(8, 2, 16), 2 | tgt[4,2,8], memory[4,2,8]
Transformer | 8, 2, 1, 1, 16 | src[4,2,8], tgt[4,2,8]
MaxPool1d AvgPool1d | 2 | input[1,2,4]
MaxPool2d AvgPool2d | 2 | input[1,2,4,4]
MaxPool3d AvgPool3d | 2 | input[1,2,4,4,4]
MaxPool2d#return_indices | 2, return_indices=True | input[1,2,4,4]
AdaptiveLogSoftmaxWithLoss | 3, 5, [2] | input[4,3], target[4,long]
MaxUnpool1d | 2 | input[1,1,2], indices[1,1,2,index]
MaxUnpool2d | 2 | input[1,1,2,2], indices[1,1,2,2,index]
AdaptiveAvgPool1d AdaptiveMaxPool1d | 2 | input[1,2,4]
AdaptiveAvgPool2d AdaptiveMaxPool2d | 2 | input[1,2,4,4]
AdaptiveAvgPool2d AdaptiveMaxPool2d | 1 | input[1,2,4,4]
AdaptiveAvgPool3d AdaptiveMaxPool3d | 2 | input[1,2,4,4,4]
LPPool1d | 2, 2 | input[1,2,4]
LPPool3d | 2, 2 | input[1,2,4,4,4]
LPPool2d | 2, 2 | input[1,2,4,4]
FractionalMaxPool2d | 2, output_size=2 | input[1,2,4,4]
Upsample | scale_factor=2 | input[1,2,4,4]
Upsample | scale_factor=2, mode='bilinear' | input[1,2,4,4]
UpsamplingNearest2d UpsamplingBilinear2d | scale_factor=2 | input[1,2,4,4]
PixelShuffle | 2 | input[1,4,2,2]
PixelUnshuffle | 2 | input[1,1,4,4]
ChannelShuffle | 2 | input[1,4,2,2]
Fold | (4, 4), 2 | input[1,8,9]
Unfold | 2 | input[1,2,4,4]
ZeroPad1d ReflectionPad1d ReplicationPad1d CircularPad1d | 1 | input[1,2,4]
ZeroPad2d ReflectionPad2d ReplicationPad2d CircularPad2d | 1 | input[1,2,4,4]
ZeroPad3d ReflectionPad3d ReplicationPad3d CircularPad3d | 1 | input[1,2,4,4,4]
ConstantPad1d | 1, 0.0 | input[1,2,4]
ConstantPad2d | 1, 0.0 | input[1,2,4,4]
ConstantPad3d | 1, 0.0 | input[1,2,4,4,4]
CosineSimilarity PairwiseDistance | | x1[2,3], x2[2,3]
MSELoss L1Loss SmoothL1Loss HuberLoss | | input[2,3], target[2,3]
MSELoss L1Loss SmoothL1Loss HuberLoss | reduction='sum' | input[2,3], target[2,3]
MSELoss L1Loss SmoothL1Loss HuberLoss | reduction='none' | input[2,3], target[2,3]
PoissonNLLLoss | | log_input[2,3], target[2,3,pos]
SoftMarginLoss HingeEmbeddingLoss | | input[2,3], target[2,3,pos]
KLDivLoss | | input[2,3], target[2,3,prob]
KLDivLoss | reduction='batchmean' | input[2,3], target[2,3,prob]
KLDivLoss#log_target | log_target=True | input[2,3], target[2,3]
GaussianNLLLoss | | input[2,3], target[2,3], var[2,3,pos]
CrossEntropyLoss NLLLoss | | input[4,3], target[4,long]
CrossEntropyLoss NLLLoss | reduction='sum' | input[4,3], target[4,long]
CrossEntropyLoss NLLLoss | reduction='none' | input[4,3], target[4,long]
CrossEntropyLoss NLLLoss | | input[4,3,2,2], target[4,2,2,long]
CrossEntropyLoss NLLLoss | torch.ones(3) | input[4,3], target[4,long]
CrossEntropyLoss | label_smoothing=0.1 | input[4,3], target[4,long]
CrossEntropyLoss.probabilities | | input[4,3], target[4,3,prob]
BCELoss | | input[2,3,unit], target[2,3,unit]
BCELoss | reduction='sum' | input[2,3,unit], target[2,3,unit]
BCELoss | reduction='none' | input[2,3,unit], target[2,3,unit]
BCEWithLogitsLoss | | input[2,3], target[2,3,unit]
BCEWithLogitsLoss | reduction='none' | input[2,3], target[2,3,unit]
BCEWithLogitsLoss | pos_weight=torch.ones(3) | input[2,3], target[2,3,unit]
MarginRankingLoss | | input1[4], input2[4], target[4,pos]
CosineEmbeddingLoss | | input1[4,3], input2[4,3], target[4,pos]
TripletMarginLoss TripletMarginWithDistanceLoss | | anchor[4,3], positive[4,3], negative[4,3]
MultiMarginLoss | | input[4,3], target[4,long]
MultiLabelMarginLoss | | input[4,3], target[4,3,long]
MultiLabelSoftMarginLoss | | input[4,3], target[4,3,unit]
CTCLoss | | log_probs[6,2,4], targets[2,3,ones], input_lengths[2,six], target_lengths[2,three]
"""

OUT, REST, UNREACHABLE = "O", "R", "X"
"""The letters of the table for what is no operand."""
ANYTHING = "!"
"""In a rule: anything at all, so that a second backward raises."""
SAVED = (OUT, REST, UNREACHABLE, ANYTHING)

Saved = dict[str, bool]
"""What one backward needed unchanged, and whether changing it raised just the familiar error."""
Rules = dict[str, set[str]]

WIDTH = 110
HEADER = '''"""What each operation saves for backward: generated by tools/generate_operators.py, not edited.

``gradfix.autograd.operators`` explains the lines and reads them.
"""
# ruff: noqa: E501

TORCH = "{version}"
"""The version of torch that was observed."""

TABLE = """\\
'''


@dataclass(frozen=True)
class Operand:
    """One tensor argument of a line, and how to make it."""

    name: str
    shape: tuple[int, ...]
    words: frozenset[str]
    position: int | None

    @property
    def is_sequence(self) -> bool:
        return bool(self.words & {"list", "triple"})

    def make(self, requires_grad: bool) -> Any:
        """A fresh tensor; one that requires grad is no leaf, so that it may be changed in place."""
        if self.is_sequence:
            single = replace(self, words=self.words - {"list", "triple"})
            return [single.make(requires_grad) for _ in range(3 if "triple" in self.words else 2)]
        tensor = self._values()
        if requires_grad and (tensor.is_floating_point() or tensor.is_complex()):
            return tensor.requires_grad_().clone()
        return tensor

    def _values(self) -> torch.Tensor:
        count = torch.Size(self.shape).numel()
        for word in self.words:
            match word:
                case "pos":
                    return torch.rand(self.shape) + 0.5
                case "unit":
                    return torch.rand(self.shape) * 0.8 + 0.1
                case "large":
                    return torch.rand(self.shape) + 2
                case "prob":
                    return torch.rand(self.shape).softmax(-1)
                case "spd":
                    half = torch.randn(self.shape)
                    return half @ half.mT + torch.eye(self.shape[-1])
                case "tril":
                    return torch.rand(self.shape).tril() + torch.eye(self.shape[-1])
                case "long":
                    return (torch.arange(count) % 2).reshape(self.shape)
                case "index":
                    return torch.arange(count).reshape(self.shape)
                case "ones" | "three" | "six":
                    return torch.full(self.shape, {"ones": 1, "three": 3, "six": 6}[word])
                case "float_ones":
                    return torch.ones(self.shape)
                case "bool":
                    return (torch.arange(count) % 2 == 0).reshape(self.shape)
                case "complex":
                    return torch.randn(self.shape, dtype=torch.complex64)
                case "double" | "half" | "bfloat16":
                    return torch.randn(self.shape).to(getattr(torch, word))
        return torch.randn(self.shape)


@dataclass(frozen=True)
class Line:
    """One way to call one operation."""

    name: str
    text: str
    operands: tuple[Operand, ...]
    call: Callable[[Any, dict[str, Any]], Any]
    """From the module (if it is one) and the operands by name to the result."""
    build: Callable[[], nn.Module] | None = None


class _Operands(ast.NodeTransformer):
    """Take the operands `name[shape, words]` out of an expression, leaving their names."""

    def __init__(self, position: int | None) -> None:
        self.position = position
        self.found: list[Operand] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        assert isinstance(node.value, ast.Name), ast.unparse(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shape = tuple(part.value for part in parts if isinstance(part, ast.Constant))
        words = frozenset(part.id for part in parts if isinstance(part, ast.Name))
        self.found.append(Operand(node.value.id, shape, words, self.position))
        return node.value


def holding(distribution: Callable[..., Any], **parameter: torch.Tensor) -> Any:
    """A distribution whose normalised parameter is the given tensor itself."""
    ((name, tensor),) = parameter.items()
    built = distribution(**{name: tensor.detach()})
    setattr(built, name, tensor)
    return built


def setitem(target: torch.Tensor, where: Any, value: Any) -> torch.Tensor:
    """``target[where] = value``, as an expression."""
    target[where] = value
    return target


ENVIRONMENT: dict[str, Any] = {
    "torch": torch,
    "nn": nn,
    "D": torch.distributions,
    "index": operator.getitem,
    "setitem": setitem,
    "holding": holding,
    "swapped": lambda tensor: tensor.transpose(0, 1),
    "packed": lambda tensor: nn.utils.rnn.pack_padded_sequence(tensor, [len(tensor), 2]),
}


# A CPU cannot tell what these do: a copy, or the very tensor where it already lies there.
ELSEWHERE = {
    "Tensor.cpu": "Tensor.to",
    "Tensor.cuda": "Tensor.to",
    "Tensor.pin_memory": "Tensor.to",
    "torch.nn.SyncBatchNorm": "torch.nn.BatchNorm1d",
}


def _columns(text: str) -> Iterator[list[str]]:
    joined = re.sub(r"\n +", " ", text)
    for line in joined.splitlines():
        if line and not line.startswith("#"):
            yield [column.strip() for column in line.split("| ")]


def _compile(expression: str) -> tuple[Any, tuple[Operand, ...]]:
    """The code of an expression, and its operands with their positions in the outermost call."""
    tree = ast.parse(expression, mode="eval")
    found: list[Operand] = []

    def take(part: ast.AST, position: int | None) -> Any:
        finder = _Operands(position)
        part = finder.visit(part)
        found.extend(finder.found)
        return part

    if isinstance(tree.body, ast.Call):
        call = tree.body
        call.func = take(call.func, None)
        call.args = [take(argument, position) for position, argument in enumerate(call.args)]
        for keyword in call.keywords:
            keyword.value = take(keyword.value, None)
    else:
        tree.body = take(tree.body, None)
    return compile(tree, expression, "eval"), tuple(found)


def _function_lines() -> Iterator[Line]:
    for places, names, arguments in _columns(CALLS):
        for place, name in itertools.product(places.split(), names.split()):
            inplace = place.endswith("_")
            callee: Any = None
            if place == "expr":
                full, expression = name, arguments.replace("call(", f"{name}(", 1)
            else:
                owner, prefix = PLACES[place.rstrip("_")]
                base, suffix = re.fullmatch(r"(\w+)(.*)", name).groups()  # type: ignore[union-attr]
                base += "_" * inplace
                callee = getattr(owner, base, None)
                full, expression = f"{prefix}{base}{suffix}", f"call({arguments})"
                if callee is None:
                    continue
            code, operands = _compile(expression)

            def call(_: Any, values: dict[str, Any], code: Any = code, callee: Any = callee) -> Any:
                return eval(code, ENVIRONMENT | {"call": callee} | values)

            yield Line(full, f"{full}: {expression}", operands, call)


def _module_lines() -> Iterator[Line]:
    for names, constructor, arguments in _columns(MODULES):
        for name in names.split():
            base = re.split(r"[.#]", name)[0]
            if not hasattr(nn, base):
                continue
            code, operands = _compile(f"module({arguments})")

            def build(source: str = f"nn.{base}({constructor})") -> nn.Module:
                module: nn.Module = eval(source, ENVIRONMENT)
                return module

            def call(module: Any, values: dict[str, Any], code: Any = code) -> Any:
                return eval(code, ENVIRONMENT | {"module": module} | values)

            yield Line(f"torch.nn.{name}", f"nn.{base}({constructor})({arguments})", operands, call, build)


@dataclass
class Run:
    """One forward: what went in and what came out."""

    values: dict[str, Any]
    module: nn.Module | None
    versions: dict[str, list[int]]
    """Of the operands, before the call."""
    result: Any

    @property
    def roots(self) -> list[torch.Tensor]:
        """The results that backward can start from."""
        return [output for output in _tensors(self.result) if output.requires_grad]

    def operand(self, name: str) -> list[torch.Tensor]:
        """The tensors that an operand stands for."""
        if name == "weight" and self.module is not None:
            return list(self.module.parameters())
        return list(_tensors(self.values[name]))

    def touch(self, thing: str) -> None:
        """Move version counters, as an in-place change would."""
        match thing:
            case "O":
                tensors = list(_tensors(self.result))[:1]
            case "R":
                tensors = list(_tensors(self.result))[1:]
            case _:
                tensors = self.operand(thing)
        for tensor in tensors:
            torch.autograd.graph.increment_version(tensor)

    def changed(self) -> set[str]:
        """The operands that the call changed in place."""
        return {
            name
            for name, versions in self.versions.items()
            if versions != [tensor._version for tensor in self.operand(name)]
        }


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for element in result:
            yield from _tensors(element)


def _forward(line: Line, requiring: frozenset[str], training: bool) -> Run:
    torch.default_generator.manual_seed(0)  # torch.manual_seed queues a call for every absent device
    module = line.build() if line.build else None
    if module is not None:
        module.train(training)
        module.requires_grad_("weight" in requiring)
    values = {operand.name: operand.make(operand.name in requiring) for operand in line.operands}
    run = Run(values, module, {}, None)
    run.versions = {name: [tensor._version for tensor in run.operand(name)] for name in values}
    run.result = line.call(module, values)
    return run


def _backward(run: Run, roots: list[torch.Tensor]) -> str | None:
    """The error that backward raises: E1, E2, or what stands for E2 where a view is made anew."""
    try:
        torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])
    except RuntimeError as error:
        message = str(error)
        if "backward through the graph a second time" in message:
            return "E1"
        if "variables needed for gradient computation has been modified" in message:
            return "E2"
        if "is a view and its base or another view of its base has been modified" in message:
            return "view"
        if "not implemented" not in message:
            raise
    return None


def _saved(
    line: Line, names: list[str], requiring: frozenset[str], training: bool
) -> Iterator[tuple[bool, Saved]]:
    """What was saved, once for each choice of results to start from: all, and each alone.

    With each comes whether the first result, the one that programs use, was among them.
    """

    def forward() -> Run:
        return _forward(line, requiring, training)

    count = len(forward().roots)
    alone = [slice(index, index + 1) for index in range(count)] if count > 1 else []
    for choice in [slice(None), *alone]:
        run = forward()
        roots = run.roots[choice]
        _backward(run, roots)
        saved: Saved = {}
        if _backward(run, roots) == "E1":
            saved[ANYTHING] = True
            for what in (*names, OUT, REST):
                run = forward()
                run.touch(what)
                error = _backward(run, run.roots[choice])
                if error is not None:
                    saved[what] = error == "E2"
        yield not choice.start, saved


@dataclass
class Facts:
    """What a row says. Rules map a thing that is saved to the operands because of which it is."""

    operands: tuple[Operand, ...]
    gradients: set[str]
    sure: Rules
    maybe: Rules
    result: str
    outputs: str
    fields: tuple[str, ...]


def _structure(result: Any) -> str:
    if isinstance(result, torch.Tensor):
        return "t" if result.requires_grad else "i"
    if isinstance(result, (tuple, list)):
        return "(" + "".join(map(_structure, result)) + ")"
    return "v"


def _sharing(run: Run, names: list[str]) -> dict[str, set[str]]:
    """For the first result and for the further ones: the operands whose version counter they share."""
    shared: dict[str, set[str]] = {OUT: set(), REST: set()}
    for what, name in itertools.product(shared, names):
        before = [tensor._version for tensor in run.operand(name)]
        run.touch(what)
        if before != [tensor._version for tensor in run.operand(name)]:
            shared[what].add(name)
    return shared


def _gradients(line: Line, names: list[str], training: bool) -> set[str]:
    """The operands through which gradients pass."""
    found = set()
    for name in names:
        try:
            run = _forward(line, frozenset([name]), training)
        except RuntimeError:
            continue  # it may not require grad, as the weight of a loss
        if run.roots:
            found.add(name)
    return found


def observe(line: Line, training: bool = True) -> Facts:
    """Run one line for every combination of operands that require grad."""
    try:
        return _observe(line, training)
    except Exception as error:
        error.add_note(line.text)
        raise


def _observe(line: Line, training: bool) -> Facts:
    operands = line.operands
    if line.build is not None and any(True for _ in line.build().parameters()):
        operands += (Operand("weight", (), frozenset(), None),)
    names = [operand.name for operand in operands]
    gradients = _gradients(line, names, training)

    run = _forward(line, frozenset(gradients), training)
    structure, fields = _structure(run.result), getattr(run.result, "__match_args__", ())
    changed = run.changed()
    shared = _sharing(run, names)
    first = names[0] if names else ""
    if first in changed & shared[OUT]:
        result = "inplace"
    elif first in shared[OUT] | shared[REST]:
        result = "view" if "t" in structure else "detached"
    else:
        result = "new"

    combinations = [
        combination
        for size in range(1, len(gradients) + 1)
        for combination in itertools.combinations(sorted(gradients), size)
        # Beyond four operands the combinations explode; singles, pairs and all of them tell enough.
        if len(gradients) <= 4 or size in (1, 2, len(gradients))
    ]
    things = [*names, *SAVED]
    sure: Rules = {thing: set(gradients) for thing in things}
    maybe: Rules = {thing: set() for thing in things}
    for combination in combinations:
        for first_too, saved in _saved(line, names, frozenset(combination), training):
            if result == "inplace":
                saved.pop(first, None)  # operand 0 has become the result
            else:
                for what in (OUT, REST):
                    if shared[what] & saved.keys():
                        saved.pop(what, None)  # it is that operand, or a view of it
            for thing in things:
                # The smaller combinations came first: one of them may be the reason already.
                if thing in saved and not maybe[thing] & set(combination):
                    maybe[thing].update(combination)
                if first_too and not saved.get(thing):
                    sure[thing].difference_update(combination)
    for rules in (sure, maybe):
        rules[UNREACHABLE] = rules[ANYTHING].difference(*(rules[thing] for thing in (*names, OUT, REST)))
    return Facts(operands, gradients, sure, maybe, result, structure, fields)


def join(name: str, every: list[Facts]) -> Facts:
    """What the lines of one name say together."""
    widest = max(every, key=lambda facts: len(facts.operands))
    names = [operand.name for operand in widest.operands]
    for facts in every:
        own = [operand.name for operand in facts.operands]
        assert own == [n for n in names if n in own], f"{name}: {own} is not in {names}"
    sure: Rules = defaultdict(set)
    maybe: Rules = defaultdict(set)
    for thing, because in itertools.product((*names, *SAVED), widest.gradients):
        # A line that leaves an operand out says nothing about it.
        lines = [facts for facts in every if thing in facts.sure and because in facts.gradients]
        if all(because in facts.sure[thing] for facts in lines):
            sure[thing].add(because)
        if any(because in facts.maybe[thing] for facts in lines):
            maybe[thing].add(because)
    # All lines save something, but one of them nothing visible, or not all the same.
    unexplained = sure[ANYTHING].difference(*(sure[thing] for thing in (*names, OUT, REST)))
    unreachable = {because for facts in every for because in facts.sure[UNREACHABLE]}
    sure[UNREACHABLE] = sure[ANYTHING] & (unreachable | unexplained)
    maybe[UNREACHABLE] |= unreachable
    return replace(
        widest,
        sure=sure,
        maybe=maybe,
        result=_join_results({facts.result for facts in every}),
        outputs=reduce(_join_structures, [facts.outputs for facts in every]),
    )


UNDECIDED = "|"
"""Between results that no word of the table stands for together."""


def _join_results(results: set[str]) -> str:
    return "either" if results == {"new", "view"} else UNDECIDED.join(sorted(results))


def _join_structures(one: str, other: str) -> str:
    if one == other:
        return one
    letters = (set(one) | set(other)) - set("()[]")
    if len(letters) == 1 and one != "".join(letters) != other:
        return f"[{letters.pop()}]"
    if len(one) == len(other):
        return "".join(a if a == b else "?" for a, b in zip(one, other, strict=True))
    return "?"


def encode(facts: Facts) -> str:
    """The line of the table; ``gradfix.autograd.operators.parse`` reads it."""
    letters = dict(zip((operand.name for operand in facts.operands), string.ascii_lowercase, strict=False))
    words = []
    for index, operand in enumerate(facts.operands):
        word = "*" * operand.is_sequence + operand.name + "~" * (operand.name not in facts.gradients)
        if operand.position != index:
            word += f"@{'-' if operand.position is None else operand.position}"
        words.append(word)

    text = []
    for thing in (*letters, OUT, REST, UNREACHABLE):
        sure, maybe = facts.sure[thing], facts.maybe[thing]
        for sign, because in (("<", sure), ("?", maybe - sure)):
            if because:
                text.append(f"{letters.get(thing, thing)}{sign}{''.join(sorted(map(letters.get, because)))}")
    outputs = facts.outputs + (f":{','.join(facts.fields)}" if facts.fields else "")
    return f"{' '.join(words)}: {facts.result} {outputs}; {' '.join(text)}".rstrip()


def table() -> dict[str, str]:
    """Every name and its line, by running torch."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, threads only wait for each other
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = _function_rows() | _module_rows()
    finally:
        torch.set_num_threads(threads)
    for name, like in ELSEWHERE.items():
        rows[name] = rows[like]
    return rows


def _by_name(lines: Iterator[Line]) -> dict[str, list[Line]]:
    named: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        named[line.name].append(line)
    return named


def _function_rows() -> dict[str, str]:
    return {
        name: encode(join(name, [observe(line) for line in lines]))
        for name, lines in _by_name(_function_lines()).items()
    }


def _module_rows() -> dict[str, str]:
    rows: dict[str, str] = {}
    for name, lines in _by_name(_module_lines()).items():
        training, evaluating = (
            encode(join(name, [observe(line, mode) for line in lines])) for mode in (True, False)
        )
        rows[name] = training
        if evaluating != training:
            rows[f"{name}#eval"] = evaluating
        lazy = name.replace("torch.nn.", "torch.nn.Lazy")
        if hasattr(nn, lazy.removeprefix("torch.nn.")):
            rows[lazy] = training
    return rows


def render(rows: dict[str, str]) -> str:
    """The source of the table: names grouped under the line that describes them."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, row in rows.items():
        groups[row].append(name)
    parts = []
    for row in sorted(groups):
        names = textwrap.fill(
            " ".join(sorted(groups[row])),
            width=WIDTH,
            initial_indent=" ",
            subsequent_indent=" ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        parts.append(f"{row}\n{names}\n")
    version = torch.__version__.partition("+")[0]
    return HEADER.format(version=version) + "".join(parts) + '"""\n'


def committed() -> dict[str, str]:
    """The rows of the table that is in the repository."""
    namespace: dict[str, Any] = {}
    exec(TABLE.read_text(encoding="utf-8"), namespace)
    rows: dict[str, str] = {}
    row = ""
    for line in namespace["TABLE"].splitlines():
        if line.startswith(" "):
            rows.update(dict.fromkeys(line.split(), row))
        else:
            row = line
    return rows


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """What a reader needs to see: the name, what the table says, what torch does."""
    return [
        f"{name}\n  table: {old.get(name, '(no row)')}\n  torch: {new.get(name, '(no row)')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="print what differs instead of writing")
    arguments = parser.parse_args()
    rows = table()
    undecided = [f"{name}\n  torch: {row}" for name, row in rows.items() if UNDECIDED in row]
    if undecided and not arguments.check:
        print("error: no row can be written, for their lines give different results:", *undecided, sep="\n")
        return 2
    if not arguments.check:
        TABLE.write_text(render(rows), encoding="utf-8")
        print(f"{TABLE.relative_to(ROOT)}: {len(rows)} names, {len(set(rows.values()))} rows")
        return 0
    found = differences(committed(), rows)
    print("\n".join(found) or f"{len(rows)} names agree with torch {torch.__version__}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
