# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Record what happens in a cell: facts only, no judgement."""
