# SPDX-License-Identifier: Apache-2.0
"""A fake of the real package, to test the worker without torch and engines."""
