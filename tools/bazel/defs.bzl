"""The project's Bazel macros: warnings as errors for our own code, and what is skipped where."""

load("@cuda//:cuda.bzl", "CUDA_AVAILABLE")
load("@python//:python.bzl", "PYTHON_AVAILABLE")
load("@torch//:torch.bzl", "TORCH_AVAILABLE")

_COPTS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-fdiagnostics-color=always"]
_RESERVED = ["target_compatible_with"]
_NEVER = "//third_party/constraints:incompatible"
_AVAILABLE = {"cuda": CUDA_AVAILABLE, "python": PYTHON_AVAILABLE, "torch": TORCH_AVAILABLE}

def _attributes(name, needs, attributes):
    for reserved in _RESERVED:
        if reserved in attributes:
            fail("%s: %s is set by the macro; say needs = [...] instead" % (name, reserved))
    for need in needs:
        if need not in _AVAILABLE:
            fail("%s: needs %r, but only %s can be asked for" % (name, need, sorted(_AVAILABLE)))
    attributes["copts"] = _COPTS + attributes.get("copts", [])
    attributes["tags"] = attributes.get("tags", []) + needs
    if [need for need in needs if not _AVAILABLE[need]]:
        attributes["target_compatible_with"] = [_NEVER]
    return attributes

def harness_cc_library(name, needs = [], **kwargs):
    """A cc_library of ours.

    Args:
      name: the target's name, the main noun of its header.
      needs: out of "torch", "python", "cuda": the target is skipped on a machine without them.
      **kwargs: as for cc_library.
    """
    native.cc_library(name = name, **_attributes(name, needs, kwargs))

def harness_cc_binary(name, needs = [], **kwargs):
    """A cc_binary of ours; arguments as for harness_cc_library."""
    native.cc_binary(name = name, **_attributes(name, needs, kwargs))

def harness_cc_test(name, deps = [], needs = [], size = "small", **kwargs):
    """A GoogleTest binary of ours: gmock and a main come with it.

    Args:
      name: the target's name: the unit's name plus _test.
      deps: what the test needs besides gmock and its main.
      needs: as for harness_cc_library.
      size: as for cc_test; "small" unless told.
      **kwargs: as for cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        deps = deps + ["//third_party/debian:gmock_main"],
        **_attributes(name, needs, kwargs)
    )
