// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_USER_ENVIRONMENT_H_
#define HARNESS_CHECK_USER_ENVIRONMENT_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cuda_device.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/task.h"
#include "harness/runtime/interpreter.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// The Python of the active virtual or conda environment, else the first python3 in PATH; empty:
// none.
std::filesystem::path FindUsersPython();

// The interpreter that a user names: a path, or the name of a program in PATH ("python3.12").
std::filesystem::path FindNamedPython(const std::string& name);

// What cells of an environment are asked for.
struct WantedCells {
  std::string model;
  std::string layout = "1";
  std::string device = "cpu";
  std::vector<CudaDevice> devices;  // of this machine, for the device cuda
  std::string precision = {};       // empty: what the engine does by itself
};

// Whether the cell asks an engine for a precision that it does not use by itself, and nobody asked
// for it.
bool IsRemark(const Cell& cell, const WantedCells& wanted);

// A user's interpreter and its packages. Nothing is written into the environment.
class UserEnvironment {
 public:
  static absl::StatusOr<UserEnvironment> Read(std::filesystem::path python,
                                              const SourceCatalog& catalog);

  const std::filesystem::path& python() const { return python_; }
  const std::string& version() const { return facts_.python; }  // "3.11.2"
  // Whether the interpreter itself is the worker, because bkm cannot embed it.
  bool alone() const { return alone_; }
  // The version of a distribution (normalised name); empty where there is none.
  std::string VersionOf(const std::string& distribution) const;
  // The package of a source ("verl"); null if it is not installed.
  const InstalledPackage* Find(const std::string& source) const;
  // "git:verl@<40 hex>", "pypi:verl==0.9.1", or "path:FOLDER" for a package without a distribution.
  SubjectSpec SpecOf(const std::string& source) const;
  // For people: the version, or nine digits of the commit.
  std::string LabelOf(const std::string& source) const;

  // Its packages, as a runtime of that name.
  RuntimeLock LockAs(const std::string& runtime) const;
  // A worker that runs cells in it.
  WorkerSetup Worker(const std::string& key) const;

  // Folder in the cache for compiled Python if the environment has none, as after installers that
  // do not compile: loading takes twice as long without it. Empty if the environment has its own.
  const std::filesystem::path& bytecode() const { return bytecode_; }
  // Compiles engines and libraries into bytecode(), if it is not empty. Libraries that belong to
  // the runtime are compiled when they are first loaded.
  void CompileSubjects() const;

  // The engine kinds whose engine and library are installed; for a library without an engine, its
  // control.
  std::vector<const EngineKind*> Kinds() const;
  // A one-step cell for each attention of the kind that this machine can run, with the engine's own
  // defaults where nothing else is asked for. None if the kind has no such layout. And one cell in
  // the precision that the engine does not use by itself, which is a remark (IsRemark).
  absl::StatusOr<std::vector<PreparedCell>> CellsOf(const EngineKind& kind,
                                                    const WantedCells& wanted) const;

 private:
  Subject SubjectOf(const SubjectSpec& spec, const std::string& source) const;

  std::filesystem::path python_;
  InterpreterFacts facts_;
  bool alone_ = false;
  std::filesystem::path bytecode_;
  std::map<std::string, InstalledPackage> installed_;  // by source
};

}  // namespace bkm

#endif  // HARNESS_CHECK_USER_ENVIRONMENT_H_
