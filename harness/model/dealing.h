// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_DEALING_H_
#define HARNESS_MODEL_DEALING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// Which documents of its data file a trainer gives to each step. Order and shuffling are the
// trainer's choice: what it dealt is observed, checked, and then the golden is that of these steps.

// Whether nobody knows before a cell ran which documents its steps have.
bool IsDealtByTrainer(const Probe& probe);

// Whether its rows hold as many documents as fit.
bool IsPackedInRows(const Probe& probe);

// The documents of the data file that a trainer keeps, by their place in the file: all, unless it
// drops those of more than `max_length` tokens.
std::vector<int64_t> KeptDocuments(const Probe& probe);

// The tokens that a trainer keeps of each kept document.
std::vector<int64_t> KeptLengths(const Probe& probe);

// The kept documents of step `step`, counted from 0, by their place among them, in rising order: as
// `dealt` says, otherwise all of them, or `global_batch_size` in the order of the file.
std::vector<int64_t> DealtIn(const Probe& probe, int step);

// The micro-batches of each rank in a step that has `documents`: fewer where a short last step
// fills fewer.
int64_t MicroBatchesOf(const Probe& probe, int64_t documents);

// `probe` with `dealt` as the cell's steps say. `probe` itself if they need not say, or do not say
// it of all steps.
Probe AsDealt(const Probe& probe, const Observation& seen);

// Why steps with these documents, in the trainer's order, are not one epoch after another of `kept`
// documents, in words; empty if they are. An epoch has each document once. Its steps have `size`
// documents, unless that is 0; the last one has what is left, or with `drops_last` that is left
// out.
std::string WhyNotInEpochs(const std::vector<std::vector<int64_t>>& steps, int64_t kept,
                           int64_t size, bool drops_last);

// The documents of each step, of one rank, in its order.
using StepsOfRank = std::vector<std::vector<int64_t>>;
// The same where each rank packs rows of documents of its own, so that epochs are its own, too: no
// document is of two ranks, and none of the `kept` is missing once every rank has begun a second
// epoch.
std::string WhyNotInEpochsOfRanks(const std::vector<StepsOfRank>& ranks,
                                  const std::vector<int64_t>& kept);

}  // namespace bkm

#endif  // HARNESS_MODEL_DEALING_H_
