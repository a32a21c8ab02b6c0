// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

// A bundle of one cell that is stopped, so that it needs no lock.
BundleManifest OneCell() {
  BundleManifest manifest{.bkm = "0", .matrix = "m", .cell_code = Sha256("code")};
  PackedCell& cell = manifest.cells.emplace_back();
  cell.record.cell.engine = "fixture";
  cell.record.cell.engine_subject = SubjectSpec{SourceKind::kPypi, "e", "1"};
  cell.record.cell.library_subject = SubjectSpec{SourceKind::kPypi, "l", "1"};
  cell.record.id = CellId(cell.record.cell);
  cell.record.dir = CellDirectory(cell.record.cell, cell.record.id);
  cell.engine =
      PackedSubject{.package = "e", .content = "x", .tree = Sha256("tree"), .listed = true};
  cell.stopped = {{"schema", 1}, {"ending", {{"kind", "install-failed"}}}};
  return manifest;
}

template <typename T>
std::string MessageOf(const absl::StatusOr<T>& read) {
  return read.ok() ? "" : std::string(read.status().message());
}

std::string Refusal(const BundleManifest& manifest) {
  return MessageOf(ReadManifest(DocumentText(manifest), "a.bkm"));
}

PackedTree TreeOf(std::vector<std::string> paths) {
  PackedTree tree;
  for (std::string& path : paths) {
    const bool is_folder = path.back() == '/';
    tree.files.push_back({std::move(path), "0123", is_folder ? "" : Sha256("content")});
  }
  return tree;
}

std::string Refusal(const PackedTree& tree) {
  return MessageOf(ReadPackedTree(DocumentText(tree), "a.bkm"));
}

TEST(ManifestTest, IsReadAsItWasWritten) {
  const std::string text = DocumentText(OneCell());
  const absl::StatusOr<BundleManifest> read = ReadManifest(text, "a.bkm");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(DocumentText(*read), text);
}

TEST(ManifestTest, AnotherSchemaIsOneSentence) {
  EXPECT_EQ(MessageOf(ReadManifest(R"({"schema": 2, "news": []})", "a.bkm")),
            "a.bkm: this bkm knows schema 1 only, not 2: use the bkm that wrote the file, or a "
            "newer one");
  EXPECT_THAT(MessageOf(ReadManifest("{}", "a.bkm")), HasSubstr("not a file without one"));
  EXPECT_THAT(MessageOf(ReadManifest("[]", "a.bkm")), HasSubstr("an object is needed"));
}

TEST(ManifestTest, ACellHasTheIdOfItsFields) {
  BundleManifest manifest = OneCell();
  manifest.cells[0].record.cell.torch = "9";
  EXPECT_THAT(Refusal(manifest), HasSubstr("has another id than its fields give"));
}

TEST(ManifestTest, ACellHasAFolderOfItsOwnBelowCells) {
  for (const char* folder :
       {"/etc", "cells/..", "cells/a/b", "cells/", "../cells/a", "cells/.git"}) {
    BundleManifest manifest = OneCell();
    manifest.cells[0].record.dir = folder;
    EXPECT_THAT(Refusal(manifest), HasSubstr("has no folder of a cell")) << folder;
  }
  BundleManifest manifest = OneCell();
  manifest.cells.push_back(manifest.cells[0]);
  EXPECT_THAT(Refusal(manifest), HasSubstr("occurs twice"));
}

TEST(ManifestTest, WhatACellNamesIsPacked) {
  BundleManifest manifest = OneCell();
  manifest.cells[0].stopped = nullptr;
  EXPECT_THAT(Refusal(manifest), HasSubstr("has a lock that is not packed"));
  manifest = OneCell();
  manifest.cells[0].probe = "../probe";
  EXPECT_THAT(Refusal(manifest), HasSubstr("has a probe that is not packed"));
  manifest.probes["../probe"] = Sha256("sums");
  EXPECT_THAT(Refusal(manifest), HasSubstr("a probe has no proper name"));
}

TEST(ManifestTest, ABundleHasOnlyCellsOfAPlan) {
  BundleManifest manifest = OneCell();
  EXPECT_TRUE(CheckAsBundle(manifest, "a.bkm").ok());
  manifest.cells[0].record.role = CellRole::kControl;
  EXPECT_EQ(Refusal(manifest), "");
  EXPECT_THAT(CheckAsBundle(manifest, "a.bkm").ToString(), HasSubstr("is not one that is packed"));
  manifest = OneCell();
  manifest.cells[0].record.verdict = Verdict{};
  EXPECT_THAT(Refusal(manifest), HasSubstr("has a verdict before it ran"));
}

TEST(ManifestTest, SubjectsHaveProperNames) {
  BundleManifest manifest = OneCell();
  manifest.cells[0].engine->package = "../../outside";
  EXPECT_THAT(Refusal(manifest), HasSubstr("has no such name"));
  for (const char* home : {"../x", "/etc", "a/../b", "a/b/c/d"}) {
    manifest = OneCell();
    manifest.cells[0].engine->home = home;
    EXPECT_THAT(Refusal(manifest), HasSubstr("the tree cannot lie at")) << home;
  }
  manifest = OneCell();
  manifest.cells[0].engine->tree = "";
  EXPECT_THAT(Refusal(manifest), HasSubstr("is not a part"));
}

TEST(PackedTreeTest, PathsStayInTheTree) {
  EXPECT_EQ(Refusal(TreeOf({"a.py", "b/c.py", "b/d/"})), "");
  for (const char* path :
       {"../a", "/etc/passwd", "a/../../b", "a//b", "./a", ".git/config", "a/./b", "a\nb"})
    EXPECT_NE(Refusal(TreeOf({path})), "") << path;
  EXPECT_NE(Refusal(TreeOf({std::string(5000, 'a')})), "");
}

// With a link at "a", "a/b" would be written wherever the link leads.
TEST(PackedTreeTest, NothingLiesBelowAFileOrLink) {
  EXPECT_THAT(Refusal(TreeOf({"a", "a/b"})), HasSubstr("is a file and a folder"));
  EXPECT_THAT(Refusal(TreeOf({"a", "a"})), HasSubstr("occurs twice"));
  EXPECT_THAT(Refusal(TreeOf({"a", "a/"})), HasSubstr("is a file and a folder"));
}

TEST(PackedTreeTest, EveryFileHasAPart) {
  PackedTree tree = TreeOf({"a.py"});
  tree.files[0].part = "";
  EXPECT_THAT(Refusal(tree), HasSubstr("has no part"));
}

TEST(CellResultTest, HasOnlyTheFilesOfACell) {
  const CellResult sound{
      .cell = "c",
      .machine = Sha256("m"),
      .files = {{"observation.json", Sha256("o")}, {"tensors/step0.safetensors", Sha256("t")}}};
  const auto refusal = [](const CellResult& result) {
    return MessageOf(ReadCellResult(DocumentText(result), "a.bkm"));
  };
  EXPECT_EQ(refusal(sound), "");
  for (const char* path : {"../observation.json", "request.json", "verdict.json", "tensors/../x",
                           "tensors/a/b", "/etc/passwd", "tensors/"}) {
    CellResult forged = sound;
    forged.files[0].path = path;
    EXPECT_THAT(refusal(forged), HasSubstr("a cell's folder has no file")) << path;
  }
  CellResult twice = sound;
  twice.files[0].path = twice.files[1].path;
  EXPECT_THAT(refusal(twice), HasSubstr("occurs twice"));
}

TEST(PackedLockTest, TellsAnInstallerNothingButPackages) {
  const RuntimeLock sound{.runtime = "cpu",
                          .policy = "as-of",
                          .python = "3.11",
                          .cutoff = "2026-05-31T23:59:59Z",
                          .torch_backend = "cpu",
                          .packages = {{"torch", "2.13.0+cpu", {Sha256("wheel")}}}};
  const auto refusal = [](const RuntimeLock& lock) {
    return MessageOf(ReadPackedLock(ToText(ToJson(lock)), "a.bkm"));
  };
  EXPECT_EQ(refusal(sound), "");
  for (const char* word :
       {"-r /etc/passwd", "a\n--index-url http://x", "a @ file:///x", "../a", ""}) {
    RuntimeLock name = sound, version = sound, python = sound;
    name.packages[0].name = word;
    version.packages[0].version = word;
    python.python = word;
    EXPECT_THAT(refusal(name), HasSubstr("is not a name, version or hash")) << word;
    EXPECT_THAT(refusal(version), HasSubstr("is not a name, version or hash")) << word;
    EXPECT_THAT(refusal(python), HasSubstr("is not a name, version or hash")) << word;
  }
  RuntimeLock unhashed = sound;
  unhashed.packages[0].sha256 = {"0"};
  EXPECT_THAT(refusal(unhashed), HasSubstr("has no SHA-256"));
}

}  // namespace
}  // namespace bkm
