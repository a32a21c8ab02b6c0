// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_facts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "harness/base/check.h"
#include "harness/base/json_facts.h"
#include "harness/base/shown_text.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr size_t kLongestFault = 500;
constexpr size_t kMostStages = 20'000;  // as the worker allows

std::optional<int64_t> SmallOf(const Json& json, absl::string_view key) {
  const std::optional<int64_t> number = WholeOf(json, key);
  return number && *number >= INT32_MIN && *number <= INT32_MAX ? number : std::nullopt;
}

// The worker's and the runner's own facts, as far as they are well-formed.
Json HarnessFacts(const Json& observation) {
  Json facts = {{"schema", 1}, {"stages", Json::array()}};
  for (const Json& stage : ListOf(observation, "stages")) {
    if (facts["stages"].size() == kMostStages) break;
    const std::string name = TextOf(stage, "stage");
    if (!StageFromName(name)) continue;
    Json entry = {{"stage", name}};
    for (const char* key : {"seconds", "rss_mib"}) {
      if (const auto number = FiniteOf(stage, key)) entry[key] = *number;
    }
    facts["stages"].push_back(std::move(entry));
  }
  for (const auto& [name, value] : ObjectOf(observation, "usage").items()) {
    if (value.is_number()) facts["usage"][name] = value;
  }
  for (const char* key : {"timeouts", "ignored_events"}) {
    if (const auto number = SmallOf(observation, key)) facts[key] = *number;
  }
  for (const auto& [name, value] : ObjectOf(observation, "versions").items()) {
    if (value.is_string()) facts["versions"][name] = value;
  }
  const Json& sandbox = ListOf(observation, "sandbox");
  if (std::all_of(sandbox.begin(), sandbox.end(), [](const Json& j) { return j.is_string(); }) &&
      !sandbox.empty())
    facts["sandbox"] = sandbox;
  if (const std::string measured = TextOf(observation, "measured"); !measured.empty())
    facts["measured"] = measured;
  return facts;
}

// The worker's own ending. A cell can influence that it finished or raised, and no other kind.
Json HarnessEnding(const Json& observation, absl::string_view fault) {
  const Json& reported = ObjectOf(observation, "ending");
  const std::string kind = TextOf(reported, "kind");
  if (!EndingKindFromName(kind) || kind == Name(EndingKind::kCompleted) ||
      kind == Name(EndingKind::kRaised) || kind == Name(EndingKind::kMalformed))
    return {{"kind", std::string(Name(EndingKind::kMalformed))}, {"message", std::string(fault)}};
  Json ending = {{"kind", kind}};
  for (const char* key : {"code", "signal"}) {
    if (const auto number = SmallOf(reported, key)) ending[key] = *number;
  }
  for (const char* key : {"limit", "message"}) {
    if (const std::string text = TextOf(reported, key); !text.empty()) ending[key] = text;
  }
  if (IsTrue(reported, "from_outside")) ending["from_outside"] = true;
  return ending;
}

// What is made here can be read.
Observation SeenIn(const Json& json) {
  absl::StatusOr<Observation> seen = ObservationFromJson(json, "observation");
  HARNESS_CHECK(seen.ok()) << seen.status();
  return *std::move(seen);
}

}  // namespace

CellFacts CellFacts::OfReport(Json reported) {
  absl::StatusOr<Observation> seen = ObservationFromJson(reported, "observation");
  const bool has_kind = !TextOf(ObjectOf(reported, "ending"), "kind").empty();
  if (seen.ok() && has_kind) return {std::move(reported), *std::move(seen)};
  return CellFacts(std::move(reported), {})
      .Malformed(seen.ok() ? "observation: $.ending.kind: it is missing" : seen.status().message());
}

absl::StatusOr<CellFacts> CellFacts::FromJson(Json json, const std::string& origin) {
  ASSIGN_OR_RETURN(Observation seen, ObservationFromJson(json, origin));
  return CellFacts(std::move(json), std::move(seen));
}

CellFacts CellFacts::NeverRan(EndingKind why, absl::string_view message,
                              std::optional<Stage> stage) {
  Json json = {
      {"schema", 1}, {"stages", Json::array()}, {"ending", {{"kind", std::string(Name(why))}}}};
  if (stage) json["stages"].push_back({{"stage", std::string(Name(*stage))}});
  if (!message.empty()) json["ending"]["message"] = std::string(message);
  Observation seen = SeenIn(json);
  return {std::move(json), std::move(seen)};
}

const Json& CellFacts::lines() const { return MemberOf(json_, "lines"); }

std::string CellFacts::measured() const { return TextOf(json_, "measured"); }

CellFacts CellFacts::Malformed(absl::string_view fault) const {
  Json json = HarnessFacts(json_);
  json["ending"] = HarnessEnding(json_, ShownLine(fault.substr(0, kLongestFault)));
  Observation seen = SeenIn(json);
  return {std::move(json), std::move(seen)};
}

void CellFacts::SetMeasured(std::string time) { json_["measured"] = std::move(time); }

void CellFacts::SetTimeouts(int64_t runs) { json_["timeouts"] = seen_.timeouts = runs; }

void CellFacts::SetCrashes(int64_t runs) { json_["crashes"] = seen_.crashes = runs; }

void CellFacts::SetMachine(const ObservedMachine& machine) {
  seen_.machine = machine;
  json_["machine"] = ToJson(machine);
}

}  // namespace bkm
