// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/exception_text.h"

#include <gtest/gtest.h>

#include "harness/judge/testing_exceptions.h"

namespace bkm {
namespace {

TEST(ExceptionTextTest, FirstLineIsTrimmedAndItsPathsAreShort) {
  EXPECT_EQ(FirstLine("\n  cannot import name 'A' from 'transformers' "
                      "(/home/u/.cache/v/lib/python3.11/site-packages/transformers/__init__.py)\n"
                      "more"),
            "cannot import name 'A' from 'transformers' (.../transformers/__init__.py)");
  EXPECT_EQ(FirstLine("1/2 and a/b/c stay"), "1/2 and a/b/c stay");
  EXPECT_EQ(FirstLine(""), "");
}

TEST(ExceptionTextTest, LongLineIsCutBetweenCharacters) {
  const std::string text = std::string(239, 'x') + "\xC3\xA9\xC3\xA9";
  EXPECT_EQ(FirstLine(text), std::string(239, 'x') + "...");
}

TEST(ExceptionTextTest, NormalizedMessageForgetsPathsNumbersAndAddresses) {
  EXPECT_EQ(NormalizedMessage("Module at 0x7f3ab2 in /tmp/a/b.py: 16 heads"),
            NormalizedMessage("module at 0x5500ff in /home/x.py: 8 heads"));
  EXPECT_NE(NormalizedMessage("no attribute 'a'"), NormalizedMessage("no attribute 'b'"));
}

TEST(ExceptionTextTest, PythonsOwnFramesDecideNothing) {
  const ObservedException exception =
      Exception("TypeError", "m",
                {Frame(FrameOwner::kEngine, "verl/a.py", "call"),
                 Frame(FrameOwner::kPython, "dataclasses.py", "raise")});
  EXPECT_EQ(DeepestFrame(exception)->file, "verl/a.py");
  EXPECT_EQ(DescribeException(exception), "TypeError: m (verl/a.py:7)");
}

TEST(ExceptionTextTest, BareAssertIsDescribedByItsSource) {
  EXPECT_EQ(DescribeException(Exception("AssertionError", "",
                                        {Frame(FrameOwner::kLibrary, "torchtitan/attention.py",
                                               "assert", "assert attention_masks is None")})),
            "AssertionError (torchtitan/attention.py:7): assert attention_masks is None");
}

TEST(ExceptionTextTest, ImportErrorRaisedFromAnotherIsReadAtItsCause) {
  Observation observation = EngineImportsMissingLibraryModule();
  const ObservedException inner = observation.exceptions[0];
  observation.exceptions = {Exception("ImportError", "lazy import failed", {}), inner};
  EXPECT_EQ(DecidingException(observation)->message, inner.message);
  observation.exceptions[0].type = "RuntimeError";
  EXPECT_EQ(DecidingException(observation)->message, "lazy import failed");
}

}  // namespace
}  // namespace bkm
