// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_VERDICT_H_
#define HARNESS_MODEL_VERDICT_H_

#include <optional>
#include <span>
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

// What a claim came to. Written to verdict.json: never rename.
enum class ClaimOutcome {
  kPassed,
  kFailed,      // the cell did not do what was asked: `wrong`
  kUnseen,      // the fact was not observed: the claim is undecided
  kUnreadable,  // a file that the claim needs is missing or corrupt: it is undecided
};

// One place at which a claim failed: a tensor, a step, a layer.
struct FailedPlace {
  std::string where;  // "step 2, model.norm.weight"
  std::string what;   // a sentence
  // The error in units of what is allowed, which are floors for numbers; absent where it is not a
  // matter of more or less, or infinitely much.
  std::optional<double> size = {};
  bool operator==(const FailedPlace&) const = default;
};

// What one claim of a cell came to. A claim that fails for several reasons has a finding for each.
struct Finding {
  std::string claim;  // "load"
  ClaimOutcome outcome = ClaimOutcome::kPassed;
  // Stage and reason are written of a failure only: a passed finding of a file has the defaults.
  Stage stage = Stage::kGolden;
  std::string reason = {};
  std::string message = {};  // a sentence; empty when passed
  // The numbers, floors and names that were compared. Each claim declares them as a struct beside
  // its check, which Json holds here: FactsOf<NumbersFacts>(finding).
  Json facts = Json::object();
  // Of a failure: the places, the worst first. Empty: `message` says it all.
  std::vector<FailedPlace> places = {};
  size_t places_left_out = 0;
  bool operator==(const Finding&) const = default;
};

// The facts of a finding as the struct that its claim declares. Default where they are missing or
// malformed, as in files of other versions.
template <typename Facts>
Facts FactsOf(const Finding& finding) {
  return ReadFields<Facts>(finding.facts, "facts", FieldStyle::kSparse).value_or(Facts());
}
template <typename Facts>
Facts FactsOf(const Finding* finding) {
  return finding ? FactsOf<Facts>(*finding) : Facts();
}
// The same, written.
template <typename Facts>
Json FactsJson(const Facts& facts) {
  return Json(WriteFields(facts, FieldStyle::kSparse));
}

// A predicted wrong answer that the cell's log-probs match.
struct Diagnosis {
  std::string answer;   // its name in the golden file: "causal-across-documents"
  double error = 0;     // mean |difference| of log-probs over judged tokens, in nats
  double multiple = 0;  // of the floor; infinite if the floor is 0
  bool operator==(const Diagnosis&) const = default;
};

// An exception that stopped a cell, and the line of it that decides.
struct ToldException {
  std::string what;       // "ImportError: cannot import name ..."
  std::string owner;      // of the deepest frame: "library"; empty without frames
  std::string statement;  // what Python was doing there: "import"
  std::string source;     // the line
  bool operator==(const ToldException&) const = default;
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
  // What each claim came to: first those that failed, the one that explains most before the others.
  // run.json has only the failures, without facts and places.
  std::vector<Finding> findings = {};
  // How many of them count as failures. A failed claim does not where the library was not asked.
  size_t failures = 0;
  // Of an ok: the errors that no witness could have seen, such as "errors of 100 % in the gradients
  // of 3 of 9 tensors", because the floor allows them or nothing shows them.
  std::vector<std::string> blind = {};
  // Of each engine option that was asked for, by name.
  std::vector<OptionEffect> effects = {};
  // Of an ok or a wrong: packages for whose kernels a stand-in of bkm ran, such as "flash_attn".
  std::vector<std::string> stand_ins = {};
  // Of a wrong: what its numbers are instead. Not in run.json.
  std::optional<Diagnosis> diagnosis = {};
  std::string factor = {};              // between its gradients and the right ones, as a clause
  std::vector<std::string> ranks = {};  // clauses in terms of ranks
  // Of a cell that stopped: the last stage that it entered, and its chain of exceptions. Not in
  // run.json.
  std::optional<Stage> last_stage = {};
  std::vector<ToldException> exceptions = {};
  bool operator==(const Verdict&) const = default;

  // The claim's first finding; nullptr if it was not judged.
  const Finding* Find(absl::string_view claim) const;
  std::span<const Finding> Failed() const { return {findings.data(), failures}; }
  // The failed claim that the verdict names; nullptr where the cell's ending or nothing decides.
  const Finding* Deciding() const;
};

// The verdict as run.json and the published table keep it.
Verdict OutlineOf(Verdict verdict);
// All that a verdict rests on, as verdict.json has it under "evidence".
Json EvidenceOf(const Verdict& verdict);
// Reads what EvidenceOf wrote, of this or an older version. What is malformed is left out.
void AdoptEvidence(const Json& evidence, Verdict& verdict);

// A verdict without its message: "ok" or "wrong at golden, log-probs-off".
std::string ShortText(absl::string_view kind, absl::string_view stage, absl::string_view reason);
std::string ShortText(const Verdict& verdict);

// " (stand-in kernel)" behind a verdict's name where code of bkm ran for a kernel; else empty.
std::string StandInNote(const Verdict& verdict);

// False for spurious, unsupported and skipped, which say nothing about the pair.
bool SaysSomething(const Verdict& verdict);

// Whether the cell completed and was compared with the golden. Only then it has the numbers of
// every step.
bool HasNumbers(const Verdict& verdict);

void Describe(Fields& fields, OptionEffect& effect);
// The fields of a verdict's outline, for structs that contain them inline.
void DescribeOutcome(Fields& fields, Verdict& verdict);
void Describe(Fields& fields, Verdict& verdict);
Json ToJson(const Verdict& verdict);
absl::StatusOr<Verdict> VerdictFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_MODEL_VERDICT_H_
