# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Real ranks exchange lists of other sizes, which gloo alone refuses."""

import os
import subprocess
import sys
import tempfile
import unittest

_PROGRAM = """
import os, sys
import torch, torch.distributed as dist
from bkm_cell.shims import gloo_all_to_all

child = os.fork()
rank = 0 if child else 1
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("m"), rank=rank, world_size=2)

# Rank r sends 2 * r + 1 rows to rank 0, and 2 * r + 2 to rank 1.
def lists():
    given = [torch.full((2 * rank + to + 1, 3), 10.0 * rank + to) for to in (0, 1)]
    return [torch.empty(2 * of + rank + 1, 3) for of in (0, 1)], given

def check(outputs):
    for of, output in enumerate(outputs):
        assert torch.equal(output, torch.full((2 * of + rank + 1, 3), 10.0 * of + rank)), output

if "bare" in sys.argv:
    outputs, given = lists()
    dist.all_to_all(outputs, given)
else:
    gloo_all_to_all.apply()
    outputs, given = lists()
    assert dist.all_to_all(outputs, given) is None
    check(outputs)
    outputs, given = lists()
    work = dist.all_to_all(outputs, given, async_op=True)
    work.wait()
    check(outputs)
status = os.waitpid(child, 0)[1] if rank == 0 else 0
os._exit(1 if status else 0)
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        cwd=tempfile.mkdtemp(),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


class GlooAllToAllTest(unittest.TestCase):
    def test_lists_of_other_sizes_arrive(self):
        ended = run()
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_gloo_alone_refuses_them(self):
        """If this fails, the shim is no longer needed."""
        self.assertIn("invalid tensor size", run("bare").stderr)


if __name__ == "__main__":
    unittest.main()
