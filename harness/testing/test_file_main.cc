// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The main of test targets that share their objects (harness_tests_by_file): `--test_file=FILE`
// runs the tests of that source only. Other options are GoogleTest's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace bkm {
namespace {

// `filter` without the tests of other sources than `file`; empty if no test of `file` is linked.
std::string OnlyTestsOf(absl::string_view file, const std::string& filter) {
  std::string others;
  bool found = false;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      if (test.file() == file) {
        found = true;
      } else {
        absl::StrAppend(&others, ":", suite.name(), ".", test.name());
      }
    }
  }
  if (!found) return "";
  // A filter is POSITIVE-NEGATIVE: what follows the minus is left out.
  const bool has_negative = filter.find('-') != filter.npos;
  if (others.empty()) return filter;
  return has_negative ? absl::StrCat(filter, others) : absl::StrCat(filter, "-", others.substr(1));
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  absl::string_view file;
  if (argc != 2 || !absl::ConsumePrefix(&(file = argv[1]), "--test_file=")) {
    std::fprintf(stderr, "usage: %s --test_file=FILE [GoogleTest options]\n", argv[0]);
    return 2;
  }
  const std::string filter = bkm::OnlyTestsOf(file, ::testing::GTEST_FLAG(filter));
  if (filter.empty()) {
    std::fprintf(stderr, "%s: no test of %s is linked\n", argv[0], argv[1]);
    return 2;
  }
  ::testing::GTEST_FLAG(filter) = filter;
  return RUN_ALL_TESTS();
}
