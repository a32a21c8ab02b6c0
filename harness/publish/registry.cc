// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/registry.h"

#include <regex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"
#include "harness/source/source_catalog.h"

namespace bkm {

std::map<std::string, std::string> YankedIn(absl::string_view stderr_text) {
  static const auto& kYanked = *new std::regex("`([^`]+)` is yanked(?: \\(reason: \"(.*)\"\\))?");
  std::map<std::string, std::string> yanked;
  for (absl::string_view line : absl::StrSplit(stderr_text, '\n')) {
    std::smatch match;
    const std::string text(line);
    if (std::regex_search(text, match, kYanked))
      yanked[match[1]] = match[2].matched && match[2].length() > 0 ? match[2].str() : "no reason";
  }
  return yanked;
}

std::vector<std::string> Registry::Arguments() const {
  return {"pip",       "compile",     "--python", reader_.python().string(),
          "--no-deps", "--no-header", "--format", "pylock.toml"};
}

absl::StatusOr<std::string> Registry::ReleaseBefore(const std::string& package,
                                                    const std::string& version) {
  std::vector<std::string> arguments = Arguments();
  arguments.insert(arguments.end(), {"--prerelease", "disallow", "-"});
  ASSIGN_OR_RETURN(const ProcessResult result,
                   uv_.LookUp(arguments, absl::StrCat(package, "<", version, "\n")));
  if (IsNoSolution(result)) return std::string();
  if (!result.ok()) return ErrorOf(result, absl::StrCat("cannot look up releases of ", package));
  ASSIGN_OR_RETURN(const std::vector<PinnedPackage> packages, reader_.ReadPylock(result.out));
  return packages.empty() ? std::string() : packages[0].version;
}

absl::Status Registry::Ask(std::vector<Pin> pins, const std::string& torch_backend) {
  std::vector<std::string> arguments = Arguments();
  for (const std::string& argument : TorchBackendArguments(torch_backend))
    arguments.push_back(argument);
  arguments.push_back("-");
  std::string requirements;
  for (const Pin& pin : pins) absl::StrAppend(&requirements, pin.text(), "\n");
  ASSIGN_OR_RETURN(const ProcessResult result, uv_.LookUp(arguments, requirements));
  if (IsNoSolution(result)) {
    // uv names only one missing pin, so each half is looked up separately.
    if (pins.size() == 1) {
      known_[pins[0]] = {};
      return absl::OkStatus();
    }
    const auto middle = pins.begin() + static_cast<int64_t>(pins.size() / 2);
    RETURN_IF_ERROR(Ask({pins.begin(), middle}, torch_backend));
    return Ask({middle, pins.end()}, torch_backend);
  }
  if (!result.ok()) return ErrorOf(result, "cannot look up packages");
  const std::map<std::string, std::string> yanked = YankedIn(result.err);
  ASSIGN_OR_RETURN(const std::vector<PinnedPackage> packages, reader_.ReadPylock(result.out));
  std::map<std::string, PinnedPackage> by_name;
  for (const PinnedPackage& package : packages) by_name[NormalizedName(package.name)] = package;
  for (const Pin& pin : pins) {
    PinAnswer& answer = known_[pin];
    if (const auto it = by_name.find(pin.name); it != by_name.end()) answer.package = it->second;
    if (const auto it = yanked.find(pin.text()); it != yanked.end()) answer.yanked = it->second;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<Pin, PinAnswer>> Registry::LookUp(const std::vector<Pin>& pins,
                                                          const std::string& torch_backend) {
  // A resolution has one version per name, so pins of one name need several.
  std::vector<Pin> left(pins);
  while (!left.empty()) {
    std::vector<Pin> now, later;
    std::set<std::string> names;
    for (const Pin& pin : left) {
      if (known_.contains(pin)) continue;
      (names.insert(pin.name).second ? now : later).push_back(pin);
    }
    if (!now.empty()) RETURN_IF_ERROR(Ask(std::move(now), torch_backend));
    left = std::move(later);
  }
  std::map<Pin, PinAnswer> answers;
  for (const Pin& pin : pins) answers[pin] = known_[pin];
  return answers;
}

}  // namespace bkm
