// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The committed table, golden/table, is complete output of bkm publish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/generated_file.h"
#include "harness/base/subprocess.h"
#include "harness/publish/findings.h"
#include "harness/publish/published_table.h"
#include "harness/publish/table_markdown.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFolder[] = "golden/table";

TEST(CommittedTableTest, EachWorkingRowHasItsLockAndNoOtherLockIsThere) {
  const absl::StatusOr<TableOnDisk> found = ReadPublishedTable(kFolder);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_FALSE(found->table.rows.empty());
  std::set<std::string> named, there;
  for (const PublishedRow& row : found->table.rows) {
    EXPECT_EQ(Works(row), !row.pylock.empty()) << row.id;
    if (!row.pylock.empty()) named.insert(row.pylock);
  }
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".toml") there.insert(entry.path().filename().string());
  }
  EXPECT_EQ(there, named);
}

TEST(CommittedTableTest, IsOfFinishedRunsOfBothMatrices) {
  const PublishedTable table = ReadPublishedTable(kFolder)->table;
  std::vector<std::string> matrices;
  for (const PublishedRun& run : table.runs) {
    matrices.push_back(run.matrix);
    EXPECT_TRUE(run.finished);
    EXPECT_EQ(run.dir, absl::StrCat("../../runs/", run.matrix));
  }
  EXPECT_THAT(matrices, ElementsAre("bkm", "trainers"));
}

// Both files follow from the cells in table.json. Where only their form changed, the copies that
// this test leaves are the new ones; no cell need run again.
TEST(CommittedTableTest, ItsFilesAreWhatThisCodeWrites) {
  const PublishedTable table = ReadPublishedTable(kFolder)->table;
  const std::pair<const char*, std::string> files[] = {
      {"table.json", ToText(ToJson(table))},
      {"table.md", TableMarkdown(table, EvidenceLinks::kNone)}};
  for (const auto& [name, text] : files) {
    if (*ReadFile(fs::path(kFolder) / name) == text) continue;
    const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    const fs::path copy = fs::path(outputs ? outputs : ::testing::TempDir()) / name;
    EXPECT_TRUE(WriteFile(copy, text).ok());
    ADD_FAILURE() << "it is not what this code writes; to accept: cp " << copy << " "
                  << fs::path(kFolder) / name;
  }
}

TEST(CommittedTableTest, CanBeReadAtAGlance) {
  const auto check = [](const std::string& file) {
    return RunCommand({.argv = {"ci/check-table", file}});
  };
  const absl::StatusOr<ProcessResult> good = check("golden/table/table.md");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->exit_code, 0) << good->out << good->err;
  const std::string bad = ::testing::TempDir() + "/bad.md";
  ASSERT_TRUE(
      WriteFile(bad, absl::StrCat("# T\n\n## verl-fsdp\n\n| ", std::string(101, 'x'), "\n")).ok());
  const absl::StatusOr<ProcessResult> result = check(bad);
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_THAT(result->out, HasSubstr("line 5 shows 103 columns"));
  EXPECT_THAT(result->out, HasSubstr("0 of 1 engines are answered before the first table"));
}

std::vector<std::string> ColumnsOf(const std::string& line) {
  std::vector<std::string> columns = absl::StrSplit(line, '|');
  for (std::string& column : columns) column = std::string(absl::StripAsciiWhitespace(column));
  return {columns.begin() + 1, columns.end() - 1};
}

// Of each engine in table.md the newest versions that work, each with its newest library; of a
// library by its own trainer the newest.
std::string RowsForTheReadme(const std::string& table) {
  constexpr size_t kOfEachEngine = 3, kOfEachLibrary = 1;
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  std::map<std::string, std::string> targets;  // "[lock][1]" -> a link that holds in README.md
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> link = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (absl::StartsWith(line, "[") && absl::EndsWith(link.first, "]"))
      targets[absl::StrCat("[lock]", link.first)] =
          absl::StrCat("[lock](golden/table/", link.second, ")");
  }
  std::string rows =
                  "| engine | library | of | works with (`!`: not always) | lock |\n| --- | --- | "
                  "--- | --- | --- "
                  "|\n",
              kind;
  std::vector<std::string> header;
  std::set<std::string> versions;  // of this engine
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::StartsWith(lines[i], "## ")) kind = lines[i].substr(3), versions.clear();
    if (absl::StartsWith(lines[i], "| ---")) header = ColumnsOf(lines[i - 1]);
    if (!absl::StartsWith(lines[i], "| ") || !absl::StrContains(lines[i], "**ok**")) continue;
    const std::vector<std::string> columns = ColumnsOf(lines[i]);
    const size_t library = header[1] == "its date" ? 0 : 1;  // its column
    const size_t most = library == 0 ? kOfEachLibrary : kOfEachEngine;
    if (versions.size() == most || !versions.insert(columns[0]).second) continue;
    std::vector<std::string> attentions;
    for (size_t j = library + 2; j < columns.size(); ++j) {
      if (absl::StartsWith(columns[j], "**ok**"))
        attentions.push_back(absl::StrCat(header[j], columns[j].substr(6)));
    }
    absl::StrAppend(&rows, "| ", library == 0 ? "its own trainer" : header[0], " ",
                    library == 0 ? "" : columns[0] + " ", "(", kind, ") | ", header[library], " ",
                    columns[library], " | ", columns[library + 1], " | ",
                    absl::StrJoin(attentions, ", "), " | ", targets[columns.back()], " |\n");
  }
  return rows;
}

TEST(CommittedTableTest, TheReadmeShowsItsRowsThatWork) {
  const std::string readme = *ReadFile("README.md");
  const size_t begin = readme.find("BKM_ACCEPT=1. -->\n"),
               end = readme.find("<!-- The end of the rows");
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos && begin < end);
  const size_t start = readme.find('\n', begin) + 1;
  const std::string rows = RowsForTheReadme(*ReadFile(fs::path(kFolder) / "table.md"));
  ASSERT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2 + 8);
  ExpectGenerated("README.md", readme,
                  absl::StrCat(readme.substr(0, start), "\n", rows, "\n", readme.substr(end)),
                  "//harness/publish:publish_test");
}

TEST(CommittedTableTest, ItsFindingsAreTold) {
  std::vector<BisectReport> searches;
  std::error_code absent;  // without any search there is no folder
  for (const auto& entry : fs::directory_iterator(fs::path(kFolder) / "searches", absent)) {
    const absl::StatusOr<BisectReport> search =
        BisectReportFromJson(*ReadJsonFile(entry.path()), entry.path());
    ASSERT_TRUE(search.ok()) << search.status();
    searches.push_back(*search);
  }
  const PublishedTable table = ReadPublishedTable(kFolder)->table;
  const PublishedTable alone = ControlTable(table);
  const std::vector<PublishedFinding> pairs = FindingsOf(table), libraries = FindingsOf(alone);
  for (const BisectReport& search : searches) {
    const auto is_of = [&](const PublishedFinding& finding) { return IsOf(search, finding); };
    EXPECT_TRUE(std::any_of(pairs.begin(), pairs.end(), is_of) ||
                std::any_of(libraries.begin(), libraries.end(), is_of))
        << search.cell;
  }
  const char kFindings[] = "docs/findings.md";
  ExpectGenerated(kFindings, *ReadFile(kFindings), FindingsMarkdown(table, searches),
                  "//harness/publish:publish_test");
}

TEST(CommittedTableTest, NamesNoPlaceOfTheMachineThatMadeIt) {
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string text = *ReadFile(entry.path());
    for (const char* place : {"file://", "/root/", "/home/", "localhost"})
      EXPECT_THAT(text, Not(HasSubstr(place))) << entry.path();
  }
}

}  // namespace
}  // namespace bkm
