"""@torch: LibTorch out of an installed torch wheel (nothing is downloaded)."""

_BUILD = """
package(default_visibility = ["//visibility:public"])

# LibTorch itself, for programs that link it.
cc_library(
    name = "libtorch",
    srcs = [
        "lib/libtorch.so",
        "lib/libtorch_cpu.so",
        "lib/libc10.so",
    ] + glob(["lib/libgomp*.so*"]),
    deps = [":headers"],
)

# For libraries that are loaded into a process where torch is (stable ABI): NEEDED libtorch_cpu.so, no rpath.
cc_library(
    name = "shim",
    linkopts = ["-L{lib}", "-ltorch_cpu"],
    deps = [":headers"],
)

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h", "include/**/*.hpp"]),
    # System headers: our warnings are for our own code.
    # AT_PER_OPERATOR_HEADERS: a source includes the operators that it uses (ATen/ops/NAME.h), not all there are.
    defines = ["BKM_HAVE_TORCH=1", "AT_PER_OPERATOR_HEADERS"],
    includes = ["include", "include/torch/csrc/api/include"],
)
"""

_STUB = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "libtorch")
cc_library(name = "headers")
cc_library(name = "shim")
"""

_FIND = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"

def _impl(ctx):
    python = ctx.os.environ.get("BKM_TORCH_PYTHON", "")
    where = ""
    if python:
        result = ctx.execute([python, "-I", "-c", _FIND])
        if result.return_code == 0:
            where = result.stdout.strip()
    if not where or not ctx.path(where + "/include").exists:
        # buildifier: disable=print
        print("no torch wheel found: targets that need LibTorch are skipped (run tools/bkm once, or set BKM_TORCH_PYTHON=/path/to/python)")
        ctx.file("BUILD", _STUB)
        ctx.file("torch.bzl", "TORCH_AVAILABLE = False\nTORCH_PYTHON = ''\nTORCH_VERSION = ''\n")
        return
    ctx.symlink(where + "/include", "include")
    ctx.symlink(where + "/lib", "lib")
    version = [line for line in ctx.read(where + "/version.py").split("\n") if line.startswith("__version__")][0].split("'")[1]
    ctx.file("BUILD", _BUILD.format(lib = where + "/lib"))
    ctx.file("torch.bzl", "TORCH_AVAILABLE = True\nTORCH_PYTHON = %r\nTORCH_VERSION = %r\n" % (python, version))

torch_configure = repository_rule(
    implementation = _impl,
    environ = ["BKM_TORCH_PYTHON"],
    local = True,
    configure = True,
)
