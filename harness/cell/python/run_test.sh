#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
# run_test.sh PYTHON MODULE...: runs unittest modules by run_tests.py.
set -euo pipefail
root=${TEST_SRCDIR:?}/${TEST_WORKSPACE:?}/harness/cell/python
python=$1
shift
export PYTHONPATH=$root PYTHONDONTWRITEBYTECODE=1
exec "$python" "$root/run_tests.py" "$@"
