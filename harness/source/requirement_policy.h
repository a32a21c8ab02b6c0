// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_REQUIREMENT_POLICY_H_
#define HARNESS_SOURCE_REQUIREMENT_POLICY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bkm {

// The one gate between what a subject declares and the resolver. A subject may name packages,
// extras, versions and markers (PEP 508, PEP 440), in printable ASCII. Everything else that a
// resolver would read from the same line could fetch, read or run something: URLs, paths, options,
// environment variables, further lines. What the author of a matrix writes does not pass here.
//
// PermissionDenied: a requirement that the policy forbids. InvalidArgument: no requirement at all.
// The message quotes the text, without control characters and shortened.
absl::Status CheckRequirement(absl::string_view requirement);

// Checks each of them and how many they are.
absl::Status CheckRequirements(const std::vector<std::string>& requirements);

// Whether `name` is the name of a package: letters, digits and single marks between them. Such a
// name is also a safe file name.
bool IsPackageName(absl::string_view name);

}  // namespace bkm

#endif  // HARNESS_SOURCE_REQUIREMENT_POLICY_H_
