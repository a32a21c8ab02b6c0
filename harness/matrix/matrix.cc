// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/matrix.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"

namespace bkm {
namespace {

// The values that a dimension with names has.
std::vector<std::string> NamesOf(const char* dimension) {
  return Json::parse(FindDimension(dimension)->schema).at("enum");
}

// Fails `key` for each of `values` that is not in `known`.
void CheckKnown(ObjectReader& reader, const char* key, const std::vector<std::string>& values,
                const std::vector<std::string>& known) {
  for (const std::string& value : values) {
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      reader.Fail(key, absl::StrCat("unknown name '", value, "'", DidYouMean(value, known)));
    }
  }
}

std::vector<SubjectSpec> ParseSubjects(ObjectReader& reader, const char* key) {
  std::vector<SubjectSpec> subjects;
  for (const std::string& text : reader.Strings(key)) {
    const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(text);
    if (!spec.ok()) {
      reader.Fail(key, std::string(spec.status().message()));
      break;
    }
    subjects.push_back(*spec);
  }
  return subjects;
}

constexpr absl::string_view kEngineOptions = "engine_options";

// The product of `probes` and the values of an axis.
std::vector<Json> Times(const std::vector<Json>& probes, const char* key, const Json& values) {
  std::vector<Json> product;
  for (const Json& probe : probes) {
    for (const Json& one : values) product.emplace_back(probe)[key] = one;
  }
  return product;
}

// The values of an axis: one, or a list.
Json ValuesOf(ObjectReader& reader, const char* key, const Json& value) {
  const Json values = value.is_array() ? value : Json::array({value});
  if (values.empty()) reader.Fail(key, "a value or a list of values is needed here");
  return values;
}

// Engine options are objects; a list of them, because an object alone would look like one value.
Json EngineOptionsOf(ObjectReader& reader) {
  const Json* options = reader.Child("engine_options");
  if (!options) return Json::array({Json::object()});
  if (!options->is_array() || options->empty()) {
    reader.Fail("engine_options",
                "a list of objects is needed here, [{}] for the engine's own defaults");
    return Json::array();
  }
  for (const Json& choice : *options) {
    if (!choice.is_object())
      reader.Fail("engine_options",
                  absl::StrCat("an object is needed here, not ", choice.type_name()));
  }
  return *options;
}

// What every id names: the product's fastest axes, by name and known values.
std::vector<std::pair<const char*, Json>> MainAxes(ObjectReader& reader, const EngineKind& kind) {
  const std::vector<std::string> attentions = reader.Strings("attention", {});
  if (attentions.empty())
    reader.Fail("attention", absl::StrCat("name at least one of the attentions of ", kind.name,
                                          DidYouMean("", kind.attentions)));
  for (const std::string& attention : attentions) {
    if (!absl::StrContains(attention, '/')) continue;
    reader.Fail("attention",
                absl::StrCat(attention,
                             " is fetched from the Hugging Face hub, and a cell has no "
                             "network: ask for ",
                             absl::StrJoin(kind.attentions, ", ")));
    return {};
  }
  CheckKnown(reader, "attention", attentions, kind.attentions);
  const std::vector<std::string> precisions = reader.Strings("precision", {kind.precision});
  CheckKnown(reader, "precision", precisions, NamesOf("precision"));
  const std::vector<std::string> devices = reader.Strings("device", {"cpu"});
  CheckKnown(reader, "device", devices, NamesOf("device"));
  return {{"model", reader.Strings("model", {Probe().model})},
          {"attention", attentions},
          {"precision", precisions},
          {"device", devices}};
}

absl::Status ReadProbe(const Json& json, const std::string& origin, const std::string& path,
                       const EngineKind& kind, MatrixGroup& group) {
  ObjectReader reader(json, origin, path);
  Json fields = Json::object();
  if (const Json* ranks = reader.Child("ranks")) fields["ranks"] = *ranks;  // before layouts
  std::vector<std::pair<const char*, Json>> axes;
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.field == nullptr || dimension.use == DimensionUse::kMain) continue;
    if (dimension.field == kEngineOptions) continue;
    const Json* value = reader.Child(dimension.field);
    if (value == nullptr) continue;
    if (dimension.is_axis)
      axes.emplace_back(dimension.field, ValuesOf(reader, dimension.field, *value));
    else
      fields[dimension.field] = *value;
  }
  for (auto& axis : MainAxes(reader, kind)) axes.push_back(std::move(axis));
  axes.emplace_back(kEngineOptions.data(), EngineOptionsOf(reader));
  RETURN_IF_ERROR(reader.Finish());
  std::vector<Json> probes = {fields};
  for (const auto& [key, values] : axes) probes = Times(probes, key, values);
  for (Json& one : probes) {
    FillInFor(kind, one);
    absl::StatusOr<Probe> probe = ProbeFromJson(one, absl::StrCat(origin, ": ", path));
    if (!probe.ok()) return probe.status();
    group.probes.push_back(*std::move(probe));
  }
  return absl::OkStatus();
}

absl::Status ReadEngine(ObjectReader& outer, MatrixGroup& group) {
  const Json* json = outer.Child("engine");
  if (!json) {
    outer.Fail(
        "engine",
        "missing: write {\"kind\": \"verl-torchtitan\", \"subjects\": [\"pypi:verl==0.9.1\"]}");
    return absl::OkStatus();
  }
  ObjectReader reader(*json, outer.origin(), outer.PathOf("engine"));
  group.engine_kind = reader.OneOf("kind", EngineKindNames());
  group.engines = ParseSubjects(reader, "subjects");
  RETURN_IF_ERROR(reader.Finish());
  const EngineKind& kind = *FindEngineKind(group.engine_kind);
  if (kind.engine_source.empty() && !group.engines.empty()) {
    reader.Fail(
        "subjects",
        absl::StrCat(kind.name, " is a control: it is the library alone and has no subjects"));
  }
  if (!kind.engine_source.empty() && group.engines.empty()) {
    reader.Fail("subjects", absl::StrCat("name at least one version of ", kind.engine_source,
                                         ", for example pypi:", kind.engine_source, "==0.9.1"));
  }
  return reader.Finish();
}

absl::Status ReadGroup(const Json& json, const std::string& origin, const std::string& path,
                       Matrix& matrix) {
  ObjectReader reader(json, origin, path);
  MatrixGroup group;
  RETURN_IF_ERROR(ReadEngine(reader, group));
  group.libraries = ParseSubjects(reader, "library");
  group.runtimes = reader.Strings("runtime", {"cpu"});
  group.names_runtimes = reader.Has("runtime");
  group.torch = reader.Strings("torch");
  group.relax = reader.Strings("relax");
  const Json* probe = reader.Child("probe");
  if (!probe) reader.Fail("probe", "missing: write {\"attention\": [\"flex\"]} at least");
  RETURN_IF_ERROR(reader.Finish());
  const EngineKind& kind = *FindEngineKind(group.engine_kind);
  if (!kind.library_in_runtime && group.libraries.empty()) {
    reader.Fail("library", absl::StrCat("name at least one version of ", kind.library_source));
  }
  RETURN_IF_ERROR(reader.Finish());
  RETURN_IF_ERROR(ReadProbe(*probe, origin, reader.PathOf("probe"), kind, group));
  matrix.groups.push_back(std::move(group));
  return absl::OkStatus();
}

absl::Status ReadExclusion(const Json& json, const std::string& origin, const std::string& path,
                           Matrix& matrix) {
  ObjectReader reader(json, origin, path);
  std::map<std::string, std::string> patterns;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (key != "why") patterns[key] = reader.String(key.c_str());
    }
  }
  const std::string why = reader.String("why");
  RETURN_IF_ERROR(reader.Finish());
  absl::StatusOr<CellFilter> filter = CellFilter::FromPatterns(patterns);
  const std::string place = absl::StrCat(origin, ": ", path);
  if (!filter.ok()) return WithContext(filter.status(), place);
  matrix.exclusions.push_back({*std::move(filter), why, place});
  return absl::OkStatus();
}

}  // namespace

void Describe(Fields& fields, CellLimits& limits) {
  fields.Int("timeout_s", limits.timeout_s, 1, 86400, Presence::kOptional);
  fields.Int("cpu_s", limits.cpu_s, 1, 1 << 24, Presence::kOmitted);
  fields.Int("memory_mib", limits.memory_mib, 64, 1 << 24, Presence::kOptional);
  fields.Int("output_mib", limits.output_mib, 1, 1 << 20, Presence::kOptional);
  fields.Int("processes", limits.processes, 1, 1 << 16, Presence::kOptional);
}

absl::StatusOr<Matrix> MatrixFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  Matrix matrix;
  matrix.origin = origin;
  reader.String("$schema", "");
  reader.Int("schema", 1, 1, 1);
  matrix.name = reader.String("name");
  if (const Json* sources = reader.Child("sources")) matrix.sources = *sources;
  if (!reader.Has("groups")) reader.Fail("groups", "missing: a matrix has at least one group");
  reader.ForEach("groups", [&](const Json& group, const std::string& path) {
    return ReadGroup(group, origin, path, matrix);
  });
  reader.ForEach("exclude", [&](const Json& item, const std::string& path) {
    return ReadExclusion(item, origin, path, matrix);
  });
  if (const Json* limits = reader.Child("limits")) {
    Fields fields(*limits, origin, reader.PathOf("limits"), FieldStyle::kStrict);
    Describe(fields, matrix.limits);
    reader.Keep(fields.Finish());
  }
  RETURN_IF_ERROR(reader.Finish());
  return matrix;
}

absl::StatusOr<Matrix> ReadMatrix(const std::filesystem::path& path) {
  absl::StatusOr<Json> json = ReadJsonFile(path);
  if (!json.ok()) {
    return absl::IsNotFound(json.status()) ? WithContext(json.status(), "no matrix file")
                                           : json.status();
  }
  return MatrixFromJson(*json, path.string());
}

}  // namespace bkm
