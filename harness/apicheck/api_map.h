// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_API_MAP_H_
#define HARNESS_APICHECK_API_MAP_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/api_check.h"
#include "harness/apicheck/frontier.h"
#include "harness/base/json.h"

namespace bkm {

// A commit on an axis of the map.
struct MapCommit {
  std::string commit;  // 40 hex digits
  std::string date;
  std::string title;
  std::string release;  // a tag of this commit; empty: none
  bool operator==(const MapCommit&) const = default;
};

// A pair that ran.
struct MapCell {
  PlanePoint point;
  std::string verdict;
  std::string stage;
  std::string reason;
  std::string id;
  RunOutcome outcome() const;
  bool operator==(const MapCell&) const = default;
};

// Neighbouring engines and neighbouring libraries that work together. The newest engine ran with
// the oldest and the newest library; the oldest engine and releases had the same outcomes.
struct WorkingBlock {
  int first_row = 0;
  int last_row = 0;
  int first_column = 0;
  int last_column = 0;
};

// Which pairs of one kind of engine and its library work, over two histories.
struct ApiMap {
  std::string engine_kind;
  std::string engine_source;   // "verl"
  std::string library_source;  // "torchtitan"
  std::string since;
  std::string attention;
  std::string model;
  int resolution = 0;              // as FrontierQuestions
  std::vector<MapCommit> engines;  // in the order of history
  std::vector<MapCommit> libraries;
  std::vector<std::vector<PairGrade>> plane;
  std::map<PlanePoint, MapCell> cells;
  bool finished = false;  // every boundary is decided

  // Releases are questions of the frontier.
  Frontier MakeFrontier() const;
  // The oldest bands first, and within a band the newest engines first.
  std::vector<WorkingBlock> Working() const;
};

Json ToJson(const ApiMap& map);
absl::StatusOr<ApiMap> ApiMapFromJson(const Json& json, const std::string& origin);
absl::StatusOr<ApiMap> ReadApiMap(const std::filesystem::path& file);

}  // namespace bkm

#endif  // HARNESS_APICHECK_API_MAP_H_
