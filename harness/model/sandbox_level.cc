// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/sandbox_level.h"

#include <algorithm>

namespace bkm {
namespace {

constexpr absl::string_view kFullWithGpu = "full-gpu";

// Larger is weaker.
int Rank(absl::string_view recorded) {
  if (recorded == Name(SandboxLevel::kFull)) return 0;
  if (recorded == kFullWithGpu) return 1;
  if (recorded.empty()) return 2;
  return recorded == Name(SandboxLevel::kWeak) ? 3 : 4;
}

}  // namespace

const std::vector<std::string>& SandboxLevelNames() {
  static const std::vector<std::string>& kNames =
      *new std::vector<std::string>{"full", "weak", "off"};
  return kNames;
}

absl::string_view Name(SandboxLevel level) {
  return SandboxLevelNames()[static_cast<size_t>(level)];
}

std::optional<SandboxLevel> SandboxLevelFromName(absl::string_view name) {
  const std::vector<std::string>& names = SandboxLevelNames();
  const auto it = std::find(names.begin(), names.end(), std::string(name));
  if (it == names.end()) return std::nullopt;
  return static_cast<SandboxLevel>(it - names.begin());
}

const std::vector<std::string>& RecordedLevelNames() {
  static const std::vector<std::string>& kNames =
      *new std::vector<std::string>{"full", std::string(kFullWithGpu), "weak", "off"};
  return kNames;
}

std::string LevelOnDevice(const std::string& recorded, absl::string_view device) {
  return device != "cpu" && recorded == Name(SandboxLevel::kFull) ? std::string(kFullWithGpu)
                                                                  : recorded;
}

std::string WeakerLevel(const std::string& a, const std::string& b) {
  return Rank(a) >= Rank(b) ? a : b;
}

std::string LevelText(absl::string_view recorded) {
  return recorded.empty() ? "not recorded" : std::string(recorded);
}

}  // namespace bkm
