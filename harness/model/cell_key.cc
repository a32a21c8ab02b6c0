// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell_key.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

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

// The inverses: what such a text is in a probe's JSON.
Json WordIn(absl::string_view text) { return UnescapedText(text); }

Json ValueIn(absl::string_view text) {
  const std::string plain = UnescapedText(text);
  Json value = Json::parse(plain, nullptr, false);
  return value.is_discarded() ? Json(plain) : value;
}

// "name:value+name:value" as pairs. A '+' may also lie in a value of JSON, or in 1e+20.
std::vector<std::pair<std::string, Json>> PairsIn(absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (absl::string_view part : absl::StrSplit(text, '+', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits(':', 1));
    const bool has_name = part.find(':') != absl::string_view::npos;
    const std::string last = pairs.empty() ? "" : UnescapedText(pairs.back().second);
    const bool is_open = !last.empty() &&
                         absl::string_view("[{\"").find(last[0]) != std::string::npos &&
                         Json::parse(last, nullptr, false).is_discarded();
    if (has_name && !is_open)
      pairs.push_back(pair);
    else if (!pairs.empty())
      absl::StrAppend(&pairs.back().second, "+", part);
  }
  std::vector<std::pair<std::string, Json>> values;
  for (const auto& [name, value] : pairs) values.emplace_back(UnescapedText(name), ValueIn(value));
  return values;
}

Json ValuesIn(absl::string_view text) {
  Json values = Json::object();
  for (auto& [name, value] : PairsIn(text)) values[name] = std::move(value);
  return values;
}

Json OptimizerIn(absl::string_view text) {
  Json settings = ToJson(OptimizerSettings());
  settings.update(ValuesIn(text));
  return settings;
}

Json DocumentsIn(absl::string_view text) {
  Json documents = Json::array();
  for (absl::string_view layout : absl::StrSplit(text, '/')) {
    Json& lengths = documents.emplace_back(Json::array());
    for (absl::string_view length : absl::StrSplit(layout, '+')) lengths.push_back(ValueIn(length));
  }
  return documents;
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

// A row of the table: a field of the probe, whose key in JSON is `name` unless `field` says more.
CellKey OfProbe(const char* name, CellKeyUse use, std::string (*text)(const Cell&),
                Json (*value)(absl::string_view), const char* field = nullptr) {
  return {.name = name, .use = use, .text = text, .field = field ? field : name, .value = value};
}

std::vector<CellKey> MakeKeys() {
  using enum CellKeyUse;
  std::vector<CellKey> keys = {
      {"engine", kMain, EngineText, AskedEngine, EngineNames},
      {"library", kMain, LibraryText, AskedLibrary, LibraryNames},
      {"runtime", kMain, [](const Cell& c) { return EscapedText(c.runtime); }},
      {"torch", kMain, [](const Cell& c) { return EscapedText(c.torch); }},
      {"relax", kDetail, [](const Cell& c) { return ListText(c.relax); }},
      {"lock", kDetail, [](const Cell& c) { return EscapedText(c.lock); }},
      OfProbe(
          "model", kMain, [](const Cell& c) { return EscapedText(c.probe.model); }, WordIn),
      OfProbe(
          "head", kOption, [](const Cell& c) { return EscapedText(c.probe.head); }, WordIn),
      OfProbe(
          "attention", kMain, [](const Cell& c) { return EscapedText(c.probe.attention); }, WordIn),
      OfProbe(
          "precision", kMain, [](const Cell& c) { return EscapedText(c.probe.precision); }, WordIn),
      OfProbe(
          "device", kMain, [](const Cell& c) { return EscapedText(c.probe.device); }, WordIn),
      OfProbe(
          "layout", kOption, [](const Cell& c) { return LayoutText(c.probe.layout); }, WordIn),
      {"ranks", kDerived, [](const Cell& c) { return absl::StrCat(c.probe.layout.ranks()); }},
      OfProbe(
          "threads", kDetail, [](const Cell& c) { return absl::StrCat(c.probe.threads); }, ValueIn),
      OfProbe("documents", kOption, DocumentsText, DocumentsIn),
      OfProbe(
          "input", kOption, [](const Cell& c) { return EscapedText(c.probe.input); }, WordIn),
      OfProbe(
          "micro_batches", kOption,
          [](const Cell& c) { return absl::StrCat(c.probe.micro_batches); }, ValueIn),
      OfProbe(
          "leftover_checkpoint", kOption,
          [](const Cell& c) { return BoolText(c.probe.leftover_checkpoint); }, ValueIn),
      OfProbe(
          "export_weights", kOption, [](const Cell& c) { return BoolText(c.probe.export_weights); },
          ValueIn),
      OfProbe(
          "resume_checkpoint", kOption,
          [](const Cell& c) { return BoolText(c.probe.resume_checkpoint); }, ValueIn),
      OfProbe(
          "checkpoint", kOption, [](const Cell& c) { return EscapedText(c.probe.checkpoint); },
          WordIn),
      OfProbe(
          "rope_keys", kOption, [](const Cell& c) { return EscapedText(c.probe.rope_keys); },
          WordIn),
      OfProbe(
          "temperature", kOption, [](const Cell& c) { return absl::StrCat(c.probe.temperature); },
          ValueIn),
      OfProbe(
          "entropy", kOption, [](const Cell& c) { return BoolText(c.probe.entropy); }, ValueIn),
      OfProbe(
          "config", kOption, [](const Cell& c) { return ValuesText(c.probe.config); }, ValuesIn),
      OfProbe(
          "steps", kDetail, [](const Cell& c) { return absl::StrCat(c.probe.steps); }, ValueIn),
      OfProbe(
          "seed", kDetail, [](const Cell& c) { return absl::StrCat(c.probe.seed); }, ValueIn),
      OfProbe("optimizer", kOption, OptimizerText, OptimizerIn),
      OfProbe(
          "options", kDetail, [](const Cell& c) { return ValuesText(c.probe.engine_options); },
          ValuesIn, "engine_options"),
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

absl::StatusOr<Probe> ProbeOfId(absl::string_view id) {
  Json json = ToJson(Probe());
  json.erase("ranks");  // they follow from the layout
  for (absl::string_view part : absl::StrSplit(id, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto key = std::find_if(CellKeys().begin(), CellKeys().end(),
                                  [&](const CellKey& known) { return known.name == pair.first; });
    if (key == CellKeys().end())
      return absl::InvalidArgumentError(
          absl::StrCat("'", id, "' is not the id of a cell: unknown key '", pair.first, "'"));
    if (key->field != nullptr) json[key->field] = key->value(pair.second);
  }
  return ProbeFromJson(json, absl::StrCat("the id ", id));
}

}  // namespace bkm
