// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/result_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Pair;

Json FileAt(const std::string& path) {
  Json file = PartJson("content");
  file["path"] = path;
  return Json::array({file});
}

TEST(ResultFilesTest, TheEvidenceOfACellArrivesAsItWas) {
  const fs::path folder = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "cell");
  const std::string bytes("\0\xff tensor\n", 10);
  ASSERT_TRUE(WriteFile(folder / "tensors/step0.safetensors", bytes).ok());
  ASSERT_TRUE(WriteFile(folder / "stdout", "said").ok());
  ASSERT_TRUE(WriteFile(folder / "observation.json", "{}").ok());
  ASSERT_TRUE(WriteFile(folder / "work/left", "not evidence").ok());
  const ResultFiles files = *ResultFilesOf(*ReadResultFiles(folder));
  EXPECT_THAT(files, ElementsAre(Pair("stdout", "said"), Pair("tensors/step0.safetensors", bytes)));
  const fs::path other = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "cell");
  ASSERT_TRUE(WriteResultFiles(files, other).ok());
  EXPECT_EQ(*ReadFile(other / "tensors/step0.safetensors"), bytes);
}

TEST(ResultFilesTest, NothingButEvidenceGetsIntoACellsFolder) {
  for (const char* path : {"../stdout", "observation.json", "request.json", "tensors/../x",
                           "tensors/a/b", "/etc/passwd", "tensors/", ""}) {
    EXPECT_EQ(ResultFilesOf(FileAt(path)).status().code(), absl::StatusCode::kDataLoss) << path;
  }
  EXPECT_TRUE(ResultFilesOf(FileAt("tensors/step0.safetensors")).ok());
}

TEST(ResultFilesTest, ChangedContentIsRefused) {
  Json file = FileAt("stdout");
  file[0]["data"] = PartJson("Content")["data"];
  EXPECT_EQ(ResultFilesOf(file).status().code(), absl::StatusCode::kDataLoss);
  file[0]["data"] = "no base64!";
  EXPECT_EQ(ResultFilesOf(file).status().code(), absl::StatusCode::kDataLoss);
  file[0].erase("data");
  EXPECT_EQ(ResultFilesOf(file).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace bkm
