# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Shims answer for the device and align it with CUDA; hooks run before the importer continues."""

import abc
import importlib
import pathlib
import os
import sys
import tempfile
import types
import unittest
from types import ModuleType
from unittest import mock

import torch

from bkm_cell.shims import (
    acts,
    bf16_products,
    compiled_regions,
    cpu_device,
    cuda_autocast,
    expert_kernels,
    flash_attn_cpu,
    fsdp1_cpu,
    gloo_sum,
    integer_histc,
    no_compile,
    selective_checkpoint,
    verl_platform,
)
from bkm_cell.shims.after_import import after_import
from bkm_cell.shims.apply import apply_shims
from bkm_cell.shims.cpu_device import CpuDevice


class ShimsTest(unittest.TestCase):
    def test_a_gpu_cell_has_no_shim(self):
        apply_shims({"probe": {"device": "cuda"}})
        self.assertEqual(acts.counts(), {})

    def test_only_a_cell_that_asks_for_flash_attention_gets_the_stand_in(self):
        def asked(**probe):
            return flash_attn_cpu.is_asked({"probe": probe})

        self.assertTrue(asked(attention="flash_attention_2"))
        self.assertFalse(asked(attention="flash_attention_2", kernels="real"))
        self.assertFalse(asked(attention="flash_attention_3"))
        self.assertFalse(asked(attention="sdpa"))

    def test_a_transformers_that_was_loaded_before_sees_flash_attn(self):
        module = ModuleType("import_utils")
        module.PACKAGE_DISTRIBUTION_MAPPING = {}
        exec(
            "import functools\n"
            "def is_flash_attn_2_available(): return False\n"
            "@functools.lru_cache\n"
            "def is_flash_attn_greater_or_equal(version):"
            " return 'flash_attn' in PACKAGE_DISTRIBUTION_MAPPING\n",
            vars(module),
        )
        copied = module.is_flash_attn_2_available
        self.assertFalse(module.is_flash_attn_greater_or_equal("2.3.3"))
        flash_attn_cpu._make_available(module)
        self.assertTrue(copied(kernels_fallback_ok=True))
        self.assertTrue(module.is_flash_attn_greater_or_equal("2.3.3"))

    def test_an_installed_flash_attn_is_told_and_not_imported(self):
        self.assertIsNone(flash_attn_cpu.installed())
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "flash_attn")
            package.mkdir()
            (package / "__init__.py").write_text("raise ImportError('undefined symbol')")
            with mock.patch.object(sys, "path", [folder, *sys.path]):
                importlib.invalidate_caches()
                self.assertEqual(flash_attn_cpu.installed(), "")
                about = pathlib.Path(folder, "flash_attn-2.7.4.dist-info")
                about.mkdir()
                (about / "METADATA").write_text("Name: flash_attn\nVersion: 2.7.4\n")
                importlib.invalidate_caches()
                self.assertEqual(flash_attn_cpu.installed(), "2.7.4")
        self.assertNotIn("flash_attn", sys.modules)

    def test_who_asks_for_the_autocast_of_cuda_is_told_the_cells(self):
        module = ModuleType("flash_attention")
        module.torch = torch
        flash_attn_cpu._answer_for_cuda(module)
        self.assertFalse(module.torch.is_autocast_enabled())
        with torch.autocast("cpu", torch.bfloat16):
            self.assertTrue(module.torch.is_autocast_enabled())
            self.assertTrue(module.torch.is_autocast_enabled("cuda"))
            self.assertEqual(module.torch.get_autocast_gpu_dtype(), torch.bfloat16)
        self.assertIs(module.torch.Tensor, torch.Tensor)

    def test_verls_platform_answers_what_it_knows_and_refuses_the_rest(self):
        class Base(abc.ABC):
            @property
            @abc.abstractmethod
            def device_name(self): ...
            @abc.abstractmethod
            def synchronize(self): ...
            @abc.abstractmethod
            def number_of_wheels(self): ...

        found = []
        verl_platform._set_platform(
            types.SimpleNamespace(PlatformBase=Base, set_platform=found.append)
        )
        self.assertEqual(found[0].device_name, "cpu")
        self.assertIsNone(found[0].synchronize())
        with self.assertRaisesRegex(NotImplementedError, "number_of_wheels"):
            found[0].number_of_wheels()

    def test_each_act_of_an_installed_shim_is_counted(self):
        with mock.patch.dict(acts._INSTALLED, clear=True), mock.patch.dict(acts._COUNTED_BY):
            CpuDevice("torch.cpu").memory_allocated()
            self.assertEqual(acts.counts(), {})
            acts.install(cpu_device.NAME)
            acts.install("in-another-language", lambda: 7)
            CpuDevice("torch.cpu").memory_allocated()
            CpuDevice("torch.cpu").empty_cache()
            self.assertEqual(acts.counts(), {cpu_device.NAME: 2, "in-another-language": 7})

    def test_a_hook_runs_before_the_importer_sees_the_module(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "hooked_of_test.py"), "w") as file:
                file.write("device = 'cuda'\n")
            with open(os.path.join(folder, "importer_of_test.py"), "w") as file:
                file.write("from hooked_of_test import device\n")
            sys.path.insert(0, folder)
            after_import("hooked_of_test", lambda module: setattr(module, "device", "cpu"))
            import importer_of_test

            self.assertEqual(importer_of_test.device, "cpu")

    def test_the_device_forwards_to_torch_cpu_and_refuses_what_it_does_not_know(self):
        device = CpuDevice("torch.cpu")
        self.assertEqual(device.memory_stats()["num_ooms"], 0)
        self.assertIs(device.is_available, torch.cpu.is_available)
        with self.assertRaises(AttributeError):
            device.no_such_call  # noqa: B018

    def test_autocast_promotes_as_cudas_lists_say(self):
        half = torch.ones(2, 4, dtype=torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(torch.rms_norm(half, (4,)).dtype, torch.bfloat16)
        cuda_autocast.apply()
        with torch.autocast("cpu", torch.bfloat16):
            if "rms_norm" in cuda_autocast.listed("AT_FORALL_FP32"):  # from torch 2.12 on
                self.assertEqual(torch.rms_norm(half, (4,)).dtype, torch.float32)
            self.assertEqual(half.pow(2).dtype, torch.float32)
            self.assertEqual(half.sum(-1).dtype, torch.float32)
            self.assertEqual(half.softmax(-1).dtype, torch.float32)
            self.assertEqual(half.softmax(-1, dtype=torch.bfloat16).dtype, torch.bfloat16)
            self.assertEqual((half @ half.T).dtype, torch.bfloat16)
            self.assertEqual(half.double().pow(2).dtype, torch.float64)
        self.assertEqual(torch.rms_norm(half, (4,)).dtype, torch.bfloat16)
        index = torch.zeros(2, 4, dtype=torch.int64)
        with torch.autocast("cpu", torch.bfloat16):
            for sum_dtype in (torch.float32, torch.bfloat16):
                added = torch.zeros(2, 4, dtype=sum_dtype).scatter_add(0, index, half)
                self.assertEqual(added.dtype, sum_dtype)
            with torch.autocast("cpu", torch.float32):
                self.assertEqual((half.float() @ half.T).dtype, torch.float32)
            self.assertEqual((half @ half.T).dtype, torch.bfloat16)

    def test_sums_are_divided_afterwards_where_a_factor_is_asked_for(self):
        module = ModuleType("collectives")
        module.untouched = object()
        before = dict(vars(module))

        def factors(group, factor=None, force_sum_reduction_for_comms=False):
            return factor, force_sum_reduction_for_comms

        module._get_gradient_divide_factors = factors
        acts.install(gloo_sum.NAME)
        acted = acts.counts()[gloo_sum.NAME]
        gloo_sum._sum_only(module)
        self.assertEqual(module._get_gradient_divide_factors("g", factor=1.0), (1.0, True))
        self.assertEqual(acts.counts()[gloo_sum.NAME], acted + 1)
        self.assertEqual(module._get_gradient_divide_factors("g"), (None, False))
        self.assertEqual(acts.counts()[gloo_sum.NAME], acted + 1)
        changed = {name for name in vars(module) if before.get(name) is not vars(module)[name]}
        self.assertEqual(changed, {"_get_gradient_divide_factors"})

    def test_another_torch_is_not_passed_over_in_silence(self):
        for function in (None, lambda group: (None, None)):
            module = ModuleType("collectives")
            if function is not None:
                module._get_gradient_divide_factors = function
            with self.assertRaisesRegex(RuntimeError, "gloo-sum does not know this torch"):
                gloo_sum._sum_only(module)
        # The torch of this test is one that it knows.
        import torch.distributed.fsdp._fully_shard._fsdp_collectives as collectives

        original = collectives._get_gradient_divide_factors
        try:
            gloo_sum._sum_only(collectives)
            self.assertIsNot(collectives._get_gradient_divide_factors, original)
        finally:
            collectives._get_gradient_divide_factors = original

    def test_fsdp1s_check_for_a_gpu_is_left_out_and_nothing_else(self):
        def refuses(*_):
            raise ValueError("on a CPU")

        module = ModuleType("init_utils")
        module._check_module_states_for_sync_module_states = refuses
        module._sync_module_params_and_buffers = refuses
        acts.install(fsdp1_cpu.NAME)
        acted = acts.counts()[fsdp1_cpu.NAME]
        fsdp1_cpu._without_check(module)
        module._check_module_states_for_sync_module_states([])
        self.assertEqual(acts.counts()[fsdp1_cpu.NAME], acted + 1)
        self.assertIs(module._sync_module_params_and_buffers, refuses)

    def test_what_would_be_compiled_runs_as_it_is_and_is_remembered(self):
        acts.install(no_compile.NAME)
        acted = acts.counts()[no_compile.NAME]

        def region(frame):
            return compiled_regions.is_one(frame())

        def other(frame):
            return compiled_regions.is_one(frame())

        with mock.patch.object(torch, "compile"):
            no_compile.apply()
            self.assertIs(torch.compile(region), region)
            self.assertIs(torch.compile(fullgraph=True)(region), region)
        self.assertEqual(acts.counts()[no_compile.NAME], acted + 2)

        def caller():
            return sys._getframe(1)

        self.assertTrue(region(caller))
        self.assertFalse(other(caller))

    def test_a_selective_checkpoint_recomputes_everything_only_inside_a_region(self):
        checkpoint = torch.utils.checkpoint
        original = checkpoint.create_selective_checkpoint_contexts
        self.addCleanup(
            setattr, checkpoint, "create_selective_checkpoint_contexts", original
        )
        acts.install(selective_checkpoint.NAME)
        acted = acts.counts()[selective_checkpoint.NAME]
        selective_checkpoint.apply()
        from contextlib import nullcontext

        def contexts():
            return checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.mm.default])

        def region():
            return contexts()

        compiled_regions.remember(region)
        for context in region():
            self.assertIsInstance(context, nullcontext)
        self.assertEqual(acts.counts()[selective_checkpoint.NAME], acted + 1)
        for context in contexts():
            self.assertNotIsInstance(context, nullcontext)
        self.assertEqual(acts.counts()[selective_checkpoint.NAME], acted + 1)

    def test_histc_counts_integers_as_on_cuda(self):
        experts = torch.tensor([0, 1, 1, 3])
        with self.assertRaises(RuntimeError):
            torch.histc(experts, bins=4, min=0, max=4)
        integer_histc.apply()
        counts = torch.histc(experts, bins=4, min=0, max=4)
        self.assertEqual((counts.tolist(), counts.dtype), ([1, 2, 0, 1], torch.int64))
        self.assertEqual(
            torch.histc(experts.float(), bins=4, min=0, max=4).tolist(), [1.0, 2.0, 0.0, 1.0]
        )

    def test_bf16_products_are_fp32_products_rounded_once(self):
        def products(a, b):
            added = a.new_ones(5, 3)
            out = a.new_empty(0)
            return [
                torch.mm(a[0], b[0]),
                torch.mm(a[0], b[0], out=out),
                out,
                torch.bmm(a, b),
                torch.bmm(a, b, out=a.new_empty(0)),
                torch.addmm(added, a[0], b[0], beta=2, alpha=3),
                torch.baddbmm(added, a, b, alpha=2),
                torch.nn.functional.linear(a, b[0].T, added[0]),
            ]

        generator = torch.Generator().manual_seed(0)
        a = torch.randn(2, 5, 64, generator=generator).bfloat16()
        b = torch.randn(2, 64, 3, generator=generator).bfloat16()
        exact = products(a.double(), b.double())  # before the shim replaces the CPU's kernels
        in_fp32 = products(a.float(), b.float())
        bf16_products.apply()
        for product, right in zip(products(a, b), exact, strict=True):
            self.assertEqual(product.dtype, torch.bfloat16)
            # Half an ulp of bf16; a value is at most twice the power of two below it.
            torch.testing.assert_close(product.double(), right, rtol=2**-8, atol=1e-5)
        for product, same in zip(products(a.float(), b.float()), in_fp32, strict=True):
            self.assertTrue(product.equal(same))
        weight = b[0].clone().requires_grad_()
        torch.mm(a[0], weight).sum().backward()
        torch.testing.assert_close(
            weight.grad.double(), a[0].double().sum(0)[:, None].expand(64, 3), rtol=2**-8, atol=1e-5
        )
        with self.assertRaisesRegex(RuntimeError, "to have the same dtype"):
            torch.mm(a[0], b[0].float())
        with self.assertRaisesRegex(RuntimeError, "Expected out tensor to have dtype"):
            torch.mm(a[0], b[0], out=torch.empty(5, 3))
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
            torch.mm(a[0], a[0])

    def test_experts_are_sorted_by_the_librarys_own_torch_version(self):
        name = "torchtitan.models.moe.kernels"
        module = ModuleType(name)
        module.fill_indices_cpu = lambda *arguments: arguments
        module.fill_indices_wrapper = None
        sys.modules[name] = module
        self.addCleanup(sys.modules.pop, name)
        expert_kernels.apply()
        self.assertEqual(module.fill_indices_wrapper(1, 2, 3, 4, 5, 6, 128), (1, 2, 3, 4, 5, 6))


if __name__ == "__main__":
    unittest.main()
