# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What makes the device possible, and nothing else (DESIGN.md section 9). A GPU cell applies none."""
