# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Packages that users have and that need a GPU, written anew for a CPU."""

import os

# Of each package the folder that goes on the path.
FOLDERS = {name: os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("flash_attn",)}
