// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_STATUS_MACROS_H_
#define HARNESS_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Returns from the enclosing function when `expression`, an absl::Status, is an error.
#define RETURN_IF_ERROR(expression)                                                  \
  do {                                                                               \
    if (absl::Status bkm_status = (expression); !bkm_status.ok()) return bkm_status; \
  } while (false)

#define BKM_CONCAT_INNER(a, b) a##b
#define BKM_CONCAT(a, b) BKM_CONCAT_INNER(a, b)

// ASSIGN_OR_RETURN(auto x, F()): declares x from a StatusOr, or returns its error.
#define ASSIGN_OR_RETURN(declaration, expression) \
  BKM_ASSIGN_OR_RETURN(BKM_CONCAT(bkm_result_, __LINE__), declaration, expression)
#define BKM_ASSIGN_OR_RETURN(result, declaration, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return std::move(result).status();        \
  declaration = *std::move(result)

namespace bkm {

// Puts "context: " before the message of `status`, so that an error reads from the outside in.
// Keeps its payloads.
absl::Status WithContext(const absl::Status& status, absl::string_view context);

}  // namespace bkm

#endif  // HARNESS_BASE_STATUS_MACROS_H_
