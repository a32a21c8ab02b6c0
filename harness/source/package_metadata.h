// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_PACKAGE_METADATA_H_
#define HARNESS_SOURCE_PACKAGE_METADATA_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// A package's own declarations.
struct PackageMetadata {
  std::string name;                       // as published; empty when not declared
  std::vector<std::string> requirements;  // PEP 508, without those of extras
};

// Whether a file of this name beside a package may declare its requirements.
bool DeclaresRequirements(absl::string_view name);

// A file of a package in a registry.
struct PinnedFile {
  std::string url;
  std::string sha256;
  bool is_wheel = true;
  bool operator==(const PinnedFile&) const = default;
};

// One package of a pylock.toml.
struct PinnedPackage {
  std::string name;
  std::string version;
  std::vector<std::string> sha256;     // sorted; of the files that an installer may choose here
  std::string uploaded;                // YYYY-MM-DD; empty when the registry does not say
  std::vector<PinnedFile> files = {};  // the same files
  bool operator==(const PinnedPackage&) const = default;
};

// Reads packages' declarations (TOML, Python's syntax tree, mail headers) with a small isolated
// Python program that runs none of their code. Packages may be hostile: PermissionDenied for a
// declaration that the requirement policy forbids or that only running code would give,
// InvalidArgument for a broken one. Both concern this package alone.
class PackageReader {
 public:
  // `python` must be 3.11 or later, for its TOML parser.
  explicit PackageReader(std::filesystem::path python) : python_(std::move(python)) {}

  // Reads a source folder with pyproject.toml, setup.py or setup.cfg.
  absl::StatusOr<PackageMetadata> ReadDeclared(const std::filesystem::path& folder) const;
  // Reads an installed package's dist-info METADATA.
  absl::StatusOr<PackageMetadata> ReadInstalled(const std::filesystem::path& metadata) const;
  absl::StatusOr<std::vector<PinnedPackage>> ReadPylock(const std::string& text) const;

  // What the archive of a source distribution says that building it needs (PEP 518).
  absl::StatusOr<std::vector<std::string>> ReadBuildRequirements(
      const std::filesystem::path& sdist) const;

  // Compiles the .py files below `folder`, for trees that are read-only afterwards. Skips files
  // that do not compile: an import of such a file reports the error.
  absl::Status CompileBytecode(const std::filesystem::path& folder) const;

  // Compiles each pair's first file into its second, which stays empty if the first does not
  // compile. Returns this Python's cache tag: "cpython-311" as in a.cpython-311.pyc.
  absl::StatusOr<std::string> CompileFiles(
      const std::vector<std::pair<std::filesystem::path, std::filesystem::path>>& files) const;

  const std::filesystem::path& python() const { return python_; }

 private:
  std::filesystem::path python_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_PACKAGE_METADATA_H_
