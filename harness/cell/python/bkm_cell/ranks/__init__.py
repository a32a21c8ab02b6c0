# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Cells of several ranks: who gets which documents, the processes, and what they saw as one."""
