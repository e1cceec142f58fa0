"""Machines of vectors, as linear models."""

from __future__ import annotations

from ...inert import others
from .linear_model import LinearRegression, LogisticRegression

SVC = LinearSVC = NuSVC = LogisticRegression
SVR = LinearSVR = LinearRegression
__getattr__ = others(__name__)
