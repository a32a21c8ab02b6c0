// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/attestation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/publish/testing_table.h"
#include "harness/source/git_fixture.h"
#include "harness/source/source_catalog.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AttestationTest : public ::testing::TestWithParam<const char*> {
 protected:
  AttestationTest() {
    MakeKey("key");
    MakeKey("other");
    EXPECT_TRUE(WriteFile(folder_ / "table.json", ToText(ToJson(table_))).ok());
    EXPECT_TRUE(WriteFile(folder_ / "pylock.a.toml", "lock").ok());
    EXPECT_TRUE(WriteFile(folder_ / "badges/a.json", "{}").ok());
    for (const PublishedRow& row : table_.rows) {
      for (const PublishedCell& cell : row.cells) {
        EXPECT_TRUE(WriteFile(folder_ / cell.evidence.run / cell.evidence.dir / "observation.json",
                              "{\"cell\":1}")
                        .ok());
      }
    }
  }
  ~AttestationTest() override { RemoveTree(root_).IgnoreError(); }

  void MakeKey(const std::string& name) {
    const std::string options = GetParam();
    Command make{.argv = {"openssl", "genpkey", "-quiet", "-out", (root_ / name).string(),
                          "-algorithm", options}};
    if (options == "EC") make.argv.insert(make.argv.end(), {"-pkeyopt", "ec_paramgen_curve:P-256"});
    std::erase(make.argv, "-quiet");
    ASSERT_TRUE(RunForOutput(make).ok());
    ASSERT_TRUE(RunForOutput({.argv = {"openssl", "pkey", "-in", (root_ / name).string(), "-pubout",
                                       "-out", (root_ / (name + ".pub")).string()}})
                    .ok());
  }
  void Sign() {
    const auto statement =
        StatementOf(table_, folder_, {{"bkm", std::string(64, 'c')}},
                    {{.name = "verl", .commit = std::string(40, 'd'), .date = "2026-06-10"}});
    ASSERT_TRUE(statement.ok()) << statement.status();
    statement_ = *statement;
    ASSERT_TRUE(
        WriteAttestation(statement_, folder_, *SigningKey::ReadPrivate(root_ / "key")).ok());
  }
  absl::StatusOr<CheckedAttestation> Check(const std::string& key = "key.pub") {
    const absl::StatusOr<SigningKey> read = SigningKey::ReadPublic(root_ / key);
    if (!read.ok()) return read.status();
    return CheckAttestation(folder_, *read);
  }
  std::string Complaint() { return std::string(Check().status().message()); }

  const fs::path root_ = *CreateTempDirectory(::testing::TempDir(), "attestation-");
  const fs::path folder_ = root_ / "published";
  const PublishedTable table_ = ATable();
  OrderedJson statement_;
};

TEST_P(AttestationTest, WhatWasSignedIsValidWithThePublicKeyAlone) {
  Sign();
  const absl::StatusOr<CheckedAttestation> checked = Check();
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->files, 3);
  EXPECT_GT(checked->observations, 0);
  EXPECT_EQ(checked->absent, 0);
  EXPECT_TRUE(Check("key").ok());
}

TEST_P(AttestationTest, StatementIsATestResultOverEverything) {
  Sign();
  EXPECT_EQ(statement_["_type"], "https://in-toto.io/Statement/v1");
  EXPECT_EQ(statement_["predicateType"], "https://in-toto.io/attestation/test-result/v0.1");
  EXPECT_EQ(statement_["predicate"]["result"], "FAILED");
  EXPECT_EQ(statement_["subject"].size(), 3u);
  const std::string configuration = statement_["predicate"]["configuration"].dump();
  for (const char* name : {"program:bkm", "source:verl", "gitCommit", "observation:../runs/bkm"})
    EXPECT_THAT(configuration, HasSubstr(name));
}

TEST_P(AttestationTest, AnotherKeyIsRefused) {
  Sign();
  EXPECT_THAT(std::string(Check("other.pub").status().message()), HasSubstr("was not signed with"));
}

TEST_P(AttestationTest, WhatIsNoKeyIsAnError) {
  ASSERT_TRUE(WriteFile(root_ / "none", "no key").ok());
  EXPECT_THAT(std::string(Check("none").status().message()), HasSubstr("is not a public key"));
  EXPECT_THAT(std::string(SigningKey::ReadPrivate(root_ / "key.pub").status().message()),
              HasSubstr("is not a private key"));
  EXPECT_FALSE(Check("absent").ok());
}

TEST_P(AttestationTest, ChangedMissingAndExtraFilesAreNamed) {
  Sign();
  ASSERT_TRUE(WriteFile(folder_ / "badges/a.json", "{ }").ok());
  EXPECT_THAT(Complaint(), HasSubstr("badges/a.json was changed"));
  fs::remove(folder_ / "badges/a.json");
  EXPECT_THAT(Complaint(), HasSubstr("badges/a.json was signed and is missing"));
  ASSERT_TRUE(WriteFile(folder_ / "badges/a.json", "{}").ok());
  ASSERT_TRUE(Check().ok());
  ASSERT_TRUE(WriteFile(folder_ / "pylock.b.toml", "").ok());
  EXPECT_THAT(Complaint(), HasSubstr("pylock.b.toml was not signed"));
  fs::remove(folder_ / "pylock.b.toml");
  fs::create_symlink("table.json", folder_ / "link.json");
  EXPECT_THAT(Complaint(), HasSubstr("is a link"));
}

TEST_P(AttestationTest, ChangedObservationIsNamedAndAnAbsentRunIsCounted) {
  Sign();
  const Evidence& evidence = table_.rows[0].cells[0].evidence;
  const fs::path observation = folder_ / evidence.run / evidence.dir / "observation.json";
  ASSERT_TRUE(WriteFile(observation, "{\"cell\":2}").ok());
  EXPECT_THAT(Complaint(), HasSubstr("observation.json was changed"));
  fs::remove_all(folder_ / evidence.run);
  const absl::StatusOr<CheckedAttestation> checked = Check();
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->observations, 0);
  EXPECT_GT(checked->absent, 0);
}

TEST_P(AttestationTest, ChangedStatementAndMalformedEnvelopesAreRefused) {
  Sign();
  const fs::path file = folder_ / kAttestationFile;
  const Json envelope = *ReadJsonFile(file);
  statement_["predicate"]["result"] = "PASSED";
  Json changed = envelope;
  changed["payload"] = absl::Base64Escape(statement_.dump());
  for (const Json& bad :
       {changed, Json::object(), Json::array(), Json{{"payload", 5}},
        Json{{"payloadType", "application/vnd.in-toto+json"}, {"payload", "!"}, {"signatures", 5}},
        Json{{"payloadType", "application/json"},
             {"payload", envelope["payload"]},
             {"signatures", envelope["signatures"]}}}) {
    ASSERT_TRUE(WriteFile(file, bad.dump()).ok());
    EXPECT_EQ(Check().status().code(), absl::StatusCode::kDataLoss) << bad.dump().substr(0, 80);
  }
  fs::remove(file);
  EXPECT_FALSE(Check().ok());
}

TEST(HorizonTest, RowsNameTheNewestCommitsOfTheirRepositoriesAndWhatIsMissingIsNoted) {
  const std::filesystem::path folder = *CreateTempDirectory(::testing::TempDir(), "horizon-");
  GitFixture repository(folder / "verl");
  repository.Write("verl/__init__.py", "");
  repository.Commit("First", "2026-06-01");
  const std::string newest = repository.Commit("Second", "2026-06-09");
  std::filesystem::create_directory_symlink(repository.git_dir(), folder / "verl.git");
  const SourceCatalog catalog;
  GitSources sources(catalog, folder, "/dev/null/clones");
  PublishedTable table = ATable();
  for (PublishedRow& row : table.rows) row.horizon.clear();
  table.rows[0].library_to.subject = "git:torchtitan@" + std::string(40, 'c');

  const std::vector<std::string> notes = AddHorizons(table, sources);

  // The first row's engine is a release.
  EXPECT_THAT(table.rows[0].horizon, ::testing::IsEmpty());
  EXPECT_THAT(table.rows[1].horizon,
              ::testing::ElementsAre(SourceHead{"verl", newest, "2026-06-09"}));
  EXPECT_EQ(HorizonText(table.rows[1]), "verl 2026-06-09");
  EXPECT_THAT(notes,
              ::testing::ElementsAre(HasSubstr("the newest commit of torchtitan is not known: ")));
}

INSTANTIATE_TEST_SUITE_P(Keys, AttestationTest, ::testing::Values("ed25519", "EC"));

}  // namespace
}  // namespace bkm
