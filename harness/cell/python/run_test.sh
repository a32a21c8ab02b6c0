#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
# run_test.sh PYTHON TEST.py: runs a unittest program as the module that it is.
set -euo pipefail
root=${TEST_SRCDIR:?}/${TEST_WORKSPACE:?}/harness/cell/python
module=${2#harness/cell/python/}
module=${module%.py}
export PYTHONPATH=$root PYTHONDONTWRITEBYTECODE=1
exec "$1" -m "${module//\//.}"
