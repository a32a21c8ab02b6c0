# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A cell's observation says how it ended, whatever it did. The cells are real processes."""

import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

from bkm_gpu.cell_process import Machine, run_cell

ALONE = Path("harness/cell/python/bkm_cell/alone.py").absolute()


class CellProcessTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        package = self.folder / "code/bkm_cell"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        shutil.copy(ALONE, package)
        self.cell_py = package / "cell.py"

    def run_cell(self, body, timeout=20.0, **request):
        lines = "\n    ".join(["import json, os, sys, time", *body.splitlines()])
        self.cell_py.write_text(f"def run(request, emit):\n    {lines}\n")
        machine = Machine(
            Path(sys.executable), self.folder / "code", self.folder / "carried", self.folder / "compiled"
        )
        request = request | {"limits": {"timeout_s": timeout}}
        return run_cell(machine, request, self.folder / "cell", {"versions": {"torch": "1"}})

    def test_a_finished_cell_is_completed_with_its_facts(self):
        seen = self.run_cell(
            """emit('{"stage": "import"}')
emit('{"set": {"backend": {"a": 1}}}')
emit('{"set": {"backend": {"b": request["x"]}}}'.replace('request["x"]', str(request["x"])))
emit('{"append": {"steps": {"loss": 2}}}')
emit('{"done": true}')""",
            x=5,
        )
        self.assertEqual({"kind": "completed"}, seen["ending"])
        self.assertEqual({"a": 1, "b": 5}, seen["backend"])
        self.assertEqual([{"loss": 2}], seen["steps"])
        self.assertEqual(["import"], [stage["stage"] for stage in seen["stages"]])
        self.assertGreaterEqual(seen["stages"][0]["seconds"], 0)
        self.assertEqual([], seen["sandbox"])

    def test_an_exception_is_raised(self):
        seen = self.run_cell("raise KeyError('lost')")
        self.assertEqual({"kind": "raised"}, seen["ending"])
        self.assertEqual("KeyError", seen["exception"]["type"])

    def test_a_signal_is_named(self):
        self.assertEqual(
            {"kind": "signalled", "signal": 11}, self.run_cell("os.kill(os.getpid(), 11)")["ending"]
        )

    def test_a_status_is_kept(self):
        self.assertEqual({"kind": "exited", "code": 7}, self.run_cell("sys.exit(7)")["ending"])
        self.assertEqual({"kind": "exited", "code": 0}, self.run_cell("pass")["ending"])

    def test_a_cell_that_hangs_is_ended_with_its_children(self):
        marker = self.folder / "alive"
        seen = self.run_cell(
            f"""emit('{{"stage": "step"}}')
if os.fork() == 0:
    time.sleep(4)
    open({str(marker)!r}, "w").close()
time.sleep(100000)""",
            timeout=1.0,
        )
        self.assertEqual({"kind": "timed-out"}, seen["ending"])
        self.assertNotIn("seconds", seen["stages"][-1])
        time.sleep(4.5)
        self.assertFalse(marker.exists())

    def test_a_child_that_holds_the_pipe_does_not_hold_the_driver(self):
        # Longer than the limit of the test.
        fork = "if os.fork() == 0:\n    time.sleep(1000)\n    os._exit(0)\n"
        # alone.py closes its pipe at an exec only; a forked child inherits it.
        seen = self.run_cell(fork + """emit('{"done": true}')""", timeout=30.0)
        self.assertEqual({"kind": "completed"}, seen["ending"])

    def test_facts_of_the_driver_are_not_the_cells(self):
        seen = self.run_cell(
            """emit('{"set": {"ending": {"kind": "completed"}, "versions": {"torch": "9"}, "mine": 1}}')
emit("no json")"""
        )
        self.assertEqual("exited", seen["ending"]["kind"])
        self.assertEqual({"torch": "1"}, seen["versions"])
        self.assertEqual(1, seen["mine"])
        self.assertEqual(2, seen["ignored_events"])

    def test_a_flood_of_events_is_ended(self):
        seen = self.run_cell("""while True: emit('{"set": {"a": "%s"}}' % ("x" * 1000000))""")
        self.assertEqual({"kind": "limit", "limit": "events"}, seen["ending"])

    def test_carried_packages_come_last(self):
        carried = self.folder / "carried"
        carried.mkdir()
        (carried / "json.py").write_text("raise SystemError")
        (carried / "only_here.py").write_text("VALUE = 4")
        body = """import only_here
emit(json.dumps({"set": {"value": only_here.VALUE}, "done": True}))"""
        self.assertEqual(4, self.run_cell(body)["value"])


if __name__ == "__main__":
    unittest.main()
