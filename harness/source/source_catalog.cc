// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/source_catalog.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {

std::string NormalizedName(absl::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool separates = c == '-' || c == '_' || c == '.';
    if (!separates) {
      result += absl::ascii_tolower(c);
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  return result;
}

SourceCatalog::SourceCatalog() {
  sources_["verl"] = {"verl", "https://github.com/verl-project/verl", "verl"};
  sources_["torchtitan"] = {"torchtitan", "https://github.com/pytorch/torchtitan", "torchtitan"};
  sources_["transformers"] = {"transformers", "", "transformers", /*in_runtime=*/true};
}

absl::Status SourceCatalog::Add(const Json& sources, const std::string& origin,
                                const std::string& path) {
  if (!sources.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": ", path, ": an object is needed here, not ", sources.type_name()));
  }
  for (const auto& [name, json] : sources.items()) {
    ObjectReader reader(json, origin, absl::StrCat(path, ".", name));
    const auto known = sources_.find(NormalizedName(name));
    Source source = known != sources_.end() ? known->second : Source{.name = name};
    source.git = reader.String("git", source.git);
    source.package = reader.String("package", source.package);
    if (source.git.empty() && source.package.empty()) {
      reader.Fail("git", "a new source needs a URL or the package's import name");
    }
    if (source.package.empty()) {
      source.package = NormalizedName(name);
      std::replace(source.package.begin(), source.package.end(), '-', '_');
    }
    RETURN_IF_ERROR(reader.Finish());
    sources_[NormalizedName(name)] = source;
  }
  return absl::OkStatus();
}

const Source* SourceCatalog::Find(absl::string_view name) const {
  const auto found = sources_.find(NormalizedName(name));
  return found == sources_.end() ? nullptr : &found->second;
}

std::vector<std::string> SourceCatalog::names() const {
  std::vector<std::string> names;
  for (const auto& [key, source] : sources_) names.push_back(source.name);
  return names;
}

}  // namespace bkm
