"""Which distribution supplies an import.

The two have names of their own, and nothing ties them together: PyPI gives a name to whoever asks for it
first. To install a distribution because a file imports something of that name is how typosquatting arrives
(a slip in an import, or a module of the project's that is not there, and a stranger's code runs). So a name
is guessed from an import only where it is in the tables here, which were compiled by hand from the projects'
own installation instructions; for any other import the project has to state what supplies it, or the user.
"""

from __future__ import annotations

from packaging.utils import canonicalize_name

SUPPLIERS: dict[str, tuple[str, ...]] = {
    # OpenCV: the headless wheel needs no libraries of the desktop's.
    "cv2": (
        "opencv-python-headless",
        "opencv-python",
        "opencv-contrib-python",
        "opencv-contrib-python-headless",
    ),
    "PIL": ("pillow", "pillow-simd"),
    "sklearn": ("scikit-learn",),
    "skimage": ("scikit-image",),
    "skvideo": ("scikit-video",),
    "skopt": ("scikit-optimize",),
    "yaml": ("pyyaml",),
    "ruamel.yaml": ("ruamel-yaml",),
    "bs4": ("beautifulsoup4",),
    "dateutil": ("python-dateutil",),
    "dotenv": ("python-dotenv",),
    "attr": ("attrs",),
    "Levenshtein": ("levenshtein", "python-levenshtein"),
    "umap": ("umap-learn",),
    "mpl_toolkits": ("matplotlib",),
    "pylab": ("matplotlib",),
    "google.protobuf": ("protobuf",),
    "google.cloud.storage": ("google-cloud-storage",),
    "pytorch_lightning": ("pytorch-lightning",),
    "torch_geometric": ("torch-geometric",),
    "torch_scatter": ("torch-scatter",),
    "torch_sparse": ("torch-sparse",),
    "torch_cluster": ("torch-cluster",),
    "torch_optimizer": ("torch-optimizer",),
    "pytorch_msssim": ("pytorch-msssim",),
    "pytorch_metric_learning": ("pytorch-metric-learning",),
    "pytorch_fid": ("pytorch-fid",),
    "pytorch_wavelets": ("pytorch-wavelets",),
    "torch_fidelity": ("torch-fidelity",),
    "torch_ema": ("torch-ema",),
    "ignite": ("pytorch-ignite",),
    "pl_bolts": ("lightning-bolts",),
    "segmentation_models_pytorch": ("segmentation-models-pytorch",),
    "efficientnet_pytorch": ("efficientnet-pytorch",),
    "pretrainedmodels": ("pretrainedmodels",),
    "open_clip": ("open-clip-torch",),
    "sentence_transformers": ("sentence-transformers",),
    "huggingface_hub": ("huggingface-hub",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "ale_py": ("ale-py",),
    "stable_baselines3": ("stable-baselines3",),
    "dm_control": ("dm-control",),
    "dm_env": ("dm-env",),
    "Box2D": ("box2d", "box2d-py"),
    "mujoco_py": ("mujoco-py",),
    "supersuit": ("supersuit",),
    "OpenGL": ("pyopengl",),
    "Crypto": ("pycryptodome",),
    "zmq": ("pyzmq",),
    "git": ("gitpython",),
    "igraph": ("igraph", "python-igraph"),
    "rdkit": ("rdkit", "rdkit-pypi"),
    "Bio": ("biopython",),
    "SimpleITK": ("simpleitk",),
    "skfuzzy": ("scikit-fuzzy",),
    "pywt": ("pywavelets",),
    "pkg_resources": ("setuptools",),
    "distutils": ("setuptools",),
    "pydensecrf": ("pydensecrf",),
    "tensorboard_logger": ("tensorboard-logger",),
    "torch.utils.tensorboard": ("tensorboard",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "absl": ("absl-py",),
    "gin": ("gin-config",),
    "ot": ("pot",),
    "pyro": ("pyro-ppl",),
    "avalanche": ("avalanche-lib",),
    "backpack": ("backpack-for-pytorch",),
    "pynvml": ("nvidia-ml-py", "pynvml"),
    "rouge_score": ("rouge-score",),
    "ml_collections": ("ml-collections",),
    "sacred": ("sacred",),
    "hydra": ("hydra-core",),
    "nni": ("nni",),
    "fitz": ("pymupdf",),
    "imageio_ffmpeg": ("imageio-ffmpeg",),
    "jwt": ("pyjwt",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "IPython": ("ipython",),
    "typing_extensions": ("typing-extensions",),
    "importlib_metadata": ("importlib-metadata",),
    "importlib_resources": ("importlib-resources",),
    "more_itertools": ("more-itertools",),
    "line_profiler": ("line-profiler",),
    "memory_profiler": ("memory-profiler",),
    "charset_normalizer": ("charset-normalizer",),
    "opt_einsum": ("opt-einsum",),
    "rotary_embedding_torch": ("rotary-embedding-torch",),
    "vector_quantize_pytorch": ("vector-quantize-pytorch",),
    "lion_pytorch": ("lion-pytorch",),
    "denoising_diffusion_pytorch": ("denoising-diffusion-pytorch",),
    "gym_minigrid": ("gym-minigrid",),
    "gymnasium_robotics": ("gymnasium-robotics",),
    "procgen": ("procgen",),
    "pybullet_envs": ("pybullet",),
    "pybullet_data": ("pybullet",),
    "colored_traceback": ("colored-traceback",),
    "bson": ("pymongo",),
    "tensorflow_datasets": ("tensorflow-datasets",),
    "tensorflow_probability": ("tensorflow-probability",),
}
"""By import: the distributions that supply it, the one to guess first. Longer names come before shorter."""

WELL_KNOWN = frozenset(
    """
    torch torchvision torchaudio torchtext torchdata torchmetrics torchsummary torchinfo torchviz torchdiffeq
    torchsde torchgeometry torchio torchbearer torchnet torchfile torchattacks torchtyping torchcde torchopt
    torchrl torchtune tensordict timm transformers datasets tokenizers accelerate diffusers peft trl evaluate
    safetensors lightning bitsandbytes optimum deepspeed fairscale xformers einops numpy scipy pandas
    matplotlib seaborn plotly sympy networkx tqdm h5py tables zarr lmdb pyarrow polars dask joblib cloudpickle
    dill tensorboard tensorboardx wandb visdom mlflow comet-ml neptune clearml tensorflow keras jax jaxlib
    flax optax jaxtyping gym gymnasium pettingzoo minigrid mujoco pybullet pyglet pygame imageio
    albumentations imgaug kornia lpips piq nltk spacy gensim sacrebleu sacremoses rouge-score jieba
    sentencepiece editdistance jiwer librosa soundfile audioread resampy pesq pystoi mir-eval pretty-midi
    museval musdb nibabel monai simpleitk rdkit dgl ogb e3nn ase pyro-ppl gpytorch botorch
    blitz-bayesian-pytorch geomloss pot numba cython cffi psutil requests aiohttp httpx urllib3 boto3 click
    typer fire absl-py gin-config omegaconf hydra-core yacs addict easydict munch termcolor colorama rich
    loguru tabulate prettytable humanize attrs pydantic simplejson ujson orjson msgpack packaging six future
    setuptools protobuf grpcio ray optuna hyperopt nevergrad scikit-learn scikit-image scikit-optimize
    scikit-video opencv-python opencv-python-headless pillow pyyaml toml xmltodict lxml beautifulsoup4
    pycocotools shapely geopandas rasterio trimesh open3d plyfile pyvista vtk tifffile statsmodels xgboost
    lightgbm catboost shap captum foolbox advertorch thop fvcore iopath ptflops gdown wget ftfy regex
    unidecode inflect num2words portalocker filelock fsspec pytest hypothesis ipython ipdb jupyter notebook
    flask fastapi gradio streamlit av decord moviepy imutils skorch higher learn2learn avalanche-lib
    backpack-for-pytorch functorch nvidia-ml-py pynvml gpustat umap-learn hdbscan pywavelets pyopengl cvxpy
    cvxopt qpth pyomo ortools onnx onnxruntime pymoo deap cma filterpy astropy healpy biopython anndata scanpy
    pyscf faiss-cpu annoy hnswlib pytorch-lightning pytorch-ignite torch-geometric sentence-transformers
    huggingface-hub open-clip-torch stable-baselines3 ale-py dm-control typing-extensions python-dateutil
    """.split()
)
"""Distributions that are common in training code. One whose name is an import's is what supplies it."""

NEVER = {
    "apex": "NVIDIA's apex is not on PyPI, and what is there under this name is something else",
    "pytorch": "the distribution of that name is empty; PyTorch is imported as torch",
    "clip": "OpenAI's CLIP is not on PyPI",
    "google.colab": "it is there in Colab's notebooks only",
    "caffe": "Caffe is not on PyPI",
    "detectron2": "Detectron2 is not on PyPI",
    "mmcv": "mmcv has no wheels on PyPI",
    "pytorch3d": "PyTorch3D has no wheels on PyPI",
    "tinycudann": "tiny-cuda-nn is not on PyPI",
    "nvdiffrast": "nvdiffrast is not on PyPI",
    "horovod": "Horovod has no wheels on PyPI",
    "tensorrt": "TensorRT needs a GPU",
    "pycuda": "PyCUDA needs a GPU",
    "cupy": "CuPy needs a GPU",
    "nvidia": "NVIDIA's libraries need a GPU",
    "torch_xla": "torch_xla needs a TPU",
    "habana_frameworks": "it needs a Gaudi accelerator",
    "carla": "its wheels are for a simulator that runs beside it",
    "isaacgym": "Isaac Gym is not on PyPI",
    "d4rl": "D4RL is not on PyPI",
    "StringIO": "a module of Python 2",
    "cPickle": "a module of Python 2",
    "cStringIO": "a module of Python 2",
    "Queue": "a module of Python 2",
    "urllib2": "a module of Python 2",
    "urlparse": "a module of Python 2",
    "ConfigParser": "a module of Python 2",
    "Tkinter": "a module of Python 2",
    "tkMessageBox": "a module of Python 2",
    "httplib": "a module of Python 2",
    "commands": "a module of Python 2",
    "imp": "a module that Python 3.12 has removed",
}
"""Imports that no distribution on PyPI supplies, and why."""

UNKNOWN = "no distribution is known for it: state it in requirements.txt or name it with --with"


def suppliers(module: str) -> tuple[str, ...]:
    """The distributions that supply an import (a dotted name), the one to guess first; none if unknown."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if found := SUPPLIERS.get(".".join(parts[:length])):
            return found
    name = canonicalize_name(parts[0])
    return (name,) if name in WELL_KNOWN and parts[0] not in NEVER else ()


def why_not(module: str) -> str:
    """Why an import has no distribution that could be installed for it."""
    return NEVER.get(module) or NEVER.get(module.split(".")[0]) or UNKNOWN
