"""Measures, which scripts show."""

from __future__ import annotations

from typing import Any

import numpy

from ...inert import others


def accuracy_score(y_true: Any, y_pred: Any, **kwargs: Any) -> float:
    """The share that agrees."""
    agree = numpy.asarray(y_true) == numpy.asarray(y_pred)
    return float(numpy.mean(agree.all(-1) if numpy.ndim(agree) > 1 else agree))


def confusion_matrix(y_true: Any, y_pred: Any, labels: Any = None, **kwargs: Any) -> Any:
    """How often each class was taken for each."""
    kinds = (
        list(labels)
        if labels is not None
        else sorted({*numpy.asarray(y_true).tolist(), *numpy.asarray(y_pred).tolist()})
    )
    found = numpy.zeros((len(kinds), len(kinds)), int)
    for true, guess in zip(numpy.asarray(y_true).tolist(), numpy.asarray(y_pred).tolist()):
        if true in kinds and guess in kinds:
            found[kinds.index(true), kinds.index(guess)] += 1
    return found


def precision_recall_fscore_support(y_true: Any, y_pred: Any, average: Any = None, **kwargs: Any) -> Any:
    """Precision, recall, their mean, and the size of each class; those of each column of answers."""
    if numpy.ndim(y_true) > 1:
        true, said = numpy.asarray(y_true) > 0, numpy.asarray(y_pred) > 0
        along = 1 if average == "samples" else 0
        right, guessed, real = (one.sum(along).astype(float) for one in (true & said, said, true))
        if average == "micro":
            right, guessed, real = (one.sum(keepdims=True) for one in (right, guessed, real))
            average = "macro"
    else:
        table = confusion_matrix(y_true, y_pred).astype(float)
        right, guessed, real = table.diagonal(), table.sum(0), table.sum(1)
    precision = right / numpy.where(guessed == 0, 1, guessed)
    recall = right / numpy.where(real == 0, 1, real)
    both = precision + recall
    f1 = 2 * precision * recall / numpy.where(both == 0, 1, both)
    if average is None:
        return precision, recall, f1, real
    if average == "binary":
        return float(precision[-1]), float(recall[-1]), float(f1[-1]), None
    if average == "micro":
        share = float(right.sum() / max(1.0, real.sum()))
        return share, share, share, None
    weights = (
        real / max(1.0, real.sum()) if average == "weighted" else numpy.full(len(real), 1 / max(1, len(real)))
    )
    return float(precision @ weights), float(recall @ weights), float(f1 @ weights), None


def f1_score(y_true: Any, y_pred: Any, average: Any = "binary", **kwargs: Any) -> Any:
    """The mean of precision and recall."""
    return precision_recall_fscore_support(y_true, y_pred, average)[2]


def precision_score(y_true: Any, y_pred: Any, average: Any = "binary", **kwargs: Any) -> Any:
    """The share of what was found that is right."""
    return precision_recall_fscore_support(y_true, y_pred, average)[0]


def recall_score(y_true: Any, y_pred: Any, average: Any = "binary", **kwargs: Any) -> Any:
    """The share of what is right that was found."""
    return precision_recall_fscore_support(y_true, y_pred, average)[1]


def mean_squared_error(y_true: Any, y_pred: Any, squared: bool = True, **kwargs: Any) -> float:
    """The mean of squared differences, or its root."""
    found = float(numpy.mean((numpy.asarray(y_true, float) - numpy.asarray(y_pred, float)) ** 2))
    return found if squared else found**0.5


def mean_absolute_error(y_true: Any, y_pred: Any, **kwargs: Any) -> float:
    """The mean of differences."""
    return float(numpy.mean(numpy.abs(numpy.asarray(y_true, float) - numpy.asarray(y_pred, float))))


def r2_score(y_true: Any, y_pred: Any, **kwargs: Any) -> float:
    """The share of the variance that is explained."""
    y_true = numpy.asarray(y_true, float)
    spread = ((y_true - y_true.mean()) ** 2).sum()
    return float(1 - ((y_true - numpy.asarray(y_pred, float)) ** 2).sum() / (spread or 1))


def roc_auc_score(y_true: Any, y_score: Any, **kwargs: Any) -> float:
    """The chance that a right one has the higher score."""
    y_true, y_score = numpy.asarray(y_true).ravel(), numpy.asarray(y_score).ravel()
    right, wrong = y_score[y_true == 1], y_score[y_true != 1]
    if not len(right) or not len(wrong):
        return 0.5
    return float((right[:, None] > wrong[None]).mean() + 0.5 * (right[:, None] == wrong[None]).mean())


def roc_curve(y_true: Any, y_score: Any, **kwargs: Any) -> Any:
    """False and true ones above each score."""
    y_true, y_score = numpy.asarray(y_true).ravel(), numpy.asarray(y_score).ravel()
    order = numpy.argsort(-y_score)
    right = (y_true[order] == 1).cumsum()
    wrong = (y_true[order] != 1).cumsum()
    return wrong / max(1, wrong[-1]), right / max(1, right[-1]), y_score[order]


def auc(x: Any, y: Any) -> float:
    """The area below a curve."""
    x, y = numpy.asarray(x, float), numpy.asarray(y, float)
    return float((numpy.diff(x) * (y[1:] + y[:-1]) / 2).sum())


def average_precision_score(y_true: Any, y_score: Any, **kwargs: Any) -> float:
    """The mean of precisions."""
    order = numpy.argsort(-numpy.asarray(y_score).ravel())
    right = numpy.asarray(y_true).ravel()[order] == 1
    return float((right.cumsum() / (numpy.arange(len(right)) + 1))[right].mean()) if right.any() else 0.0


def classification_report(*args: Any, **kwargs: Any) -> str:
    """Nothing is shown."""
    return ""


def log_loss(y_true: Any, y_pred: Any, **kwargs: Any) -> float:
    """The cross entropy."""
    y_pred = numpy.clip(numpy.asarray(y_pred, float), 1e-15, 1 - 1e-15)
    y_true = numpy.asarray(y_true)
    if y_pred.ndim == 1:
        return float(-numpy.mean(y_true * numpy.log(y_pred) + (1 - y_true) * numpy.log(1 - y_pred)))
    return float(-numpy.mean(numpy.log(y_pred[numpy.arange(len(y_true)), y_true])))


balanced_accuracy_score = accuracy_score
__getattr__ = others(__name__)
