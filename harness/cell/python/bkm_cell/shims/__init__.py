# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Make the device usable, and nothing else. A GPU cell applies none."""
