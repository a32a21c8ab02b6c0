// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Real engines, libraries and SFT steps through the real program: the required verdicts of
// fixtures/matrices/proof.json. Needs the mirrors ($BKM_GIT_MIRRORS) and the package
// registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

// The last path component of a source label; names a cell of the matrix in this file.
struct CellName {
  const char* engine;
  const char* library;
  const char* attention;
};

// The only cell of this name; nullptr if there is none, or more than one.
const Json* FindCell(const Json& run, const CellName& name) {
  const Json* found = nullptr;
  for (const Json& cell : run["cells"]) {
    if (cell["role"] != "subject" || cell["engine_label"] != name.engine ||
        cell["library_label"] != name.library || cell["attention"] != name.attention)
      continue;
    if (found != nullptr) return nullptr;
    found = &cell;
  }
  return found;
}

// Controls are in the order in which they were added.
std::map<std::string, std::string> VerdictsById(const Json& run) {
  std::map<std::string, std::string> verdicts;
  for (const Json& cell : run["cells"]) verdicts[cell["id"]] = cell["verdict"];
  return verdicts;
}

// Some cells of the matrix.
template <typename Suite>
class CellsRun : public SharedRunTest<Suite> {
 protected:
  static const Json& Cell(const CellName& name) {
    const Json* cell = FindCell(SharedRunTest<Suite>::run().json(), name);
    static const Json none = {
        {"verdict", "not one such cell"}, {"stage", ""}, {"message", ""}, {"blame", Json::array()}};
    return cell ? *cell : none;
  }

  static std::string VerdictOf(const CellName& name) {
    const Json& cell = Cell(name);
    return absl::StrCat(cell["verdict"].get<std::string>(), " at ",
                        cell["stage"].get<std::string>());
  }
};

std::vector<std::string> ProofCells(const std::vector<std::string>& filters) {
  return Filtered({"fixtures/matrices/proof.json"}, filters);
}

class RealCellsTest : public CellsRun<RealCellsTest> {
 public:
  static std::vector<std::string> Arguments() {
    return ProofCells({"engine=v0.8.0", "engine=v0.7.1,attention=varlen",
                       "engine=v0.7.1,library=baba6d82e", "engine=verl-torchtitan@pypi:verl==0.9.1",
                       "engine=verl-fsdp@pypi:verl==0.9.1"});
  }
  static absl::StatusOr<RealRun> MakeRun() { return RealRun::Make(Arguments(), "proof"); }
};

// The same on the releases and commits beside them.
class MoreRealCellsTest : public CellsRun<MoreRealCellsTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(ProofCells({"engine=v0.9.0", "engine=v0.7.1,attention=flex",
                                     "engine=verl-fsdp@pypi:verl==0.8.0"}),
                         "more-proof");
  }
};

TEST_F(RealCellsTest, PairsThatWorkAreProvenAgainstTheGolden) {
  EXPECT_EQ(VerdictOf({"v0.8.0", "baba6d82e", "flex"}), "ok at golden");
  EXPECT_EQ(VerdictOf({"v0.8.0", "baba6d82e", "varlen"}), "ok at golden");
}

TEST_F(MoreRealCellsTest, PairsThatWorkAreProvenAgainstTheGolden) {
  EXPECT_EQ(VerdictOf({"v0.9.0", "952427842", "flex"}), "ok at golden");
  EXPECT_EQ(VerdictOf({"v0.9.0", "952427842", "varlen"}), "ok at golden");
  EXPECT_EQ(VerdictOf({"v0.7.1", "c1465542e", "flex"}), "ok at golden");
}

TEST_F(RealCellsTest, EveryAttentionOfTransformersThatVerlBuildsIsProven) {
  for (const char* attention : {"eager", "sdpa", "flex_attention"})
    EXPECT_EQ(VerdictOf({"0.9.1", "5.10.2", attention}), "ok at golden") << attention;
  EXPECT_EQ(Cell({"0.9.1", "5.10.2", "flash_attention_2"})["verdict"], "refused");
}

TEST_F(MoreRealCellsTest, EveryAttentionOfTransformersThatVerlBuildsIsProven) {
  for (const char* attention : {"eager", "sdpa", "flex_attention"})
    EXPECT_EQ(VerdictOf({"0.8.0", "5.10.2", attention}), "ok at golden") << attention;
  EXPECT_EQ(Cell({"0.8.0", "5.10.2", "flash_attention_2"})["verdict"], "refused");
}

TEST_F(RealCellsTest, VarlenWithoutGqaFlagIsBlamedOnLibraryAndRuntimeByTheControl) {
  const Json& cell = Cell({"v0.7.1", "c1465542e", "varlen"});
  EXPECT_EQ(VerdictOf({"v0.7.1", "c1465542e", "varlen"}), "broken at forward");
  EXPECT_THAT(cell["message"].get<std::string>(), HasSubstr("gqa"));
  EXPECT_EQ(cell["blame"], (Json{"library", "runtime"}));
}

TEST_F(RealCellsTest, LookUpThatFailsNamesTheModel) {
  EXPECT_EQ(VerdictOf({"v0.7.1", "baba6d82e", "flex"}), "broken at construct");
  EXPECT_THAT(Cell({"v0.7.1", "baba6d82e", "flex"})["message"].get<std::string>(),
              HasSubstr("No matching torchtitan flavor"));
}

TEST_F(RealCellsTest, NewestReleasesBreakAtImportAndTheMissingModuleIsNamed) {
  EXPECT_EQ(VerdictOf({"0.9.1", "0.3.0", "flex"}), "broken at import");
  EXPECT_THAT(Cell({"0.9.1", "0.3.0", "flex"})["message"].get<std::string>(),
              HasSubstr("torchtitan.components.lr_scheduler"));
}

TEST_F(RealCellsTest, SdpaIsRefusedByVerlWhereItSaysSo) {
  EXPECT_EQ(Cell({"v0.8.0", "baba6d82e", "sdpa"})["verdict"], "refused");
}

TEST_F(MoreRealCellsTest, SdpaIsRefusedByVerlWhereItSaysSo) {
  EXPECT_EQ(Cell({"v0.9.0", "952427842", "sdpa"})["verdict"], "refused");
}

// Of a commit, and of a release; of a cell that works, and of one that breaks.
TEST_F(RealCellsTest, ReplayPreparesACellAgainAndComesToTheSame) {
  for (const CellName& name :
       {CellName{"v0.8.0", "baba6d82e", "flex"}, {"0.9.1", "0.3.0", "flex"}}) {
    const std::filesystem::path dir = Cell(name)["dir"].get<std::string>();
    const auto replayed = RunRealBkm({"replay", RealRunFolder("proof"), dir.filename()});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(replayed->exit_code, 0) << replayed->err;
    EXPECT_THAT(replayed->out, HasSubstr("the same verdict as in the run"));
    EXPECT_THAT(replayed->err, HasSubstr("  sandbox: full\n"));
  }
}

// Engines, process groups and compilers do without what the level denies.
TEST_F(RealCellsTest, AtTheWeakLevelTheSamePairsWork) {
  for (const CellName& name :
       {CellName{"v0.8.0", "baba6d82e", "flex"}, {"0.9.1", "5.10.2", "sdpa"}}) {
    const std::filesystem::path dir = Cell(name)["dir"].get<std::string>();
    const auto replayed =
        RunRealBkm({"replay", "--sandbox", "weak", RealRunFolder("proof"), dir.filename()});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    if (absl::StrContains(replayed->err, "does not offer the sandbox level"))
      GTEST_SKIP() << replayed->err;
    EXPECT_EQ(replayed->exit_code, 0) << replayed->out << replayed->err;
    EXPECT_THAT(replayed->out, HasSubstr("the same verdict as in the run"));
  }
}

// Without goldens, no cell is green, what is red stays so, and the same run makes all right again.
TEST_F(RealCellsTest, CellsWithoutGoldensAreSpuriousUntilTheSameRunMakesThem) {
  const std::filesystem::path folder = RealRunFolder("without-goldens");
  std::filesystem::copy(RealRunFolder("proof"), folder, std::filesystem::copy_options::recursive);
  for (const auto& file : std::filesystem::directory_iterator(folder / "references"))
    if (file.path().extension() == ".safetensors") std::filesystem::remove(file);

  const absl::StatusOr<ProcessResult> judged = RunRealBkm({"judge", folder, "--json"});
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_EQ(judged->exit_code, 1) << judged->err;
  const Json lacking = *ParseJson(judged->out, "judge");
  const Json& cells = run().json()["cells"];
  int changed = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool ok = cells[i]["verdict"] == "ok";
    changed += ok;
    EXPECT_EQ(lacking["cells"][i]["verdict"], ok ? Json("spurious") : cells[i]["verdict"]);
    EXPECT_EQ(lacking["cells"][i]["reason"], ok ? Json("reference-missing") : cells[i]["reason"]);
  }
  EXPECT_GE(changed, 5);  // those that the tests above prove

  const auto again = RunRealCells(Arguments(), "without-goldens");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)["made_by"]["reused"], cells.size());
  EXPECT_EQ(VerdictsById(*again), VerdictsById(run().json()));
}

}  // namespace
}  // namespace bkm
