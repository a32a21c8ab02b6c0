// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Locks and policies of runtimes.
#include "harness/fuzzing/fuzzing.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/runtime/runtime_policy.h"

namespace bkm {
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = AsText(data, size);
  ExpectRoundTrip(text, [](const Json& json) { return RuntimeLockFromJson(json, "input"); });
  const absl::StatusOr<Json> json = ParseJson(text, "input");
  if (!json.ok()) return 0;
  const absl::StatusOr<RuntimePolicy> policy = RuntimePolicyFromJson(*json, "/runtimes/cpu.json");
  if (!policy.ok()) ExpectUsableError(policy.status(), size);
  return 0;
}

}  // namespace bkm
