# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the real package, so that the worker is tested without torch and engines."""
