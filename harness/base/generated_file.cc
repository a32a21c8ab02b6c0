// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/generated_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness/base/files.h"

namespace bkm {

bool IsAccepting() {
  const char* accept = std::getenv("BKM_ACCEPT");
  return accept != nullptr && accept[0] == '1';
}

void ExpectGenerated(const std::string& file, const std::string& text, const std::string& expected,
                     const std::string& target) {
  if (text == expected) return;
  if (IsAccepting()) {
    // A link of the test's runfiles: what it leads to is written.
    const absl::Status written = WriteFile(std::filesystem::canonical(file), expected);
    ASSERT_TRUE(written.ok()) << written;
    GTEST_SKIP() << "accepted: see git diff " << file;
  }
  EXPECT_EQ(text, expected) << file << " is derived from a table; to write it: bazel test "
                            << target << " --test_env=BKM_ACCEPT=1 --nocache_test_results";
}

}  // namespace bkm
