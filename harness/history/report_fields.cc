// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/report_fields.h"

#include "absl/strings/str_format.h"

namespace bkm {

std::string EffortText(const SearchEffort& effort) {
  return absl::StrFormat(
      "%d trials (%d measured now) over %d commits (%d distinct contents); %.0f s", effort.probes,
      effort.measured, effort.commits, effort.contents, effort.seconds);
}

void DescribeEffort(Fields& fields, SearchEffort& effort) {
  fields.Field("commits", effort.commits);
  fields.Field("contents", effort.contents);
  fields.Field("probes", effort.probes);
  fields.Field("measured", effort.measured);
  fields.Field("seconds", effort.seconds);
}

void DescribeVerdict(Fields& fields, Verdict& verdict) {
  fields.Name("verdict", verdict.kind, NamesUpTo(VerdictKind::kSkipped));
  fields.Name("stage", verdict.stage, NamesUpTo(Stage::kResume));
  fields.Field("reason", verdict.reason);
  fields.Field("message", verdict.message);
}

void DescribeSchema(Fields& fields) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1);
}

}  // namespace bkm
