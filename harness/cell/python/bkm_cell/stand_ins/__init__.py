# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Packages that users have and that need a GPU, written anew for a CPU."""
