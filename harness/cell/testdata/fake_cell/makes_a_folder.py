# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Makes a temporary folder when it is imported, as wandb does."""

import tempfile

FOLDER = tempfile.TemporaryDirectory(suffix="-bkm-preloaded")
