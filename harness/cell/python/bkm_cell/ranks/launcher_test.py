# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Real processes: a rank that fails, dies, leaves or waits for ever is named; none survives."""

import json
import os
import signal
import unittest

from forked_program import run_forked

_PROGRAM = """
import json, os, signal, sys, time
import torch, torch.distributed as dist
from bkm_cell.ranks import launcher
from bkm_cell.ranks.collectives import Collectives
from bkm_cell.ranks.layout import Layout
from bkm_cell.report import Report
from bkm_cell.witnesses.errors import Described, Owners

launcher.GRACE_S, launcher.STUCK_S = 1.0, 2.0
torch.set_num_threads(1)
owners = Owners({})
report = Report(lambda event: print("EVENT " + event, flush=True))

def climb(rank, own, tell):
    own.stage("construct")
    Collectives(tell).install()
    dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"),
                            rank=rank, world_size=2)
    part(rank, own)

PART

MAIN
"""

_ONCE = """
try:
    launcher.run_ranks({"dir": os.getcwd()}, Layout.parse("dp_shard=2"), climb, report, owners,
                       time.monotonic() + 60)
    print("finished")
except Described as error:
    print("ENDED " + json.dumps(error.facts))
"""

# One cell after the other, so that torch is imported once.
_AT_EACH_MOMENT = """
for moment in MOMENTS:
    os.makedirs(f"cell{moment}")
    cell = os.fork()
    if cell == 0:
        os.chdir(f"cell{moment}")
        try:
            launcher.run_ranks({"dir": os.getcwd()}, Layout.parse("dp_shard=2"), climb, report,
                               owners, time.monotonic() + 60)
        except Described as error:
            report.set(raised=error.facts["message"])
        os._exit(0)
    print("CELL", os.waitstatus_to_exitcode(os.waitpid(cell, 0)[1]), flush=True)
"""


def run(part, main=_ONCE):
    """Runs `part` (the source of a function part(rank, own)) on two ranks."""
    ended = run_forked(_PROGRAM.replace("PART", part).replace("MAIN", main))
    events = [json.loads(l[6:]) for l in ended.stdout.splitlines() if l.startswith("EVENT ")]
    ranks = next((e["set"]["ranks"] for e in events if "ranks" in e.get("set", {})), None)
    facts = next(
        (json.loads(l[6:]) for l in ended.stdout.splitlines() if l.startswith("ENDED ")), None
    )
    return ended, ranks, facts, events


class LauncherTest(unittest.TestCase):
    def test_all_ranks_finish(self):
        ended, ranks, facts, events = run(
            """
def part(rank, own):
    value = torch.ones(1)
    dist.all_reduce(value)
    assert value.item() == 2
"""
        )
        self.assertIn("finished", ended.stdout, ended.stderr)
        self.assertIsNone(facts)
        self.assertEqual([rank["ended"] for rank in ranks], ["done", "done"])
        self.assertEqual([e["stage"] for e in events if "stage" in e], ["construct"])

    def test_the_rank_that_raises_is_named_with_where_the_other_waits(self):
        _, ranks, facts, _ = run(
            """
def part(rank, own):
    if rank == 1:
        raise KeyError("positions")
    dist.all_reduce(torch.ones(1))
"""
        )
        self.assertEqual(facts["type"], "KeyError")
        self.assertIn("rank 1 of 2, while rank 0 waited in all_reduce at ", facts["message"])
        self.assertEqual([rank["ended"] for rank in ranks], ["waiting", "raised"])

    def test_an_exception_of_all_ranks_is_told_as_of_one(self):
        _, _, facts, _ = run("def part(rank, own): raise ValueError('no')")
        self.assertEqual(facts["message"], "no")

    def test_ranks_that_wait_for_each_other_are_stuck(self):
        _, ranks, facts, _ = run(
            """
def part(rank, own):
    if rank == 0:
        dist.all_reduce(torch.ones(1))
    else:
        dist.recv(torch.ones(1), src=0)
"""
        )
        self.assertEqual((facts["type"], facts["module"]), ("RanksStuck", "bkm_cell.ranks"))
        self.assertIn("rank 0 waited in all_reduce", facts["message"])
        self.assertIn("rank 1 waited in recv", facts["message"])
        self.assertTrue(facts["frames"])

    def test_a_rank_whose_own_process_works_is_not_stuck(self):
        part = """
def part(rank, own):
    if rank == 0:
        worker = os.fork()
        if worker == 0:
            end = time.monotonic() + 4  # twice as long as a rank may be idle
            while time.monotonic() < end:
                pass
            os._exit(0)
        os.waitpid(worker, 0)
    dist.barrier()
"""
        ended, *_ = run(part)
        self.assertIn("finished", ended.stdout, ended.stderr)

    def test_a_rank_that_a_signal_ends_ends_the_cell_alike(self):
        ended, ranks, _, events = run(
            """
def part(rank, own):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1))
"""
        )
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        told = next(e["set"]["rank_ended"] for e in events if "rank_ended" in e.get("set", {}))
        self.assertTrue(told.startswith("rank 1 of 2"), told)
        self.assertEqual(ranks[1]["ended"], "signal 9")

    def test_a_rank_that_leaves_ends_the_cell_with_its_status(self):
        ended, ranks, _, _ = run(
            "def part(rank, own):\n    if rank == 0: os._exit(7)\n    time.sleep(100)"
        )
        self.assertEqual(ended.returncode, 7)
        self.assertEqual(ranks[0]["ended"], "exit status 7")

    def test_no_rank_outlives_the_cell(self):
        ended, _, _, _ = run(
            """
def part(rank, own):
    os.write(1, b"PID %d\\n" % os.getpid())  # whole, beside the other rank's
    if rank == 1:
        raise KeyError("x")
    time.sleep(100)
"""
        )
        pids = [int(l.split()[1]) for l in ended.stdout.splitlines() if l.startswith("PID ")]
        self.assertEqual(len(pids), 2, (ended.stdout, ended.stderr))
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), pid)

    def test_a_rank_that_dies_after_its_last_step_is_named(self):
        ended, ranks, facts, _ = run(
            """
def part(rank, own):
    if rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        return
    time.sleep(1)
    dist.all_reduce(torch.ones(1))
"""
        )
        self.assertEqual(ended.returncode, -signal.SIGALRM, (ended.stdout, ended.stderr))
        self.assertIsNone(facts)
        self.assertEqual([rank["ended"] for rank in ranks], ["signal 14", "raised"])

    def test_a_stopped_rank_is_named(self):
        ended, _, facts, _ = run(
            """
def part(rank, own):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(torch.ones(1))
"""
        )
        self.assertIn("rank 0 waited in all_reduce", facts["message"], ended.stderr)
        self.assertIn("rank 1 waited outside any collective", facts["message"])

    def test_a_rank_that_waits_for_the_tensors_of_one_that_has_finished_is_named(self):
        ended, ranks, facts, _ = run(
            """
from bkm_cell.ranks.gather import Gather, SharedMemory
memory = SharedMemory(2, 1 << 20)

def climb(rank, own, tell):
    gather = Gather(memory, rank, tell, own, is_pipeline=False)
    for step in range(2 - rank):
        gather.whole("after", {"w": torch.ones(2)})
"""
        )
        self.assertIsNotNone(facts, (ended.stdout, ended.stderr))
        self.assertEqual(facts["type"], "RanksStuck")
        self.assertIn("rank 0 waited in the harness's gathering", facts["message"])
        self.assertEqual([rank["ended"] for rank in ranks], ["waiting", "done"])

    def test_a_rank_killed_at_any_moment_is_what_the_cell_ended_of(self):
        moments = [0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6]
        ended, _, _, _ = run(
            """
def climb(rank, own, tell):
    signal.setitimer(signal.ITIMER_REAL, moment if rank == 1 else 0)
    own.stage("construct")
    Collectives(tell).install()
    dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"),
                            rank=rank, world_size=2)
    for step in range(50):
        dist.all_reduce(torch.ones(1000))
        time.sleep(0.01)
""",
            _AT_EACH_MOMENT.replace("MOMENTS", repr(moments)),
        )
        cells = ended.stdout.split("CELL ")
        self.assertEqual(len(cells), len(moments) + 1, (ended.stdout, ended.stderr))
        for moment, told, after in zip(moments, cells, cells[1:]):
            code = int(after.split()[0])
            if code == 0:  # it had finished by then
                self.assertGreater(moment, 0.3)
                self.assertNotIn("raised", told)
            else:
                self.assertEqual(code, -signal.SIGALRM, (moment, told, ended.stderr))
                self.assertIn('"ended": "signal 14"', told)
                self.assertIn("rank_ended", told)


if __name__ == "__main__":
    unittest.main()
