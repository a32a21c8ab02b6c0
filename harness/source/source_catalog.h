// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_SOURCE_CATALOG_H_
#define HARNESS_SOURCE_SOURCE_CATALOG_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// Where an engine or library comes from and how it is imported.
struct Source {
  std::string name;     // in git:NAME@REV and pypi:NAME==VERSION
  std::string git;      // URL; empty when the source is only on PyPI
  std::string package;  // import name
  // True for a package of the runtime that a spec pins. False for a source tree on the cell's path.
  bool in_runtime = false;
  bool operator==(const Source&) const = default;
};

// The sources that specs may name: verl, torchtitan, transformers and those that a matrix adds.
class SourceCatalog {
 public:
  SourceCatalog();

  // Adds a matrix's "sources": {"NAME": {"git": URL, "package": IMPORT_NAME}}. Both keys are
  // optional for a built-in name. Strict: errors name `origin` and `path`.
  absl::Status Add(const Json& sources, const std::string& origin, const std::string& path);

  // Null for an unknown name. Names are compared as PEP 503 says.
  const Source* Find(absl::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, Source> sources_;
};

// Normalizes a name by PEP 503: lower case, with one dash for every run of dashes, dots and
// underscores.
std::string NormalizedName(absl::string_view name);

}  // namespace bkm

#endif  // HARNESS_SOURCE_SOURCE_CATALOG_H_
