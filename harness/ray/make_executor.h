// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_MAKE_EXECUTOR_H_
#define HARNESS_RAY_MAKE_EXECUTOR_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "harness/ray/resources.h"
#include "harness/session/measurement.h"

namespace bkm {

// What the user asks for.
struct RaySettings {
  std::string address;     // of a cluster, as Ray writes it; empty: Ray on this machine alone
  RayResources resources;  // of a cell; CPU and memory follow from the cell if they are missing
  std::map<std::string, std::string> labels;  // a node must have them
  std::string program;                        // bkm on the nodes; empty: this one, at its path
  absl::Duration lease = absl::Seconds(60);
};

// Makes executors that run cells by Ray.
ExecutorMaker RayExecutors(RaySettings settings);

}  // namespace bkm

#endif  // HARNESS_RAY_MAKE_EXECUTOR_H_
