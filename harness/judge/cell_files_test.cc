// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/cell_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/judge/judge.h"
#include "harness/judge/testing_exceptions.h"
#include "harness/judge/testing_observation.h"
#include "harness/model/observation.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

class CellFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = *CreateTempDirectory(testing::TempDir(), "cell");
    WriteTensorsOfCell(dir_);
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  Verdict Judged(const Json& admitted) const {
    const Observation observation = *ObservationFromJson(admitted, "o");
    const ReferenceData reference = ReferenceOfCell();
    JudgeInput input{.probe = Asking("flex"), .packages = {"verl", "torchtitan"}};
    input.probe.steps = 2;
    input.probe.optimizer = MakeRightCell().optimizer;
    input.observation = &observation;
    input.reference = &reference;
    input.cell_dir = dir_;
    return Judge(input);
  }
  Json Admitted(const Json& reported) const {
    return AdmittedCell(CellFacts::OfReport(reported), dir_).json();
  }
  std::string FaultOf(const Json& reported) const {
    return Admitted(reported)["ending"].value("message", "none");
  }

  fs::path dir_;
};

TEST_F(CellFilesTest, ARightCellIsAdmittedUnchangedAndOk) {
  const Json reported = CompleteObservation();

  EXPECT_EQ(Admitted(reported), reported);
  const Verdict verdict = Judged(reported);
  EXPECT_EQ(verdict.kind, VerdictKind::kOk) << verdict.message;
}

// Every field, at every depth, with every wrong value: the cell gets a verdict, and nothing ends
// but the test.
TEST_F(CellFilesTest, NoValueAnywhereEndsMoreThanItsCell) {
  int cases = 0, malformed = 0, ok = 0;
  for (const char* root : {"", "/exception", "/ending"}) {
    const auto check = [&](const Json& mutated, const std::string& what) {
      const Json admitted = Admitted(mutated);
      // It can be stored, and is admitted unchanged when it is read again.
      const absl::StatusOr<Json> stored = ParseJson(ToText(admitted), "stored");
      ASSERT_TRUE(stored.ok()) << what << stored.status();
      ASSERT_TRUE(ObservationFromJson(*stored, "stored").ok()) << what;
      const Verdict verdict = Judged(*stored);
      ASSERT_LT(verdict.message.size(), 3000u) << what;
      ASSERT_EQ(verdict.message.find('\n'), std::string::npos) << what;
      if (verdict.reason == "evidence-malformed") {
        ++malformed;
        ASSERT_EQ(verdict.kind, VerdictKind::kBroken) << what;
      }
      ok += verdict.kind == VerdictKind::kOk;
      ++cases;
    };
    ForEachMutation(*root ? RaisedObservation() : CompleteObservation(), check, root);
  }
  EXPECT_GT(cases, 3000);
  EXPECT_GT(malformed, 1000);
  EXPECT_GT(ok, 200) << "fields that no verdict reads";
}

TEST_F(CellFilesTest, AMalformedReportKeepsTheHarnessesOwnFacts) {
  Json reported = CompleteObservation();
  reported["steps"][1]["loss"] = "NaN";

  const Json admitted = Admitted(reported);

  EXPECT_EQ(admitted["ending"]["kind"], "malformed");
  EXPECT_EQ(admitted["ending"]["message"],
            "observation: $.steps[1].loss: a number is needed here, not string");
  EXPECT_EQ(admitted["usage"], reported["usage"]);
  EXPECT_EQ(admitted["stages"].size(), 3u);
  EXPECT_FALSE(admitted.contains("steps"));
  EXPECT_EQ(Judged(admitted).reason, "evidence-malformed");
}

TEST_F(CellFilesTest, AMalformedReportWithStagesWithoutEndCanBeReadAgain) {
  Json reported = CompleteObservation();
  reported["steps"] = 1;
  reported["stages"] = Json(40'000, {{"stage", "import"}});
  const Json admitted = Admitted(reported);
  EXPECT_EQ(admitted["ending"]["kind"], "malformed");
  EXPECT_TRUE(CellFacts::FromJson(admitted, "stored").ok());
}

TEST_F(CellFilesTest, AMalformedReportDoesNotHideALimitThatTheWorkerEnforced) {
  Json reported = CompleteObservation();
  reported["load"] = "x";
  reported["ending"] = {{"kind", "limit"}, {"limit", "events"}, {"message", "more than 64 MiB"}};

  const Verdict verdict = Judged(Admitted(reported));

  EXPECT_EQ(verdict.kind, VerdictKind::kBroken);
  EXPECT_EQ(verdict.reason, "limit-events");
}

TEST_F(CellFilesTest, NamesOfTensorFilesArePlain) {
  for (const char* name :
       {"step0.safetensors", "tensors/../../x", "/etc/passwd", "tensors/a/b", "tensors/", "tensors",
        "tensors/.hidden", "tensors/a b", "work/step0.safetensors"}) {
    Json reported = CompleteObservation();
    reported["steps"][0]["tensors"] = name;
    EXPECT_THAT(FaultOf(reported), HasSubstr("a plain name below tensors/")) << name;
  }
  Json reported = CompleteObservation();
  reported["steps"][0]["tensors"] = reported["steps"][1]["tensors"];
  EXPECT_THAT(FaultOf(reported), HasSubstr("two steps name one file"));
}

// What a cell can leave in place of a file that it names, each with the fault.
struct HostileFile {
  std::string name;
  std::function<void(const fs::path&)> make;
  std::string fault;
};

std::string Framed(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}
std::function<void(const fs::path&)> Content(const std::string& bytes) {
  return [bytes](const fs::path& path) { WriteFile(path, bytes).IgnoreError(); };
}
std::function<void(const fs::path&)> Header(const std::string& header) {
  return Content(Framed(header, "12345678"));
}

class HostileFileTest : public CellFilesTest, public testing::WithParamInterface<HostileFile> {};

// A judge that waits for the file, or reads all of it, does not end within the limit of the test.
TEST_P(HostileFileTest, IsAVerdictOfThatCellAtOnce) {
  for (const char* name : {"tensors/step1.safetensors", "tensors/attended.safetensors"}) {
    const fs::path path = dir_ / name;
    WriteTensorsOfCell(dir_);
    fs::remove(path);
    GetParam().make(path);

    const Json admitted = Admitted(CompleteObservation());

    EXPECT_THAT(admitted["ending"].value("message", "none"), HasSubstr(GetParam().fault)) << name;
    EXPECT_FALSE(absl::StrContains(ToText(admitted), dir_.string()));
    EXPECT_EQ(Judged(admitted).reason, "evidence-malformed");
    // A file that is damaged only after it was admitted is the harness's matter.
    const Verdict later = Judged(CompleteObservation());
    EXPECT_NE(later.kind, VerdictKind::kBroken);
    EXPECT_EQ(later.kind == VerdictKind::kOk, GetParam().name == "hard_link") << later.message;
    RemoveTree(path).IgnoreError();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, HostileFileTest,
    testing::Values(
        HostileFile{"missing", [](const fs::path&) {}, "No such file"},
        HostileFile{"fifo", [](const fs::path& path) { ::mkfifo(path.c_str(), 0600); },
                    "is a pipe, not a regular file"},
        HostileFile{"folder", [](const fs::path& path) { fs::create_directory(path); },
                    "is a folder, not a regular file"},
        HostileFile{"link",
                    [](const fs::path& path) { fs::create_symlink("step0.safetensors", path); },
                    "a link or no regular file"},
        HostileFile{"link_to_device",
                    [](const fs::path& path) { fs::create_symlink("/dev/zero", path); },
                    "a link or no regular file"},
        HostileFile{"hard_link",
                    [](const fs::path& path) {
                      const fs::path other = path.parent_path().parent_path() / "other";
                      fs::remove(other);
                      WriteTensorsOfCell(path.parent_path().parent_path());
                      fs::create_hard_link(path, other);
                    },
                    "is a hard link to another file"},
        HostileFile{"sparse",
                    [](const fs::path& path) {
                      Content("x")(path);
                      fs::resize_file(path, int64_t{1} << 40);
                    },
                    "at most 67108864 are read"},
        HostileFile{"empty", Content(""), "too short to be a safetensors file"},
        HostileFile{"cut_off", Content(std::string("\xff\0\0\0\0\0\0\0{}", 10)),
                    "its header claims 255 bytes"},
        HostileFile{"header_of_8_eib", Content(std::string("\0\0\0\0\0\0\0\x80{}", 10)),
                    "its header claims 9223372036854775808 bytes"},
        HostileFile{"header_of_all_bits", Content(std::string(8, '\xff') + "{}"),
                    "its header claims 18446744073709551615 bytes"},
        HostileFile{"no_json", Header("{"), "header: not JSON"},
        HostileFile{"a_list", Header("[]"), "its header is not a JSON object"},
        HostileFile{"deep", Header(std::string(100000, '[')), "nested deeper than"},
        HostileFile{"twice", Header(R"({"a":1,"a":2})"), "appears twice"},
        HostileFile{"no_dtype", Header(R"({"a":{"shape":[2],"data_offsets":[0,8]}})"),
                    "it needs dtype, shape"},
        HostileFile{"wrong_types", Header(R"({"a":{"dtype":1,"shape":{},"data_offsets":"x"}})"),
                    "it needs dtype, shape"},
        HostileFile{"negative_shape",
                    Header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"),
                    "it needs dtype, shape"},
        HostileFile{"huge_shape",
                    Header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
                           R"("data_offsets":[0,8]}})"),
                    "its shape overflows"},
        HostileFile{"huge_offsets",
                    Header(R"({"a":{"dtype":"F32","shape":[2],)"
                           R"("data_offsets":[0,18446744073709551615]}})"),
                    "it needs dtype, shape"},
        HostileFile{"outside", Header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})"),
                    "are not in the file"},
        HostileFile{"reversed", Header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"),
                    "are not in the file"},
        HostileFile{"overlap",
                    Header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
                    "overlaps another"},
        HostileFile{"hole", Header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
                    "unused bytes lie before"},
        HostileFile{"rest", Header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
                    "unused bytes lie after"},
        HostileFile{"unknown_dtype",
                    Header(R"({"a":{"dtype":"\u001b[2J","shape":[2],"data_offsets":[0,8]}})"),
                    "is not supported"}),
    [](const auto& info) { return info.param.name; });

TEST_F(CellFilesTest, AFolderOfTensorsThatIsALinkIsNotRead) {
  fs::rename(dir_ / "tensors", dir_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", dir_ / "tensors");

  EXPECT_THAT(FaultOf(CompleteObservation()), HasSubstr("a link or no regular file"));
}

}  // namespace
}  // namespace bkm
