"""skimage.measure: what older versions kept here of ``metrics``."""

from __future__ import annotations

from ...inert import others
from .metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity

compare_mse, compare_psnr, compare_ssim = mean_squared_error, peak_signal_noise_ratio, structural_similarity
__getattr__ = others(__name__)
