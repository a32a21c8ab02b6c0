# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A pack is bounded, checked, and stays inside its folder."""

import gzip
import io
import json
import random
import tarfile
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from bkm_gpu import pack_file
from bkm_gpu.problem import Problem


class PackFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.pack = self.folder / "a.tar.gz"

    def made(self, *entries):
        """A tar file with these (name or TarInfo, content)."""
        with tarfile.open(self.pack, "w:gz") as tar:
            for entry, data in entries:
                info = tarfile.TarInfo(entry) if isinstance(entry, str) else entry
                info.size = len(data) if info.isreg() else 0
                tar.addfile(info, io.BytesIO(data))
        return self.pack

    def refusal(self):
        with self.assertRaises(Problem) as raised:
            pack_file.unpack(self.pack, self.folder / "out")
        self.assertFalse((self.folder / "out").exists())
        said = str(raised.exception)
        self.assertIn(str(self.pack), said)
        self.assertNotIn("\n", said)
        return said

    def test_what_was_packed_is_unpacked(self):
        pack_file.write(self.pack, {"cells": [1]}, {"a/b": b"x", "c": b""})
        manifest, _ = pack_file.unpack(self.pack, self.folder / "out")
        self.assertEqual([1], manifest["cells"])
        self.assertEqual(b"x", (self.folder / "out/a/b").read_bytes())
        self.assertEqual(b"", (self.folder / "out/c").read_bytes())

    def test_equal_content_gives_equal_bytes(self):
        files = {"b": b"1", "a": b"2"}
        pack_file.write(self.pack, {}, files)
        first = self.pack.read_bytes()
        pack_file.write(self.pack, {}, dict(reversed(files.items())))
        self.assertEqual(first, self.pack.read_bytes())

    def test_a_pack_above_the_limit_is_not_written(self):
        noise = random.Random(1).randbytes(4096)
        with unittest.mock.patch.object(pack_file, "LARGEST", 4096):
            with self.assertRaisesRegex(Problem, "at most .*probes/x"):
                pack_file.write(self.pack, {}, {"probes/x/y": noise})
        self.assertEqual([], list(self.folder.iterdir()))

    def test_the_limit_is_64_mib(self):
        self.assertEqual(64 * 1024 * 1024, pack_file.LARGEST)

    def test_a_pack_above_the_limit_is_not_read(self):
        pack_file.write(self.pack, {}, {"a": b"x"})
        with unittest.mock.patch.object(pack_file, "LARGEST", 10):
            self.assertIn("at most", self.refusal())

    def test_what_unpacks_to_too_much_is_refused(self):
        pack_file.write(self.pack, {}, {"a": bytes(100_000)})
        with unittest.mock.patch.object(pack_file, "LARGEST_UNPACKED", 50_000):
            self.assertIn("unpacks to too much", self.refusal())

    def test_a_path_that_leaves_the_pack_is_refused(self):
        for name in ("../evil", "/tmp/evil", "a/../../evil", "a/./b"):
            with self.subTest(name):
                self.made((name, b"x"))
                self.assertIn("leaves the pack", self.refusal())
        self.assertFalse((self.folder / "evil").exists())

    def test_links_and_devices_are_refused(self):
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            with self.subTest(kind):
                info = tarfile.TarInfo("a")
                info.type, info.linkname = kind, "/etc/passwd"
                self.made((info, b""))
                self.assertIn("neither a plain file", self.refusal())

    def test_a_file_twice_is_refused(self):
        self.made(("a", b"x"), ("a", b"y"))
        self.assertIn("twice", self.refusal())

    def test_no_pack_is_one_sentence(self):
        self.assertIn("there is no such pack", self.refusal())

    def test_what_is_no_tar_is_one_sentence(self):
        self.pack.write_bytes(b"hello")
        self.assertIn("not a pack", self.refusal())

    def test_a_pack_that_was_cut_short_is_one_sentence(self):
        pack_file.write(self.pack, {}, {"a": random.Random(1).randbytes(100_000)})
        self.pack.write_bytes(self.pack.read_bytes()[:50_000])
        self.assertIn("cut short", self.refusal())

    def test_a_damaged_file_is_refused(self):
        pack_file.write(self.pack, {}, {"a": b"right"})
        data = gzip.decompress(self.pack.read_bytes()).replace(b"right", b"wrong")
        self.pack.write_bytes(gzip.compress(data))
        self.assertIn("'a' is damaged", self.refusal())

    def test_a_tar_without_manifest_is_refused(self):
        for content in (None, b"[]", b"{", b'{"files": 1}'):
            with self.subTest(content):
                self.made(*([("manifest.json", content)] if content else [("a", b"")]))
                self.assertIn("no readable manifest.json", self.refusal())

    def test_another_schema_is_refused(self):
        self.made(("manifest.json", json.dumps({"schema": 9, "files": {}}).encode()))
        self.assertIn("schema 9", self.refusal())

    def test_a_file_that_the_manifest_lacks_is_refused(self):
        self.made(("manifest.json", json.dumps({"schema": 1, "files": {}}).encode()), ("odd", b""))
        self.assertIn("'odd'", self.refusal())


if __name__ == "__main__":
    unittest.main()
