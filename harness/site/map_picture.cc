// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/map_picture.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/html.h"

namespace bkm {
namespace {

constexpr double kMapWidth = 1000;  // of the plane, in pixels
constexpr double kMapHeight = 760;
constexpr double kMapLeft = 130;
constexpr double kMapTop = 60;
constexpr double kMapRight = 40;
constexpr double kMapBottom = 120;
constexpr double kLabelGap = 13;  // labels nearer than this would overlap

constexpr char kStyle[] =
    "<style>\n"
    "svg{--ground:#fff;--ink:#1f2328;--soft:#656d76;--import:#d9dde2;--construct:#eceff2;"
    "--free:#fff3cd;--works:#2da44e;--fails:#cf222e;--line:#afb8c1}\n"
    "@media (prefers-color-scheme:dark){svg{--ground:#0d1117;--ink:#e6edf3;--soft:#8b949e;"
    "--import:#21262d;--construct:#2d333b;--free:#4d4013;--works:#3fb950;--fails:#f85149;"
    "--line:#484f58}}\n"
    "text{font:12px system-ui,sans-serif;fill:var(--ink)}.soft{fill:var(--soft)}\n"
    ".import{fill:var(--import)}.construct{fill:var(--construct)}.free{fill:var(--free)}\n"
    ".works{fill:var(--works);fill-opacity:.55}.ok{fill:var(--works)}"
    ".bad{stroke:var(--fails);fill:none;stroke-width:1.4}\n"
    ".none{fill:var(--soft)}.axis{stroke:var(--line)}.release{stroke:var(--ink);"
    "stroke-dasharray:3 3;stroke-opacity:.6}\n"
    "</style>\n";

using html::Escaped;

class Picture {
 public:
  Picture(const ApiMap& map, SvgUse use) : map_(map), use_(use) {}

  std::string Draw() {
    absl::StrAppend(
        &out_,
        absl::StrFormat("<svg class=\"api-map\" xmlns=\"http://www.w3.org/2000/svg\" "
                        "viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Map of "
                        "the pairs that work\">\n",
                        kMapLeft + kMapWidth + kMapRight, kMapTop + kMapHeight + kMapBottom));
    if (use_ == SvgUse::kFile) {
      absl::StrAppend(&out_, kStyle);
      absl::StrAppend(&out_,
                      "<rect width=\"100%\" height=\"100%\" style=\"fill:var(--ground)\"/>\n");
    }
    Text(kMapLeft, 24, "start", "",
         absl::StrCat(map_.engine_source, " x ", map_.library_source, " since ", map_.since, ": ",
                      map_.engines.size(), " x ", map_.libraries.size(), " commits, ",
                      map_.attention, ", ", map_.model));
    DrawGrades();
    DrawBands();
    DrawCells();
    DrawAxis(map_.libraries, /*across=*/true);
    DrawAxis(map_.engines, /*across=*/false);
    DrawLegend();
    return absl::StrCat(out_, "</svg>\n");
  }

 private:
  double X(double column) const {
    return kMapLeft + kMapWidth * column / std::max<size_t>(1, map_.libraries.size());
  }
  // The newest engine is at the top.
  double Y(double row) const {
    return kMapTop + kMapHeight * (1 - row / std::max<size_t>(1, map_.engines.size()));
  }

  void Box(const char* kind, double first_row, double rows, double first_column, double columns,
           const std::string& title) {
    absl::StrAppend(
        &out_,
        absl::StrFormat("<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">"
                        "<title>%s</title></rect>\n",
                        kind, X(first_column), Y(first_row + rows),
                        X(first_column + columns) - X(first_column),
                        Y(first_row) - Y(first_row + rows), Escaped(title)));
  }

  void Text(double x, double y, const char* anchor, const char* kind, const std::string& text,
            int turned = 0) {
    const std::string turn =
        turned ? absl::StrFormat(" transform=\"rotate(%d %.1f %.1f)\"", turned, x, y) : "";
    absl::StrAppend(&out_,
                    absl::StrFormat("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>"
                                    "%s</text>\n",
                                    kind, x, y, anchor, turn, Escaped(text)));
  }

  void DrawGrades() {
    for (size_t first = 0; first < map_.plane.size();) {
      size_t next = first + 1;
      while (next < map_.plane.size() && map_.plane[next] == map_.plane[first]) ++next;
      const std::vector<PairGrade>& row = map_.plane[first];
      for (size_t column = 0; column < row.size();) {
        size_t end = column + 1;
        while (end < row.size() && row[end] == row[column]) ++end;
        const bool red = IsRed(row[column]);
        const std::string name(Name(row[column]));
        const char* kind = row[column] == PairGrade::kUnknown ? "construct"
                           : red                              ? name.c_str()
                                                              : "free";
        Box(kind, first, next - first, column, end - column,
            absl::StrCat("by the sources: ", name));
        column = end;
      }
      first = next;
    }
  }

  void DrawBands() {
    for (const WorkingBlock& block : map_.Working()) {
      Box("works", block.first_row, block.last_row - block.first_row + 1, block.first_column,
          block.last_column - block.first_column + 1,
          absl::StrCat("works: ", Label(map_.libraries[block.first_column]), " to ",
                       Label(map_.libraries[block.last_column])));
    }
  }

  void DrawCells() {
    for (const auto& [point, cell] : map_.cells) {
      const char* kind = cell.outcome() == RunOutcome::kWorks   ? "ok"
                         : cell.outcome() == RunOutcome::kFails ? "bad"
                                                                : "none";
      const std::string says = Escaped(
          absl::StrCat(Label(map_.engines[point.row]), " x ", Label(map_.libraries[point.column]),
                       ": ", cell.verdict, " at ", cell.stage, " ", cell.reason));
      const double x = X(point.column + 0.5);
      const double y = Y(point.row + 0.5);
      // What fails is a cross: colour alone tells too few people.
      absl::StrAppend(
          &out_, cell.outcome() == RunOutcome::kFails
                     ? absl::StrFormat("<path class=\"%s\" d=\"M%.2f %.2fl5 5m0 -5l-5 5\"><title>"
                                       "%s</title></path>\n",
                                       kind, x - 2.5, y - 2.5, says)
                     : absl::StrFormat("<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"2.5\">"
                                       "<title>%s</title></circle>\n",
                                       kind, x, y, says));
    }
  }

  static std::string Label(const MapCommit& commit) {
    return absl::StrCat(commit.release.empty() ? commit.commit.substr(0, 9) : commit.release, " (",
                        commit.date, ")");
  }

  // Months along the axis, and a dashed line for each release.
  void DrawAxis(const std::vector<MapCommit>& commits, bool across) {
    std::string month;
    double last = -1000;
    for (size_t i = 0; i < commits.size(); ++i) {
      const std::string now = commits[i].date.substr(0, 7);
      const double at = across ? X(i) : Y(i);
      if (now > month) {
        month = now;
        if (std::abs(at - last) > 4 * kLabelGap) {
          across ? Text(at, kMapTop + kMapHeight + 18, "start", "soft", now)
                 : Text(kMapLeft - 8, at, "end", "soft", now);
          last = at;
        }
      }
    }
    for (size_t i = 0; i < commits.size(); ++i) {
      if (commits[i].release.empty()) continue;
      const double at = across ? X(i + 0.5) : Y(i + 0.5);
      const double x2 = across ? at : kMapLeft + kMapWidth;
      const double y1 = across ? kMapTop : at;
      const double y2 = across ? kMapTop + kMapHeight : at;
      absl::StrAppend(&out_, absl::StrFormat("<line class=\"release\" x1=\"%.1f\" y1=\"%.1f\" "
                                             "x2=\"%.1f\" y2=\"%.1f\"/>\n",
                                             across ? at : kMapLeft, y1, x2, y2));
      across ? Text(at, kMapTop - 8, "middle", "", commits[i].release)
             : Text(kMapLeft - 66, at + 4, "end", "", commits[i].release);
    }
    across ? Text(kMapLeft + kMapWidth, kMapTop + kMapHeight + 40, "end", "",
                  absl::StrCat(map_.library_source, " commits, oldest to newest"))
           : Text(18, kMapTop + kMapHeight, "start", "",
                  absl::StrCat(map_.engine_source, " commits, oldest to newest"), -90);
  }

  void DrawLegend() {
    const struct {
      const char* kind;
      const char* text;
    } entries[] = {{"import", "import fails, by the sources"},
                   {"construct", "construction fails, by the sources (or nothing is known)"},
                   {"free", "not red by the sources"},
                   {"works", "works: both ends ran, with the newest engine and the oldest"}};
    double y = kMapTop + kMapHeight + 44;
    for (const auto& entry : entries) {
      absl::StrAppend(&out_, absl::StrFormat("<rect class=\"%s axis\" x=\"%.0f\" y=\"%.0f\" "
                                             "width=\"14\" height=\"12\"/>\n",
                                             entry.kind, kMapLeft, y));
      Text(kMapLeft + 22, y + 10, "start", "", entry.text);
      y += 17;
    }
    Text(kMapLeft + 480, kMapTop + kMapHeight + 54, "start", "soft",
         "pairs that ran: a dot works (grey: says nothing), a cross fails");
  }

  const ApiMap& map_;
  const SvgUse use_;
  std::string out_;
};

}  // namespace

std::string ToSvg(const ApiMap& map, SvgUse use) { return Picture(map, use).Draw(); }

}  // namespace bkm
