// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/map_answer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/model/subject.h"

namespace bkm {
namespace {

bool Works(const ApiMap& map, PlanePoint point) {
  const auto cell = map.cells.find(point);
  return cell != map.cells.end() && cell->second.outcome() == RunOutcome::kWorks;
}

const std::vector<MapCommit>& AskedAxis(const MapAnswer& answer) {
  return answer.of_engine ? answer.map.engines : answer.map.libraries;
}
const std::vector<MapCommit>& PartnerAxis(const MapAnswer& answer) {
  return answer.of_engine ? answer.map.libraries : answer.map.engines;
}

MapProof ProofOf(const MapAnswer& answer, const MapStretch& stretch, int partner) {
  const PlanePoint point =
      answer.of_engine ? PlanePoint{answer.asked, partner} : PlanePoint{partner, answer.asked};
  if (Works(answer.map, point)) return MapProof::kRan;
  return Works(answer.map, {stretch.proven_with, point.column}) ? MapProof::kSameAsks
                                                                : MapProof::kSources;
}

MapStretch StretchOf(const MapAnswer& answer, int first, int last, int proven_with) {
  MapStretch stretch{.first = first, .last = last, .proven_with = proven_with};
  stretch.first_proof = ProofOf(answer, stretch, first);
  stretch.last_proof = ProofOf(answer, stretch, last);
  for (int partner = first; partner <= last; ++partner) {
    const MapProof proof = ProofOf(answer, stretch, partner);
    stretch.ran += proof == MapProof::kRan || (answer.of_engine && proof == MapProof::kSameAsks);
  }
  return stretch;
}

void FindNearestRelease(MapAnswer& answer) {
  int distance = std::numeric_limits<int>::max();
  for (size_t i = 0; i < PartnerAxis(answer).size(); ++i) {
    if (PartnerAxis(answer)[i].release.empty()) continue;
    const int at = static_cast<int>(i);
    for (const MapStretch& stretch : answer.stretches) {
      const int away = std::max({0, stretch.first - at, at - stretch.last});
      if (away > distance) continue;
      answer.nearest_release = at;
      distance = away;
    }
  }
  answer.release_works = answer.nearest_release && distance == 0;
}

Json CommitJson(const MapCommit& commit) {
  return {{"commit", commit.commit}, {"date", commit.date}, {"release", commit.release}};
}

// "v0.8.0 (7aed6b230, 2026-06-01)"
std::string CommitText(const MapCommit& commit) {
  const std::string id = commit.commit.substr(0, 9);
  return commit.release.empty() ? absl::StrCat(id, " (", commit.date, ")")
                                : absl::StrCat(commit.release, " (", id, ", ", commit.date, ")");
}

}  // namespace

const char* Name(MapProof proof) {
  switch (proof) {
    case MapProof::kRan:
      return "ran";
    case MapProof::kSameAsks:
      return "same asks";
    case MapProof::kSources:
      break;
  }
  return "by the sources only";
}

absl::StatusOr<int> PlaceOnMap(const ApiMap& map, const std::string& text, bool of_engine,
                               GitSources& git) {
  ASSIGN_OR_RETURN(const SubjectSpec spec, ParseSubjectSpec(text));
  const std::string& source = of_engine ? map.engine_source : map.library_source;
  if (spec.source != SourceKind::kGit || NormalizedName(spec.name) != source) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, ": the map knows only commits of git:", source, "@REV"));
  }
  ASSIGN_OR_RETURN(const auto found, git.Find(spec.name, spec.revision));
  const auto& axis = of_engine ? map.engines : map.libraries;
  for (size_t i = 0; i < axis.size(); ++i) {
    if (axis[i].commit == found.commit) return static_cast<int>(i);
  }
  return absl::NotFoundError(
      absl::StrCat(text, " (", found.commit.substr(0, 9), ") is not in the map, which covers ",
                   axis.empty() ? map.since : axis.front().date, " to ",
                   axis.empty() ? "" : axis.back().date, ": bkm map --since extends it"));
}

MapAnswer AskMap(const ApiMap& map, int asked, bool of_engine) {
  MapAnswer answer{.map = map, .of_engine = of_engine, .asked = asked};
  for (const WorkingBlock& block : map.Working()) {
    if (of_engine && block.first_row <= asked && asked <= block.last_row) {
      answer.stretches.push_back(
          StretchOf(answer, block.first_column, block.last_column, block.last_row));
    }
    if (!of_engine && block.first_column <= asked && asked <= block.last_column) {
      answer.stretches.push_back(
          StretchOf(answer, block.first_row, block.last_row, block.last_row));
    }
  }
  FindNearestRelease(answer);
  return answer;
}

Json ToJson(const MapAnswer& answer) {
  const std::vector<MapCommit>& partners = PartnerAxis(answer);
  Json works_with = Json::array();
  for (const MapStretch& stretch : answer.stretches) {
    Json oldest = CommitJson(partners[stretch.first]);
    Json newest = CommitJson(partners[stretch.last]);
    oldest["proof"] = Name(stretch.first_proof);
    newest["proof"] = Name(stretch.last_proof);
    works_with.push_back({{"oldest", oldest},
                          {"newest", newest},
                          {"commits", stretch.last - stretch.first + 1},
                          {"ran", stretch.ran},
                          {"proven_with", answer.map.engines[stretch.proven_with].commit}});
  }
  Json nearest;
  if (answer.nearest_release) {
    nearest = CommitJson(partners[*answer.nearest_release]);
    nearest["works"] = answer.release_works;
  }
  return {{"schema", 1},
          {"asked", CommitJson(AskedAxis(answer)[answer.asked])},
          {"map_finished", answer.map.finished},
          {"works_with", works_with},
          {"nearest_release", nearest}};
}

std::string ToText(const MapAnswer& answer) {
  const ApiMap& map = answer.map;
  const std::string& partner = answer.of_engine ? map.library_source : map.engine_source;
  const std::vector<MapCommit>& partners = PartnerAxis(answer);
  std::string text = absl::StrCat(answer.of_engine ? map.engine_source : map.library_source, " ",
                                  CommitText(AskedAxis(answer)[answer.asked]), ", ", map.model,
                                  ", ", map.attention, "\n");
  if (answer.stretches.empty()) {
    absl::StrAppend(&text, "  no ", partner, " since ", map.since,
                    " is known to work with this version",
                    map.finished ? "" : " (the map is incomplete)", "\n");
    return text;
  }
  for (const MapStretch& stretch : answer.stretches) {
    absl::StrAppend(&text, "  oldest ", partner,
                    " that works: ", CommitText(partners[stretch.first]), ", ",
                    Name(stretch.first_proof), "\n");
    absl::StrAppend(&text, "  newest ", partner,
                    " that works: ", CommitText(partners[stretch.last]), ", ",
                    Name(stretch.last_proof), "\n");
    absl::StrAppend(&text, "  ", stretch.last - stretch.first + 1, " commits: ", stretch.ran,
                    " proven by runs, the others by the sources only\n");
  }
  if (!answer.nearest_release) {
    absl::StrAppend(&text, "  no release of ", partner, " since ", map.since, "\n");
    return text;
  }
  absl::StrAppend(&text, "  nearest release: ", CommitText(partners[*answer.nearest_release]), ", ",
                  answer.release_works ? "which works" : "which is not known to work", "\n");
  return text;
}

}  // namespace bkm
