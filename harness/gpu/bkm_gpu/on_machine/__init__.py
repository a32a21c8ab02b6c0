# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Programs that run on the machine, each by its own path."""
