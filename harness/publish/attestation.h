// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ATTESTATION_H_
#define HARNESS_PUBLISH_ATTESTATION_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/publish/published_table.h"
#include "harness/publish/signing_key.h"
#include "harness/source/git_sources.h"

namespace bkm {

// The signed evidence of a published table: an in-toto statement with a test-result predicate
// (https://in-toto.io/attestation/test-result/v0.1) in a DSSE envelope. It covers every file beside
// the table, every observation that the table rests on, the programs, and the newest commits of the
// repositories.
inline constexpr char kAttestationFile[] = "attestation.dsse.json";

// The heads of the git sources of the table's rows.
absl::StatusOr<std::vector<SourceHead>> HeadsOf(const PublishedTable& table, GitSources& sources);
// Gives each row the heads of its sources, as far as they are there, and says what is not.
std::vector<std::string> AddHorizons(PublishedTable& table, GitSources& sources);

// SHA-256 of the programs, by name.
using ProgramDigests = std::map<std::string, std::string>;

// The statement about the published table in `folder`.
absl::StatusOr<OrderedJson> StatementOf(const PublishedTable& table,
                                        const std::filesystem::path& folder,
                                        const ProgramDigests& programs,
                                        const std::vector<SourceHead>& heads);
// Writes the signed statement to `folder`.
absl::Status WriteAttestation(const OrderedJson& statement, const std::filesystem::path& folder,
                              const SigningKey& key);

struct CheckedAttestation {
  int files = 0;
  int observations = 0;
  int absent = 0;  // observations of runs that are not on this machine
};
// Checks the folder of a published table against its signed statement, without the network.
// DataLoss: the signature is not the key's, or a file is changed, missing or extra. The message is
// one sentence.
absl::StatusOr<CheckedAttestation> CheckAttestation(const std::filesystem::path& folder,
                                                    const SigningKey& key);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ATTESTATION_H_
