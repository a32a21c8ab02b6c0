// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// python_worker: the worker of cell_worker serve for an interpreter with a libpython that it can
// embed. cell_worker starts it in its sandbox.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/cell/embedded_interpreter.h"
#include "harness/cell/python_entry.h"
#include "harness/cell/worker_session.h"

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "worker") != 0) {
    std::fprintf(stderr, "python_worker is a part of cell_worker, which starts it\n");
    return 2;
  }
  ::unsetenv("LD_PRELOAD");  // named libpython; not for programs that a package starts
  const int code =
      bkm::RunWorker({bkm::StartEmbeddedInterpreter, bkm::RunPythonEntry, bkm::ForkPython});
  std::fflush(nullptr);
  ::_exit(code);  // the interpreter is never torn down
}
