// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_key.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

std::string ListText(const std::vector<std::string>& items) {
  return absl::StrJoin(items, "+", [](std::string* out, const std::string& item) {
    absl::StrAppend(out, EscapedText(item, "+"));
  });
}

// JSON ends by itself, so a '+' inside a value separates nothing.
std::string ValuesText(const std::map<std::string, std::string>& values) {
  return absl::StrJoin(values, "+", [](std::string* out, const auto& value) {
    absl::StrAppend(out, EscapedText(value.first, "+:"), ":", EscapedText(value.second));
  });
}

// 37+150/64+20: the layouts of two steps.
std::string DocumentsText(const Cell& cell) {
  return absl::StrJoin(cell.probe.documents, "/", [](std::string* out, const auto& lengths) {
    absl::StrAppend(out, absl::StrJoin(lengths, "+"));
  });
}

std::string OptimizerText(const Cell& cell) {
  static const Json& defaults = *new Json(ToJson(OptimizerSettings()));
  const Json settings = ToJson(cell.probe.optimizer);
  std::vector<std::string> parts;
  for (const auto& [name, value] : settings.items()) {
    if (defaults.value(name, Json()) == value) continue;
    parts.push_back(
        absl::StrCat(name, ":", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return absl::StrJoin(parts, "+");
}

std::string SubjectText(const std::optional<SubjectSpec>& subject) {
  return subject ? EscapedText(subject->ToString()) : "";
}

// The subject with its revision as the user wrote it.
std::string AskedSubject(const std::optional<SubjectSpec>& subject, const std::string& label) {
  if (!subject) return "";
  SubjectSpec asked = *subject;
  if (!label.empty()) asked.revision = label;
  return EscapedText(asked.ToString());
}

std::string EngineText(const Cell& cell) {
  return cell.engine_subject ? absl::StrCat(cell.engine, "@", SubjectText(cell.engine_subject))
                             : cell.engine;
}

std::string AskedEngine(const Cell& cell) {
  return cell.engine_subject
             ? absl::StrCat(cell.engine, "@", AskedSubject(cell.engine_subject, cell.engine_label))
             : cell.engine;
}

std::vector<std::string> EngineNames(const Cell& cell) {
  return {cell.engine, EscapedText(cell.engine_label),
          AskedSubject(cell.engine_subject, cell.engine_label), SubjectText(cell.engine_subject)};
}

std::string LibraryText(const Cell& cell) {
  return cell.library_subject ? SubjectText(cell.library_subject) : "resolved";
}

std::string AskedLibrary(const Cell& cell) {
  return cell.library_subject ? AskedSubject(cell.library_subject, cell.library_label) : "resolved";
}

std::vector<std::string> LibraryNames(const Cell& cell) {
  return {EscapedText(cell.library_label)};
}

std::string BoolText(bool value) { return value ? "true" : "false"; }

std::vector<CellKey> MakeKeys() {
  using enum CellKeyUse;
  std::vector<CellKey> keys = {
      {"engine", kMain, EngineText, AskedEngine, EngineNames},
      {"library", kMain, LibraryText, AskedLibrary, LibraryNames},
      {"runtime", kMain, [](const Cell& c) { return EscapedText(c.runtime); }},
      {"torch", kMain, [](const Cell& c) { return EscapedText(c.torch); }},
      {"relax", kDetail, [](const Cell& c) { return ListText(c.relax); }},
      {"lock", kDetail, [](const Cell& c) { return EscapedText(c.lock); }},
      {"model", kMain, [](const Cell& c) { return EscapedText(c.probe.model); }},
      {"head", kOption, [](const Cell& c) { return EscapedText(c.probe.head); }},
      {"attention", kMain, [](const Cell& c) { return EscapedText(c.probe.attention); }},
      {"precision", kMain, [](const Cell& c) { return EscapedText(c.probe.precision); }},
      {"device", kMain, [](const Cell& c) { return EscapedText(c.probe.device); }},
      {"layout", kOption, [](const Cell& c) { return LayoutText(c.probe.layout); }},
      {"ranks", kDerived, [](const Cell& c) { return absl::StrCat(c.probe.layout.ranks()); }},
      {"threads", kDetail, [](const Cell& c) { return absl::StrCat(c.probe.threads); }},
      {"documents", kOption, DocumentsText},
      {"input", kOption, [](const Cell& c) { return EscapedText(c.probe.input); }},
      {"micro_batches", kOption, [](const Cell& c) { return absl::StrCat(c.probe.micro_batches); }},
      {"leftover_checkpoint", kOption,
       [](const Cell& c) { return BoolText(c.probe.leftover_checkpoint); }},
      {"export_weights", kOption, [](const Cell& c) { return BoolText(c.probe.export_weights); }},
      {"resume_checkpoint", kOption,
       [](const Cell& c) { return BoolText(c.probe.resume_checkpoint); }},
      {"checkpoint", kOption, [](const Cell& c) { return EscapedText(c.probe.checkpoint); }},
      {"rope_keys", kOption, [](const Cell& c) { return EscapedText(c.probe.rope_keys); }},
      {"temperature", kOption, [](const Cell& c) { return absl::StrCat(c.probe.temperature); }},
      {"entropy", kOption, [](const Cell& c) { return BoolText(c.probe.entropy); }},
      {"config", kOption, [](const Cell& c) { return ValuesText(c.probe.config); }},
      {"steps", kDetail, [](const Cell& c) { return absl::StrCat(c.probe.steps); }},
      {"seed", kDetail, [](const Cell& c) { return absl::StrCat(c.probe.seed); }},
      {"optimizer", kOption, OptimizerText},
      {"options", kDetail, [](const Cell& c) { return ValuesText(c.probe.engine_options); }},
      {"repeat", kDetail, [](const Cell& c) { return absl::StrCat(c.repeat); }},
      {"plant", kDetail, [](const Cell& c) { return ListText(c.plant); }}};
  for (CellKey& key : keys) key.default_text = key.text(Cell());
  return keys;
}

}  // namespace

std::vector<std::string> CellKey::Texts(const Cell& cell) const {
  std::vector<std::string> texts = {text(cell)};
  if (asked) texts.push_back(asked(cell));
  if (names) {
    for (std::string& name : names(cell)) texts.push_back(std::move(name));
  }
  return texts;
}

const std::vector<CellKey>& CellKeys() {
  static const auto& keys = *new std::vector<CellKey>(MakeKeys());
  return keys;
}

bool CellKey::Matches(const CellPattern& pattern, const Cell& cell) const {
  if (pattern.text().empty() && use != CellKeyUse::kMain && IsDefault(cell)) return true;
  const std::vector<std::string> texts = Texts(cell);
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return pattern.Matches(text); });
}

}  // namespace bkm
