// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/embedded_interpreter.h"

#include <pybind11/embed.h>

#include <clocale>
#include <exception>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/warm_interpreter.h"

namespace bkm {
namespace {

// Starts an interpreter that ignores the user's environment. libpython and the standard library are
// those of the environment's interpreter. site.py does not run: the system's would add the system's
// packages.
absl::Status Initialize(const InterpreterOptions& options, const std::string& home) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  PyPreConfig preconfig;
  PyPreConfig_InitIsolatedConfig(&preconfig);
  preconfig.utf8_mode = 1;
  const PyStatus status = Py_PreInitialize(&preconfig);
  if (PyStatus_Exception(status)) {
    return absl::InternalError(
        absl::StrCat("Python does not start: ", status.err_msg ? status.err_msg : "no reason"));
  }
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  config.site_import = 0;
  config.install_signal_handlers = 0;
  config.write_bytecode = 0;
  if (!options.bytecode.empty())
    PyConfig_SetBytesString(&config, &config.pycache_prefix, options.bytecode.c_str());
  config.use_hash_seed = 1;
  config.hash_seed = 0;
  PyConfig_SetBytesString(&config, &config.home, home.c_str());
  PyConfig_SetBytesString(&config, &config.executable, options.python.c_str());
  try {
    // Clears the configuration.
    pybind11::initialize_interpreter(&config, /*argc=*/0, /*argv=*/nullptr,
                                     /*add_program_dir_to_path=*/false);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Python does not start: ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InterpreterReport> StartEmbeddedInterpreter(const InterpreterOptions& options) {
  ASSIGN_OR_RETURN(const PythonEnvironment environment, AskEnvironment(options.python));
  if (environment.version != Json::array({PY_MAJOR_VERSION, PY_MINOR_VERSION})) {
    return absl::FailedPreconditionError(
        absl::StrCat("--python ", options.python.string(), " is Python ",
                     environment.version.dump(), ", but this worker embeds ", PY_MAJOR_VERSION, ".",
                     PY_MINOR_VERSION, ": create the environment with that version"));
  }
  RETURN_IF_ERROR(Initialize(options, environment.home));
  return WarmInterpreter(options, environment);
}

}  // namespace bkm
