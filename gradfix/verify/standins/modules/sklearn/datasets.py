"""Data sets: the shapes of the real ones, values drawn at random."""

from __future__ import annotations

from typing import Any

import numpy

from ...context import run
from ...inert import library, others

SHAPES = {
    # Samples, columns, classes (none: a number is predicted).
    "iris": (150, 4, 3),
    "digits": (1797, 64, 10),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
    "diabetes": (442, 10, 0),
    "boston": (506, 13, 0),
    "california_housing": (20640, 8, 0),
    "linnerud": (20, 3, 0),
}


class Bunch(dict):  # type: ignore[type-arg]
    """Values under names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]


def made(name: str, return_X_y: bool = False, as_frame: bool = False, **kwargs: Any) -> Any:
    """One of the data sets."""
    count, columns, classes = SHAPES[name]
    import torch

    generator = run().generator("sklearn", name)
    run().used("sklearn.datasets." + name, f"{count} made-up samples of {columns} numbers")
    top = 17 if name == "digits" else 0
    drawn = (
        torch.randint(0, top, (count, columns), generator=generator).double()
        if top
        else torch.rand((count, columns), generator=generator, dtype=torch.float64)
    )
    data = drawn.numpy()
    if classes:
        target = torch.randint(0, classes, (count,), generator=generator).numpy()
    else:
        target = torch.rand(count, generator=generator, dtype=torch.float64).numpy()
    if return_X_y:
        return data, target
    names = [f"column_{i}" for i in range(columns)]
    found = Bunch(data=data, target=target, feature_names=names, DESCR="")
    found["target_names"] = numpy.array([str(i) for i in range(classes)])
    if name == "digits":
        found["images"] = data.reshape(-1, 8, 8)
    if as_frame:
        found["frame"] = library("pandas").DataFrame({**dict(zip(names, data.T)), "target": target})
    return found


def _loader(name: str) -> Any:
    return lambda *args, **kwargs: made(name, **kwargs)


for _name in SHAPES:
    globals()["load_" + _name] = _loader(_name)
fetch_california_housing = _loader("california_housing")


def source(seed: Any) -> Any:
    """numpy's generator, or one with a seed."""
    return numpy.random.RandomState(seed) if isinstance(seed, int) else numpy.random


def mixed(X: Any, y: Any, seed: Any, shuffle: bool, noise: Any) -> Any:
    """In another order and with noise."""
    if shuffle:
        order = source(seed).permutation(len(X))
        X, y = X[order], y[order]
    return (X + source(seed).normal(scale=noise, size=X.shape) if noise else X), y


def make_moons(
    n_samples: Any = 100, shuffle: bool = True, noise: Any = None, random_state: Any = None
) -> Any:
    """Two half circles."""
    count = n_samples if isinstance(n_samples, int) else sum(n_samples)
    outer, inner = numpy.linspace(0, numpy.pi, count // 2), numpy.linspace(0, numpy.pi, count - count // 2)
    X = numpy.concatenate(
        [
            numpy.stack([numpy.cos(outer), numpy.sin(outer)], 1),
            numpy.stack([1 - numpy.cos(inner), 0.5 - numpy.sin(inner)], 1),
        ]
    )
    return mixed(X, numpy.array([0] * len(outer) + [1] * len(inner)), random_state, shuffle, noise)


def make_circles(
    n_samples: Any = 100,
    shuffle: bool = True,
    noise: Any = None,
    random_state: Any = None,
    factor: float = 0.8,
) -> Any:
    """Two circles."""
    count = n_samples if isinstance(n_samples, int) else sum(n_samples)
    outer, inner = (
        numpy.linspace(0, 2 * numpy.pi, n, endpoint=False) for n in (count // 2, count - count // 2)
    )
    rings = [(outer, 1.0), (inner, factor)]
    X = numpy.concatenate([numpy.stack([numpy.cos(one), numpy.sin(one)], 1) * size for one, size in rings])
    return mixed(X, numpy.array([0] * len(outer) + [1] * len(inner)), random_state, shuffle, noise)


def make_blobs(
    n_samples: Any = 100,
    n_features: int = 2,
    centers: Any = None,
    cluster_std: Any = 1.0,
    random_state: Any = None,
    **kwargs: Any,
) -> Any:
    """Heaps around centres."""
    drawn = source(random_state)
    middle = (
        drawn.uniform(-10, 10, (centers or 3, n_features))
        if isinstance(centers, (int, type(None)))
        else numpy.asarray(centers)
    )
    y = drawn.randint(0, len(middle), n_samples)
    return middle[y] + drawn.normal(size=(n_samples, middle.shape[1])) * numpy.mean(cluster_std), y


def make_classification(
    n_samples: int = 100, n_features: int = 20, n_classes: int = 2, random_state: Any = None, **kwargs: Any
) -> Any:
    """Random samples of classes."""
    return make_blobs(n_samples, n_features, n_classes, 1.0, random_state)


def make_regression(
    n_samples: int = 100, n_features: int = 100, noise: float = 0.0, random_state: Any = None, **kwargs: Any
) -> Any:
    """A linear function of random numbers."""
    drawn = source(random_state)
    X = drawn.normal(size=(n_samples, n_features))
    return X, X @ drawn.uniform(0, 100, n_features) + noise * drawn.normal(size=n_samples)


def make_swiss_roll(n_samples: int = 100, noise: float = 0.0, random_state: Any = None, **kwargs: Any) -> Any:
    """A rolled sheet."""
    drawn = source(random_state)
    t = 1.5 * numpy.pi * (1 + 2 * drawn.uniform(size=n_samples))
    X = numpy.stack([t * numpy.cos(t), 21 * drawn.uniform(size=n_samples), t * numpy.sin(t)], 1)
    return X + noise * drawn.normal(size=X.shape), t


def make_s_curve(n_samples: int = 100, **kwargs: Any) -> Any:
    """A bent sheet."""
    return make_swiss_roll(n_samples, **kwargs)


def fetch_openml(name: Any = "mnist_784", *args: Any, return_X_y: bool = False, **kwargs: Any) -> Any:
    """MNIST as rows of numbers, shortened."""
    import torch

    if "mnist" not in str(name).lower():
        run().stop(f"the data set {name} of openml is not here and its values are needed")
    generator = run().generator("openml", name)
    X = torch.randint(0, 256, (7000, 784), generator=generator).double().numpy()
    y = torch.randint(0, 10, (7000,), generator=generator).numpy().astype(str)
    run().used("sklearn.datasets.fetch_openml " + str(name), "7,000 made-up rows")
    return (X, y) if return_X_y else Bunch(data=X, target=y)


def fetch_20newsgroups(*args: Any, **kwargs: Any) -> Any:
    """Lines of common words with classes."""
    import torch

    from ... import media

    lines = media.text(run(), "newsgroups", 500).splitlines()
    drawn = torch.randint(0, 20, (len(lines),), generator=run().generator("newsgroups"))
    return Bunch(data=lines, target=drawn.numpy(), target_names=[str(i) for i in range(20)])


__getattr__ = others(__name__)
