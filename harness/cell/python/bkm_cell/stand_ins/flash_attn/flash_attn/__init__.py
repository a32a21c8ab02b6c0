# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A stand-in for flash_attn 2.8.3 on a CPU: its signatures and refusals, its masks in plain torch.

What it proves is what reaches the kernel and everything around it. It proves nothing of the
kernel's own numerics, of dropout, of `deterministic`, and of speed.
"""

from flash_attn.flash_attn_interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)

__version__ = "2.8.3"

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]
