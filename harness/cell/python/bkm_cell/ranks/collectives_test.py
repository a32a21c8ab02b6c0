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
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.fsdp import fully_shard
from bkm_cell.ranks.collectives import Collectives

told = []
collectives = Collectives(told.append)
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("m"), rank=0, world_size=1)
collectives.install()
mesh = init_device_mesh("cpu", (1,))
distribute_tensor(torch.ones(4), mesh, [Shard(0)]).full_tensor()
model = fully_shard(torch.nn.Linear(4, 4))
model(torch.ones(1, 4)).sum().backward()
dist.all_reduce(torch.ones(3, dtype=torch.bfloat16), op=dist.ReduceOp.MAX)
print(json.dumps({"facts": collectives.facts(), "told": told}))
"""


class CollectivesTest(unittest.TestCase):
    def test_direct_functional_and_fsdp_collectives_are_seen(self):
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
        self.assertTrue(any(op.startswith("all_gather") for op in operations), operations)
        reduced = [f for f in seen["facts"] if f["op"] == "all_reduce" and f["reduce"] == "max"]
        self.assertEqual(
            reduced,
            [
                {
                    "op": "all_reduce",
                    "reduce": "max",
                    "ranks": 1,
                    "dtype": "bfloat16",
                    "calls": 1,
                    "elements": 3,
                }
            ],
        )
        self.assertIn("all_reduce", seen["told"])
        self.assertIsNone(seen["told"][-1])


if __name__ == "__main__":
    unittest.main()
