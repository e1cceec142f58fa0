"""Libraries that do nothing to gradients."""

from __future__ import annotations

WRAPPERS = frozenset(
    """torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile torch.jit.script
    apex.parallel.DistributedDataParallel apex.parallel.convert_syncbn_model
    torch.nn.utils.spectral_norm torch.nn.utils.weight_norm torch.nn.utils.parametrizations.spectral_norm
    torch.nn.utils.parametrizations.weight_norm torch.nn.SyncBatchNorm.convert_sync_batchnorm
    torch.nn.utils.remove_weight_norm torch.jit.trace tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm
    tqdm.trange typing.cast torch.as_tensor torch.nn.utils.remove_spectral_norm""".split()
)
"""Calls whose result is, to autograd, their first argument."""


WEIGHT_NORMS = frozenset({"spectral_norm", "weight_norm"})
"""Those that make a layer's weight a result computed from another parameter: it is no parameter then."""


HARMLESS = frozenset(
    """numpy os sys time math random json pickle csv logging warnings datetime pathlib shutil glob re string
    torchvision matplotlib PIL cv2 wandb tensorboardX tensorboard tqdm pandas scipy sklearn skimage imageio
    gym gymnasium visdom pprint collections itertools argparse yaml h5py copy typing dataclasses abc io
    torchaudio torchtext datasets soundfile librosa seaborn termcolor colorama tabulate torchsummary
    torchinfo tensorflow mlflow comet_ml neptune swanlab loguru rich IPython ipywidgets""".split()
)
"""Libraries that neither run backward nor touch parameters."""


FAMILIAR = HARMLESS | {"torch", "builtins", "contextlib"}
"""Those of whose contexts it is known whether they switch graphs off."""


NOTEBOOK = {"display": "IPython.display", "get_ipython": "IPython"}
"""What a notebook has without importing it, and where it comes from. A script has no such names."""


ARRAYS = {"numpy.zeros": 1, "numpy.ones": 1, "numpy.empty": 1, "numpy.full": 2}
"""Calls that make an array, of numbers unless they are told another type, and where that is told."""


METRICS = frozenset({"torchmetrics", "torcheval"})
"""Libraries that measure how good predictions are, and run no backward."""


NETWORKS = frozenset(
    """torchvision timm transformers segmentation_models_pytorch efficientnet_pytorch pretrainedmodels
    facenet_pytorch lpips clip open_clip monai""".split()
)
"""Libraries whose networks keep no graph between calls: they are trained without ``retain_graph=True``."""


DIFFERENTIABLE_OUTPUTS = frozenset(
    """loss logits last_hidden_state pooler_output prediction_logits start_logits end_logits image_embeds
    text_embeds logits_per_image logits_per_text""".split()
)
"""Fields of transformers' ``ModelOutput`` classes whose gradient gets to parameters of the network."""
