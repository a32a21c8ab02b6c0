# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The weights drawn here are those of harness/numerics, bit by bit. Needs numpy and write_probe."""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bkm_gpu.on_machine import draw_weights

ROOT = Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
WRITE_PROBE = ROOT / "harness/numerics/write_probe"
SCRIPT = ROOT / "harness/gpu/bkm_gpu/on_machine/draw_weights.py"


class PhiloxTest(unittest.TestCase):
    """The vectors of Random123 1.14.0 (kat_vectors), as harness/numerics tests them."""

    def words(self, counter, key):
        import numpy as np

        index = np.array([counter[0] | counter[1] << 32], dtype=np.uint64)
        found = draw_weights.philox(index, counter[2] | counter[3] << 32, key[0] | key[1] << 32)
        return [int(word[0]) for word in found]

    def test_zeros(self):
        expected = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
        self.assertEqual(expected, self.words([0] * 4, [0] * 2))

    def test_ones(self):
        expected = [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
        self.assertEqual(expected, self.words([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2))

    def test_pi(self):
        counter = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
        expected = [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
        self.assertEqual(expected, self.words(counter, [0xA4093822, 0x299F31D0]))


class DrawWeightsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.kept.name)
        # The model whose file also has buffers.
        probe = cls.folder / "probe.json"
        probe.write_text(json.dumps({"model": "deepseek_v3", "seed": 5}))
        command = [str(WRITE_PROBE), "--json", str(probe)]
        cls.plan = cls.folder / "weights.json"
        cls.plan.write_bytes(subprocess.check_output([*command, "--print-weights"]))
        written = subprocess.check_output([*command, "--cache", str(cls.folder)], text=True)
        cls.model = Path(written.strip()) / "model/model.safetensors"
        data = cls.model.read_bytes()
        cls.digest = hashlib.sha256(data).hexdigest()
        cls.header = cls.folder / "header"
        cls.header.write_bytes(data[: 8 + struct.unpack("<Q", data[:8])[0]])

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def draw(self, plan, expected):
        out = self.folder / "out.safetensors"
        command = [sys.executable, str(SCRIPT), str(plan), str(self.header), str(out), expected]
        return subprocess.run(command, capture_output=True, text=True), out

    def test_the_file_is_that_of_cpp(self):
        ran, out = self.draw(self.plan, self.digest)
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertEqual(self.model.read_bytes(), out.read_bytes())

    def test_another_seed_is_noticed(self):
        other = json.loads(self.plan.read_text())
        other["seed"] += 1
        plan = self.folder / "other.json"
        plan.write_text(json.dumps(other))
        (self.folder / "out.safetensors").unlink(missing_ok=True)
        ran, out = self.draw(plan, self.digest)
        self.assertEqual(1, ran.returncode)
        self.assertIn("are not those of the pack", ran.stderr)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
