# SPDX-License-Identifier: Apache-2.0
"""A module that is slow to import, as torch is, and that tells which process imported it."""

import os
import time

time.sleep(0.5)
imported_in = os.getpid()
