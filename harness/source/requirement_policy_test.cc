// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/requirement_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RequirementPolicyTest, PlainRequirementsPass) {
  for (const char* text : {
           "numpy",
           "a",
           "A.b_c-d",
           "numpy<2",
           "numpy >= 1.26, != 1.27.*, < 3",
           "numpy(>=1)",
           "numpy (>=1,<2) ; python_version > '3.8'",
           "ray[default]>=2.41.0",
           "ray[]",
           "ray [ default , tune ] ~= 2.0",
           "torch==2.13.0+cpu",
           "torch===2.13.0",
           "a==1!2.0rc1.post2.dev3",
           "a>=v1.0-alpha_1",
           "a==1.0-1",
           "tensordict>=0.8.0,<=0.10.0,!=0.9.0",
           "b ; python_version > '3'",
           "b; (sys_platform == \"linux\" and python_full_version<'3.13') or extra == 'x'",
           "b; platform_machine not in 'arm64 aarch64'",
           "b; 'linux' in sys_platform",
           "b;os.name=='posix'",
           "\tnumpy ",
       }) {
    EXPECT_EQ(CheckRequirement(text), absl::OkStatus()) << text;
  }
}

TEST(RequirementPolicyTest, WhatReadsFetchesOrRunsIsForbidden) {
  const std::string nul("numpy\0x", 7);
  for (const std::string& text : std::vector<std::string>{
           "evil @ file:///tmp/evil",
           "evil@https://example.org/evil-1.tar.gz",
           "evil [x] @ git+https://example.org/evil",
           "evil @ ../evil",
           "file:///tmp/evil",
           "file:evil",
           "https://example.org/evil.whl",
           "git+ssh://git@example.org/evil",
           "./evil",
           "../evil",
           "/tmp/evil",
           "evil/",
           "~/evil",
           ".",
           "evil-1.0-py3-none-any.whl",
           "evil-1.0.tar.gz",
           "requirements.txt",
           "-r /etc/passwd",
           "-r/etc/passwd",
           "--requirement=/etc/passwd",
           "-e .",
           "-c constraints.txt",
           "--index-url https://example.org/simple",
           "--extra-index-url=https://example.org/simple",
           "--find-links /tmp",
           "-f /tmp",
           "--no-binary :all:",
           "numpy --hash=sha256:00",
           "numpy --config-settings=--global-option=x",
           "numpy\n-r /etc/passwd",
           "numpy\r-r /etc/passwd",
           "numpy \\",
           "numpy=\\\n=1",
           "numpy==${HOME}",
           "${EVIL}",
           "numpy; python_version > '${HOME}'",
           "a; sys_platform == '`id`'",
           "numpy\x1b[2J",
           "numpy\x0b-r x",
           "numpy\x7f",
           "numpy\xc2\x85-r x",
           "numpy\xe2\x80\xa8-r x",
           "num\xff",
           nul,
           std::string(2001, 'a'),
       }) {
    const absl::Status status = CheckRequirement(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the requirement '")) << text;
  }
}

TEST(RequirementPolicyTest, WhatIsNoRequirementIsMalformed) {
  for (const std::string& text : std::vector<std::string>{
           "",
           " ",
           "_a",
           "a-",
           "numpy==",
           "numpy>=1,",
           "numpy=1",
           "numpy>>1",
           "numpy<1.0.x",
           "numpy>=1.*",
           "numpy==1..2",
           "numpy==1.0+",
           "numpy==1.0+a..b",
           "numpy==1.0dev1rc1",
           "numpy==99999999999999999999",
           "numpy 1.0",
           "numpy[",
           "numpy[a",
           "numpy[a,]",
           "numpy(>=1",
           "numpy>=1)",
           "numpy # comment",
           "numpy;",
           "numpy; python_version",
           "numpy; python_version >",
           "numpy; unknown_variable > '3'",
           "numpy; python_version > '3' and",
           "numpy; python_version > '3' or or extra == 'x'",
           "numpy; (python_version > '3'",
           "numpy; python_version > '3",
           "numpy; python_version > '3 # '",
           "numpy, scipy",
           "numpy scipy",
           "numpy;" + std::string(40, '(') + "extra=='x'" + std::string(40, ')'),
       }) {
    const absl::Status status = CheckRequirement(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text << ": " << status;
  }
}

TEST(RequirementPolicyTest, MessageIsShortAndPrintable) {
  const std::string message(
      CheckRequirement(absl::StrCat("a\x1b]0;x\x07\n", std::string(5000, 'b'))).message());
  EXPECT_LT(message.size(), 400u);
  EXPECT_THAT(message, Not(HasSubstr("\x1b")));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(RequirementPolicyTest, TooManyAreForbidden) {
  EXPECT_EQ(CheckRequirements(std::vector<std::string>(2000, "a")), absl::OkStatus());
  EXPECT_EQ(CheckRequirements(std::vector<std::string>(2001, "a")).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CheckRequirements({"a", "-r x"}).code(), absl::StatusCode::kPermissionDenied);
}

TEST(RequirementPolicyTest, PackageNameIsNoPath) {
  EXPECT_TRUE(IsPackageName("fake-engine"));
  for (const char* name : {"", ".", "..", "/etc", "../etc", "a/b", "a b", "-a", "a\n"})
    EXPECT_FALSE(IsPackageName(name)) << name;
}

}  // namespace
}  // namespace bkm
