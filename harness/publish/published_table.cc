// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/published_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/model/sandbox_level.h"
#include "harness/publish/layouts.h"

namespace bkm {
namespace {

constexpr std::array<absl::string_view, 4> kStatuses = {"works", "works-except", "fails",
                                                        "unknown"};

// The kinds of parallelism of the row's engine that no cell had.
std::vector<std::string> LayoutsNotTested(const PublishedRow& row) {
  const EngineKind* kind = FindEngineKind(row.engine);
  std::vector<const PublishedCell*> cells;
  for (const PublishedCell& cell : row.cells) cells.push_back(&cell);
  const std::vector<std::string> missing = LayoutsNotRun(row.engine, cells);
  if (kind != nullptr && !missing.empty() && missing.size() == kind->layouts.size())
    return {"more than 1 rank"};
  return missing;
}

// What the row's right cells could not have denied: "errors of 100 % in the gradients of 3 of 9
// tensors (gpt_oss, bf16)". A right cell of the same model in fp32 that hides nothing makes up for
// it.
std::vector<std::string> Hidden(const PublishedRow& row) {
  std::set<std::string> seen;
  for (const PublishedCell& cell : row.cells) {
    if (IsOk(cell) && cell.precision == "fp32" && cell.evidence.verdict.blind.empty())
      seen.insert(cell.model);
  }
  std::set<std::string> hidden;
  for (const PublishedCell& cell : row.cells) {
    if (!IsOk(cell) || seen.contains(cell.model)) continue;
    for (const std::string& claim : cell.evidence.verdict.blind)
      hidden.insert(absl::StrCat(claim, " (", cell.model, ", ", cell.precision, ")"));
  }
  return {hidden.begin(), hidden.end()};
}

// Whether the engine option in "param_offload=true" was accepted, and was not seen to act. Older
// evidence does not say.
bool IsWithoutEffect(const Verdict& verdict, absl::string_view option) {
  const absl::string_view name = option.substr(0, option.find('='));
  return std::any_of(verdict.effects.begin(), verdict.effects.end(),
                     [&](const OptionEffect& effect) {
                       return effect.option == name && effect.kind != EffectKind::kActs;
                     });
}

// Engine options of right cells that were accepted and not seen to act, or of which nobody knows.
std::vector<std::string> WithoutEffect(const PublishedRow& row) {
  std::set<std::string> options;
  for (const PublishedCell& cell : row.cells) {
    for (const OptionEffect& effect : cell.evidence.verdict.effects) {
      if (!IsOk(cell) || effect.kind == EffectKind::kActs) continue;
      options.insert(absl::StrCat(effect.option, effect.kind == EffectKind::kUnknown
                                                     ? " (accepted, effect unknown)"
                                                     : " (accepted, effect not observed)"));
    }
  }
  return {options.begin(), options.end()};
}

}  // namespace

absl::string_view Name(RowStatus status) { return kStatuses[static_cast<size_t>(status)]; }

std::optional<RowStatus> RowStatusFromName(absl::string_view name) {
  const auto it = std::find(kStatuses.begin(), kStatuses.end(), name);
  if (it == kStatuses.end()) return std::nullopt;
  return static_cast<RowStatus>(it - kStatuses.begin());
}

bool IsOk(const PublishedCell& cell) {
  return cell.evidence.verdict.kind == VerdictKind::kOk && !cell.flaky;
}

bool Works(const PublishedRow& row) {
  return row.status == RowStatus::kWorks || row.status == RowStatus::kWorksExcept;
}

std::vector<std::string> NotTested(const PublishedRow& row) {
  if (!Works(row)) return {};
  // What a matrix can ask for, as its cells' options say it.
  constexpr std::pair<const char*, const char*> kAsked[] = {
      {"micro_batches=", "micro-batches"},
      {"input=padded", "padded input"},
      {"warmup_steps", "a warm-up"},
      {"decay:", "a decay of the learning rate"},
      {"temperature=", "a temperature other than 1"},
      {"entropy=true", "entropy"},
      {"clip_norm", "a clipping norm that does not always act"},
      {"head=value", "a critic"},
      {"export_weights", "the export of weights"},
      {"resume_checkpoint", "saving and loading a checkpoint"},
      {"checkpoint=sharded-bf16", "a sharded bf16 checkpoint"},
      {"rope_keys=rope_parameters", "RoPE keys of transformers 5 only"},
      {"config=", "other numbers in config.json"},
      {"param_offload=true", "offloading"},
      {"strategy=\"fsdp\"", "FSDP1"}};
  const auto is_tested = [&](absl::string_view option) {
    return std::any_of(row.cells.begin(), row.cells.end(), [&](const PublishedCell& cell) {
      return IsOk(cell) && absl::StrContains(cell.options, option) &&
             !IsWithoutEffect(cell.evidence.verdict, option);
    });
  };
  std::vector<std::string> missing;
  for (const auto& [option, words] : kAsked) {
    if (absl::StartsWith(option, "strategy=") && row.engine != "verl-fsdp") continue;
    if (!is_tested(option)) missing.push_back(words);
  }
  if (std::none_of(row.cells.begin(), row.cells.end(), [](const PublishedCell& cell) {
        return IsOk(cell) && cell.precision == "fp32";
      }))
    missing.push_back("fp32");
  for (std::string& option : WithoutEffect(row)) missing.push_back(std::move(option));
  for (std::string& claim : Hidden(row)) missing.push_back(std::move(claim));
  for (std::string& layout : LayoutsNotTested(row)) missing.push_back(std::move(layout));
  missing.push_back("torch.compile");  // no cell can be asked for it yet
  if (!is_tested("checkpoint=mxfp4")) missing.push_back("MXFP4 weights");
  // Adapters construct the engine's class themselves.
  if (absl::StartsWith(row.engine, "verl-"))
    missing.push_back("verl's workers and configuration files");
  missing.push_back(row.device == "cpu" ? "a GPU"
                                        : "floors of this device (they were measured on a CPU)");
  return missing;
}

std::string HorizonText(const PublishedRow& row) {
  return absl::StrJoin(row.horizon, ", ", [](std::string* out, const SourceHead& head) {
    absl::StrAppend(out, head.name, " ", head.date);
  });
}

bool IsExpired(const PublishedRow& row, absl::string_view day) {
  return !row.expires.empty() && absl::string_view(row.expires) < day;
}

void Describe(Fields& fields, PublishedVersion& version) {
  fields.Field("subject", version.subject);
  fields.Field("label", version.label);
  fields.Field("date", version.date);
}

void Describe(Fields& fields, SourceHead& head) {
  fields.Field("name", head.name);
  fields.Field("commit", head.commit);
  fields.Field("date", head.date);
}

void Describe(Fields& fields, PublishedRun& run) {
  fields.Field("dir", run.dir);
  fields.Field("matrix", run.matrix);
  fields.Field("finished", run.finished, Presence::kOptional);
  fields.Field("cell_code", run.cell_code);
  fields.Int("cells", run.cells, 0, 1 << 30, Presence::kOptional);
}

void Describe(Fields& fields, Evidence& evidence) {
  DescribeOutcome(fields, evidence.verdict);
  fields.Field("measured", evidence.measured);
  DescribeCost(fields, evidence.cost);
  fields.Field("run", evidence.run);
  fields.Field("dir", evidence.dir);
}

void Describe(Fields& fields, PublishedCell& cell) {
  fields.Field("id", cell.id);
  fields.Field("library", cell.library);
  fields.Field("model", cell.model);
  fields.Field("attention", cell.attention);
  fields.Field("precision", cell.precision);
  fields.Field("options", cell.options);
  fields.Field("flaky", cell.flaky, Presence::kOptional);
  fields.Field("evidence", cell.evidence);
  fields.Field("inherited_from", cell.inherited_from, Presence::kOptional);
  fields.Field("control", cell.control, Presence::kOptional);
  fields.Field("contradicted_by", cell.contradicted_by, Presence::kOptional);
  fields.Field("key", cell.key, Presence::kOmitted);
}

void Describe(Fields& fields, PublishedRow& row) {
  fields.Field("id", row.id);
  fields.Field("engine", row.engine);
  fields.Field("engine_version", row.engine_version);
  fields.Field("library", row.library);
  fields.Field("library_from", row.library_from);
  fields.Field("library_to", row.library_to);
  fields.Field("library_versions", row.library_versions, Presence::kOptional);
  fields.Field("runtime", row.runtime);
  fields.Field("python", row.python);
  fields.Field("torch", row.torch);
  fields.Field("lock", row.lock);
  fields.Field("relax", row.relax, Presence::kOptional);
  fields.Field("device", row.device);
  fields.Name("status", row.status, kStatuses);
  fields.Field("measured", row.measured);
  fields.Field("expires", row.expires);
  fields.Field("install", row.install, Presence::kOptional);
  fields.Field("pylock", row.pylock);
  fields.OneOf("sandbox", row.sandbox, SandboxLevelNames(), Presence::kOmitted);
  fields.Field("measure_again", row.measure_again, Presence::kOmitted);
  fields.Field("horizon", row.horizon, Presence::kOmitted);
  fields.Derived("not_tested", NotTested(row));
  fields.Field("cells", row.cells, Presence::kOptional);
}

void Describe(Fields& fields, PublishedTable& table) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1);
  fields.Field("date", table.date);
  fields.Field("runs", table.runs, Presence::kOptional);
  fields.Field("rows", table.rows, Presence::kOptional);
}

OrderedJson ToJson(const PublishedTable& table) { return WriteFields(table); }

absl::StatusOr<PublishedTable> PublishedTableFromJson(const Json& json, const std::string& origin) {
  if (json.is_object() && !json.contains("schema")) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": $.schema: it is missing: is this a published table?"));
  }
  return ReadFields<PublishedTable>(json, origin);
}

std::filesystem::path DefaultTable(const std::filesystem::path& root) {
  for (const char* table : {"published/table.json", "golden/table/table.json"}) {
    std::error_code error;
    if (std::filesystem::exists(root / table, error)) return root / table;
  }
  return {};
}

absl::StatusOr<TableOnDisk> ReadPublishedTable(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, error) ? path / "table.json" : path;
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  TableOnDisk found{.folder = std::filesystem::absolute(file).parent_path()};
  ASSIGN_OR_RETURN(found.table, PublishedTableFromJson(json, file.string()));
  return found;
}

}  // namespace bkm
