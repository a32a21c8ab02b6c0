// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/runtime_lock.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {

std::string RuntimeLock::Key() const {
  std::string text = absl::StrCat("python ", python, "\n");
  for (const LockedPackage& package : packages) {
    absl::StrAppend(&text, package.name, "==", package.version, " ",
                    absl::StrJoin(package.sha256, " "), "\n");
  }
  return Sha256(text);
}

RuntimeLock ExistingLock(const std::string& runtime, const std::filesystem::path& interpreter,
                         const std::string& python,
                         const std::map<std::string, std::string>& packages) {
  RuntimeLock lock{
      .runtime = runtime, .policy = "existing", .python = python, .interpreter = interpreter};
  for (const auto& [name, version] : packages) lock.packages.push_back({name, version, {}});
  return lock;
}

std::string RuntimeLock::VersionOf(absl::string_view package) const {
  for (const LockedPackage& locked : packages) {
    if (locked.name == package) return locked.version;
  }
  return "";
}

std::string RuntimeLock::RequirementsText() const {
  std::string text;
  for (const LockedPackage& package : packages) {
    absl::StrAppend(&text, package.name, "==", package.version);
    for (const std::string& sha256 : package.sha256) {
      absl::StrAppend(&text, " --hash=sha256:", sha256);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

Json ToJson(const RuntimeLock& lock) {
  Json packages = Json::array();
  for (const LockedPackage& package : lock.packages) {
    packages.push_back(
        {{"name", package.name}, {"version", package.version}, {"sha256", package.sha256}});
  }
  Json json = {{"schema", 1},
               {"runtime", lock.runtime},
               {"policy", lock.policy},
               {"python", lock.python},
               {"cutoff", lock.cutoff},
               {"exempt", lock.exempt},
               {"torch_backend", lock.torch_backend},
               {"requirements", lock.requirements},
               {"relaxed", lock.relaxed},
               {"packages", packages}};
  if (!lock.interpreter.empty()) json["interpreter"] = lock.interpreter.string();
  return json;
}

absl::StatusOr<RuntimeLock> RuntimeLockFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  RuntimeLock lock;
  reader.Int("schema", 1, 1, 1);
  lock.runtime = reader.String("runtime");
  lock.policy = reader.String("policy");
  lock.python = reader.String("python");
  lock.cutoff = reader.String("cutoff", "");
  lock.exempt = reader.Strings("exempt");
  lock.torch_backend = reader.String("torch_backend", "");
  lock.requirements = reader.Strings("requirements");
  lock.relaxed = reader.Strings("relaxed");
  lock.interpreter = reader.String("interpreter", "");
  reader.ForEach("packages", [&](const Json& item, const std::string& path) {
    ObjectReader package(item, origin, path);
    lock.packages.push_back(
        {package.String("name"), package.String("version"), package.Strings("sha256")});
    return package.Finish();
  });
  RETURN_IF_ERROR(reader.Finish());
  return lock;
}

}  // namespace bkm
