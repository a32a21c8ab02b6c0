# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs cells on another machine. Python 3.10, and nothing but its standard library."""
