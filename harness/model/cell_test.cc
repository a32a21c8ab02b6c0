// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/cell.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

Cell Example() {
  Cell cell;
  cell.engine = "verl-torchtitan";
  cell.engine_subject = *ParseSubjectSpec("git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c");
  cell.engine_label = "v0.8.0";
  cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.3.0");
  cell.library_label = "0.3.0";
  cell.runtime = "cpu";
  cell.torch = "2.13.0";
  cell.probe.attention = "flex";
  return cell;
}

TEST(CellTest, IdSpellsTheMainFieldsAndWhatIsNotDefault) {
  Cell cell = Example();
  cell.probe.seed = 7;
  cell.probe.engine_options = {{"spmd_backend", "\"default\""}};
  EXPECT_EQ(CellId(cell),
            "engine=verl-torchtitan@git:verl@7aed6b230776f963fa09509c10d9c3a767d1102c,library=pypi:"
            "torchtitan==0.3.0,"
            "runtime=cpu,torch=2.13.0,model=qwen3,attention=flex,precision=bf16,device=cpu,seed=7,"
            "options=spmd_backend:\"default\"");
}

TEST(CellTest, IdIsAFilterForItsOwnCell) {
  const CellFilter filter = *CellFilter::Parse(CellId(Example()));
  Cell other = Example();
  other.probe.attention = "varlen";
  EXPECT_TRUE(filter.Matches(Example()));
  EXPECT_FALSE(filter.Matches(other));
}

TEST(CellTest, FilterKnowsLabelsKindsAndGlobs) {
  for (const char* text : {"engine=verl-torchtitan", "engine=v0.8.0", "engine=git:verl@v0.8.0",
                           "engine=*7aed6b*", "library=*0.3.*,attention=f*"}) {
    EXPECT_TRUE(CellFilter::Parse(text)->Matches(Example())) << text;
  }
  for (const char* text : {"engine=verl-fsdp", "engine=v0.9.0", "attention=varlen", "seed=3"}) {
    EXPECT_FALSE(CellFilter::Parse(text)->Matches(Example())) << text;
  }
}

TEST(CellTest, BadFilterSaysWhatIsMeant) {
  EXPECT_EQ(CellFilter::Parse("atention=flex").status().message(),
            "filter 'atention=flex': unknown key 'atention': did you mean 'attention'?");
  EXPECT_EQ(CellFilter::Parse("flex").status().message(),
            "'flex' is no filter: write key=pattern,key=pattern, for example "
            "engine=verl-torchtitan,attention=flex");
}

}  // namespace
}  // namespace bkm
