# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""One file per engine or control. Each defines `Adapter`, a subclass of base.Adapter."""
