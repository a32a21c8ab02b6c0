// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_VERDICT_H_
#define HARNESS_MODEL_VERDICT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"

namespace bkm {

// The stages of a cell, in order. Written to run.json and published: never rename or reorder.
enum class Stage {
  kResolve,
  kInstall,
  kImport,
  kConstruct,
  kLoad,
  kBackend,
  kMask,
  kForward,
  kBackward,
  kStep,
  kGolden,
  kExport,  // only if the probe asks for them
  kResume,
};

// Written to run.json and published: never rename or extend.
enum class VerdictKind {
  kOk,
  kRefused,      // a clear error says what is unsupported
  kBroken,       // an unclear error, a crash or a hang
  kWrong,        // it ran, but did not do what was asked
  kUnsupported,  // the harness or the device cannot run it
  kSpurious,     // failed for a reason outside of the subject
  kSkipped,
};

absl::string_view Name(Stage stage);
absl::string_view Name(VerdictKind kind);
std::optional<Stage> StageFromName(absl::string_view name);
std::optional<VerdictKind> VerdictKindFromName(absl::string_view name);

// One claim that failed.
struct FailedClaim {
  std::string claim;  // the check: "load"
  Stage stage = Stage::kResolve;
  std::string reason;
  std::string message;
  bool operator==(const FailedClaim&) const = default;
};

// Written to run.json and published: never rename.
enum class EffectKind {
  kUnknown,      // nobody compared, or not everything could be compared
  kNotObserved,  // accepted, and nothing that was seen is other than without it
  kActs,
};
absl::string_view Name(EffectKind kind);

// What an engine option that the probe names was seen to do.
struct OptionEffect {
  std::string option;
  EffectKind kind = EffectKind::kUnknown;
  std::string seen;  // what differs, or why it is unknown
  bool operator==(const OptionEffect&) const = default;
};

// The judge's result for one observation.
struct Verdict {
  VerdictKind kind = VerdictKind::kSkipped;
  Stage stage = Stage::kResolve;   // the stage that failed; golden for an ok
  std::string reason;              // stable kebab-case code; empty for an ok
  std::string message;             // one sentence for people
  std::vector<std::string> blame;  // sorted; of engine, library, interface, runtime, harness
  Json evidence = Json::object();  // the numbers, floors and names that were compared
  // Of an ok: the errors that no witness could have seen, such as "errors of 100 % in the gradients
  // of 3 of 9 tensors", because the floor allows them or nothing shows them.
  std::vector<std::string> blind = {};
  // Of a wrong: every claim that failed, the one of the verdict first. Their places are in the
  // evidence, under "failures".
  std::vector<FailedClaim> failures = {};
  // Of each engine option that was asked for, by name.
  std::vector<OptionEffect> effects = {};
  bool operator==(const Verdict&) const = default;
};

// A verdict without its message: "ok" or "wrong at golden, log-probs-off".
std::string ShortText(absl::string_view kind, absl::string_view stage, absl::string_view reason);
std::string ShortText(const Verdict& verdict);

// False for spurious, unsupported and skipped, which say nothing about the pair.
bool SaysSomething(const Verdict& verdict);

// Whether the cell completed and was compared with the golden. Only then it has the numbers of
// every step.
bool HasNumbers(const Verdict& verdict);

void Describe(Fields& fields, FailedClaim& failed);
void Describe(Fields& fields, OptionEffect& effect);
// The fields of a verdict without its evidence, for structs that contain them inline.
void DescribeOutcome(Fields& fields, Verdict& verdict);
void Describe(Fields& fields, Verdict& verdict);
Json ToJson(const Verdict& verdict);
absl::StatusOr<Verdict> VerdictFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_MODEL_VERDICT_H_
