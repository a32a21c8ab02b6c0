// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/verdict.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 13> kStages = {
    "resolve", "install",  "import", "construct", "load",   "backend", "mask",
    "forward", "backward", "step",   "golden",    "export", "resume"};
constexpr std::array<absl::string_view, 7> kKinds = {"ok",          "refused",  "broken", "wrong",
                                                     "unsupported", "spurious", "skipped"};

constexpr std::array<absl::string_view, 4> kOutcomes = {"passed", "failed", "unseen", "unreadable"};
constexpr std::array<absl::string_view, 3> kEffects = {"unknown", "not observed", "acts"};

template <typename Enum, size_t n>
std::optional<Enum> FromName(const std::array<absl::string_view, n>& names,
                             absl::string_view name) {
  for (size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// A failed claim, as run.json has it.
struct FailedClaim {
  std::string claim;
  Stage stage = Stage::kResolve;
  std::string reason;
  std::string message;
};

void Describe(Fields& fields, FailedClaim& failed) {
  fields.Field("claim", failed.claim);
  fields.Name("stage", failed.stage, kStages);
  fields.Field("reason", failed.reason);
  fields.Field("message", failed.message);
}

Json PlacesOf(const Finding& finding) {
  Json places = Json::array();
  for (const FailedPlace& place : finding.places) {
    places.push_back({{"where", place.where}, {"what", place.what}});
    if (place.size) places.back()["size"] = *place.size;
  }
  return places;
}

Json FailureOf(const Finding& finding) {
  Json failure = {{"claim", finding.claim},
                  {"stage", std::string(Name(finding.stage))},
                  {"reason", finding.reason},
                  {"message", finding.message},
                  {"places", PlacesOf(finding)}};
  if (finding.places_left_out > 0)
    failure["of_places"] = finding.places.size() + finding.places_left_out;
  return failure;
}

Json CheckOf(const Finding& finding) {
  Json check = finding.facts.is_object() ? finding.facts : Json::object();
  check["outcome"] = std::string(kOutcomes[static_cast<size_t>(finding.outcome)]);
  if (!finding.message.empty()) check["message"] = finding.message;
  return check;
}

Json ExceptionsOf(const Verdict& verdict) {
  Json chain = Json::array();
  for (const ToldException& exception : verdict.exceptions) {
    Json& json = chain.emplace_back(Json{{"what", exception.what}});
    if (exception.owner.empty()) continue;
    json["owner"] = exception.owner;
    json["statement"] = exception.statement;
    json["source"] = exception.source;
  }
  return chain;
}

void AdoptFailures(const Json& evidence, Verdict& verdict) {
  const Json& failures = ListOf(evidence, "failures");
  if (failures.empty()) return;
  verdict.findings.clear();
  for (const Json& failure : failures) {
    Finding& finding = verdict.findings.emplace_back(
        Finding{.claim = TextOf(failure, "claim"),
                .outcome = ClaimOutcome::kFailed,
                .stage = StageFromName(TextOf(failure, "stage")).value_or(Stage::kGolden),
                .reason = TextOf(failure, "reason"),
                .message = TextOf(failure, "message")});
    for (const Json& place : ListOf(failure, "places"))
      finding.places.push_back(
          {TextOf(place, "where"), TextOf(place, "what"), FiniteOf(place, "size")});
    const auto all = static_cast<size_t>(std::max<int64_t>(
        WholeOf(failure, "of_places").value_or(0), static_cast<int64_t>(finding.places.size())));
    finding.places_left_out = all - finding.places.size();
  }
  verdict.failures = verdict.findings.size();
}

void AdoptChecks(const Json& evidence, Verdict& verdict) {
  for (const auto& [name, check] : ObjectOf(evidence, "checks").items()) {
    if (!check.is_object()) continue;
    auto finding = std::find_if(verdict.findings.begin(), verdict.findings.end(),
                                [&](const Finding& known) { return known.claim == name; });
    if (finding == verdict.findings.end()) {
      verdict.findings.push_back({.claim = name, .message = TextOf(check, "message")});
      finding = std::prev(verdict.findings.end());
    }
    finding->outcome =
        FromName<ClaimOutcome>(kOutcomes, TextOf(check, "outcome")).value_or(ClaimOutcome::kUnseen);
    finding->facts = check;
    finding->facts.erase("outcome");
    finding->facts.erase("message");
  }
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

std::string StandInNote(const Verdict& verdict) {
  return verdict.stand_ins.empty() ? "" : " (stand-in kernel)";
}

bool SaysSomething(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kOk || verdict.kind == VerdictKind::kRefused ||
         verdict.kind == VerdictKind::kBroken || verdict.kind == VerdictKind::kWrong;
}

bool HasNumbers(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kOk || verdict.kind == VerdictKind::kWrong;
}

const Finding* Verdict::Find(absl::string_view claim) const {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.claim == claim; });
  return found == findings.end() ? nullptr : &*found;
}

const Finding* Verdict::Deciding() const {
  if (kind != VerdictKind::kWrong) return nullptr;
  const std::span<const Finding> failed = Failed();
  const auto found = std::find_if(failed.begin(), failed.end(), [&](const Finding& finding) {
    return finding.stage == stage && finding.reason == reason;
  });
  return found == failed.end() ? nullptr : &*found;
}

Verdict OutlineOf(Verdict verdict) {
  verdict.findings.resize(verdict.failures);
  for (Finding& finding : verdict.findings) {
    finding.facts = Json::object();
    finding.places.clear();
    finding.places_left_out = 0;
  }
  verdict.diagnosis.reset();
  verdict.factor.clear();
  verdict.ranks.clear();
  verdict.last_stage.reset();
  verdict.exceptions.clear();
  return verdict;
}

Json EvidenceOf(const Verdict& verdict) {
  Json evidence = Json::object();
  for (const Finding& finding : verdict.findings) {
    if (&finding == verdict.Find(finding.claim))
      evidence["checks"][finding.claim] = CheckOf(finding);
  }
  for (const Finding& failed : verdict.Failed()) evidence["failures"].push_back(FailureOf(failed));
  if (verdict.diagnosis)
    evidence["diagnosis"] = {{"answer", verdict.diagnosis->answer},
                             {"error", verdict.diagnosis->error},
                             {"multiple", verdict.diagnosis->multiple}};
  if (!verdict.factor.empty()) evidence["factor"] = verdict.factor;
  if (!verdict.ranks.empty()) evidence["ranks"] = verdict.ranks;
  if (verdict.last_stage) evidence["last_stage"] = std::string(Name(*verdict.last_stage));
  if (!verdict.exceptions.empty()) evidence["exceptions"] = ExceptionsOf(verdict);
  return evidence;
}

void AdoptEvidence(const Json& evidence, Verdict& verdict) {
  AdoptFailures(evidence, verdict);
  AdoptChecks(evidence, verdict);
  const Json& diagnosis = ObjectOf(evidence, "diagnosis");
  // JSON has no infinity: a missing number means a floor of 0.
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (const std::string answer = TextOf(diagnosis, "answer"); !answer.empty())
    verdict.diagnosis = {answer, FiniteOf(diagnosis, "error").value_or(kInfinite),
                         FiniteOf(diagnosis, "multiple").value_or(kInfinite)};
  verdict.factor = TextOf(evidence, "factor");
  for (const Json& clause : ListOf(evidence, "ranks")) {
    if (clause.is_string()) verdict.ranks.push_back(clause.get<std::string>());
  }
  verdict.last_stage = StageFromName(TextOf(evidence, "last_stage"));
  for (const Json& exception : ListOf(evidence, "exceptions"))
    verdict.exceptions.push_back({TextOf(exception, "what"), TextOf(exception, "owner"),
                                  TextOf(exception, "statement"), TextOf(exception, "source")});
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
  std::vector<FailedClaim> failures;
  for (const Finding& failed : verdict.Failed())
    failures.push_back({failed.claim, failed.stage, failed.reason, failed.message});
  fields.Field("failures", failures, Presence::kOmitted);
  if (fields.reading()) {
    for (const FailedClaim& failed : failures)
      verdict.findings.push_back({.claim = failed.claim,
                                  .outcome = ClaimOutcome::kFailed,
                                  .stage = failed.stage,
                                  .reason = failed.reason,
                                  .message = failed.message});
    verdict.failures = verdict.findings.size();
  }
  fields.Field("effects", verdict.effects, Presence::kOmitted);
  fields.Field("stand_ins", verdict.stand_ins, Presence::kOmitted);
}

void Describe(Fields& fields, Verdict& verdict) {
  DescribeOutcome(fields, verdict);
  Json evidence = EvidenceOf(verdict);
  fields.Field("evidence", evidence, Presence::kOptional);
  if (fields.reading()) AdoptEvidence(evidence, verdict);
}

Json ToJson(const Verdict& verdict) { return Json(WriteFields(verdict)); }

absl::StatusOr<Verdict> VerdictFromJson(const Json& json, const std::string& origin) {
  return ReadFields<Verdict>(json, origin);
}

}  // namespace bkm
