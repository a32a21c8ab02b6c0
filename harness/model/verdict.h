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

// The ladder a cell climbs, lowest rung first. Written to run.json and published: never rename,
// never reorder.
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
};

// Closed and stable. Written to run.json and published: never rename.
enum class VerdictKind {
  kOk,
  kRefused,      // a clear error names what is unsupported
  kBroken,       // it stopped
  kWrong,        // it ran, and is not what was asked
  kUnsupported,  // the harness or the device cannot
  kSpurious,     // not the subject's fault: says nothing about it
  kSkipped,
};

absl::string_view Name(Stage stage);
absl::string_view Name(VerdictKind kind);
std::optional<Stage> StageFromName(absl::string_view name);
std::optional<VerdictKind> VerdictKindFromName(absl::string_view name);

// What the judge says of an observation.
struct Verdict {
  VerdictKind kind = VerdictKind::kSkipped;
  Stage stage = Stage::kResolve;   // the failing stage of a red cell, golden for an ok
  std::string reason;              // a stable kebab-case code; empty for an ok
  std::string message;             // one sentence for people
  std::vector<std::string> blame;  // sorted, out of engine, library, interface, runtime, harness
  Json evidence = Json::object();  // what the judge compared: numbers, floors, names
  bool operator==(const Verdict&) const = default;
};

// "ok", "wrong at golden, log-probs-off": a verdict in short, without its sentence.
std::string ShortText(absl::string_view kind, absl::string_view stage, absl::string_view reason);
std::string ShortText(const Verdict& verdict);

// Whether it is about the pair: spurious, unsupported and skipped say nothing of it.
bool SaysSomething(const Verdict& verdict);

// Whether the cell came to its end and was held against the golden: only then has it the numbers of
// every step.
bool HasNumbers(const Verdict& verdict);

// The fields of a verdict but its evidence, for structs that spell them out flat.
void DescribeOutcome(Fields& fields, Verdict& verdict);
void Describe(Fields& fields, Verdict& verdict);
Json ToJson(const Verdict& verdict);
absl::StatusOr<Verdict> VerdictFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_MODEL_VERDICT_H_
