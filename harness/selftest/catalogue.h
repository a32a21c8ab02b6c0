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

// Some cells. An empty list stands for all.
struct CellSet {
  std::vector<std::string> engines;  // kinds
  std::vector<std::string> attentions;
  std::vector<std::string> models;
  bool Has(const Cell& cell) const;
};

// What must see a fault: the rung it makes a cell fall from, and why.
struct Expectation {
  CellSet where;
  Stage stage = Stage::kGolden;
  std::vector<std::string> reasons;  // any of these
};

// Where a fault exists and no check can see it, and the mathematical reason.
struct BlindSpot {
  CellSet where;
  std::string why;
};

// One fault that harness/cell/python/bkm_cell/faults can plant.
struct CatalogueFault {
  std::string id;
  std::string breaks;        // one sentence
  bool is_numeric = false;   // seen as a distance from the golden, in floors; else by a witness
  bool is_harmless = false;  // changes nothing by mathematics: its cells must stay `ok`
  CellSet where;
  Json probe = Json::object();  // what the probe must have for the fault to act, as a merge patch
  std::vector<Expectation> caught_by;
  std::vector<BlindSpot> invisible;

  // nullptr: nothing is said of this cell.
  const Expectation* ExpectationFor(const Cell& cell) const;
  // nullptr: the fault can be seen in this cell.
  const BlindSpot* BlindSpotFor(const Cell& cell) const;
};

struct Catalogue {
  std::vector<CatalogueFault> faults;
  std::vector<CellFilter> smoke;  // the planted cells of a quick self-test match one of these
};

// A fault that names no models is planted in those of the catalogue's own key `models`: what is the
// same in every model is proven in one. Strict, as all our JSON: unknown keys, names and reasons
// are errors that name file and place.
absl::StatusOr<Catalogue> CatalogueFromJson(const Json& json, const std::string& origin);
absl::StatusOr<Catalogue> ReadCatalogue(const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_CATALOGUE_H_
