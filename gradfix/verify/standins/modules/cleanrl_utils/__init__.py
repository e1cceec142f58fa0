"""cleanrl_utils: what it shares with stable_baselines3."""
