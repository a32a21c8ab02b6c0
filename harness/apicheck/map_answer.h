// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_MAP_ANSWER_H_
#define HARNESS_APICHECK_MAP_ANSWER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/api_map.h"
#include "harness/base/json.h"
#include "harness/source/git_sources.h"

namespace bkm {

// How a map knows that a partner works. Written to JSON: never rename.
enum class MapProof {
  kRan,       // this very pair ran
  kSameAsks,  // a pair ran whose engine asks the same of the library, by its sources
  kSources,   // by the sources only
};
const char* Name(MapProof proof);

// Neighbouring partners of the asked version that work with it.
struct MapStretch {
  int first = 0;  // places on the partner's axis, the oldest and the newest
  int last = 0;
  MapProof first_proof = MapProof::kSources;
  MapProof last_proof = MapProof::kSources;
  // How many of these commits a run proves: a run of the pair itself or, for a library, of an
  // engine that asks the same.
  int ran = 0;
  // The engine whose runs prove the ends: the asked one, or the newest that asks the same.
  int proven_with = 0;
};

// What a map says of one version: `bkm which`. Refers to the map.
struct MapAnswer {
  const ApiMap& map;
  bool of_engine = true;  // the asked version is an engine; else a library
  int asked = 0;          // place on its axis
  std::vector<MapStretch> stretches;
  // Place of the partner's release nearest to a stretch; of several that work, the newest.
  std::optional<int> nearest_release;
  bool release_works = false;
};

// The place on the map of "git:NAME@REV". NotFound where the map does not reach that commit.
absl::StatusOr<int> PlaceOnMap(const ApiMap& map, const std::string& spec, bool of_engine,
                               GitSources& git);
MapAnswer AskMap(const ApiMap& map, int asked, bool of_engine);

Json ToJson(const MapAnswer& answer);
// For people.
std::string ToText(const MapAnswer& answer);

}  // namespace bkm

#endif  // HARNESS_APICHECK_MAP_ANSWER_H_
