// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/python_entry.h"

#include <pybind11/embed.h>
#include <unistd.h>

#include <string>

#include "harness/cell/cell_environment.h"

namespace bkm {
namespace {

namespace py = pybind11;

// Restores what a fresh interpreter in this cell's folder would have.
void EnterFolders(const std::filesystem::path& work) {
  py::object environ = py::module_::import("os").attr("environ");
  for (const auto& [name, value] : CellFolders(work)) environ[py::str(name)] = py::str(value);
  // A preloaded module may have fixed the folder of temporary files already.
  py::module_::import("tempfile").attr("tempdir") = py::none();
  py::object sys = py::module_::import("sys");
  for (const char* stream : {"stdout", "stderr"}) {
    // A cell that dies keeps its output.
    sys.attr(stream).attr("reconfigure")(py::arg("line_buffering") = true);
  }
  // Prints the stack on a fatal signal; the signal still ends the process.
  py::module_::import("faulthandler").attr("enable")(sys.attr("stderr"));
  py::module_ signal = py::module_::import("signal");
  signal.attr("signal")(signal.attr("SIGINT"), signal.attr("default_int_handler"));
}

// The exit status that Python itself uses for SystemExit(code).
int StatusOfSystemExit(const py::error_already_set& error) {
  const py::object code = error.value().attr("code");
  if (code.is_none()) return 0;
  if (py::isinstance<py::int_>(code)) return code.cast<int>() & 0xff;
  py::print(code, py::arg("file") = py::module_::import("sys").attr("stderr"));
  return 1;
}

int ReportRaised(py::error_already_set& error, const EventWriter& events) {
  if (error.matches(PyExc_SystemExit)) return StatusOfSystemExit(error);
  const py::object& type = error.type();
  events.Write(Json{{"exception",
                     {{"type", std::string(py::str(type.attr("__name__")))},
                      {"module", std::string(py::str(type.attr("__module__")))},
                      {"message", std::string(py::str(error.value()))}}}});
  py::module_::import("traceback")
      .attr("print_exception")(type, error.value(), error.trace() ? error.trace() : py::none());
  return 1;
}

void FlushStreams() {
  for (const char* stream : {"stdout", "stderr"}) {
    try {
      py::module_::import("sys").attr(stream).attr("flush")();
    } catch (py::error_already_set&) {
      // The subject closed or replaced the stream, or the disk is full. Nobody is left to be told.
    }
  }
}

int Run(const CellRequest& request, const EventWriter& events) {
  try {
    EnterFolders(request.dir / "work");
    const py::object asked = py::module_::import("json").attr("loads")(ToLine(request.all));
    const py::cpp_function emit([&events](const std::string& json) { events.WriteText(json); });
    py::module_::import("bkm_cell.cell").attr("run")(asked, emit);
    return 0;
  } catch (py::error_already_set& error) {
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
