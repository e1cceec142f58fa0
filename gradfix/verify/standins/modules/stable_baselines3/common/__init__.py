"""stable_baselines3: the wrappers and the replay memory that other scripts take from it."""
