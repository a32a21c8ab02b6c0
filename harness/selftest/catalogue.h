// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_CATALOGUE_H_
#define HARNESS_SELFTEST_CATALOGUE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/model/cell.h"
#include "harness/model/verdict.h"

namespace bkm {

// A set of cells. An empty list matches everything.
struct CellSet {
  std::vector<std::string> engines;  // kinds
  std::vector<std::string> attentions;
  std::vector<std::string> models;
  std::vector<std::string> devices;
  std::vector<std::string> drives;  // Probe::drive
  bool Has(const Cell& cell) const;
};

// What must catch a fault: the stage at which its cell is wrong, and the reason.
struct Expectation {
  CellSet where;
  Stage stage = Stage::kGolden;
  std::vector<std::string> reasons;  // one of these
  // kBroken: a kernel refuses what the fault gives it.
  VerdictKind verdict = VerdictKind::kWrong;
};

// Cells in which a fault is seen less well than elsewhere, and the reason.
struct WeakSpot {
  CellSet where;
  std::string why;
};

// One fault that harness/cell/python/bkm_cell/faults can plant.
struct CatalogueFault {
  std::string id;
  std::string breaks;        // one sentence
  bool is_numeric = false;   // caught by its distance from the golden; else by a witness
  bool is_harmless = false;  // mathematically without effect: its cells must stay `ok`
  // Only a fault that names the drive "trainer" is planted in a cell that a trainer drives.
  CellSet where;
  Json probe = Json::object();  // merge patch for the probe that makes the fault act
  std::vector<Expectation> caught_by;
  // The predicted wrong answer (harness/reference/predicted.h) that this fault gives; "" if there
  // is none. A verdict that names it needs no margin.
  std::string answer;
  std::vector<WeakSpot> invisible;  // no check can see it: its cells must be `ok`
  std::vector<WeakSpot> thin;       // it is caught, by less than the margin that is asked elsewhere

  // nullptr if the catalogue expects nothing in this cell.
  const Expectation* ExpectationFor(const Cell& cell) const;
  // nullptr if a check must see the fault in this cell.
  const WeakSpot* InvisibleIn(const Cell& cell) const;
  // nullptr if this cell must have the whole margin.
  const WeakSpot* ThinIn(const Cell& cell) const;
};

struct Catalogue {
  std::vector<CatalogueFault> faults;
  std::vector<CellFilter> smoke;  // a quick self-test plants the cells that match one of these
};

// A fault that names no models is planted in the models of the catalogue's own key `models`.
// Parsing is strict: unknown keys, names and reasons are errors that name file and place.
absl::StatusOr<Catalogue> CatalogueFromJson(const Json& json, const std::string& origin);
absl::StatusOr<Catalogue> ReadCatalogue(const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_CATALOGUE_H_
