# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The code inside a cell: runs real SFT steps in the subject's own engine and witnesses them."""
