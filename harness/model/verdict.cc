// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/verdict.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 13> kStages = {
    "resolve", "install",  "import", "construct", "load",   "backend", "mask",
    "forward", "backward", "step",   "golden",    "export", "resume"};
constexpr std::array<absl::string_view, 7> kKinds = {"ok",          "refused",  "broken", "wrong",
                                                     "unsupported", "spurious", "skipped"};

constexpr std::array<absl::string_view, 3> kEffects = {"unknown", "not observed", "acts"};

template <typename Enum, size_t n>
std::optional<Enum> FromName(const std::array<absl::string_view, n>& names,
                             absl::string_view name) {
  for (size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

absl::string_view Name(Stage stage) { return kStages[static_cast<size_t>(stage)]; }
absl::string_view Name(VerdictKind kind) { return kKinds[static_cast<size_t>(kind)]; }
absl::string_view Name(EffectKind kind) { return kEffects[static_cast<size_t>(kind)]; }
std::optional<Stage> StageFromName(absl::string_view name) {
  return FromName<Stage>(kStages, name);
}
std::optional<VerdictKind> VerdictKindFromName(absl::string_view name) {
  return FromName<VerdictKind>(kKinds, name);
}

std::string ShortText(absl::string_view kind, absl::string_view stage, absl::string_view reason) {
  return reason.empty() ? std::string(kind) : absl::StrCat(kind, " at ", stage, ", ", reason);
}

std::string ShortText(const Verdict& verdict) {
  return ShortText(Name(verdict.kind), Name(verdict.stage), verdict.reason);
}

bool SaysSomething(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kOk || verdict.kind == VerdictKind::kRefused ||
         verdict.kind == VerdictKind::kBroken || verdict.kind == VerdictKind::kWrong;
}

bool HasNumbers(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kOk || verdict.kind == VerdictKind::kWrong;
}

void Describe(Fields& fields, FailedClaim& failed) {
  fields.Field("claim", failed.claim);
  fields.Name("stage", failed.stage, kStages);
  fields.Field("reason", failed.reason);
  fields.Field("message", failed.message);
}

void Describe(Fields& fields, OptionEffect& effect) {
  fields.Field("option", effect.option);
  fields.Name("effect", effect.kind, kEffects);
  fields.Field("seen", effect.seen);
}

void DescribeOutcome(Fields& fields, Verdict& verdict) {
  fields.Name("verdict", verdict.kind, kKinds);
  fields.Name("stage", verdict.stage, kStages);
  fields.Field("reason", verdict.reason);
  fields.Field("message", verdict.message);
  fields.Field("blame", verdict.blame, Presence::kOptional);
  fields.Field("blind", verdict.blind, Presence::kOmitted);
  fields.Field("failures", verdict.failures, Presence::kOmitted);
  fields.Field("effects", verdict.effects, Presence::kOmitted);
}

void Describe(Fields& fields, Verdict& verdict) {
  DescribeOutcome(fields, verdict);
  fields.Field("evidence", verdict.evidence, Presence::kOptional);
}

Json ToJson(const Verdict& verdict) { return Json(WriteFields(verdict)); }

absl::StatusOr<Verdict> VerdictFromJson(const Json& json, const std::string& origin) {
  return ReadFields<Verdict>(json, origin);
}

}  // namespace bkm
