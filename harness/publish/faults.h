// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_FAULTS_H_
#define HARNESS_PUBLISH_FAULTS_H_

#include <map>
#include <string>
#include <vector>

#include "harness/publish/published_table.h"

namespace bkm {

// Dimension (harness/model/dimension.h) -> value, as ids spell it.
using Condition = std::map<std::string, std::string>;

// Something that was measured and is not right.
struct RowFault {
  const PublishedCell* cell;  // one that shows it
  bool is_silent;  // the cell trained, and nothing but its numbers says so; or it is flaky
  // When it holds: no right cell agrees with all of it, and it is the least such part of what the
  // cell was asked. What is at its default is left out first, then model, attention and precision.
  // Empty: always.
  Condition condition;
};

// What these cells (of each probe one) show, one fault for each verdict and condition. Silent
// faults come first, then those with the shortest condition.
std::vector<RowFault> FaultsOf(const std::vector<const PublishedCell*>& cells);

// "layout=tp=2, default documents"; "always" without a condition.
std::string ConditionText(const Condition& condition);

// Of each cell, what it was asked and others of them were not: "default options"; empty if there is
// nothing.
std::vector<std::string> DistinctionsOf(const std::vector<const PublishedCell*>& cells);

// "wrong at step, learning-rate-off", with "flaky: " before it.
std::string FaultVerdict(const PublishedCell& cell);

// known-bad.json: every fault of every row, for other tools.
struct KnownBad {
  std::string row;
  std::string engine;                         // kind
  std::string engine_version;                 // subject
  std::vector<std::string> library_versions;  // subjects
  std::string torch;
  std::string device;
  std::string verdict, stage, reason, message;
  bool is_silent = false;
  Condition condition;
  std::string measured;
};
struct KnownBadList {
  std::string date;
  std::vector<KnownBad> known_bad;
};
KnownBadList KnownBadOf(const PublishedTable& table);
// known-bad.schema.json agrees with them.
void Describe(Fields& fields, KnownBad& bad);
void Describe(Fields& fields, KnownBadList& list);
OrderedJson ToJson(const KnownBadList& list);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_FAULTS_H_
