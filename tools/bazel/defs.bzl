"""The project's Bazel macros: a room is a library and a test program; warnings are errors in our own code."""

load("@cuda//:cuda.bzl", "CUDA_AVAILABLE")
load("@python//:python.bzl", "PYTHON_AVAILABLE")
load("@torch//:torch.bzl", "TORCH_AVAILABLE")

_COPTS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Winvalid-pch", "-Werror", "-fdiagnostics-color=always"]

# GCC 12 forgets that a function in a precompiled header comes from a system header, and warns of std::string's own code.
_NOT_SEEN_AS_SYSTEM = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow"]

# Kinds of code: how much a source is optimized.
CODE = {
    "fast": ["-O2"],  # code that computes: hashing, parsing, numbers
    # All other code of the product: compiles in three quarters of the time. With -O1 GCC 12 takes an empty std::optional for uninitialized.
    "product": ["-O1", "-Wno-maybe-uninitialized"],
    "command": ["-O0", "-U_FORTIFY_SOURCE"],  # includes CLI11 and spends its time in other rooms
    "test": ["-O0", "-U_FORTIFY_SOURCE"],
    "torch": ["-O2"],
    "torch_test": ["-O0", "-U_FORTIFY_SOURCE"],
}

# Those with a precompiled header of the same name in tools/bazel/BUILD. One with torch's headers costs more than its few chunks save.
PRECOMPILED = ["fast", "product", "command", "test"]

_RESERVED = ["target_compatible_with"]
_NEVER = "//third_party/constraints:incompatible"
_AVAILABLE = {"cuda": CUDA_AVAILABLE, "python": PYTHON_AVAILABLE, "torch": TORCH_AVAILABLE}

# A test that waits for a busy machine is not a failure: limits are one class longer than Bazel's for the size.
_TIMEOUT = {"small": "moderate", "medium": "long", "large": "eternal", "enormous": "eternal"}

def _attributes(name, needs, code, attributes):
    for reserved in _RESERVED:
        if reserved in attributes:
            fail("%s: %s is set by the macro; say needs = [...] instead" % (name, reserved))
    for need in needs:
        if need not in _AVAILABLE:
            fail("%s: needs %r, but only %s can be asked for" % (name, need, sorted(_AVAILABLE)))
    attributes["copts"] = _COPTS + attributes.get("copts", [])
    if code:
        if code not in CODE:
            fail("%s: code is %r, but only %s are there" % (name, code, sorted(CODE)))
        attributes["copts"] += CODE[code]
    if code in PRECOMPILED:
        switch = "//tools/bazel:with_precompiled_headers"
        attributes["copts"] += select({
            switch: ["-include", "$(BINDIR)/tools/bazel/%s.h" % code] + _NOT_SEEN_AS_SYSTEM,
            "//conditions:default": [],
        })
        attributes["deps"] = attributes.get("deps", []) + select({
            switch: ["//tools/bazel:" + code],
            "//conditions:default": [],
        })
    attributes["tags"] = attributes.get("tags", []) + needs
    if [need for need in needs if not _AVAILABLE[need]]:
        attributes["target_compatible_with"] = [_NEVER]
    return attributes

# Sources are compiled this many at a time: most of a source's cost are templates of headers, which a chunk instantiates once.
# Names in anonymous namespaces must differ within a target.
_CHUNK = 8
_TEST_CHUNK = 16  # without optimization, templates are nearly all of it

def _in_chunks(name, srcs, apart = [], size = _CHUNK):
    """`srcs`, with its .cc files joined in chunks of at most `size` unless --//tools/bazel:chunks=false."""
    sources = sorted([file for file in srcs if file.endswith(".cc") and ":" not in file])
    if not sources:
        return srcs
    chunks = []
    for group in [[file for file in sources if file not in apart], [file for file in sources if file in apart]]:
        count = (len(group) + size - 1) // size
        for i in range(count):
            chunk = "%s_chunk_%d" % (name, len(chunks))
            joined = group[i * len(group) // count:(i + 1) * len(group) // count]  # all of about the same length
            if len(joined) == 1:
                chunks += joined
                continue
            native.genrule(
                name = chunk,
                srcs = joined,
                outs = [chunk + ".cc"],
                cmd = "for file in $(SRCS); do echo \"#line 1 \\\"$$file\\\"\"; cat $$file; done > $@",
                visibility = ["//visibility:private"],
            )
            chunks.append(":" + chunk)
    return [file for file in srcs if file not in sources] + select({
        "//tools/bazel:with_chunks": chunks,
        "//conditions:default": sources,
    })

def harness_cc_library(name, srcs = [], apart = [], chunk = None, needs = [], code = "product", **kwargs):
    """A cc_library of ours.

    Args:
      name: the target's name, the main noun of its header.
      srcs: its sources, which are compiled in chunks.
      apart: those of them with chunks of their own, because some program links the others without them and what they need.
      chunk: how many sources are compiled at a time; fewer where they change often: a build after one change compiles its whole chunk.
      needs: out of "torch", "python", "cuda": the target is skipped on a machine without them.
      code: the kind of code, a key of CODE; None: the options are all in copts, and nothing is precompiled.
      **kwargs: as for cc_library.
    """
    native.cc_library(
        name = name,
        srcs = _in_chunks(name, srcs, apart, chunk or (_TEST_CHUNK if code in ["test", "torch_test"] else _CHUNK)),
        linkstatic = True,  # else it is linked as a shared library, too
        **_attributes(name, needs, code, kwargs)
    )

def harness_cc_binary(name, needs = [], code = "product", **kwargs):
    """A cc_binary of ours; arguments as for harness_cc_library."""
    native.cc_binary(name = name, **_attributes(name, needs, code, kwargs))

def harness_cc_test(name, srcs, deps = [], needs = [], code = "test", size = "small", **kwargs):
    """A GoogleTest program of ours: gmock and a main come with it.

    Args:
      name: the target's name: the unit's or the room's name plus _test.
      srcs: its sources, which are compiled in chunks.
      deps: what the test needs besides gmock and its main.
      needs: as for harness_cc_library.
      code: "test", or "torch_test" for a test that includes torch.
      size: as for cc_test; "small" unless told.
      **kwargs: as for cc_test.
    """
    kwargs["deps"] = deps + ["//third_party/debian:gmock_main"]
    kwargs["linkstatic"] = True  # else every room is linked as a shared library, too
    native.cc_test(name = name, srcs = _in_chunks(name, srcs, size = _TEST_CHUNK), size = size, timeout = _TIMEOUT[size], **_attributes(name, needs, code, kwargs))

def harness_tests_by_file(name, tests, deps = [], needs = []):
    """Test sources that are compiled together and have a target each, which runs the tests of its source only.

    For sources that are larger than the rest of their programs; else each of them instantiates the same templates.

    Args:
      name: name of the library that has all tests.
      tests: dicts, with name (of the source NAME.cc, too, unless src is there) and further attributes as for harness_cc_test.
      deps: what all of them need besides gmock.
      needs: as for harness_cc_library.
    """
    sources = sorted({test.get("src", test["name"] + ".cc"): None for test in tests}.keys())
    harness_cc_library(
        name = name,
        testonly = True,
        srcs = sources,
        code = "test",
        needs = needs,
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = deps + ["//third_party/debian:gmock"],
        alwayslink = True,
    )
    for test in tests:
        attributes = dict(test)
        source = attributes.pop("src", test["name"] + ".cc")
        attributes["args"] = ["--test_file=%s/%s" % (native.package_name(), source)] + attributes.get("args", [])
        attributes["deps"] = [":" + name, "//harness/testing:test_file_main"]
        attributes["linkstatic"] = True
        attributes["timeout"] = _TIMEOUT[test["size"]]
        native.cc_test(**_attributes(test["name"], needs, None, attributes))

def harness_fuzz_target(name, deps = [], needs = []):
    """A libFuzzer target NAME_fuzz.cc. Without --config=fuzz it is a test that is given each file of fixtures/corpora/NAME.

    Args:
      name: the target's name: NAME_fuzz.
      deps: what it needs besides harness/fuzzing.
      needs: as for harness_cc_library.
    """
    corpus = "fixtures/corpora/" + name[:-len("_fuzz")]
    native.cc_test(name = name, size = "small", timeout = _TIMEOUT["small"], **_attributes(name, needs, "test", {
        "srcs": [name + ".cc"],
        "data": ["//fixtures/corpora:" + name[:-len("_fuzz")]],
        "env": {"BKM_CORPUS": corpus},
        "linkopts": select({
            "//tools/bazel:with_fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        "linkstatic": True,
        "tags": ["fuzz"],
        "deps": deps + ["//harness/fuzzing"] + select({
            "//tools/bazel:with_fuzzing": [],
            "//conditions:default": ["//harness/fuzzing:replay"],
        }),
    }))

def python_as_text(program):
    """NAME_py.inc: a Python program as a C++ raw string, so that the binary needs no file beside it.

    Args:
      program: its file, FOLDER/NAME.py or NAME.py; the target is NAME_py.
    """
    name = program.split("/")[-1].replace(".py", "_py")
    native.genrule(
        name = name,
        srcs = [program],
        outs = [name + ".inc"],
        cmd = "{ echo 'R\"__py__('; cat $<; echo ')__py__\"'; } > $@",
    )

def harness_room(
        name,
        deps = [],
        needs = [],
        code = "product",
        srcs = [],
        exclude = [],
        testing = [],
        testing_deps = [],
        separate_tests = [],
        test_data = [],
        test_deps = [],
        test_env = {},
        test_size = "small",
        test_tags = [],
        **kwargs):
    """A room: all sources of a folder as one library, its unit tests as one program. A new file needs no line here.

    Sources are NAME.cc and NAME.h; unit tests NAME_test.cc; fuzz targets NAME_fuzz.cc; programs NAME_main.cc and NAME_bench.cc
    have rules of their own.

    Args:
      name: the library's name: the folder's. The tests are NAME_test, and all tests of the folder all_tests.
      deps: the rooms and packages that the room may use. Nothing else is in its reach: this list is the room's place in the house.
      needs: as for harness_cc_library; for tests, too.
      code: as for harness_cc_library.
      srcs: what is generated.
      exclude: sources that have rules of their own.
      testing: headers and sources for tests only, which other rooms' tests may use as NAME_testing.
      testing_deps: what these need besides the room.
      separate_tests: tests with rules of their own: larger ones, and those that need more than this machine's compiler.
      test_data: files that the unit tests read.
      test_deps: what the unit tests need besides the room.
      test_env: environment of the unit tests.
      test_size: as for cc_test.
      test_tags: tags of the unit tests.
      **kwargs: as for harness_cc_library.
    """
    for test in separate_tests:
        if not native.glob([test + ".cc"]):
            fail("%s: separate_tests names %s, and there is no %s.cc" % (name, test, test))
    harness_cc_library(
        name = name,
        srcs = srcs + native.glob(["*.cc"], exclude = ["*_test.cc", "*_fuzz.cc", "*_main.cc", "*_bench.cc"] + exclude + testing),
        hdrs = native.glob(["*.h"], exclude = exclude + testing),
        deps = deps,
        needs = needs,
        code = code,
        **kwargs
    )
    if testing:
        harness_cc_library(
            name = name + "_testing",
            testonly = True,
            srcs = [file for file in testing if file.endswith(".cc")],
            hdrs = [file for file in testing if file.endswith(".h")],
            deps = [":" + name, "//third_party/debian:gmock"] + testing_deps,
            needs = needs,
            code = "torch_test" if code == "torch" else "test",
        )
    tests = native.glob(["*_test.cc"], exclude = [test + ".cc" for test in separate_tests] + exclude)
    if tests:
        harness_cc_test(
            name = name + "_test",
            code = "torch_test" if code == "torch" else "test",
            size = test_size,
            srcs = tests,
            data = test_data,
            env = test_env,
            needs = needs,
            tags = test_tags,
            deps = [":" + name] + ([":" + name + "_testing"] if testing else []) + test_deps,
        )
    for target in native.glob(["*_fuzz.cc"]):
        harness_fuzz_target(
            name = target[:-len(".cc")],
            deps = [":" + name],
            needs = needs,
        )
    native.test_suite(name = "all_tests")
