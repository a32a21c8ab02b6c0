// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "absl/strings/str_cat.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

CheckResult CheckSharding(const CaseFile& file) {
  const Observation& seen = file.seen();
  if (seen.sharding.empty())
    return CheckResult::Unseen(Stage::kConstruct, "nobody saw by what the model is sharded");
  Json facts = {{"asked", seen.sharding_asked}, {"seen", seen.sharding}};
  if (seen.sharding == seen.sharding_asked)
    return CheckResult::Passed(Stage::kConstruct, std::move(facts));
  return CheckResult::Failed(Stage::kConstruct, reason::kOverrideIgnored,
                             absl::StrCat("asked to shard by ", seen.sharding_asked,
                                          ", but the model is sharded by ", seen.sharding),
                             std::move(facts));
}

bool WasAskedToShard(const CaseFile& file) {
  return OfFinishedCells(file) && !file.seen().sharding_asked.empty();
}

}  // namespace

extern const Claim kShardingClaim = {
    .name = "sharding",
    .rung = Stage::kConstruct,
    .says = "the model is sharded by what the engine was asked for, FSDP1 or FSDP2",
    .witness = "the classes of the model's modules when it was built",
    .cannot_see =
        "how the engine set it up, which the ranks, the numbers and the optimizer show; a rank "
        "after "
        "the first; an engine that is not asked for either",
    .applies = WasAskedToShard,
    .check = CheckSharding,
};

}  // namespace bkm
