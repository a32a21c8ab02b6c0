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

// What a package says of itself.
struct PackageMetadata {
  std::string name;                       // as published; empty when it does not say
  std::vector<std::string> requirements;  // PEP 508, without those of extras
};

// Whether a file of this name beside a package may say what the package requires.
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
  std::vector<std::string> sha256;  // of the files that an installer here may choose among, sorted
  std::string uploaded;             // YYYY-MM-DD; empty when the registry does not say
  std::vector<PinnedFile> files = {};  // where they lie
  bool operator==(const PinnedPackage&) const = default;
};

// Reads packages' own declarations (TOML, Python's syntax tree, mail headers) with a small isolated
// Python program that runs none of their code.
class PackageReader {
 public:
  // `python` is 3.11 or later, for its TOML parser.
  explicit PackageReader(std::filesystem::path python) : python_(std::move(python)) {}

  // Of a source folder with pyproject.toml, setup.py or setup.cfg.
  absl::StatusOr<PackageMetadata> ReadDeclared(const std::filesystem::path& folder) const;
  // Of an installed package's dist-info METADATA.
  absl::StatusOr<PackageMetadata> ReadInstalled(const std::filesystem::path& metadata) const;
  absl::StatusOr<std::vector<PinnedPackage>> ReadPylock(const std::string& text) const;

  // Compiles the .py files below `folder`, for trees that are read-only afterwards. Files that do
  // not compile are left to whoever imports them.
  absl::Status CompileBytecode(const std::filesystem::path& folder) const;

  // Compiles each first file into the second, which is empty where the first does not compile.
  // Returns what this Python calls its compiled files: "cpython-311" in a.cpython-311.pyc.
  absl::StatusOr<std::string> CompileFiles(
      const std::vector<std::pair<std::filesystem::path, std::filesystem::path>>& files) const;

  const std::filesystem::path& python() const { return python_; }

 private:
  std::filesystem::path python_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_PACKAGE_METADATA_H_
