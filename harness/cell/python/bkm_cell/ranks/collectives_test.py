# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Collectives are counted, under whatever names torch has for them, and told while they run."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

_PROGRAM = """
import json, os
import torch, torch.distributed as dist
import torch.distributed._functional_collectives as functional
from bkm_cell.ranks.collectives import Collectives

told = []
collectives = Collectives(told.append)
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("m"), rank=0, world_size=1)
collectives.install()
functional.all_gather_tensor(torch.ones(4), 0, dist.group.WORLD)
dist.reduce_scatter_tensor(torch.ones(2), torch.ones(2))
dist.barrier()
collectives.stage = "backward"
dist.all_reduce(torch.ones(3, dtype=torch.bfloat16), op=dist.ReduceOp.MAX)
print(json.dumps({"facts": collectives.facts(), "told": told}), flush=True)
os._exit(0)  # as a rank ends: torch aborts now and then when it takes down a group that is in use
"""


class CollectivesTest(unittest.TestCase):
    def test_direct_and_functional_collectives_are_seen(self):
        ended = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            cwd=tempfile.mkdtemp(),
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        seen = json.loads(ended.stdout.splitlines()[-1])
        operations = {facts["op"] for facts in seen["facts"]}
        self.assertLessEqual({"all_gather_tensor", "reduce_scatter_tensor", "barrier"}, operations)
        reduced = [f for f in seen["facts"] if f["op"] == "all_reduce" and f["reduce"] == "max"]
        self.assertEqual(
            reduced,
            [
                {
                    "op": "all_reduce",
                    "reduce": "max",
                    "ranks": 1,
                    "dtype": "bfloat16",
                    "stage": "backward",
                    "calls": 1,
                    "elements": 3,
                }
            ],
        )
        self.assertIn("all_reduce", seen["told"])
        self.assertIsNone(seen["told"][-1])


if __name__ == "__main__":
    unittest.main()
