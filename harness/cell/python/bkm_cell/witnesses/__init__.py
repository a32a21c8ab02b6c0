# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What was seen in a cell: facts only, no judgement."""
