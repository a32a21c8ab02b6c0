// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// What uv prints, which quotes names and texts of packages.
#include "harness/fuzzing/fuzzing.h"
#include "harness/source/requirement_policy.h"
#include "harness/source/uv.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ProcessResult result;
  result.exit_code = 1;
  result.err = std::string(AsText(data, size));
  for (const std::vector<std::string>& names : {LacksWheels(result), RejectedPackages(result)}) {
    for (const std::string& name : names) HARNESS_CHECK(IsPackageName(name)) << name;
  }
  IsNoSolution(result);
  HARNESS_CHECK(!UvComplaint(result).empty());
  ExpectUsableError(ErrorOf(result, "resolving"), size);
  ExpectUsableError(InstallationStatus(result, "installing"), size);
  return 0;
}

}  // namespace bkm
