"""The part of hydra in which settings are registered."""
