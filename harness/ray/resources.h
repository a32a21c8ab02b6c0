// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_RESOURCES_H_
#define HARNESS_RAY_RESOURCES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

// What a cell takes of a node, by Ray's names: "CPU", "GPU", "memory" in bytes, or one that the
// cluster's owner made up.
using RayResources = std::map<std::string, double>;

// Reads "CPU=2,memory=4GiB,GPU=1,big=1". Amounts of memory have a unit: MiB, GiB or none (bytes).
absl::StatusOr<RayResources> ParseRayResources(const std::string& text);
// Reads "zone=a,kind=spot": labels that a node must have.
absl::StatusOr<std::map<std::string, std::string>> ParseRayLabels(const std::string& text);

// "CPU 2, memory 4 GiB", for people.
std::string RayResourcesText(const RayResources& resources);

// How many cells of this kind fit on a node that has `node` in all.
int CellsThatFit(const RayResources& cell, const RayResources& node);

// Ray's JSON of resources; what is not a number is left out.
RayResources RayResourcesOf(const Json& json);

}  // namespace bkm

#endif  // HARNESS_RAY_RESOURCES_H_
