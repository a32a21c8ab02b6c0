// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/python_entry.h"

#include <unistd.h>

#include <string>

#include "harness/cell/cell_environment.h"
#include "harness/cell/python_object.h"

namespace bkm {
namespace {

constexpr char kEvents[] = "bkm.events";  // names the capsule of an EventWriter

PyObject* Emit(PyObject* self, PyObject* text) {
  const auto* events = static_cast<const EventWriter*>(PyCapsule_GetPointer(self, kEvents));
  Py_ssize_t size = 0;
  const char* json = events ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (!json) return nullptr;
  try {
    events->WriteText({json, static_cast<size_t>(size)});
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

PythonObject MakeEmit(const EventWriter& events) {
  static PyMethodDef method = {"emit", Emit, METH_O, "Reports one event, as JSON text."};
  const PythonObject capsule =
      PythonObject::Own(PyCapsule_New(const_cast<EventWriter*>(&events), kEvents, nullptr));
  return PythonObject::Own(PyCFunction_NewEx(&method, capsule.get(), nullptr));
}

// Restores what a fresh interpreter in this cell's folder would have.
void EnterFolders(const std::filesystem::path& work) {
  const PythonObject environ = PythonObject::Import("os").Attr("environ");
  for (const auto& [name, value] : CellFolders(work))
    environ.SetItem(PythonObject::FromText(name), PythonObject::FromText(value));
  // A preloaded module may have fixed the folder of temporary files already.
  PythonObject::Import("tempfile").SetAttr("tempdir", PythonObject::None());
  const PythonObject sys = PythonObject::Import("sys");
  for (const char* stream : {"stdout", "stderr"}) {
    // A cell that dies keeps its output.
    sys.Attr(stream)
        .Attr("reconfigure")
        .Call({}, {{"line_buffering", PythonObject::FromBool(true)}});
  }
  // Prints the stack on a fatal signal; the signal still ends the process.
  PythonObject::Import("faulthandler").Attr("enable").Call({sys.Attr("stderr")});
  const PythonObject signal = PythonObject::Import("signal");
  signal.Attr("signal").Call({signal.Attr("SIGINT"), signal.Attr("default_int_handler")});
}

// The exit status that Python itself uses for SystemExit(code).
int StatusOfSystemExit(const PythonError& error) {
  const PythonObject code = error.value().Attr("code");
  if (code.IsNone()) return 0;
  if (PyLong_Check(code.get())) {
    const long status = PyLong_AsLong(code.get());
    PyErr_Clear();  // of a number that is too large
    return static_cast<int>(status & 0xff);
  }
  PythonObject::Import("builtins")
      .Attr("print")
      .Call({code}, {{"file", PythonObject::Import("sys").Attr("stderr")}});
  return 1;
}

int ReportRaised(const PythonError& error, const EventWriter& events) {
  if (error.IsA(PyExc_SystemExit)) return StatusOfSystemExit(error);
  events.Write(Json{{"exception",
                     {{"type", error.type().Attr("__name__").Text()},
                      {"module", error.type().Attr("__module__").Text()},
                      {"message", error.value().Text()}}}});
  PythonObject::Import("traceback")
      .Attr("print_exception")
      .Call({error.type(), error.value(), error.trace()});
  return 1;
}

void FlushStreams() {
  for (const char* stream : {"stdout", "stderr"}) {
    try {
      PythonObject::Import("sys").Attr(stream).Attr("flush").Call();
    } catch (const PythonError&) {
      // The subject closed or replaced the stream, or the disk is full. Nobody is left to be told.
    }
  }
}

int Run(const CellRequest& request, const EventWriter& events) {
  try {
    EnterFolders(request.dir / "work");
    const PythonObject asked = PythonObject::Import("json").Attr("loads").Call(
        {PythonObject::FromText(ToLine(request.all))});
    PythonObject::Import("bkm_cell.cell").Attr("run").Call({asked, MakeEmit(events)});
    return 0;
  } catch (const PythonError& error) {
    return ReportRaised(error, events);
  }
}

}  // namespace

int RunPythonEntry(const CellRequest& request, const EventWriter& events) {
  int code = 1;
  try {
    code = Run(request, events);
  } catch (const std::exception& error) {
    // Reporting an exception failed, for example because its __str__ raises.
    events.Write(Json{{"exception", {{"type", "Exception"}, {"message", error.what()}}}});
  }
  FlushStreams();
  return code;
}

pid_t ForkPython() {
  PyOS_BeforeFork();
  const pid_t pid = ::fork();
  if (pid == 0) {
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return pid;
}

}  // namespace bkm
