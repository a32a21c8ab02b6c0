# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What runs inside a cell: the subject's own engine, real SFT steps, and the witnesses."""
