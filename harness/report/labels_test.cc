// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/labels.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

CellRecord RecordOf(const std::string& engine, const std::string& library) {
  CellRecord record;
  record.cell.engine = "verl-torchtitan";
  record.cell.engine_subject = *ParseSubjectSpec(engine);
  record.cell.library_subject = *ParseSubjectSpec(library);
  record.cell.engine_label = record.cell.engine_subject->revision;
  record.cell.library_label = record.cell.library_subject->revision;
  record.cell.probe.attention = "flex";
  record.cell.probe.precision = "bf16";
  return record;
}

TEST(CellLabelTest, LongRevisionIsToldByItsBeginAndAFolderByItsEnd) {
  EXPECT_EQ(CellLabel(RecordOf("git:verl@0123456789abcdef0123", "path:../../trees/of-mine/tt")),
            "verl-torchtitan 0123456789abcdef x torchtitan of-mine/tt, flex, bf16");
}

TEST(CellLabelTest, ShortFolderIsToldAsItWasWritten) {
  EXPECT_EQ(CellLabel(RecordOf("path:../my-verl", "path:/tt")),
            "verl-torchtitan ../my-verl x torchtitan /tt, flex, bf16");
}

TEST(CellLabelTest, TorchAndAModelThatIsNotTheUsualOneAreTold) {
  CellRecord record = RecordOf("git:verl@v1", "git:torchtitan@v2");
  record.cell.torch = "2.11.0";
  record.cell.probe.model = "gpt_oss";
  EXPECT_EQ(CellLabel(record),
            "verl-torchtitan v1 x torchtitan v2, flex, bf16, gpt_oss, torch 2.11.0");
}

TEST(CellLabelTest, WhatElseIsAskedIsTold) {
  CellRecord record = RecordOf("git:verl@v1", "git:torchtitan@v2");
  record.cell.probe.input = "padded";
  record.cell.probe.micro_batches = 2;
  record.cell.probe.optimizer.clip_norm = 0.5;
  record.cell.probe.seed = 7;
  record.cell.probe.engine_options = {{"spmd_backend", "\"default\""}};
  EXPECT_EQ(CellLabel(record),
            "verl-torchtitan v1 x torchtitan v2, flex, bf16, input=padded, micro_batches=2, "
            "optimizer=clip_norm:0.5, spmd_backend=\"default\", seed=7");
}

TEST(PrintableTest, NothingSteersATerminalAndLineEndsStay) {
  EXPECT_EQ(Printable("a\033[2Jb\r\n\tc\x7f\xc3\xa9"), "a [2Jb \n c \xc3\xa9");
}

}  // namespace
}  // namespace bkm
