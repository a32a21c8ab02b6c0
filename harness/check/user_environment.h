// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_USER_ENVIRONMENT_H_
#define HARNESS_CHECK_USER_ENVIRONMENT_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/task.h"
#include "harness/runtime/interpreter.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// The Python of the active virtual or conda environment, else the first python3 in PATH; empty:
// none.
std::filesystem::path FindUsersPython();

// A user's own interpreter and what it holds. It is only read.
class UserEnvironment {
 public:
  static absl::StatusOr<UserEnvironment> Read(std::filesystem::path python,
                                              const SourceCatalog& catalog);

  const std::filesystem::path& python() const { return python_; }
  const std::string& version() const { return facts_.python; }  // "3.11.2"
  // Whether its cells must be processes of its own: the worker embeds another version.
  bool alone() const { return alone_; }
  // The version of a distribution (normalised name); empty where there is none.
  std::string VersionOf(const std::string& distribution) const;
  // Of a source ("verl"); null where it is not installed.
  const InstalledPackage* Find(const std::string& source) const;
  // "git:verl@<40 hex>", "pypi:verl==0.9.1", or "path:FOLDER" for one that is no distribution.
  SubjectSpec SpecOf(const std::string& source) const;
  // What a person calls that: the version, or nine digits of the commit.
  std::string LabelOf(const std::string& source) const;

  // Where its compiled Python is kept, if it brings none: in our cache, for nothing is written into
  // the environment. Installers leave it out, and loading takes twice as long without. Else empty.
  const std::filesystem::path& bytecode() const { return bytecode_; }
  // Compiles engine and library into bytecode(), where that is not empty and cells would have to.
  // What they share is compiled when it is loaded first.
  void CompileSubjects() const;

  // The engine kinds whose two sides are there; of a library whose engine is not, the control.
  std::vector<const EngineKind*> Kinds() const;
  // One cell of one step per attention of the kind's that this machine can run.
  absl::StatusOr<std::vector<PreparedCell>> CellsOf(const EngineKind& kind,
                                                    const std::string& model) const;

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
