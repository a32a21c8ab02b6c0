// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// libbkm_worker.so: the worker as a module that any CPython from 3.10 on can load. It is for
// interpreters that python_worker cannot embed. cell_worker starts them (hosted_command.h).
#include <unistd.h>

#include <cstdio>

#include "harness/base/status_macros.h"
#include "harness/cell/python_entry.h"
#include "harness/cell/python_object.h"
#include "harness/cell/warm_interpreter.h"
#include "harness/cell/worker_session.h"
#include "harness/cell/worker_settings.h"

namespace bkm {
namespace {

absl::StatusOr<InterpreterReport> StartHosted(const InterpreterOptions& options) {
  ASSIGN_OR_RETURN(const PythonEnvironment environment, AskEnvironment(options.python));
  return WarmInterpreter(options, environment);
}

PyObject* Run(PyObject* /*module*/, PyObject* /*nothing*/) {
  ::close(kWorkerLibrary);
  const int code = RunWorker({StartHosted, RunPythonEntry, ForkPython});
  std::fflush(nullptr);
  ::_exit(code);  // the interpreter is never torn down
}

PyMethodDef methods[] = {{"run", Run, METH_NOARGS, "Serves until the supervisor ends; no return."},
                         {}};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "bkm_worker", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace bkm

PyMODINIT_FUNC PyInit_bkm_worker() { return PyModuleDef_Init(&bkm::module); }
