// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/embedded_python.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class EmbeddedPythonTest : public ::testing::Test {
 protected:
  ~EmbeddedPythonTest() override { RemoveTree(folder_).IgnoreError(); }

  void Write(const fs::path& file, const std::string& text = "") const {
    ASSERT_TRUE(WriteFile(folder_ / file, text).ok());
  }

  const fs::path folder_ = fs::canonical(*CreateTempDirectory(::testing::TempDir(), "python"));
  const std::string name_ = absl::StrCat("libpython", EmbeddedPythonVersion(), ".so.1.0");
};

TEST_F(EmbeddedPythonTest, LibpythonLiesBesideTheInterpreter) {
  Write("base/bin/python3");
  Write("base/lib/" + name_);
  EXPECT_EQ(FindLibpython(folder_ / "base/bin/python3"), folder_ / "base/lib" / name_);
}

TEST_F(EmbeddedPythonTest, LibpythonOfAnEnvironmentIsThatOfItsBase) {
  Write("base/bin/python3");
  Write("base/lib/x86_64-linux-gnu/" + name_);
  Write("env/pyvenv.cfg", absl::StrCat("home = ", folder_.string(), "/base/bin\nversion = 3\n"));
  Write("env/bin/python");
  EXPECT_EQ(BaseOfEnvironment(folder_ / "env"), folder_ / "base");
  EXPECT_EQ(FindLibpython(folder_ / "env/bin/python"),
            folder_ / "base/lib/x86_64-linux-gnu" / name_);
}

TEST_F(EmbeddedPythonTest, AStaticInterpreterHasNone) {
  Write("base/bin/python3");
  Write("base/lib/libpython2.7.so.1.0");
  EXPECT_EQ(FindLibpython(folder_ / "base/bin/python3"), fs::path());
  EXPECT_EQ(BaseOfEnvironment(folder_ / "base"), fs::path());
}

TEST_F(EmbeddedPythonTest, APathThatTheDynamicLinkerWouldSplitIsNotTaken) {
  Write("my base/bin/python3");
  Write("my base/lib/" + name_);
  EXPECT_EQ(FindLibpython(folder_ / "my base/bin/python3"), fs::path());
}

}  // namespace
}  // namespace bkm
