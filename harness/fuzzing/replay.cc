// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Without libFuzzer: a fuzz target as a test that is given each file of its corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "harness/base/files.h"
#include "harness/fuzzing/fuzzing.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Corpus() {
  const char* runfiles = std::getenv("TEST_SRCDIR");
  const char* corpus = std::getenv("BKM_CORPUS");
  std::vector<fs::path> files;
  if (runfiles == nullptr || corpus == nullptr) return files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(runfiles) / "bkm" / corpus, error))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class CorpusTest : public ::testing::TestWithParam<fs::path> {};

TEST_P(CorpusTest, IsReadWithoutBreakingARule) {
  const absl::StatusOr<std::string> input = ReadFile(GetParam());
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input->data()), input->size()),
            0);
}

// An empty corpus fails: GoogleTest reports a suite without a parameter.
INSTANTIATE_TEST_SUITE_P(Inputs, CorpusTest, ::testing::ValuesIn(Corpus()),
                         [](const ::testing::TestParamInfo<fs::path>& info) {
                           std::string name = info.param.filename();
                           for (char& c : name)
                             if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace bkm
