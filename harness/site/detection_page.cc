// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/detection_page.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/status_macros.h"
#include "harness/selftest/detection.h"
#include "harness/site/evidence_view.h"
#include "harness/site/mutation_view.h"
#include "harness/site/verdict_view.h"

namespace bkm {
namespace {

using html::Element;
using html::Markup;

const CatalogueFault* FaultOf(const Catalogue* catalogue, const std::string& id) {
  if (!catalogue) return nullptr;
  for (const CatalogueFault& fault : catalogue->faults) {
    if (fault.id == id) return &fault;
  }
  return nullptr;
}

bool IsCaught(const ShownDetection& detection) { return detection.verdict == "wrong"; }

Markup CellOf(const ShownDetection* detection, bool harmless) {
  if (!detection) return Element("td", {{"class", "soft"}}, Element("span", "\u2013"));
  const auto kind = VerdictKindFromName(detection->verdict);
  const bool unexpected =
      !detection->outcome.empty() && detection->outcome != Name(DetectionOutcome::kAsExpected);
  Markup content;
  if (IsCaught(*detection)) {
    content << Element("span", {{"class", "verdict v-ok"}},
                       {Element("span", {{"class", "sign"}, {"aria-hidden", "true"}}, "\u2713"),
                        detection->check})
            << Element("span", {{"class", "why"}},
                       absl::StrCat(detection->reason,
                                    detection->floors
                                        ? absl::StrFormat(", %.0f floors", *detection->floors)
                                        : ""));
  } else if (kind == VerdictKind::kOk && (harmless || detection->fault.empty())) {
    content << VerdictBadge(kind) << Element("span", {{"class", "why"}}, "as expected");
  } else {
    content << VerdictBadge(kind) << Element("span", {{"class", "why"}}, "not caught");
  }
  if (unexpected) content << Element("strong", detection->outcome);
  return Element("td", content);
}

std::string Percent(size_t part, size_t whole) {
  return whole == 0 ? "" : absl::StrFormat("%zu of %zu", part, whole);
}

Markup FaultTable(const std::vector<ShownDetection>& detections, const Catalogue* catalogue,
                  const std::string& title) {
  if (detections.empty()) return {};
  std::set<std::string> columns;
  std::map<std::string, std::map<std::string, const ShownDetection*>> faults;
  size_t planted = 0, caught = 0, harmless = 0, free = 0, green = 0;
  for (const ShownDetection& detection : detections) {
    columns.insert(detection.column);
    faults[detection.fault].emplace(detection.column, &detection);
    const CatalogueFault* fault = FaultOf(catalogue, detection.fault);
    const bool is_harmless = fault && fault->is_harmless;
    if (detection.fault.empty()) {
      ++free;
      green += detection.verdict == "ok";
    } else if (is_harmless) {
      ++harmless;
    } else {
      ++planted;
      caught += IsCaught(detection);
    }
  }
  Markup head = Element("th", {{"scope", "col"}}, "planted fault");
  for (const std::string& column : columns) head << Element("th", {{"scope", "col"}}, column);
  Markup rows;
  for (const auto& [id, cells] : faults) {
    const CatalogueFault* fault = FaultOf(catalogue, id);
    Markup columns_of_row =
        Element("th", {{"scope", "row"}},
                {id.empty() ? Markup("no fault") : Element("code", id),
                 fault ? Element("span", {{"class", "why"}}, fault->breaks) : Markup()});
    for (const std::string& column : columns) {
      const auto cell = cells.find(column);
      columns_of_row << CellOf(cell == cells.end() ? nullptr : cell->second,
                               fault && fault->is_harmless);
    }
    rows << Element("tr", columns_of_row);
  }
  const std::string summary = absl::StrCat(
      "Caught: ", Percent(caught, planted), " planted faults",
      harmless > 0
          ? absl::StrCat("; ", harmless, " more are mathematically neutral and must stay ok")
          : "",
      free > 0 ? absl::StrCat("; green: ", Percent(green, free), " cells without a fault") : "",
      ".");
  return {
      Element("p", {{"class", "lead"}},
              "Known faults are planted in correct cells, below every witness. The table shows "
              "which check caught each fault."),
      Element("p", summary),
      ScrollBox(title, Element("table", {{"class", "faults"}},
                               {Element("caption",
                                        "The check that caught each fault, by kind of engine and "
                                        "attention. Floors: the error in noise floors; 4 are "
                                        "allowed. A dash: the fault does not apply there."),
                                Element("thead", Element("tr", head)), Element("tbody", rows)}))};
}

}  // namespace

absl::StatusOr<std::vector<ShownDetection>> ReadDetections(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  if (!json.is_object() || json.value("schema", Json()) != Json(1) ||
      !json.contains("detections") || !json["detections"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(),
                     ": is not a detection table of schema 1 (expected the output of bkm "
                     "selftest --json, or a file of golden/detection)"));
  }
  std::set<std::string> models;
  for (const Json& row : json["detections"]) models.insert(StringOf(row, "model"));
  std::vector<ShownDetection> detections;
  for (const Json& row : json["detections"]) {
    ShownDetection& detection = detections.emplace_back();
    detection.fault = StringOf(row, "fault");
    detection.column = absl::StrCat(StringOf(row, "engine"), ", ", StringOf(row, "attention"));
    if (models.size() > 1) absl::StrAppend(&detection.column, ", ", StringOf(row, "model"));
    detection.verdict = StringOf(row, "verdict");
    detection.stage = StringOf(row, "stage");
    detection.reason = StringOf(row, "reason");
    detection.check = StringOf(row, "check");
    detection.floors = NumberOf(row, "floors");
    detection.outcome = StringOf(row, "outcome");
  }
  return detections;
}

Page DetectionPage(const std::vector<ShownDetection>& detections, const Catalogue* catalogue,
                   const std::vector<MutatedPair>& mutated) {
  Page page;
  page.path = "detection.html";
  page.title = "How good the checks are";
  page.main << Element("h1", page.title) << FaultTable(detections, catalogue, page.title)
            << MutationSection(mutated);
  return page;
}

}  // namespace bkm
