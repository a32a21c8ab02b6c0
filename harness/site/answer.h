// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_ANSWER_H_
#define HARNESS_SITE_ANSWER_H_

#include <string>
#include <vector>

#include "harness/publish/published_table.h"

namespace bkm {

// What to tell somebody who asks for one kind of engine: chosen out of the table's rows.
struct Answer {
  std::string engine;                       // kind
  const PublishedRow* best = nullptr;       // newest engine, then newest library, that works; null
  const PublishedRow* releases = nullptr;   // the same of releases alone; null: none works
  int rows = 0;                             // pairs that were run
  int release_rows = 0;                     // of these, both sides releases
  std::vector<const PublishedRow*> others;  // the same engine version with other libraries; of a
                                            // kind without a best row, its newest rows
};

// One for each kind of engine in the table, controls left out. Points into `table`.
std::vector<Answer> AnswersOf(const PublishedTable& table);

// "verl 0.9.1 with torchtitan main"; a control is the library alone.
std::string PairLabel(const PublishedRow& row);

}  // namespace bkm

#endif  // HARNESS_SITE_ANSWER_H_
