// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_DECLARED_REQUIREMENTS_H_
#define HARNESS_CHECK_DECLARED_REQUIREMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/runtime/interpreter.h"
#include "harness/source/uv.h"

namespace bkm {

// What the packages of an environment require of each other and do not find, a sentence each, as
// `uv pip check` says it: "verl requires tensordict<=0.10.0, but 0.12.0 is installed". `python` is
// the version of the environment's interpreter ("3.11.2"). Of the environment only the metadata is
// read: uv, which starts an interpreter and with it the code of .pth files, looks at an environment
// of our own that has the same metadata and nothing else.
absl::StatusOr<std::vector<std::string>> ViolatedRequirements(
    const Uv& uv, const std::filesystem::path& own_python, const std::string& python,
    const std::vector<DistributionFacts>& distributions);

// The sentences in the output of `uv pip check`; those about files that only a real installation
// has are left out. An error if uv does not say that it checked packages.
absl::StatusOr<std::vector<std::string>> SentencesOf(const std::string& output);

}  // namespace bkm

#endif  // HARNESS_CHECK_DECLARED_REQUIREMENTS_H_
