// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutation.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/folder_reader.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/model/plant.h"
#include "harness/numerics/counter_generator.h"
#include "harness/source/isolated_python.h"

namespace bkm {
namespace {

constexpr char kProgram[] =
#include "harness/selftest/source_mutations_py.inc"
    ;

constexpr std::chrono::seconds kLongestParse(600);

// The mutable places of one phase, by operator.
using Places = std::map<std::string, std::vector<Mutation>>;

auto OrderOf(const Mutation& m) {
  return std::tie(m.party, m.file, m.start, m.end, m.operation, m.replacement);
}

// An operator, by its weight among those that have places. `draw` is uniform.
const std::string& OperatorFor(const Places& places, const MutationSettings& settings,
                               uint64_t draw) {
  uint64_t total = 0;
  for (const auto& [name, some] : places) total += settings.weights.at(name);
  uint64_t left = draw % total;
  for (const auto& [name, some] : places) {
    const uint64_t weight = settings.weights.at(name);
    if (left < weight) return name;
    left -= weight;
  }
  return places.begin()->first;
}

Mutation Take(Places& places, const std::string& name, uint64_t draw) {
  std::vector<Mutation>& some = places.at(name);
  Mutation taken = some[draw % some.size()];
  std::erase_if(some, [&](const Mutation& other) {
    return other.party == taken.party && other.file == taken.file && other.line == taken.line;
  });
  if (some.empty()) places.erase(places.find(taken.operation));
  return taken;
}

// The request of source_mutations.py.
absl::StatusOr<Json> SourcesOf(const std::filesystem::path& tree, const Json& lines) {
  const FolderReader reader(tree);
  const Json &built = ObjectOf(lines, "built"), &trained = ObjectOf(lines, "trained");
  std::set<std::string> files;
  for (const Json* phase : {&built, &trained}) {
    for (const auto& [file, some] : phase->items()) files.insert(file);
  }
  Json sources = Json::object();
  for (const std::string& file : files) {
    absl::StatusOr<std::string> text = reader.Read(file, kLargestSource);
    if (!absl::EndsWith(file, ".py") || absl::IsNotFound(text.status()) ||
        absl::IsInvalidArgument(text.status()))
      continue;
    RETURN_IF_ERROR(text.status());
    sources[file] = {{"text", *std::move(text)},
                     {"built", ListOf(built, file)},
                     {"trained", ListOf(trained, file)}};
  }
  return Json{{"files", std::move(sources)}};
}

}  // namespace

std::string PlantOf(const Mutation& m) {
  const std::string what = absl::StrCat(m.start, " ", m.end, " ", m.replacement);
  return absl::StrCat(kMutantPrefix, Name(m.party), "/", m.file, ":", m.line, ":", m.operation, ":",
                      Sha256(what).substr(0, 8));
}

absl::StatusOr<std::string> Mutated(const Mutation& m, absl::string_view text) {
  if (m.start < 0 || m.end < m.start || m.end > static_cast<int64_t>(text.size()))
    return absl::InvalidArgumentError(absl::StrCat(m.file, ": the file has changed"));
  return absl::StrCat(text.substr(0, m.start), m.replacement, text.substr(m.end));
}

std::string DiffOf(const Mutation& m, absl::string_view text) {
  const absl::StatusOr<std::string> mutated = Mutated(m, text);
  if (!mutated.ok()) return "";
  const size_t before = text.substr(0, m.start).rfind('\n');
  const size_t first = before == text.npos ? 0 : before + 1;
  // The rest of the last line is the same in both.
  const size_t after = std::min(text.find('\n', m.end), text.size());
  const absl::string_view old_lines = text.substr(first, after - first);
  const absl::string_view new_lines =
      absl::string_view(*mutated).substr(first, mutated->size() - (text.size() - after) - first);
  std::string diff;
  for (absl::string_view line : absl::StrSplit(old_lines, '\n'))
    absl::StrAppend(&diff, "-", line, "\n");
  for (absl::string_view line : absl::StrSplit(new_lines, '\n'))
    absl::StrAppend(&diff, "+", line, "\n");
  return diff;
}

absl::StatusOr<MutationSettings> MutationSettingsFromJson(const Json& json,
                                                          const std::string& origin) {
  ObjectReader reader(json, origin);
  reader.Int("schema", 1, 1, 1);
  MutationSettings settings;
  settings.seed = static_cast<uint64_t>(reader.Int("seed", 1, 0, int64_t{1} << 50));
  settings.trained_share = reader.Number("trained_share", 1);
  if (settings.trained_share < 0 || settings.trained_share > 1)
    reader.Fail("trained_share", "a number from 0 to 1 is needed here");
  if (const Json* operators = reader.Child("operators"); operators && operators->is_object()) {
    ObjectReader weights(*operators, origin, "$.operators");
    for (const auto& [name, weight] : operators->items())
      settings.weights[name] = weights.Int(name.c_str(), 1, 1, 1000);
    reader.Keep(weights.Finish());
  }
  if (settings.weights.empty()) reader.Fail("operators", "an object of weights is needed here");
  RETURN_IF_ERROR(reader.Finish());
  return settings;
}

absl::StatusOr<PossibleMutations> FindMutations(const std::filesystem::path& python, Party party,
                                                const std::filesystem::path& tree,
                                                const Json& lines) {
  ASSIGN_OR_RETURN(const Json sources, SourcesOf(tree, lines));
  Command command = IsolatedPython(python, kProgram);
  command.input = ToLine(sources);
  command.timeout = kLongestParse;
  absl::StatusOr<std::string> out = RunForOutput(command);
  if (!out.ok()) return WithContext(out.status(), "cannot parse the subject's sources");
  ASSIGN_OR_RETURN(const Json answer, ParseJson(*out, "source_mutations.py"));
  PossibleMutations possible{.unreached = WholeOf(answer, "unreached").value_or(0)};
  for (const Json& item : ListOf(answer, "mutations")) {
    possible.mutations.push_back({.party = party,
                                  .file = TextOf(item, "file"),
                                  .line = WholeOf(item, "line").value_or(0),
                                  .function = TextOf(item, "function"),
                                  .operation = TextOf(item, "operator"),
                                  .trained = IsTrue(item, "trained"),
                                  .start = WholeOf(item, "start").value_or(0),
                                  .end = WholeOf(item, "end").value_or(0),
                                  .replacement = TextOf(item, "replacement")});
  }
  return possible;
}

std::vector<Mutation> PickMutations(std::vector<Mutation> possible,
                                    const MutationSettings& settings, int count) {
  std::sort(possible.begin(), possible.end(),
            [](const Mutation& a, const Mutation& b) { return OrderOf(a) < OrderOf(b); });
  std::array<Places, 2> phases;  // built, trained
  for (Mutation& mutation : possible) {
    if (settings.weights.contains(mutation.operation))
      phases[mutation.trained][mutation.operation].push_back(std::move(mutation));
  }
  const CounterStream stream(settings.seed, "mutations");
  constexpr uint64_t kShares = 1 << 20;
  std::vector<Mutation> picked;
  for (uint64_t draw = 0; static_cast<int>(picked.size()) < count; draw += 3) {
    size_t phase = static_cast<double>(stream.Below(kShares, draw)) <
                   settings.trained_share * static_cast<double>(kShares);
    if (phases[phase].empty()) phase = 1 - phase;
    if (phases[phase].empty()) break;
    const std::string name = OperatorFor(phases[phase], settings, stream.Bits(draw + 1));
    picked.push_back(Take(phases[phase], name, stream.Bits(draw + 2)));
  }
  return picked;
}

}  // namespace bkm
