// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_TESTING_MAP_H_
#define HARNESS_APICHECK_TESTING_MAP_H_

#include "harness/apicheck/api_map.h"

namespace bkm {

// Two engines and two libraries, of which the first lacks what both engines use. The newest pair
// ran.
inline ApiMap ASmallMap() {
  ApiMap map{.engine_kind = "verl-torchtitan",
             .engine_source = "verl",
             .library_source = "torchtitan",
             .since = "2026-02-01",
             .attention = "flex",
             .model = "qwen3",
             .engines = {{"e1", "2026-02-01", "a <b>", ""}, {"e2", "2026-02-02", "b", "v1"}},
             .libraries = {{"l1", "2026-02-01", "", "v0"}, {"l2", "2026-03-01", "", ""}},
             .plane = {{PairGrade::kImport, PairGrade::kNothing},
                       {PairGrade::kImport, PairGrade::kNothing}}};
  map.cells[{1, 1}] = {.point = {1, 1}, .verdict = "ok", .stage = "golden", .id = "x"};
  return map;
}

}  // namespace bkm

#endif  // HARNESS_APICHECK_TESTING_MAP_H_
