// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/executor_option.h"

#include "harness/cli/command.h"

namespace bkm {

void ExecutorOption::AddTo(CLI::App& app) {
  const std::string group = "Other machines";
  app.add_option("--executor", name_,
                 "Where cells run: local (this machine), or ray (the nodes of a Ray cluster)")
      ->check(CLI::IsMember({"local", "ray"}))
      ->group(group);
  app.add_option("--address", ray_.address,
                 "For ray: address of the cluster, HOST:PORT or auto (default: start Ray on this "
                 "machine)")
      ->group(group);
  app.add_option(
         "--ray-resources", ray_.resources,
         "For ray: what a cell takes of a node, as CPU=2,memory=4GiB,GPU=1,NAME=1 (default: "
         "a CPU for each rank, and the matrix's memory limit)")
      ->group(group);
  app.add_option("--ray-labels", ray_.labels,
                 "For ray: labels that a node must have, as NAME=VALUE,...")
      ->group(group);
  app.add_option("--ray-bkm", ray_.program,
                 "For ray: the program bkm on the nodes (default: the path of this one)")
      ->group(group);
  app.add_option("--ray-lease", ray_.lease_s,
                 "For ray: seconds without a sign of life after which a cell is sent again")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str()
      ->group(group);
}

absl::StatusOr<ExecutorMaker> ExecutorOption::Maker() const {
  if (name_ == "local") {
    if (ray_ == RayOptions()) return ExecutorMaker();
    return absl::InvalidArgumentError(
        "--address, --ray-resources, --ray-labels, --ray-bkm and --ray-lease need --executor ray");
  }
  if (make_ray_ == nullptr) return NeedsWholeProgram("--executor ray");
  return make_ray_(ray_);
}

}  // namespace bkm
