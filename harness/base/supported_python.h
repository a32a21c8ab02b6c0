// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_SUPPORTED_PYTHON_H_
#define HARNESS_BASE_SUPPORTED_PYTHON_H_

namespace bkm {

// A Python program that defines refusal(): why the interpreter that runs it cannot run cells, as
// the end of a sentence that names it; "" if it can. Every version of Python can run the program.
inline constexpr char kRefusalProgram[] = R"py(
import sys

def refusal():
    kind = getattr(getattr(sys, "implementation", None), "name", "cpython")
    if kind != "cpython":
        found = kind
    elif sys.version_info < (3, 10):
        found = "CPython %d.%d" % sys.version_info[:2]
    elif sys.maxsize < 2**32:
        found = "a 32-bit program"
    elif "t" in sys.abiflags:
        found = "a free-threaded CPython"
    else:
        return ""
    return "is %s, and cells need CPython 3.10 or newer, with 64 bits and the GIL: name another interpreter" % found
)py";

}  // namespace bkm

#endif  // HARNESS_BASE_SUPPORTED_PYTHON_H_
