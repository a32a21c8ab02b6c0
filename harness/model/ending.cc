// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/ending.h"

#include <algorithm>
#include <array>

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 20> kEndingKinds = {"completed",
                                                            "raised",
                                                            "exited",
                                                            "signalled",
                                                            "timed-out",
                                                            "limit",
                                                            "cancelled",
                                                            "lost",
                                                            "fork-failed",
                                                            "no-solution",
                                                            "install-failed",
                                                            "device-missing",
                                                            "not-offered",
                                                            "api-check",
                                                            "malformed",
                                                            "tree-not-allowed",
                                                            "source-incomplete",
                                                            "requirement-not-allowed",
                                                            "requirement-malformed",
                                                            "registry-unreachable"};

}  // namespace

absl::string_view Name(EndingKind kind) { return kEndingKinds[static_cast<size_t>(kind)]; }
std::optional<EndingKind> EndingKindFromName(absl::string_view name) {
  const auto* const found = std::find(kEndingKinds.begin(), kEndingKinds.end(), name);
  if (found == kEndingKinds.end()) return std::nullopt;
  return static_cast<EndingKind>(found - kEndingKinds.begin());
}

std::string ObservedEnding::told() const {
  return message.empty() ? std::string(Name(kind)) : message;
}

bool ObservedEnding::is_lost() const {
  return kind == EndingKind::kLost || kind == EndingKind::kForkFailed;
}

bool ObservedEnding::is_its_own() const {
  return !from_outside && (kind == EndingKind::kCompleted || kind == EndingKind::kRaised ||
                           kind == EndingKind::kExited);
}

void Describe(Fields& fields, ObservedEnding& ending) {
  fields.Name("kind", ending.kind, kEndingKinds);
  fields.Field("code", ending.code);
  fields.Field("signal", ending.signal);
  fields.Field("limit", ending.limit);
  fields.Field("from_outside", ending.from_outside);
  fields.Field("message", ending.message);
}

}  // namespace bkm
