// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/labels.h"

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/shown_text.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/model/plant.h"

namespace bkm {
namespace {

constexpr size_t kShort = 16;

// A label that is short enough for CellLabel. A folder keeps its end, which tells folders apart.
std::string ShortLabel(const std::string& label, const std::optional<SubjectSpec>& subject) {
  if (!subject || subject->source != SourceKind::kPath || label.size() <= kShort)
    return label.substr(0, kShort);
  const std::filesystem::path folder(label);
  return (folder.parent_path().filename() / folder.filename()).string();
}

}  // namespace

std::string VersionText(const std::string& label, const std::optional<SubjectSpec>& subject,
                        const std::string& date) {
  std::vector<std::string> details;
  if (subject && subject->source == SourceKind::kGit &&
      !absl::StartsWith(subject->revision, label)) {
    details.push_back(subject->revision.substr(0, 9));
  }
  if (!date.empty()) details.push_back(date);
  const bool is_hash =
      subject && subject->source == SourceKind::kGit && absl::StartsWith(subject->revision, label);
  const std::string name = is_hash ? label.substr(0, 9) : label;
  return details.empty() ? name : absl::StrCat(name, " (", absl::StrJoin(details, ", "), ")");
}

std::string LibraryText(const CellRecord& record) {
  if (record.cell.library_subject)
    return VersionText(record.cell.library_label, record.cell.library_subject, record.library_date);
  return record.library_version.empty() ? "as resolved" : record.library_version;
}

std::string OptionsText(const Cell& cell) {
  std::vector<std::string> parts;
  for (const Dimension& key : Dimensions()) {
    if (key.use == DimensionUse::kOption && !key.IsOmitted(cell))
      parts.push_back(absl::StrCat(key.name, "=", key.text(cell)));
  }
  for (const auto& [name, value] : cell.probe.engine_options)
    parts.push_back(absl::StrCat(name, "=", value));
  return absl::StrJoin(parts, ", ");
}

std::string OptionsText(const Probe& probe) { return OptionsText(Cell{.probe = probe}); }

std::string CellLabel(const CellRecord& record) {
  const Cell& cell = record.cell;
  const EngineKind* kind = FindEngineKind(cell.engine);
  std::string text = cell.engine;
  if (cell.engine_subject)
    absl::StrAppend(&text, " ", ShortLabel(cell.engine_label, cell.engine_subject));
  const std::string library = cell.library_subject
                                  ? ShortLabel(cell.library_label, cell.library_subject)
                                  : record.library_version;
  absl::StrAppend(
      &text, cell.engine_subject ? absl::StrCat(" x ", kind ? kind->library_source : "") : "",
      library.empty() ? "" : " ", library, ", ", cell.probe.attention, ", ", cell.probe.precision);
  if (cell.probe.model != Probe().model) absl::StrAppend(&text, ", ", cell.probe.model);
  if (!cell.torch.empty()) absl::StrAppend(&text, ", torch ", cell.torch);
  if (const std::string options = OptionsText(cell); !options.empty())
    absl::StrAppend(&text, ", ", options);
  if (cell.probe.seed != Probe().seed) absl::StrAppend(&text, ", seed=", cell.probe.seed);
  std::vector<std::string> plants = cell.plant;
  std::erase(plants, kRecordLines);  // breaks nothing
  if (!plants.empty()) absl::StrAppend(&text, ", planted: ", absl::StrJoin(plants, ", "));
  return text;
}

absl::string_view MessageWithoutPlace(absl::string_view message) {
  const size_t at = message.rfind(" (");
  const absl::string_view place = at == absl::string_view::npos ? "" : message.substr(at);
  const bool is_place = place.find(':') != absl::string_view::npos && place.back() == ')';
  return is_place ? message.substr(0, at) : message;
}

std::string Printable(std::string text) { return ShownText(text); }

}  // namespace bkm
