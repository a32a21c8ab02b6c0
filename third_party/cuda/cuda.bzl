"""cuda_shared_library: one .cu file into one .so with nvcc, skipped where nvcc is absent."""

load("@cuda//:cuda.bzl", "CUDA_AVAILABLE", "NVCC")

def cuda_shared_library(name, srcs, copts = [], arch = "sm_90", hdrs = [], **kwargs):
    """Compiles CUDA sources into a shared library.

    Args:
      name: the .so file to write.
      srcs: .cu files.
      copts: more flags for nvcc.
      arch: the GPU architecture to compile for.
      hdrs: headers that the sources include.
      **kwargs: as for genrule.
    """
    native.genrule(
        name = name + "_nvcc",
        srcs = srcs + hdrs,
        outs = [name],
        # cudart is linked in: the .so runs where no toolkit is installed.
        cmd = "%s -std=c++20 -O2 -arch=%s -shared -cudart static -Xcompiler -fPIC %s %s -o $@" % (
            NVCC or "false",
            arch,
            " ".join(copts),
            " ".join(["$(execpath %s)" % source for source in srcs]),
        ),
        target_compatible_with = [] if CUDA_AVAILABLE else ["//third_party/constraints:incompatible"],
        **kwargs
    )
