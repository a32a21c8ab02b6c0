// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/interpreter.h"

#include <pybind11/embed.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <clocale>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
namespace py = pybind11;

// Runs in the environment's own interpreter: only that knows where its packages are.
constexpr char kAsk[] =
    "import json, site, sys; print(json.dumps({'version': sys.version_info[:2], 'prefix': "
    "sys.prefix, 'home': sys.base_prefix, 'exec_prefix': sys.exec_prefix, 'site': "
    "site.getsitepackages()}))";

struct Environment {
  std::string prefix;
  std::string exec_prefix;
  std::string home;  // of the standard library
  std::vector<std::string> site;
};

absl::StatusOr<Environment> AskEnvironment(const fs::path& python) {
  Command command;
  command.argv = {python.string(), "-I", "-B", "-c", kAsk};
  command.timeout = std::chrono::seconds(60);
  command.may_run_again = true;
  const absl::StatusOr<std::string> answer = RunForOutput(command);
  if (!answer.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--python ", python.string(), " does not run (",
                     std::string(answer.status().message()), "): create the environment again"));
  }
  ASSIGN_OR_RETURN(const Json json, ParseJson(*answer, python.string()));
  ObjectReader reader(json, python.string());
  const Json* version = reader.Child("version");
  Environment environment{reader.String("prefix"), reader.String("exec_prefix"),
                          reader.String("home"), reader.Strings("site")};
  RETURN_IF_ERROR(reader.Finish());
  if (!version || *version != Json::array({PY_MAJOR_VERSION, PY_MINOR_VERSION})) {
    return absl::FailedPreconditionError(
        absl::StrCat("--python ", python.string(), " is Python ", version ? version->dump() : "?",
                     ", but this worker embeds ", PY_MAJOR_VERSION, ".", PY_MINOR_VERSION,
                     ": create the environment with that version"));
  }
  return environment;
}

// Starts an interpreter that ignores the user's environment. libpython and the standard library are
// those of the environment's interpreter. site.py does not run: the system's would add the system's
// packages.
absl::Status Initialize(const InterpreterOptions& options, const std::string& home) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  PyPreConfig preconfig;
  PyPreConfig_InitIsolatedConfig(&preconfig);
  preconfig.utf8_mode = 1;
  PyStatus status = Py_PreInitialize(&preconfig);
  if (!PyStatus_Exception(status)) {
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    config.install_signal_handlers = 0;
    // Only into the given folder, never beside the environment's sources.
    config.write_bytecode = !options.bytecode.empty();
    if (!options.bytecode.empty())
      PyConfig_SetBytesString(&config, &config.pycache_prefix, options.bytecode.c_str());
    config.use_hash_seed = 1;
    config.hash_seed = 0;
    PyConfig_SetBytesString(&config, &config.home, home.c_str());
    PyConfig_SetBytesString(&config, &config.executable, options.python.c_str());
    status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
  }
  if (PyStatus_Exception(status)) {
    return absl::InternalError(
        absl::StrCat("Python does not start: ", status.err_msg ? status.err_msg : "no reason"));
  }
  return absl::OkStatus();
}

// Adds the environment's packages, as its own site.py would.
void AddSitePackages(const Environment& environment, const fs::path& python_code) {
  py::object sys = py::module_::import("sys");
  sys.attr("prefix") = environment.prefix;
  sys.attr("exec_prefix") = environment.exec_prefix;
  sys.attr("argv") = py::make_tuple("cell");
  py::object add = py::module_::import("site").attr("addsitedir");
  for (const std::string& folder : environment.site) add(folder);
  sys.attr("path").attr("insert")(0, python_code.string());
}

std::string Describe(const py::error_already_set& error) {
  const std::string type = py::str(error.type().attr("__name__"));
  return absl::StrCat(type, ": ", std::string(py::str(error.value())));
}

// The error; empty on success.
std::string Import(const std::string& module) {
  try {
    py::module_::import(module.c_str());
    return "";
  } catch (py::error_already_set& error) {
    return Describe(error);
  }
}

void Preload(const std::vector<std::string>& modules, InterpreterReport& facts) {
  const auto import = [&](const std::string& module) {
    const std::string error = Import(module);
    if (!error.empty()) facts.preload_errors[module] = error;
    return error.empty();
  };
  // torch first: if the parent runs a single parallel operation, its children hang. So the number
  // of threads is set before any other import.
  const bool has_torch =
      !py::module_::import("importlib.util").attr("find_spec")("torch").is_none();
  if (has_torch && import("torch")) py::module_::import("torch").attr("set_num_threads")(1);
  for (const std::string& module : modules) import(module);
}

// Imports all of bkm_cell, so that cells need not read and compile it. bkm_cell imports torch and
// nothing of a subject. Without torch, the modules that need it are left out.
void ImportCellCode() {
  const py::object package = py::module_::import("bkm_cell");
  const py::object walk = py::module_::import("pkgutil").attr("walk_packages");
  for (const py::handle each : walk(package.attr("__path__"), "bkm_cell.")) {
    const std::string name = py::str(each.attr("name"));
    if (!absl::EndsWith(name, "_test")) Import(name);
  }
}

// Removes the temporary folders that modules created at import (wandb: two folders). Nobody else
// would: this interpreter is never torn down. Cells do not see these folders.
void RemoveTemporaryFolders() {
  const py::object folder = py::module_::import("tempfile").attr("TemporaryDirectory");
  for (const py::handle each : py::module_::import("gc").attr("get_objects")()) {
    if (py::type::handle_of(each).is(folder)) each.attr("cleanup")();
  }
}

// Installed distributions, from the names of their metadata folders: reading a hundred metadata
// files would take as long as importing a package.
Json InstalledVersions(const std::vector<std::string>& site) {
  Json versions = Json::object();
  for (const std::string& folder : site) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string filename = entry.path().filename();
      absl::string_view name = filename;
      if (!absl::ConsumeSuffix(&name, ".dist-info") && !absl::ConsumeSuffix(&name, ".egg-info"))
        continue;
      const std::vector<std::string> parts = absl::StrSplit(name, '-');
      if (parts.size() < 2) continue;
      std::string distribution = absl::StrReplaceAll(parts[0], {{"_", "-"}});
      std::transform(distribution.begin(), distribution.end(), distribution.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      if (!versions.contains(distribution)) versions[distribution] = parts[1];
    }
  }
  return versions;
}

absl::Status Warm(const InterpreterOptions& options, const Environment& environment,
                  InterpreterReport& facts) {
  try {
    AddSitePackages(environment, options.python_code);
    py::module_ gc = py::module_::import("gc");
    // Imports leave almost no garbage, and looking for it is slow.
    gc.attr("disable")();
    Preload(options.preload, facts);
    RemoveTemporaryFolders();
    if (const std::string error = Import("bkm_cell.cell"); !error.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot import bkm_cell.cell from --python-code ",
                       options.python_code.string(), ": ", error));
    }
    ImportCellCode();
    // What is loaded now lives as long as the worker: a collection in a child that touched it
    // would copy all of it.
    gc.attr("collect")();
    gc.attr("freeze")();
    gc.attr("enable")();
    py::object sys = py::module_::import("sys");
    sys.attr("dont_write_bytecode") = true;  // a cell may write nothing there, and shall not try
    const std::string version = py::str(sys.attr("version"));
    facts.version = version.substr(0, version.find(' '));
    for (const py::handle entry : sys.attr("path"))
      facts.path.push_back(std::string(py::str(entry)));
  } catch (py::error_already_set& error) {
    return absl::InternalError(absl::StrCat("Python does not start: ", Describe(error)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InterpreterReport> StartInterpreter(const InterpreterOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const Environment environment, AskEnvironment(options.python));
  RETURN_IF_ERROR(Initialize(options, environment.home));
  InterpreterReport facts;
  RETURN_IF_ERROR(Warm(options, environment, facts));
  facts.versions = InstalledVersions(environment.site);
  facts.preload_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return facts;
}

}  // namespace bkm
