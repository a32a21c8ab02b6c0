# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Describes the interpreter and its devices as JSON. A program for the machine's interpreter."""

import json
import platform
import subprocess
import sys


def version_of(name):
    try:
        module = __import__(name)
    except Exception as error:  # any package may fail in any way
        return "{}: {}".format(type(error).__name__, error)[:200]
    return str(getattr(module, "__version__", "there"))


def driver():
    asked = "--query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm"
    try:
        ran = subprocess.run(
            ["nvidia-smi", asked, "--format=csv,noheader"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "nvidia-smi: {}".format(error)
    return ran.stdout.decode(errors="replace").strip()


def device(torch, index):
    properties = torch.cuda.get_device_properties(index)
    names = (
        "name",
        "major",
        "minor",
        "multi_processor_count",
        "total_memory",
        "L2_cache_size",
        "shared_memory_per_block_optin",
        "regs_per_multiprocessor",
        "warp_size",
    )
    return {name: getattr(properties, name) for name in names if hasattr(properties, name)}


def main():
    found = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "kernel": platform.release(),
    }
    try:
        import torch
    except Exception as error:
        found["torch_error"] = "{}: {}".format(type(error).__name__, error)[:500]
        print(json.dumps(found))
        return
    found["torch"] = torch.__version__
    found["torch_cuda"] = torch.version.cuda
    found["arch_list"] = torch.cuda.get_arch_list()
    found["cudnn"] = torch.backends.cudnn.version()
    for name in ("transformers", "triton", "numpy", "safetensors", "flash_attn"):
        found[name] = version_of(name)
    found["cuda_is_available"] = torch.cuda.is_available()
    found["devices"] = []
    if torch.cuda.is_available():
        found["devices"] = [device(torch, index) for index in range(torch.cuda.device_count())]
        found["driver"] = driver()
    else:
        try:
            torch.cuda.init()
        except Exception as error:
            found["no_cuda"] = str(error).splitlines()[0][:300]
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.version_info < (3, 10):
        print(json.dumps({"python": platform.python_version()}))
    else:
        main()
