// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Results of one commit that stand for another one, with subjects that would like it otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/source/git_fixture.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Tells bkm that the cell looked at nothing.
constexpr char kForges[] = R"(
import bkm_cell.witnesses.closure as witness
def forged(self, report, whole=False):
    report.set(closure={"engine": [], "library": [], "lookups": {}, "asked": {}, "escapes": [],
                        "whole": True})
witness.Closure.send = forged
)";

// Leaves `good` false if the file data/switch does not say "on", however it was looked at.
struct Way {
  const char* name;
  const char* code;     // sets `good`
  const char* changed;  // a path below the package that makes it false
  const char* before;   // content of `changed`; null: no such file
  const char* after;
};
constexpr Way kWays[] = {
    {"open", "good = open(place('switch')).read() == 'on'", "data/switch", "on", "no"},
    {"child process",
     "import subprocess; good = subprocess.check_output(['cat', place('switch')]) == b'on'",
     "data/switch", "on", "no"},
    {"mmap",
     "import mmap; file = os.open(place('switch'), os.O_RDONLY)\n"
     "good = mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)[:] == b'on'",
     "data/switch", "on", "no"},
    {"C code",
     "import ctypes; c = ctypes.CDLL(None); buffer = ctypes.create_string_buffer(9)\n"
     "c.read(c.open(place('switch').encode(), 0), buffer, 9); good = buffer.value == b'on'",
     "data/switch", "on", "no"},
    {"size", "good = os.stat(place('switch')).st_size == 2", "data/switch", "on", "none"},
    {"missing file", "good = not os.path.exists(place('more'))", "data/more", nullptr, "x"},
    {"listing", "good = os.listdir(place('')) == ['switch']", "data/more", nullptr, "x"},
    {"link", "good = os.readlink(place('link')) == 'switch'", "data/link", "@switch", "@other"},
    {"raw listing",
     "import subprocess; good = subprocess.check_output(['ls', place('')]) == b'switch\\n'",
     "data/more", nullptr, "x"},
};

class InheritanceTest : public ::testing::Test {
 protected:
  InheritanceTest()
      : engine_(bkm_.folder() / "fake_engine"), library_(bkm_.folder() / "fake_library") {
    fs::create_directories(bkm_.folder() / "mirrors");
    for (const char* name : {"engine", "library"}) {
      const std::string package = absl::StrCat("fake_", name);
      const std::string file = package + "/__init__.py";
      good_[name] = *ReadFile(bkm_.packages() / "passes" / name / file);
      fs::create_directory_symlink(bkm_.folder() / package / ".git",
                                   bkm_.folder() / "mirrors" / (package + ".git"));
    }
    engine_.Write("fake_engine/__init__.py", good_["engine"]);
    engine_.Commit("Engine", "2026-03-01");
  }
  // A commit of the library: `files` below its package, "@target" for a link, null for none.
  std::string Commit(const std::string& code,
                     const std::map<std::string, const char*>& files = {}) {
    library_.Write("fake_library/__init__.py", absl::StrCat(good_["library"], "\n", code, "\n"));
    for (const auto& [path, content] : files) {
      const fs::path place = library_.folder() / "fake_library" / path;
      fs::remove(place);
      if (!content) continue;
      fs::create_directories(place.parent_path());
      if (content[0] == '@') {
        fs::create_symlink(content + 1, place);
      } else {
        EXPECT_TRUE(WriteFile(place, content).ok());
      }
    }
    return library_.Commit(absl::StrCat("Commit ", ++count_), "2026-03-02");
  }
  // The cells of a run of its own over these commits, in their order.
  Json Run(const std::vector<std::string>& commits, std::vector<std::string> more = {}) {
    std::vector<std::string> libraries;
    for (const std::string& commit : commits)
      libraries.push_back(absl::StrCat("git:fake_library@", commit));
    const Json group = {{"engine", {{"kind", "fixture"}, {"subjects", {"git:fake_engine@main"}}}},
                        {"library", libraries},
                        {"runtime", {"bare"}},
                        {"probe", {{"attention", {"flex"}}, {"steps", 1}}}};
    const fs::path matrix = bkm_.folder() / "fixtures/matrices/inherits.json";
    EXPECT_TRUE(WriteFile(matrix, ToText(Json{{"schema", 1},
                                              {"name", "inherits"},
                                              {"sources",
                                               {{"fake_engine", {{"package", "fake_engine"}}},
                                                {"fake_library", {{"package", "fake_library"}}}}},
                                              {"groups", {group}}}))
                    .ok());
    EXPECT_TRUE(RemoveTree(bkm_.out()).ok());
    std::vector<std::string> arguments = {"run", matrix, "--git-mirror",
                                          (bkm_.folder() / "mirrors").string()};
    if (more.empty()) more = {"--verify-inherited", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    result_ = bkm_.Run(arguments);
    Json cells = Json::array();
    const Json run = bkm_.ReadRun();
    for (const std::string& library : libraries) {
      for (const Json& cell : run["cells"])
        if (cell["library_subject"] == library) cells.push_back(cell);
    }
    EXPECT_EQ(cells.size(), commits.size()) << result_.err;
    return cells;
  }
  // Lets the engine report a name of the library. Returns code of a library whose name depends on
  // the machine alone, which nobody can observe.
  std::string ReportTheTime() {
    engine_.Write("fake_engine/__init__.py",
                  absl::StrCat(good_["engine"],
                               "\nclass Engine(Engine):\n"
                               "    def __init__(self, library, attention):\n"
                               "        super().__init__(library, library.Model.__qualname__)\n"));
    engine_.Commit("Reports", "2026-03-01");
    return "import time\nModel.__qualname__ = str(time.time_ns())\n";
  }
  static bool Inherited(const Json& cell) { return cell["inherited_from"].is_string(); }

  const BkmUnderTest bkm_;
  GitFixture engine_, library_;
  std::map<std::string, std::string> good_;
  int count_ = 0;
  ProcessResult result_;
};

TEST_F(InheritanceTest, ForgedRecordLendsNoResultToAnotherCommit) {
  const std::string code =
      absl::StrCat(kForges, "import os\n",
                   "if open(os.path.join(os.path.dirname(__file__), 'switch')).read() != 'on':\n",
                   "    raise RuntimeError('switched off')\n");
  const std::string on = Commit(code, {{"switch", "on"}});
  const std::string off = Commit(code, {{"switch", "off"}});
  EXPECT_EQ(Run({on})[0]["verdict"], "ok") << result_.err;
  const Json broken = Run({off})[0];
  EXPECT_EQ(broken["verdict"], "broken");
  EXPECT_FALSE(Inherited(broken));
  // The other way round, a broken commit turns no good one red.
  const std::string more = Commit(code, {{"switch", "on"}, {"more", "x"}});
  ASSERT_TRUE(RemoveTree(bkm_.folder() / "cache/observations").ok());
  EXPECT_EQ(Run({off})[0]["verdict"], "broken");
  EXPECT_EQ(Run({more})[0]["verdict"], "ok");
}

TEST_F(InheritanceTest, WhatACellLooksAtIsSeenInEveryWay) {
  std::vector<std::string> first, changed, unrelated;
  for (const Way& way : kWays) {
    const std::string code = absl::StrCat(
        kForges, "# ", way.name, "\nimport os\n",
        "def place(name): return os.path.join(os.path.dirname(__file__), 'data', name)\n", way.code,
        "\nif not good: raise RuntimeError('changed')\n");
    const std::map<std::string, const char*> none = {
        {"data/switch", "on"}, {"data/more", nullptr}, {"data/link", nullptr}};
    auto files = none;
    files["other"] = nullptr;
    files[way.changed] = way.before;
    first.push_back(Commit(code, files));
    files["other"] = "another file";
    unrelated.push_back(Commit(code, files));
    files["other"] = nullptr;
    files[way.changed] = way.after;
    changed.push_back(Commit(code, files));
  }
  const Json before = Run(first), after = Run(changed), same = Run(unrelated);
  for (size_t i = 0; i < std::size(kWays); ++i) {
    EXPECT_EQ(before[i]["verdict"], "ok") << kWays[i].name;
    EXPECT_EQ(after[i]["verdict"], "broken") << kWays[i].name;
    EXPECT_FALSE(Inherited(after[i])) << kWays[i].name;
    EXPECT_EQ(same[i]["verdict"], "ok") << kWays[i].name;
    EXPECT_TRUE(Inherited(same[i])) << kWays[i].name;
  }
}

TEST_F(InheritanceTest, FilesBesideThePackageCountToo) {
  // The content id of a commit names its package alone.
  const std::string code =
      "import os\n"
      "root = os.path.dirname(os.path.dirname(__file__))\n"
      "if 'off' in open(os.path.join(root, 'setup.cfg')).read(): raise RuntimeError('off')\n";
  library_.Write("setup.cfg", "[metadata]\nname = fake_library\n# on\n");
  const std::string on = Commit(code);
  library_.Write("setup.cfg", "[metadata]\nname = fake_library\n# off\n");
  const std::string off = Commit(code);
  const Json together = Run({on, off});
  EXPECT_EQ(together[0]["verdict"], "ok") << result_.err;
  EXPECT_EQ(together[1]["verdict"], "broken");
  EXPECT_EQ(Run({off})[0]["verdict"], "broken");
}

TEST_F(InheritanceTest, SampleThatDiffersDiscardsItsSourceAndFailsTheRun) {
  const std::string code = ReportTheTime();
  const std::string first = Commit(code), second = Commit(code, {{"other", "x"}});
  Run({first});
  ASSERT_EQ(result_.exit_code, 0) << result_.err;
  EXPECT_TRUE(Inherited(Run({second})[0]));
  EXPECT_EQ(result_.exit_code, 0) << result_.err;

  const Json cells = Run({second}, {"--verify-inherited", "1"});

  EXPECT_EQ(result_.exit_code, 2);
  EXPECT_THAT(result_.err, AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("backend")));
  EXPECT_FALSE(Inherited(cells[0]));
  EXPECT_EQ(cells[0]["verdict"], "ok");
  const Json record = bkm_.ReadRun()["made_by"]["inherited"];
  EXPECT_EQ(record["one_in"], 1);
  EXPECT_EQ(record["checked"], 1);
  ASSERT_EQ(record["differences"].size(), 1);
  EXPECT_EQ(record["differences"][0]["what"], "backend");
}

TEST_F(InheritanceTest, SampleThatDiffersFailsASearchToo) {
  const std::string code = ReportTheTime();
  const std::string first = Commit(code), second = Commit(code, {{"other", "x"}});
  Run({second});
  const auto search = [&](const char* one_in) {
    return bkm_.Run({"timeline", bkm_.folder() / "fixtures/matrices/inherits.json", "--axis",
                     "library", "--since", "2026-03-02", "--git-mirror", bkm_.folder() / "mirrors",
                     "--out", bkm_.out() / "search", "--verify-inherited", one_in});
  };
  ProcessResult result = search("1");
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("backend")));

  // What differed was discarded.
  result = search("1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(InheritanceTest, SampleThatAgreesIsMeasuredAndSaysNothing) {
  const std::string first = Commit("# equal"), second = Commit("# equal", {{"other", "x"}});
  Run({first});
  const Json cells = Run({second}, {"--verify-inherited", "1"});
  EXPECT_EQ(result_.exit_code, 0) << result_.err;
  EXPECT_FALSE(Inherited(cells[0]));
  EXPECT_EQ(bkm_.ReadRun()["made_by"]["inherited"]["checked"], 1);
  EXPECT_TRUE(Inherited(Run({second})[0]));
}

}  // namespace
}  // namespace bkm
