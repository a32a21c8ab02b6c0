# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A process that was forked before anything ran acts when it is told to, and its facts are the cell's."""

import json
import os
import signal
import unittest

from bkm_cell.fresh_process import FreshProcess
from bkm_cell.report import Report
from bkm_cell.witnesses.errors import Described, Owners

state = {"trained": False}


class FreshProcessTest(unittest.TestCase):
    def setUp(self):
        self.events = []
        self.report = Report(lambda event: self.events.append(json.loads(event)))
        state["trained"] = False

    def run_fresh(self, act):
        fresh = FreshProcess(act, Owners({}), ".")
        state["trained"] = True  # of this process
        fresh.run(self.report)

    def test_it_knows_nothing_of_what_ran_and_its_facts_arrive(self):
        def act(report):
            report.stage("load")  # the cell's own stages go on
            report.set(trained=state["trained"], adapter={"entry": "x"})
            report.append(resumed={"step": 1})

        self.run_fresh(act)
        self.assertEqual(
            self.events,
            [
                {"set": {"trained": False, "adapter": {"entry": "x"}}},
                {"append": {"resumed": {"step": 1}}},
            ],
        )

    def test_what_it_raises_is_raised(self):
        def act(report):
            report.set(seen=1)
            raise KeyError("epoch")

        with self.assertRaises(Described) as raised:
            self.run_fresh(act)
        self.assertEqual(raised.exception.facts["type"], "KeyError")
        self.assertEqual(self.events, [{"set": {"seen": 1}}])

    def test_a_process_that_dies_ends_the_cell_in_the_same_way(self):
        for die, expected in (
            (lambda _: os._exit(3), 3),
            (lambda _: os.kill(os.getpid(), signal.SIGKILL), -signal.SIGKILL),
        ):
            pid = os.fork()
            if pid == 0:  # stands for the cell
                self.run_fresh(die)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), expected)


if __name__ == "__main__":
    unittest.main()
