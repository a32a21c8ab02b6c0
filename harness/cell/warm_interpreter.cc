// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/warm_interpreter.h"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/cell/python_object.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kAsk[] =
    "import json, site, sys; print(json.dumps({'version': sys.version_info[:2], 'prefix': "
    "sys.prefix, 'home': sys.base_prefix, 'exec_prefix': sys.exec_prefix, 'site': "
    "site.getsitepackages()}))";

// Adds the environment's packages, as its own site.py would.
void AddSitePackages(const PythonEnvironment& environment, const fs::path& python_code) {
  const PythonObject sys = PythonObject::Import("sys");
  sys.SetAttr("prefix", PythonObject::FromText(environment.prefix));
  sys.SetAttr("exec_prefix", PythonObject::FromText(environment.exec_prefix));
  sys.SetAttr("argv", PythonObject::List({PythonObject::FromText("cell")}));
  const PythonObject add = PythonObject::Import("site").Attr("addsitedir");
  for (const std::string& folder : environment.site) add.Call({PythonObject::FromText(folder)});
  sys.Attr("path").Attr("insert").Call(
      {PythonObject::FromInt(0), PythonObject::FromText(python_code.string())});
}

// Where compiled files are read, if not beside their sources. None are written.
void ReadBytecode(const fs::path& folder) {
  const PythonObject sys = PythonObject::Import("sys");
  sys.SetAttr("dont_write_bytecode", PythonObject::FromBool(true));
  if (!folder.empty()) sys.SetAttr("pycache_prefix", PythonObject::FromText(folder.string()));
}

// The error; empty on success.
std::string Import(const std::string& module) {
  try {
    PythonObject::Import(module.c_str());
    return "";
  } catch (const PythonError& error) {
    return error.what();
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
  const PythonObject find = PythonObject::Import("importlib.util").Attr("find_spec");
  if (!find.Call({PythonObject::FromText("torch")}).IsNone() && import("torch"))
    PythonObject::Import("torch").Attr("set_num_threads").Call({PythonObject::FromInt(1)});
  for (const std::string& module : modules) import(module);
}

// Imports all of bkm_cell, so that cells need not read and compile it. bkm_cell imports torch and
// nothing of a subject. Without torch, the modules that need it are left out.
void ImportCellCode() {
  const PythonObject package = PythonObject::Import("bkm_cell");
  const PythonObject modules =
      PythonObject::Import("pkgutil")
          .Attr("walk_packages")
          .Call({package.Attr("__path__"), PythonObject::FromText("bkm_cell.")});
  for (const PythonObject& each : modules.Elements()) {
    const std::string name = each.Attr("name").Text();
    if (!absl::EndsWith(name, "_test")) Import(name);
  }
}

// Removes the temporary folders that modules created at import (wandb: two folders). Nobody else
// would: this interpreter is never torn down. Cells do not see these folders.
void RemoveTemporaryFolders() {
  const PythonObject folder = PythonObject::Import("tempfile").Attr("TemporaryDirectory");
  const PythonObject objects = PythonObject::Import("gc").Attr("get_objects").Call();
  for (const PythonObject& each : objects.Elements()) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(each.get())) == folder.get())
      each.Attr("cleanup").Call();
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

absl::Status Warm(const InterpreterOptions& options, const PythonEnvironment& environment,
                  InterpreterReport& facts) {
  ReadBytecode(options.bytecode);
  AddSitePackages(environment, options.python_code);
  const PythonObject gc = PythonObject::Import("gc");
  // Imports leave almost no garbage, and looking for it is slow.
  gc.Attr("disable").Call();
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
  gc.Attr("collect").Call();
  gc.Attr("freeze").Call();
  gc.Attr("enable").Call();
  if (!options.bytecode.empty()) {
    const PythonObject preload = PythonObject::Import("bkm_cell.preload");
    for (const PythonObject& source : preload.Attr("uncompiled").Call().Elements())
      facts.uncompiled.push_back(source.Text());
  }
  const PythonObject sys = PythonObject::Import("sys");
  const std::string version = sys.Attr("version").Text();
  facts.version = version.substr(0, version.find(' '));
  for (const PythonObject& entry : sys.Attr("path").Elements()) facts.path.push_back(entry.Text());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PythonEnvironment> AskEnvironment(const fs::path& python) {
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
  PythonEnvironment environment{version ? *version : Json(), reader.String("prefix"),
                                reader.String("exec_prefix"), reader.String("home"),
                                reader.Strings("site")};
  RETURN_IF_ERROR(reader.Finish());
  return environment;
}

absl::StatusOr<InterpreterReport> WarmInterpreter(const InterpreterOptions& options,
                                                  const PythonEnvironment& environment) {
  InterpreterReport facts;
  try {
    RETURN_IF_ERROR(Warm(options, environment, facts));
  } catch (const PythonError& error) {
    return absl::InternalError(absl::StrCat("Python does not start: ", error.what()));
  }
  facts.versions = InstalledVersions(environment.site);
  return facts;
}

}  // namespace bkm
