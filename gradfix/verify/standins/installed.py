"""Libraries that are there while their data are not: their own classes over made-up samples."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import operator
import os
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import context, inert, parallel, samples, sizes


class Patcher(importlib.abc.MetaPathFinder):
    """The first finder for libraries whose data sets get another way of being made."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The library's own place, with a loader that changes what it has loaded."""
        change = CHANGES.get(fullname)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        spec.loader = Changed(spec.loader, change)
        return spec


class Changed(importlib.abc.Loader):
    """Loads a module as ever, and then changes it."""

    def __init__(self, real: Any, change: Callable[[Any], None]) -> None:
        self.real = real
        self.change = change

    def create_module(self, spec: Any) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self.real.exec_module(module)
        self.change(module)


def change_datasets(module: Any) -> None:
    """Data sets of torchvision that are not on this machine are made up; folders of pictures too."""
    for name, kind in samples.KINDS.items():
        if inspect.isclass(getattr(module, name, None)) and name != "FakeData":
            change_dataset(module, name, kind)
    real = module.DatasetFolder.__init__

    def init(self: Any, root: Any, *args: Any, **kwargs: Any) -> None:
        if not os.path.isdir(root):
            run = context.run()
            run.used(
                "ImageFolder " + os.path.basename(str(root).rstrip(os.sep)),
                "64 made-up pictures in 2 classes",
            )
            samples.folder_of_classes(run, os.fspath(root))
        real(self, root, *args, **kwargs)
        if samples.is_made(os.fspath(root)):
            self.class_to_idx = samples.Classes(self.class_to_idx)

    context.replace(module.DatasetFolder, "__init__", init)


def change_dataset(module: Any, name: str, kind: samples.Kind) -> None:
    """One of the known data sets: the real one if its files are there, else made-up samples.

    An instance of the user's own subclass keeps its class: it gets ``data`` and ``targets``.
    """
    owner = getattr(module, name)
    if "__init__" not in owner.__dict__:
        return
    real = owner.__init__
    signature = inspect.signature(real)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            real(self, *args, **{**kwargs, **({"download": False} if "download" in kwargs else {})})
            return
        except (RuntimeError, OSError, ImportError, ValueError):
            given = signature.bind_partial(self, *args, **kwargs).arguments
        named = type(self).__name__ if type(self).__name__ in samples.KINDS else name
        settings = {key: value for key, value in given.items() if key not in ("self", "kwargs")}
        settings.update(given.get("kwargs", {}))
        made = samples.Pictures(named, samples.KINDS[named], settings)
        if type(self).__module__.startswith("torchvision."):
            self.__class__ = type(named, (samples.Pictures, type(self)), {})
            self.__dict__.update(made.__dict__)
            return
        for key in ("root", "train", "transform", "target_transform", "transforms", "classes"):
            self.__dict__[key] = getattr(made, key)
        self.data, self.targets = made.data, made.targets
        self.labels = made._labels.numpy()

    context.replace(owner, "__init__", init)


def change_yaml(module: Any) -> None:
    """``yaml.load(file)`` as it was before a loader had to be named: the safe one."""
    real, real_safe, run = module.load, module.safe_load, context.run()
    if hasattr(module.SafeLoader, "add_constructor"):
        # What ``yaml.load`` of older versions read as well.
        module.SafeLoader.add_constructor(
            "tag:yaml.org,2002:python/tuple", lambda loader, node: tuple(loader.construct_sequence(node))
        )

    def load(stream: Any, Loader: Any = module.SafeLoader) -> Any:
        found = real(stream, Loader)
        return sizes.reduced_settings(run, found) if run.small else found

    def safe_load(stream: Any) -> Any:
        found = real_safe(stream)
        return sizes.reduced_settings(run, found) if run.small else found

    context.replace(module, "load", load)
    context.replace(module, "safe_load", safe_load)


def change_extensions(module: Any) -> None:
    """Code that would be compiled for torch has no values; many have another way on the CPU."""

    def load(name: str, *args: Any, **kwargs: Any) -> Any:
        context.run().used("compiled code " + name, "objects without values")
        return inert.Inert(name)

    context.replace(module, "load", load)
    context.replace(module, "load_inline", load)


def change_transforms(module: Any) -> None:
    """Pictures are brought to smaller sizes, where sizes are reduced."""
    for name in ("Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop"):
        owner = getattr(module, name, None)
        if inspect.isclass(owner) and "__init__" in vars(owner):
            context.replace(owner, "__init__", smaller(owner.__init__))


def smaller(real: Callable[..., None]) -> Callable[..., None]:
    """The making of a transformation with a size, which may be reduced."""
    signature = inspect.signature(real)

    def init(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        if "size" in given.arguments:
            given.arguments["size"] = sizes.smaller_pictures(context.run(), given.arguments["size"])
        real(*given.args, **given.kwargs)

    return init


NODES, EDGES = 64, 256
"""Of a graph that is made up."""


def change_networkx(module: Any) -> None:
    """Graphs in files that are not there: random ones, their nodes numbered."""
    names = ("edgelist", "weighted_edgelist", "adjlist", "gml", "graphml", "gexf", "pajek")
    for name in ["read_" + one for one in names]:
        real = getattr(module, name, None)
        if real is not None:
            setattr(module, name, reading_graphs(module, real, "weighted" in name))
    for name, old in OLDER_GRAPHS.items():
        if not hasattr(module, name):
            setattr(module, name, remembered(module, name, old))
    for older, newer in (("node", "nodes"), ("edge", "adj")):
        if not hasattr(module.Graph, older):
            setattr(module.Graph, older, property(operator.attrgetter(newer)))


def remembered(module: Any, name: str, old: Any) -> Any:
    """A function that a library had once."""

    def call(*args: Any, **kwargs: Any) -> Any:
        context.run().used("networkx's " + name, "its old meaning")
        return old(module, *args, **kwargs)

    return call


def to_numpy_matrix(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Which nodes of a graph are neighbours, as a matrix of numpy's."""
    import numpy

    return numpy.asmatrix(module.to_numpy_array(*args, **kwargs))


def from_numpy_matrix(module: Any, *args: Any, **kwargs: Any) -> Any:
    """A graph from such a matrix."""
    return module.from_numpy_array(*args, **kwargs)


def read_gpickle(module: Any, path: Any) -> Any:
    """A graph that was pickled."""

    def read(place: Any) -> Any:
        if not os.path.isfile(place):
            raise FileNotFoundError(place)
        with open(place, "rb") as file:
            return pickle.load(file)

    return reading_graphs(module, read, weighted=False)(path)


def connected_component_subgraphs(module: Any, graph: Any, copy: bool = True) -> Any:
    """The parts of a graph between which there are no edges."""
    for one in module.connected_components(graph):
        yield graph.subgraph(one).copy() if copy else graph.subgraph(one)


OLDER_GRAPHS = {
    one.__name__: one
    for one in (to_numpy_matrix, from_numpy_matrix, read_gpickle, connected_component_subgraphs)
}
"""What older versions of networkx had."""


def reading_graphs(module: Any, real: Any, weighted: bool) -> Any:
    """A reader of graphs that makes one up where its file is missing."""

    def read(path: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return real(path, *args, **kwargs)
        except FileNotFoundError:
            run, name = context.run(), os.path.basename(os.fspath(path))
            run.used("graph " + name, f"a random one of {NODES} nodes and {EDGES} edges")
            number = run.generator("graph", name).initial_seed() % 2**32
            kind = kwargs.get("nodetype") or str
            drawn = module.gnm_random_graph(NODES, EDGES, seed=number)
            made = module.empty_graph(0, kwargs.get("create_using"))
            made.add_nodes_from(kind(one) for one in drawn)
            about = {"weight": 1.0} if weighted or kwargs.get("data") else {}
            made.add_edges_from((kind(one), kind(other), dict(about)) for one, other in drawn.edges())
            return made

    return read


CHANGES: dict[str, Callable[[Any], None]] = {
    "torchvision.datasets": change_datasets,
    "torchvision.transforms.transforms": change_transforms,
    "torchvision.transforms.v2._geometry": change_transforms,
    "networkx": change_networkx,
    "yaml": change_yaml,
    "torch.utils.cpp_extension": change_extensions,
    "torch.distributed.tensor.parallel": parallel.change_tensor_parallel,
    "torch.distributed.fsdp": parallel.change_fully_sharded,
}


def install() -> None:
    """Change the libraries when they are imported, or now if they are."""
    for name, change in CHANGES.items():
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, Patcher())
