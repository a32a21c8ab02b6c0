// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutant.h"

#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/hash.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/model/plant.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

const std::optional<Subject>& SubjectOf(const PreparedCell& cell, Party party) {
  return party == Party::kEngine ? cell.engine : cell.library;
}

// A package of the runtime has no tree of its own.
bool IsInstalled(const PreparedCell& cell, Party party) {
  return party == Party::kLibrary && FindEngineKind(cell.record.cell.engine)->library_in_runtime;
}

std::string PackageOf(const PreparedCell& cell, Party party) {
  return IsInstalled(cell, party) ? FindEngineKind(cell.record.cell.engine)->library_source
                                  : SubjectOf(cell, party)->package;
}

absl::Status Symlink(const fs::path& target, const fs::path& link) {
  std::error_code error;
  fs::create_symlink(target, link, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot link ", link.string(), ": ", error.message()));
}

// Links what lies in `from` into the new folder `to`, except `without`.
absl::Status LinkAllBut(const fs::path& from, const fs::path& to, const std::string& without) {
  RETURN_IF_ERROR(CreateDirectories(to));
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    if (entry.path().filename() != without)
      RETURN_IF_ERROR(Symlink(entry.path(), to / entry.path().filename()));
  }
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot list ", from.string(), ": ", error.message()));
}

// An environment in `folder` that has the packages of `python`'s, except `package`. Returns its
// folder of packages.
absl::StatusOr<fs::path> MakeEnvironment(const fs::path& python, const fs::path& packages,
                                         const std::string& package, const fs::path& folder) {
  const fs::path root = python.parent_path().parent_path();
  const fs::path own = folder / packages.lexically_relative(root);
  RETURN_IF_ERROR(LinkAllBut(packages, own, package));
  RETURN_IF_ERROR(LinkAllBut(python.parent_path(), folder / "bin", python.filename()));
  std::error_code error;
  // Python finds its environment beside its own link.
  fs::copy_symlink(python, folder / "bin" / python.filename(), error);
  if (!error) fs::copy_file(root / "pyvenv.cfg", folder / "pyvenv.cfg", error);
  if (!error) return own;
  return absl::UnavailableError(
      absl::StrCat("cannot copy the environment ", root.string(), ": ", error.message()));
}

// Replaces one file of the copy, and removes its compiled Python.
absl::Status WriteMutated(const Mutation& mutation, const std::string& text, const fs::path& tree) {
  const fs::path file = tree / mutation.file;
  RETURN_IF_ERROR(RemoveTree(file));  // it is a link to the original
  RETURN_IF_ERROR(WriteScratchFile(file, text));
  const std::string start = absl::StrCat(file.stem().string(), ".");
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(file.parent_path() / "__pycache__", error)) {
    if (entry.path().filename().string().rfind(start, 0) == 0)
      RETURN_IF_ERROR(RemoveTree(entry.path()));
  }
  return absl::OkStatus();
}

PreparedCell Planted(PreparedCell cell, std::string plant) {
  cell.record.cell.plant = {std::move(plant)};
  cell.record.id = CellId(cell.record.cell);
  cell.record.dir = CellDirectory(cell.record.cell, cell.record.id);
  return cell;
}

}  // namespace

absl::StatusOr<std::optional<fs::path>> PackageFolder(const PreparedCell& cell, Party party) {
  if (!IsInstalled(cell, party)) {
    const std::optional<Subject>& subject = SubjectOf(cell, party);
    if (!subject || subject->tree.empty()) return std::optional<fs::path>();
    return std::optional<fs::path>(subject->tree);
  }
  const fs::path library = cell.worker.python.parent_path().parent_path() / "lib";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(library, error)) {
    fs::path packages = entry.path() / "site-packages";
    if (fs::exists(packages / PackageOf(cell, party), error)) return std::optional(packages);
  }
  return absl::NotFoundError(
      absl::StrCat(library.string(), " holds no package ", PackageOf(cell, party)));
}

absl::StatusOr<PreparedCell> MakeMutant(const PreparedCell& cell, const Mutation& mutation,
                                        const fs::path& folder) {
  ASSIGN_OR_RETURN(const auto packages, PackageFolder(cell, mutation.party));
  if (!packages) return absl::NotFoundError("the cell has no such subject");
  ASSIGN_OR_RETURN(const std::string text,
                   FolderReader(*packages).Read(mutation.file, kLargestSource));
  ASSIGN_OR_RETURN(const std::string mutated, Mutated(mutation, text));
  PreparedCell mutant = Planted(cell, PlantOf(mutation));
  fs::path tree = folder;
  if (IsInstalled(cell, mutation.party)) {
    const std::string package = PackageOf(cell, mutation.party);
    ASSIGN_OR_RETURN(tree, MakeEnvironment(cell.worker.python, *packages, package, folder));
    RETURN_IF_ERROR(LinkTree(*packages / package, tree / package));
    mutant.worker.python = folder / "bin" / cell.worker.python.filename();
    mutant.worker.key = Sha256(mutant.record.id);
    mutant.worker.reads.push_back(cell.worker.python.parent_path().parent_path());
  } else {
    RETURN_IF_ERROR(LinkTree(*packages, tree));
    const bool is_engine = mutation.party == Party::kEngine;
    Subject& subject = is_engine ? *mutant.engine : *mutant.library;
    subject.tree = tree;
    subject.content = absl::StrCat("mutant:", Sha256(mutant.record.id + subject.content));
    // The listing is of the original's files.
    (is_engine ? mutant.engine_listing : mutant.library_listing) = nullptr;
  }
  RETURN_IF_ERROR(WriteMutated(mutation, mutated, tree));
  return mutant;
}

PreparedCell RecordingCell(const PreparedCell& cell) { return Planted(cell, kRecordLines); }

}  // namespace bkm
