# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What makes the device possible, and nothing else. A GPU cell applies none."""
