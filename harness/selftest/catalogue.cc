// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/catalogue.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/judge/reasons.h"
#include "harness/model/engine_kind.h"

namespace bkm {
namespace {

bool IsAmong(const std::string& name, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> KnownReasons() {
  std::vector<std::string> reasons;
  for (const reason::Entry& entry : reason::All()) reasons.push_back(entry.code);
  return reasons;
}

std::vector<std::string> KnownAttentions() {
  std::set<std::string> names;
  for (const EngineKind& kind : EngineKinds())
    names.insert(kind.attentions.begin(), kind.attentions.end());
  return {names.begin(), names.end()};
}

void CheckKnown(ObjectReader& reader, const char* key, const std::vector<std::string>& values,
                const std::vector<std::string>& known) {
  for (const std::string& value : values) {
    if (std::find(known.begin(), known.end(), value) == known.end())
      reader.Fail(key, absl::StrCat("unknown name '", value, "'", DidYouMean(value, known)));
  }
}

absl::StatusOr<CellSet> ReadCellSet(ObjectReader& outer, const char* key) {
  CellSet set;
  const Json* json = outer.Child(key);
  if (json == nullptr) return set;
  ObjectReader reader(*json, outer.origin(), outer.PathOf(key));
  set.engines = reader.Strings("engines");
  CheckKnown(reader, "engines", set.engines, EngineKindNames());
  set.attentions = reader.Strings("attentions");
  CheckKnown(reader, "attentions", set.attentions, KnownAttentions());
  set.models = reader.Strings("models");
  set.devices = reader.Strings("devices");
  CheckKnown(reader, "devices", set.devices, {"cpu", "cuda"});
  set.drives = reader.Strings("drives");
  CheckKnown(reader, "drives", set.drives, {"engine", "trainer"});
  RETURN_IF_ERROR(reader.Finish());
  return set;
}

absl::StatusOr<Expectation> ReadExpectation(const Json& json, const std::string& origin,
                                            const std::string& path) {
  ObjectReader reader(json, origin, path);
  Expectation expectation;
  ASSIGN_OR_RETURN(expectation.where, ReadCellSet(reader, "where"));
  const std::string stage = reader.String("stage");
  if (const auto known = StageFromName(stage))
    expectation.stage = *known;
  else
    reader.Fail("stage", absl::StrCat("unknown stage '", stage, "'"));
  const std::string verdict = reader.String("verdict", std::string(Name(expectation.verdict)));
  if (const auto known = VerdictKindFromName(verdict))
    expectation.verdict = *known;
  else
    reader.Fail("verdict", absl::StrCat("unknown verdict '", verdict, "'"));
  expectation.reasons = reader.Strings("reasons");
  if (expectation.reasons.empty()) reader.Fail("reasons", "name at least one reason code");
  CheckKnown(reader, "reasons", expectation.reasons, KnownReasons());
  RETURN_IF_ERROR(reader.Finish());
  return expectation;
}

void ReadWeakSpots(ObjectReader& outer, const char* key, std::vector<WeakSpot>& spots) {
  outer.ForEach(key, [&](const Json& item, const std::string& at) -> absl::Status {
    ObjectReader reader(item, outer.origin(), at);
    WeakSpot& spot = spots.emplace_back();
    ASSIGN_OR_RETURN(spot.where, ReadCellSet(reader, "where"));
    spot.why = reader.String("why");
    return reader.Finish();
  });
}

// nullptr if no spot has the cell.
const WeakSpot* SpotOf(const std::vector<WeakSpot>& spots, const Cell& cell) {
  const auto it = std::find_if(spots.begin(), spots.end(),
                               [&](const WeakSpot& spot) { return spot.where.Has(cell); });
  return it == spots.end() ? nullptr : &*it;
}

absl::StatusOr<CatalogueFault> ReadFault(const Json& json, const std::string& origin,
                                         const std::string& path) {
  ObjectReader reader(json, origin, path);
  CatalogueFault fault;
  fault.id = reader.String("id");
  fault.breaks = reader.String("breaks");
  const std::string kind = reader.OneOf("kind", {"numeric", "exact", "harmless"});
  fault.is_numeric = kind == "numeric";
  fault.is_harmless = kind == "harmless";
  ASSIGN_OR_RETURN(fault.where, ReadCellSet(reader, "where"));
  if (const Json* probe = reader.Child("probe")) fault.probe = *probe;
  reader.ForEach("caught_by", [&](const Json& item, const std::string& at) -> absl::Status {
    ASSIGN_OR_RETURN(fault.caught_by.emplace_back(), ReadExpectation(item, origin, at));
    return absl::OkStatus();
  });
  fault.answer = reader.String("answer", "");
  ReadWeakSpots(reader, "invisible", fault.invisible);
  ReadWeakSpots(reader, "thin", fault.thin);
  if (fault.caught_by.empty() != fault.is_harmless)
    reader.Fail("caught_by", "every fault needs an entry here, a harmless one must have none");
  if (fault.is_harmless && !fault.invisible.empty())
    reader.Fail("invisible", "a harmless fault must be ok everywhere");
  if (!fault.is_numeric && !fault.thin.empty())
    reader.Fail("thin", "only a numeric fault has a margin");
  if (!fault.is_numeric && !fault.answer.empty())
    reader.Fail("answer", "only a numeric fault gives another answer");
  RETURN_IF_ERROR(reader.Finish());
  return fault;
}

}  // namespace

bool CellSet::Has(const Cell& cell) const {
  return IsAmong(cell.engine, engines) && IsAmong(cell.probe.attention, attentions) &&
         IsAmong(cell.probe.model, models) && IsAmong(cell.probe.device, devices) &&
         IsAmong(cell.probe.drive, drives);
}

const Expectation* CatalogueFault::ExpectationFor(const Cell& cell) const {
  const auto it = std::find_if(caught_by.begin(), caught_by.end(),
                               [&](const Expectation& e) { return e.where.Has(cell); });
  return it == caught_by.end() ? nullptr : &*it;
}

const WeakSpot* CatalogueFault::InvisibleIn(const Cell& cell) const {
  return SpotOf(invisible, cell);
}

const WeakSpot* CatalogueFault::ThinIn(const Cell& cell) const { return SpotOf(thin, cell); }

absl::StatusOr<Catalogue> CatalogueFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  Catalogue catalogue;
  std::set<std::string> ids;
  reader.Int("schema", 1, 1, 1);
  for (const std::string& text : reader.Strings("smoke")) {
    absl::StatusOr<CellFilter> filter = CellFilter::Parse(text);
    if (filter.ok())
      catalogue.smoke.push_back(*std::move(filter));
    else
      reader.Fail("smoke", std::string(filter.status().message()));
  }
  const std::vector<std::string> models = reader.Strings("models");
  reader.ForEach("faults", [&](const Json& item, const std::string& path) -> absl::Status {
    ASSIGN_OR_RETURN(CatalogueFault fault, ReadFault(item, origin, path));
    if (!ids.insert(fault.id).second)
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ": ", path, ".id: '", fault.id, "' is listed twice"));
    if (fault.where.models.empty()) fault.where.models = models;
    catalogue.faults.push_back(std::move(fault));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(reader.Finish());
  return catalogue;
}

absl::StatusOr<Catalogue> ReadCatalogue(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  return CatalogueFromJson(json, path.string());
}

}  // namespace bkm
