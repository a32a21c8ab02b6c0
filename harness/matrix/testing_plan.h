// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MATRIX_TESTING_PLAN_H_
#define HARNESS_MATRIX_TESTING_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "harness/matrix/plan.h"

namespace bkm {

// Plans a matrix without asking anybody: revisions stay as they are written.
inline PlanEnvironment Unresolved() {
  return {.resolve = [](const SubjectSpec& spec) -> absl::StatusOr<Subject> {
            return Subject{.spec = spec, .label = spec.revision};
          },
          .torch_of_runtime = [](const std::string&) -> absl::StatusOr<std::string> {
            return "2.13.0";
          }};
}

}  // namespace bkm

#endif  // HARNESS_MATRIX_TESTING_PLAN_H_
