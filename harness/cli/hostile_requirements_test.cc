// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Subjects with hostile or broken declarations through the real program: each is the result of its
// own cell, and the healthy cell beside them is measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Declaration {
  std::string name;
  std::string file;
  std::string content;
  std::string verdict;
  std::string reason;
};

std::vector<Declaration> Declarations(const fs::path& evil) {
  const std::string not_allowed = "requirement-not-allowed", malformed = "requirement-malformed";
  const auto depends = [](const std::string& requirement) {
    return absl::StrCat("[project]\nname='p'\ndependencies=['", requirement, "']\n");
  };
  const auto dynamic = [](const std::string& file) {
    return absl::StrCat(
        "[project]\nname='p'\ndynamic=['dependencies']\n[tool.setuptools.dynamic]\n"
        "dependencies={file=['",
        file, "']}\n");
  };
  const std::string toml = "pyproject.toml";
  return {
      {"url", toml, depends(absl::StrCat("evil @ file://", evil.string())), "unsupported",
       not_allowed},
      {"path", toml, depends(evil.string()), "unsupported", not_allowed},
      {"file_option", toml, depends("-r /etc/hostname"), "unsupported", not_allowed},
      {"editable", toml, depends(absl::StrCat("-e ", evil.string())), "unsupported", not_allowed},
      {"index", toml, depends("--index-url http://127.0.0.1:9/simple"), "unsupported", not_allowed},
      {"variable", toml, depends("numpy==${HOME}"), "unsupported", not_allowed},
      {"outside", toml, dynamic("../../../outside.txt"), "unsupported", not_allowed},
      {"absolute", toml, dynamic("/etc/hostname"), "unsupported", not_allowed},
      {"script", "setup.py",
       absl::StrCat("import pathlib\npathlib.Path('", (evil / "ran").string(),
                    "').touch()\nfrom setuptools import setup\nsetup(install_requires=read())\n"),
       "unsupported", not_allowed},
      {"config", "setup.cfg", "[options]\ninstall_requires = file: /etc/hostname\n", "unsupported",
       not_allowed},
      {"no_toml", toml, "[project\n", "broken", malformed},
      {"number", toml, "[project]\ndependencies = 5\n", "broken", malformed},
      {"nested", toml, "a = " + std::string(100000, '['), "broken", malformed},
      {"bytes", toml, "\xff\xfe", "broken", malformed},
      {"specifier", toml, depends("numpy<<2"), "broken", malformed},
      {"name", toml, "[project]\nname = '/etc'\n", "broken", malformed},
      {"no_script", "setup.py", "setup(", "broken", malformed},
      {"twice", "setup.cfg", "[a]\nb = 1\nb = 2\n", "broken", malformed},
  };
}

TEST(HostileRequirementsTest, EachIsTheResultOfItsOwnCell) {
  BkmUnderTest bkm;
  const fs::path evil = bkm.folder() / "evil";
  ASSERT_TRUE(
      WriteFile(evil / "setup.py", absl::StrCat("open('", (evil / "ran").string(), "', 'w')\n"))
          .ok());
  const std::vector<Declaration> declarations = Declarations(evil);
  std::vector<std::string> names = {"passes"};
  for (const Declaration& one : declarations) {
    bkm.WritePair(one.name, "");
    ASSERT_TRUE(WriteFile(bkm.packages() / one.name / "engine" / one.file, one.content).ok());
    names.push_back(one.name);
  }
  bkm.WritePair("pipe", "");
  ASSERT_EQ(::mkfifo((bkm.packages() / "pipe/engine/pyproject.toml").c_str(), 0600), 0);
  names.push_back("pipe");
  bkm.WritePair("empty", "");
  fs::remove_all(bkm.packages() / "empty/engine/fake_engine");
  names.push_back("empty");

  const ProcessResult result = bkm.Run({"run", bkm.WriteMatrix(names)});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json run = bkm.ReadRun();
  const auto cell = [&](const std::string& name) { return BkmUnderTest::CellOf(run, name); };
  EXPECT_EQ(cell("passes")["verdict"], "ok");
  for (const Declaration& one : declarations) {
    EXPECT_EQ(cell(one.name)["verdict"], one.verdict) << one.name << cell(one.name);
    EXPECT_EQ(cell(one.name)["reason"], one.reason) << one.name << cell(one.name);
    EXPECT_THAT(cell(one.name)["message"].get<std::string>(), HasSubstr(one.file));
  }
  EXPECT_EQ(cell("pipe")["reason"], "requirement-not-allowed");
  EXPECT_EQ(cell("empty")["reason"], "install-failed");
  EXPECT_FALSE(fs::exists(evil / "ran"));
}

}  // namespace
}  // namespace bkm
