# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Real ranks: parts become whole tensors, and what is not alike is named."""

import json
import unittest

from forked_program import run_forked

_PROGRAM = """
import json, os, sys, time
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from bkm_cell.ranks.gather import Gather, SharedMemory
from bkm_cell.report import Report

RANKS = 4
torch.set_num_threads(1)
memory = SharedMemory(RANKS, 1 << 20)
for rank in range(RANKS):
    if os.fork() == 0:
        break
else:
    sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(RANKS)))

def emit(event):
    os.write(1, (event + "\\n").encode())

dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank,
                        world_size=RANKS)
report = Report(emit)
gather = Gather(memory, rank, lambda name: None, report, is_pipeline=False)
gather.when = "step 1"
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
PART
sys.stdout.flush()
os._exit(0)
"""


def run(part):
    """Runs `part` on four ranks; returns what they reported."""
    ended = run_forked(_PROGRAM.replace("PART", part))
    events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    differences = [event["append"]["rank_differences"] for event in events if "append" in event]
    seen = [event["set"] for event in events if "set" in event]
    return ended, differences, seen


class GatherTest(unittest.TestCase):
    def test_the_first_rank_gets_whole_tensors(self):
        ended, differences, seen = run(
            """
cases = {
    "rows": (torch.arange(15.0).reshape(5, 3), [Replicate(), Shard(0)]),
    "columns": (torch.arange(15.0).reshape(3, 5).bfloat16(), [Replicate(), Shard(1)]),
    "blocks": (torch.arange(20).reshape(4, 5), [Shard(0), Shard(1)]),
    "parts of parts": (torch.arange(15.0), [Shard(0), Shard(0)]),
    "replicated": (torch.tensor(2.5), [Replicate(), Replicate()]),
    "fewer rows than ranks": (torch.ones(1, 2), [Replicate(), Shard(0)]),
}
for _ in range(2):  # the memory is used again
    tensors = {name: distribute_tensor(value, mesh, how) for name, (value, how) in cases.items()}
    tensors["sum"] = DTensor.from_local(torch.ones(2), mesh, [Replicate(), Partial()])
    tensors["plain"] = torch.arange(3, dtype=torch.int32)
    whole = gather.whole("grad", tensors)
    assert (not whole) == (rank > 0)
    if rank == 0:
        report.set(names=sorted(whole))
        for name, (value, _) in cases.items():
            assert torch.equal(whole[name], value) and whole[name].dtype == value.dtype, name
        assert whole["sum"].tolist() == [2, 2] and whole["plain"].tolist() == [0, 1, 2]
"""
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(differences, [])
        self.assertEqual(len(seen), 2)
        self.assertEqual(len(seen[0]["names"]), 8)

    def test_replicas_that_drifted_apart_are_named_by_any_bit(self):
        ended, differences, _ = run(
            """
value = distribute_tensor(torch.ones(6, 2), mesh, [Replicate(), Shard(0)])
if rank == 3:  # the second replica's second half
    value.to_local()[2, 1] += 0.5
gather.whole("after", {"w": value, "nan": torch.tensor(float("nan"))})
"""
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(
            differences, [{"when": "step 1", "name": "after/w", "rank": 3, "largest": 0.5}]
        )

    def test_a_rank_with_other_tensors_is_named(self):
        ended, differences, _ = run(
            """
tensors = {"w": torch.ones(2), "shape": torch.ones(2), "type": torch.ones(2)}
if rank == 1:
    del tensors["w"]
if rank == 2:
    tensors["shape"], tensors["type"] = torch.ones(3), torch.ones(2).double()
whole = gather.whole("grad", tensors)
assert rank or all(value.tolist() == [1, 1] for value in whole.values())
"""
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertCountEqual(
            [(found["name"], found["rank"], found["largest"]) for found in differences],
            [("grad/w", 1, None), ("grad/shape", 2, None), ("grad/type", 2, None)],
        )

    def test_stages_of_a_pipeline_have_other_tensors(self):
        ended, differences, seen = run(
            """
gather = Gather(memory, rank, lambda name: None, report, is_pipeline=True)
whole = gather.whole("grad", {f"layer {rank // 2}": torch.ones(2) * (rank // 2)})
if rank == 0:
    report.set(whole={name: value.tolist() for name, value in whole.items()})
"""
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(differences, [])
        self.assertEqual(seen, [{"whole": {"layer 0": [0, 0], "layer 1": [1, 1]}}])

    def test_a_part_that_no_rank_has_is_not_what_lay_there(self):
        ended, _, seen = run(
            """
gather = Gather(memory, rank, lambda name: None, report, is_pipeline=True)
value = distribute_tensor(torch.ones(6, 2), mesh, [Replicate(), Shard(0)])
gather.whole("before", {"w": value})
whole = gather.whole("after", {"w": value} if rank in (0, 2) else {})
if rank == 0:
    report.set(nan=int(whole["w"].isnan().sum()))
"""
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(seen, [{"nan": 12}])

    def test_too_many_tensors_are_an_error(self):
        ended, _, _ = run("""gather.whole("grad", {"w": torch.ones(1 << 19)})""")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("the tensors need more than 1 MiB of shared memory", ended.stderr)

    def test_shards_of_fsdp1_become_whole_parameters_and_gradients(self):
        for use_orig_params, degrees in ((False, "(4,)"), (True, "(2, 2)")):
            with self.subTest(use_orig_params=use_orig_params, degrees=degrees):
                ended, differences, seen = run(
                    f"""
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from bkm_cell.witnesses.named_tensors import NamedTensors
torch.manual_seed(1)
def model():
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
plain, wrapped = model(), model()
wrapped.load_state_dict(plain.state_dict())
sharded = FullyShardedDataParallel(
    wrapped, auto_wrap_policy=ModuleWrapPolicy({{torch.nn.Linear}}), device_id=torch.device("cpu"),
    device_mesh=init_device_mesh("cpu", {degrees}), use_orig_params={use_orig_params})
for one in (plain, sharded):
    one(torch.arange(6.0).reshape(2, 3)).sum().backward()
known = dict(plain.named_parameters())
tensors = NamedTensors([sharded], None, known.keys())
tensors.gather = gather.whole
for read in (lambda: tensors.parameters("before"), tensors.gradients, tensors.held):
    found = {{name: value.clone() for name, value in read().items()}}
    assert found.keys() == (known.keys() if rank == 0 else set()), found.keys()
    for name, value in found.items():
        expected = known[name].grad if read == tensors.gradients else known[name].detach()
        torch.testing.assert_close(value, expected)
if rank == 0:
    report.set(compared=len(known))
"""
                )
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(differences, [])
                self.assertEqual(seen, [{"compared": 4}])


if __name__ == "__main__":
    unittest.main()
