// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/apicheck/api_map.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/selection.h"
#include "harness/source/git_sources.h"

namespace bkm {
namespace {

constexpr char kUnproven[] = "by the sources only";

// Partners of the asked version that lie next to each other and work, oldest and newest.
struct Stretch {
  int first = 0;
  int last = 0;
  // The engine whose runs prove the stretch's ends; the asked one, or the newest that asks the
  // same of the library.
  int proven_with = 0;
};

class WhichCommand : public CliCommand {
 public:
  const char* name() const override { return "which"; }
  const char* summary() const override {
    return "Say which versions work with one, from the map that bkm map made";
  }
  const char* examples() const override {
    return "\"ran\": this very pair ran. \"same asks\": a pair ran whose engine asks the same of "
           "the library, by its sources.\n"
           "Exit 0: something works; 1: nothing is known to.\n"
           "Examples:\n"
           "  bkm which --engine git:verl@v0.8.0\n"
           "  bkm which --library git:torchtitan@main --map maps/verl-torchtitan --json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--engine", engine_, "git:NAME@REV");
    app.add_option("--library", library_, "git:NAME@REV");
    app.add_option("--map", folder_, "Folder of bkm map (default: maps/verl-torchtitan)");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    if (engine_.empty() == library_.empty()) {
      return absl::InvalidArgumentError(
          "name one version: --engine git:verl@v0.8.0, or --library git:torchtitan@main");
    }
    const std::filesystem::path path = std::filesystem::path(folder_) / "map.json";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return absl::NotFoundError(
          absl::StrCat(path.string(), " does not exist: make it with bkm map, or give --map"));
    }
    ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
    ASSIGN_OR_RETURN(const ApiMap map, ApiMapFromJson(json, path.string()));
    const bool of_engine = !engine_.empty();
    ASSIGN_OR_RETURN(const int place, PlaceOf(map, of_engine ? engine_ : library_, of_engine));
    const std::vector<Stretch> stretches = Stretches(map, place, of_engine);
    json_ ? PrintJson(map, place, of_engine, stretches)
          : PrintText(map, place, of_engine, stretches);
    return stretches.empty() ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  absl::StatusOr<int> PlaceOf(const ApiMap& map, const std::string& text, bool of_engine) const {
    ASSIGN_OR_RETURN(const SubjectSpec spec, ParseSubjectSpec(text));
    const std::string& source = of_engine ? map.engine_source : map.library_source;
    if (spec.source != SourceKind::kGit || NormalizedName(spec.name) != source) {
      return absl::InvalidArgumentError(
          absl::StrCat(text, ": this map knows commits: git:", source, "@REV"));
    }
    const SourceCatalog catalog;
    GitSources git(catalog, GitMirrorFolder(git_mirror_), CacheDirectory() / "git");
    ASSIGN_OR_RETURN(const auto found, git.Find(spec.name, spec.revision));
    const auto& axis = of_engine ? map.engines : map.libraries;
    for (size_t i = 0; i < axis.size(); ++i) {
      if (axis[i].commit == found.commit) return static_cast<int>(i);
    }
    return absl::NotFoundError(
        absl::StrCat(text, " (", found.commit.substr(0, 9), ") is not in the map, which goes from ",
                     axis.empty() ? map.since : axis.front().date, " to ",
                     axis.empty() ? "" : axis.back().date, ": bkm map --since makes a longer one"));
  }

  static std::vector<Stretch> Stretches(const ApiMap& map, int place, bool of_engine) {
    std::vector<Stretch> stretches;
    for (const WorkingBlock& block : map.Working()) {
      if (of_engine && block.first_row <= place && place <= block.last_row)
        stretches.push_back({block.first_column, block.last_column, block.last_row});
      if (!of_engine && block.first_column <= place && place <= block.last_column)
        stretches.push_back({block.first_row, block.last_row, block.last_row});
    }
    return stretches;
  }

  static bool Works(const ApiMap& map, PlanePoint point) {
    const auto cell = map.cells.find(point);
    return cell != map.cells.end() && cell->second.outcome() == RunOutcome::kWorks;
  }

  // How it is known that `other` works with the asked version.
  static std::string Proof(const ApiMap& map, int place, bool of_engine, const Stretch& stretch,
                           int other) {
    const PlanePoint point = of_engine ? PlanePoint{place, other} : PlanePoint{other, place};
    if (Works(map, point)) return "ran";
    if (Works(map, {stretch.proven_with, point.column})) return "same asks";
    return kUnproven;
  }

  // Of how many of a stretch's commits a run says so: the pair's own or, of a library, one with an
  // engine that asks the same.
  static int Ran(const ApiMap& map, int place, bool of_engine, const Stretch& stretch) {
    int ran = 0;
    for (int other = stretch.first; other <= stretch.last; ++other) {
      ran += of_engine ? Works(map, {place, other}) || Works(map, {stretch.proven_with, other})
                       : Works(map, {other, place});
    }
    return ran;
  }

  static std::string NameOf(const MapCommit& commit) {
    return absl::StrCat(commit.release.empty() ? commit.commit.substr(0, 9) : commit.release, " (",
                        commit.release.empty() ? "" : commit.commit.substr(0, 9) + ", ",
                        commit.date, ")");
  }

  // The release nearest to what works; -1: the axis has none.
  static int NearestRelease(const std::vector<MapCommit>& axis,
                            const std::vector<Stretch>& stretches) {
    int nearest = -1;
    int distance = 1 << 30;
    for (size_t i = 0; i < axis.size(); ++i) {
      if (axis[i].release.empty()) continue;
      for (const Stretch& stretch : stretches) {
        const int at = static_cast<int>(i);
        const int away = std::max({0, stretch.first - at, at - stretch.last});
        // Of several that work, the newest.
        if (away <= distance) nearest = at, distance = away;
      }
    }
    return nearest;
  }

  static bool Covers(const std::vector<Stretch>& stretches, int place) {
    return std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& stretch) {
      return stretch.first <= place && place <= stretch.last;
    });
  }

  static void PrintText(const ApiMap& map, int place, bool of_engine,
                        const std::vector<Stretch>& stretches) {
    const auto& asked = of_engine ? map.engines : map.libraries;
    const auto& axis = of_engine ? map.libraries : map.engines;
    const std::string& asked_source = of_engine ? map.engine_source : map.library_source;
    const std::string& other = of_engine ? map.library_source : map.engine_source;
    std::printf("%s %s, %s, %s\n", asked_source.c_str(), NameOf(asked[place]).c_str(),
                map.model.c_str(), map.attention.c_str());
    if (stretches.empty()) {
      std::printf("  no %s since %s is known to work with it%s\n", other.c_str(), map.since.c_str(),
                  map.finished ? "" : " (the map is not finished)");
      return;
    }
    for (const Stretch& stretch : stretches) {
      std::printf("  oldest %s that works: %s, %s\n", other.c_str(),
                  NameOf(axis[stretch.first]).c_str(),
                  Proof(map, place, of_engine, stretch, stretch.first).c_str());
      std::printf("  newest %s that works: %s, %s\n", other.c_str(),
                  NameOf(axis[stretch.last]).c_str(),
                  Proof(map, place, of_engine, stretch, stretch.last).c_str());
      std::printf("  %d commits, %d of them by runs, the others by the sources only\n",
                  stretch.last - stretch.first + 1, Ran(map, place, of_engine, stretch));
    }
    const int release = NearestRelease(axis, stretches);
    if (release < 0) {
      std::printf("  no release of %s since %s\n", other.c_str(), map.since.c_str());
      return;
    }
    std::printf("  nearest release: %s, which %s\n", NameOf(axis[release]).c_str(),
                Covers(stretches, release) ? "lies among those that work" : "is not one of them");
  }

  static void PrintJson(const ApiMap& map, int place, bool of_engine,
                        const std::vector<Stretch>& stretches) {
    const auto& asked = of_engine ? map.engines : map.libraries;
    const auto& axis = of_engine ? map.libraries : map.engines;
    const auto commit = [](const MapCommit& c) {
      return Json{{"commit", c.commit}, {"date", c.date}, {"release", c.release}};
    };
    Json list = Json::array();
    for (const Stretch& stretch : stretches) {
      Json oldest = commit(axis[stretch.first]);
      Json newest = commit(axis[stretch.last]);
      oldest["proof"] = Proof(map, place, of_engine, stretch, stretch.first);
      newest["proof"] = Proof(map, place, of_engine, stretch, stretch.last);
      list.push_back({{"oldest", oldest},
                      {"newest", newest},
                      {"commits", stretch.last - stretch.first + 1},
                      {"ran", Ran(map, place, of_engine, stretch)},
                      {"proven_with", map.engines[stretch.proven_with].commit}});
    }
    const int release = NearestRelease(axis, stretches);
    Json nearest;
    if (release >= 0) {
      nearest = commit(axis[release]);
      nearest["works"] = Covers(stretches, release);
    }
    std::fputs(ToText(Json{{"schema", 1},
                           {"asked", commit(asked[place])},
                           {"map_finished", map.finished},
                           {"works_with", list},
                           {"nearest_release", nearest}})
                   .c_str(),
               stdout);
  }

  std::string engine_;
  std::string library_;
  std::string folder_ = "maps/verl-torchtitan";
  std::string git_mirror_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeWhichCommand() { return std::make_unique<WhichCommand>(); }

}  // namespace bkm
