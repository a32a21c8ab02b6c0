// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_REGISTRY_H_
#define HARNESS_PUBLISH_REGISTRY_H_

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/source/package_metadata.h"
#include "harness/source/uv.h"

namespace bkm {

// "name==version".
struct Pin {
  std::string name;
  std::string version;
  std::string text() const { return name + "==" + version; }
  auto operator<=>(const Pin&) const = default;
};

// The registry's current answer for a pin.
struct PinAnswer {
  std::optional<PinnedPackage> package;  // absent if the version is gone
  std::string yanked;                    // the registry's reason; empty if not yanked
};

// The package registry, through uv. Answers are cached in the object.
class Registry {
 public:
  // `python` has the version that runs the cells: it decides which files can be installed.
  Registry(Uv uv, std::filesystem::path python) : uv_(std::move(uv)), reader_(std::move(python)) {}

  // The newest release before a version, without pre-releases and yanked releases, or "".
  absl::StatusOr<std::string> ReleaseBefore(const std::string& package, const std::string& version);

  // The answer for each pin. `torch_backend` says where torch comes from unless the environment
  // does. Unavailable: network.
  absl::StatusOr<std::map<Pin, PinAnswer>> LookUp(const std::vector<Pin>& pins,
                                                  const std::string& torch_backend);

 private:
  absl::Status Ask(std::vector<Pin> pins, const std::string& torch_backend);
  std::vector<std::string> Arguments() const;

  const Uv uv_;
  const PackageReader reader_;
  std::map<Pin, PinAnswer> known_;
};

// The yanked pins in uv's warnings on stderr, with their reasons.
std::map<std::string, std::string> YankedIn(absl::string_view stderr_text);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_REGISTRY_H_
