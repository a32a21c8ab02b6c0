# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The installed program `bkm`: root/ holds its files, bin/ its programs."""
