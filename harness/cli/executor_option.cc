// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/executor_option.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "harness/base/status_macros.h"
#include "harness/ray/make_executor.h"

namespace bkm {
namespace {

// The value of an option, or an error that names the option.
template <typename T>
absl::StatusOr<T> Of(const char* option, absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", value.status().message()));
}

}  // namespace

void ExecutorOption::AddTo(CLI::App& app) {
  const std::string group = "Other machines";
  app.add_option("--executor", name_,
                 "Where cells run: local (this machine), or ray (the nodes of a Ray cluster)")
      ->check(CLI::IsMember({"local", "ray"}))
      ->group(group);
  app.add_option("--address", address_,
                 "For ray: address of the cluster, HOST:PORT or auto (default: start Ray on this "
                 "machine)")
      ->group(group);
  app.add_option(
         "--ray-resources", resources_,
         "For ray: what a cell takes of a node, as CPU=2,memory=4GiB,GPU=1,NAME=1 (default: "
         "a CPU for each rank, and the matrix's memory limit)")
      ->group(group);
  app.add_option("--ray-labels", labels_,
                 "For ray: labels that a node must have, as NAME=VALUE,...")
      ->group(group);
  app.add_option("--ray-bkm", program_,
                 "For ray: the program bkm on the nodes (default: the path of this one)")
      ->group(group);
  app.add_option("--ray-lease", lease_s_,
                 "For ray: seconds without a sign of life after which a cell is sent again")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str()
      ->group(group);
}

absl::StatusOr<ExecutorMaker> ExecutorOption::Maker() const {
  if (name_ == "local") {
    if (address_.empty() && resources_.empty() && labels_.empty() && program_.empty() &&
        lease_s_ == kLeaseSeconds)
      return ExecutorMaker();
    return absl::InvalidArgumentError(
        "--address, --ray-resources, --ray-labels, --ray-bkm and --ray-lease need --executor ray");
  }
  RaySettings settings{.address = address_, .program = program_, .lease = absl::Seconds(lease_s_)};
  ASSIGN_OR_RETURN(settings.resources, Of("--ray-resources", ParseRayResources(resources_)));
  ASSIGN_OR_RETURN(settings.labels, Of("--ray-labels", ParseRayLabels(labels_)));
  return RayExecutors(std::move(settings));
}

}  // namespace bkm
