#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
# run_test.sh PYTHON TEST.py: runs a unittest program with bkm_gpu on its path.
set -euo pipefail
root=${TEST_SRCDIR:?}/${TEST_WORKSPACE:?}
export PYTHONPATH=$root/harness/gpu PYTHONDONTWRITEBYTECODE=1
exec "$1" "$root/$2"
