// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_COVERAGE_H_
#define HARNESS_PUBLISH_COVERAGE_H_

#include <string>
#include <vector>

#include "harness/publish/published_table.h"

namespace bkm {

// What a row that works was measured with: its models, precisions and layouts, and what a matrix
// can ask for. Each entry names the probes that showed it, so that one right cell vouches for
// itself only. Empty for a row that does not work.
struct Coverage {
  std::vector<std::string> ok;      // "micro-batches (qwen3 flex)"
  std::vector<std::string> not_ok;  // "entropy (qwen3 flex: wrong at golden, entropy-off)"
  // What no cell was asked for, or none could tell; what was measured with some models of the row
  // only; and what its ok cells could not have denied (Verdict::blind).
  std::vector<std::string> not_tested;
};

Coverage CoverageOf(const PublishedRow& row);

// Those for which nothing but the model, the attention, the precision and the documents was chosen:
// they say whether something works by default. All of them, where none is so.
std::vector<const PublishedCell*> PlainCells(std::vector<const PublishedCell*> cells);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_COVERAGE_H_
