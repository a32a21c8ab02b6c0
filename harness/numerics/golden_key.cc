// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/golden_key.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/probe_data.h"
#include "harness/numerics/reductions.h"

namespace bkm {
namespace {

// Raise this when the content or the form of the floor file changes.
constexpr int kFloorVersion = 3;

// Raise this when only the floors of probes that ask for entropies change.
constexpr int kEntropyFloorVersion = 2;

// Raise this when only the goldens of models with experts change.
constexpr int kExpertsVersion = 2;

Json GoldenIdentity(const Probe& probe) {
  Json identity = {{"generator", kGeneratorVersion},
                   {"reference", kReferenceVersion},
                   {"numerics", NumericsOf(probe)}};
  if (const auto shape = ShapeOf(probe); shape.ok() && shape->experts.count > 0)
    identity["experts"] = kExpertsVersion;
  return identity;
}

std::string Key(const Json& identity) { return Sha256(ToLine(identity)).substr(0, 32); }

}  // namespace

std::string GoldenKey(const Probe& probe) { return Key(GoldenIdentity(probe)); }

std::string FloorKey(const Probe& probe, absl::string_view precision,
                     absl::string_view cpu_features, absl::string_view torch) {
  Json identity = GoldenIdentity(probe);
  identity["floor"] = kFloorVersion;
  if (probe.entropy) identity["entropy_floor"] = kEntropyFloorVersion;
  identity["precision"] = std::string(precision);
  identity["cpu"] = std::string(cpu_features);
  identity["torch"] = std::string(torch);
  if (const std::string divided = ReductionsText(ReductionsOf(probe.layout)); !divided.empty())
    identity["reductions"] = divided;
  return Key(identity);
}

absl::StatusOr<std::string> CpuFeatures(const std::filesystem::path& cpuinfo) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(cpuinfo));
  std::string model = "unknown processor";
  std::set<std::string> flags;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() && !flags.empty()) break;  // the end of the first processor
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(field.first);
    const absl::string_view value = absl::StripAsciiWhitespace(field.second);
    if (name == "model name") model = std::string(value);
    if (name == "flags" || name == "Features") {  // x86, Arm
      flags = absl::StrSplit(value, ' ', absl::SkipEmpty());
    }
  }
  if (flags.empty()) {
    return absl::NotFoundError(
        absl::StrCat(cpuinfo.string(), ": no line with the processor's flags"));
  }
  return absl::StrCat(model, " ", Sha256(absl::StrJoin(flags, " ")).substr(0, 16));
}

}  // namespace bkm
