// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ANSWER_H_
#define HARNESS_PUBLISH_ANSWER_H_

#include <string>
#include <vector>

#include "harness/publish/published_table.h"

namespace bkm {

// The recommendation for one kind of engine, chosen from the table's rows.
struct Answer {
  std::string engine;                      // kind
  const PublishedRow* best = nullptr;      // works; newest engine, then newest library; null: none
  const PublishedRow* releases = nullptr;  // the same among releases; null: none works
  int rows = 0;                            // pairs that were run
  int release_rows = 0;                    // pairs of two releases
  // Rows of the same engine version with other libraries; without a best row, the newest rows.
  std::vector<const PublishedRow*> others;
};

// One answer for each kind of engine in the table, without controls. Points into `table`.
std::vector<Answer> AnswersOf(const PublishedTable& table);

// "verl 0.9.1 with torchtitan main"; a control names the library alone.
std::string PairLabel(const PublishedRow& row);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ANSWER_H_
