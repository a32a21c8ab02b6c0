# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a rank's process group is asked for, without a GPU: torch's own functions are replaced."""

import os
import unittest
from unittest import mock

import torch

from bkm_cell.ranks.process_group import start_process_group


class ProcessGroupTest(unittest.TestCase):
    def test_a_rank_on_a_gpu_has_its_own_device_before_nccl_starts(self):
        calls = mock.Mock()
        calls.init_process_group.side_effect = lambda backend, **asked: None
        rank = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}
        with (
            mock.patch.dict(os.environ, rank),
            mock.patch.object(torch.cuda, "set_device", calls.set_device),
            mock.patch("torch.distributed.init_process_group", calls.init_process_group),
            mock.patch("torch.distributed.get_world_size", return_value=4),
        ):
            start_process_group(torch.device("cuda"))
        names = [name for name, _, _ in calls.mock_calls]
        self.assertEqual(names, ["set_device", "init_process_group"])
        calls.set_device.assert_called_once_with(1)
        backend = calls.init_process_group.call_args.args[0]
        self.assertEqual(backend, "cpu:gloo,cuda:nccl")
        self.assertEqual(calls.init_process_group.call_args.kwargs["rank"], 3)


if __name__ == "__main__":
    unittest.main()
