// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/runtime_policy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr std::array<absl::string_view, 4> kKinds = {"as-of", "newest", "locked", "existing"};

// "YYYY-MM-DD".
std::optional<std::chrono::sys_days> ParseDay(absl::string_view text) {
  int year = 0, month = 0, day = 0;
  const std::vector<absl::string_view> fields = absl::StrSplit(text, '-');
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &year) ||
      !absl::SimpleAtoi(fields[1], &month) || !absl::SimpleAtoi(fields[2], &day)) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

}  // namespace

absl::string_view Name(PolicyKind kind) { return kKinds[static_cast<size_t>(kind)]; }

absl::StatusOr<RuntimePolicy> RuntimePolicyFromJson(const Json& json, const fs::path& origin) {
  ObjectReader reader(json, origin.string());
  RuntimePolicy policy;
  reader.Int("schema", 0, 1, 1);
  if (!reader.Has("schema")) reader.Fail("schema", "1 is needed here");
  policy.name = reader.String("name");
  const std::string kind =
      reader.OneOf("policy", std::vector<std::string>(kKinds.begin(), kKinds.end()));
  policy.policy = static_cast<PolicyKind>(
      std::min<size_t>(std::find(kKinds.begin(), kKinds.end(), kind) - kKinds.begin(), 3));
  policy.python = reader.String("python");
  if (policy.policy == PolicyKind::kLocked) {
    policy.lock = origin.parent_path() / reader.String("lock");
  } else if (policy.policy == PolicyKind::kExisting) {
    policy.interpreter = origin.parent_path() / reader.String("interpreter");
  } else {
    policy.torch = reader.String("torch");
    if (policy.policy == PolicyKind::kAsOf && reader.Has("day")) {
      const std::string day = reader.String("day");
      policy.day = ParseDay(day);
      if (!policy.day)
        reader.Fail("day", absl::StrCat("'", day, "' is not a day such as 2026-04-30"));
    }
    policy.torch_backend = reader.String("torch_backend", "");
    policy.base = reader.Strings("base");
    policy.torch_brings = reader.Strings("torch_brings");
    policy.torch_dictates = reader.Strings("torch_dictates");
    if (std::none_of(policy.base.begin(), policy.base.end(), [](const std::string& requirement) {
          return absl::StrContains(requirement, "{torch}");
        })) {
      reader.Fail("base", "a requirement with {torch} is needed, such as torch=={torch}");
    }
  }
  if (policy.name != origin.stem().string()) {
    reader.Fail("name", absl::StrCat("'", policy.name, "' is not the file's name"));
  }
  RETURN_IF_ERROR(reader.Finish());
  return policy;
}

std::vector<std::string> RuntimePolicyNames(const std::vector<fs::path>& folders) {
  std::error_code error;
  std::set<std::string> known;
  for (const fs::path& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") known.insert(entry.path().stem());
    }
  }
  return {known.begin(), known.end()};
}

bool Brings(const RuntimePolicy& policy, absl::string_view package) {
  return std::any_of(policy.base.begin(), policy.base.end(), [&](absl::string_view requirement) {
    if (!absl::ConsumePrefix(&requirement, package)) return false;
    // "accelerate>=1", "accelerate [extra]": what follows a name is not a part of one.
    return requirement.empty() || (!absl::ascii_isalnum(requirement.front()) &&
                                   !absl::StrContains("-_.", requirement.substr(0, 1)));
  });
}

absl::StatusOr<RuntimePolicy> ReadRuntimePolicy(const std::vector<fs::path>& folders,
                                                const std::string& name) {
  std::error_code error;
  std::vector<std::string> places;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / absl::StrCat(name, ".json");
    if (fs::exists(path, error)) {
      ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
      return RuntimePolicyFromJson(json, path);
    }
    if (fs::exists(folder, error)) places.push_back(folder.string());
  }
  return absl::NotFoundError(absl::StrCat("no runtime '", name, "' in ",
                                          absl::StrJoin(places, " or "),
                                          DidYouMean(name, RuntimePolicyNames(folders))));
}

}  // namespace bkm
