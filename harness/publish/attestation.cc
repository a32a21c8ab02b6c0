// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/attestation.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/base/version.h"
#include "harness/model/subject.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr char kStatementType[] = "https://in-toto.io/Statement/v1";
constexpr char kPredicateType[] = "https://in-toto.io/attestation/test-result/v0.1";
constexpr char kPayloadType[] = "application/vnd.in-toto+json";
constexpr absl::string_view kObservation = "observation:";

// The repositories of a row's engine and library, each once.
std::vector<std::string> RepositoriesOf(const PublishedRow& row) {
  std::vector<std::string> names;
  for (const std::string& text : {row.engine_version.subject, row.library_to.subject}) {
    const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(text);
    if (spec.ok() && spec->source == SourceKind::kGit &&
        std::find(names.begin(), names.end(), spec->name) == names.end())
      names.push_back(spec->name);
  }
  return names;
}

// Nullopt if the repository has no commit.
absl::StatusOr<std::optional<SourceHead>> HeadOf(const std::string& name, GitSources& sources) {
  ASSIGN_OR_RETURN(const GitRepository repository, sources.Open(name));
  ASSIGN_OR_RETURN(const std::string line,
                   repository.Output({"log", "--all", "--max-count=1", "--no-show-signature",
                                      "--format=%H %cd", "--date=format-local:%Y-%m-%d"}));
  const std::vector<std::string> parts =
      absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (parts.size() != 2) return std::nullopt;
  return SourceHead{name, parts[0], parts[1]};
}

// What is signed, so that a payload of one type is never taken for one of another.
std::string PreAuthenticationEncoding(absl::string_view payload) {
  const absl::string_view type = kPayloadType;
  return absl::StrCat("DSSEv1 ", type.size(), " ", type, " ", payload.size(), " ", payload);
}

OrderedJson Described(const std::string& name, const char* algorithm, const std::string& digest) {
  return {{"name", name}, {"digest", {{algorithm, digest}}}};
}

// The files of a published folder, without its attestation.
absl::StatusOr<std::vector<std::string>> FilesIn(const fs::path& folder) {
  std::vector<FoundFile> found;
  RETURN_IF_ERROR(FindFiles(folder, kPathBounds, found));
  std::vector<std::string> files;
  for (const FoundFile& file : found) {
    if (file.is_link) {
      return absl::DataLossError(
          absl::StrCat((folder / file.path).string(), " is a link, which cannot be signed"));
    }
    if (file.path != kAttestationFile) files.push_back(file.path);
  }
  return files;
}

// The observations below the table's folder, relative to it.
std::set<std::string> ObservationsOf(const PublishedTable& table) {
  std::set<std::string> files;
  const auto add = [&](const Evidence& evidence) {
    files.insert(absl::StrCat(evidence.run, "/", evidence.dir, "/observation.json"));
  };
  for (const PublishedRow& row : table.rows) {
    for (const PublishedCell& cell : row.cells) {
      add(cell.evidence);
      if (cell.control) add(*cell.control);
      for (const Evidence& older : cell.contradicted_by) add(older);
    }
  }
  return files;
}

// The SHA-256 of each "name" in a list of descriptors.
absl::StatusOr<std::map<std::string, std::string>> Digests(const Json& list,
                                                           const std::string& origin) {
  std::map<std::string, std::string> digests;
  const absl::Status unreadable =
      absl::DataLossError(absl::StrCat(origin, " does not hold a statement of bkm publish"));
  if (!list.is_array()) return unreadable;
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("name") || !item["name"].is_string() ||
        !item.contains("digest") || !item["digest"].is_object())
      return unreadable;
    const Json& digest = item["digest"];
    if (!digest.contains("sha256")) continue;
    if (!digest["sha256"].is_string()) return unreadable;
    digests[item["name"].get<std::string>()] = digest["sha256"].get<std::string>();
  }
  return digests;
}

absl::Status CheckFile(const fs::path& file, const std::string& expected) {
  const absl::StatusOr<std::string> digest = Sha256OfFile(file);
  if (!digest.ok()) {
    return absl::DataLossError(absl::StrCat(file.string(), " was signed and is missing"));
  }
  if (*digest == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.string(), " was changed after it was signed"));
}

// The statement in the envelope, if the key signed it.
absl::StatusOr<Json> ReadStatement(const fs::path& file, const SigningKey& key) {
  ASSIGN_OR_RETURN(const Json envelope, ReadJsonFile(file));
  const auto broken = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(file.string(), " ", what));
  };
  const auto text = [](const Json& object, const char* name) {
    return object.is_object() && object.contains(name) && object[name].is_string()
               ? object[name].get<std::string>()
               : std::string();
  };
  std::string payload;
  if (text(envelope, "payloadType") != kPayloadType ||
      !absl::Base64Unescape(text(envelope, "payload"), &payload) || payload.empty() ||
      !envelope.contains("signatures") || !envelope["signatures"].is_array())
    return broken("is not a signed statement of bkm publish");
  for (const Json& signature : envelope["signatures"]) {
    std::string bytes;
    if (absl::Base64Unescape(text(signature, "sig"), &bytes) &&
        key.Verify(PreAuthenticationEncoding(payload), bytes))
      return ParseJson(payload, file.string());
  }
  return broken(absl::StrCat("was not signed with the key ", key.id().substr(0, 12),
                             ", or was changed after it was signed"));
}

}  // namespace

absl::StatusOr<std::vector<SourceHead>> HeadsOf(const PublishedTable& table, GitSources& sources) {
  std::set<std::string> names;
  for (const PublishedRow& row : table.rows) {
    for (const std::string& name : RepositoriesOf(row)) names.insert(name);
  }
  std::vector<SourceHead> heads;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::optional<SourceHead> head, HeadOf(name, sources));
    if (head) heads.push_back(*head);
  }
  return heads;
}

std::vector<std::string> AddHorizons(PublishedTable& table, GitSources& sources) {
  std::vector<std::string> notes;
  std::map<std::string, std::optional<SourceHead>> heads;
  for (PublishedRow& row : table.rows) {
    for (const std::string& name : RepositoriesOf(row)) {
      const auto [it, is_new] = heads.emplace(name, std::nullopt);
      if (is_new) {
        const absl::StatusOr<std::optional<SourceHead>> head = HeadOf(name, sources);
        if (head.ok()) it->second = *head;
        if (!head.ok())
          notes.push_back(absl::StrCat("the newest commit of ", name,
                                       " is not known: ", std::string(head.status().message())));
      }
      if (it->second) row.horizon.push_back(*it->second);
    }
  }
  return notes;
}

absl::StatusOr<OrderedJson> StatementOf(const PublishedTable& table, const fs::path& folder,
                                        const ProgramDigests& programs,
                                        const std::vector<SourceHead>& heads) {
  OrderedJson subject = OrderedJson::array();
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(folder));
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(folder / file));
    subject.push_back(Described(file, "sha256", digest));
  }
  OrderedJson configuration = OrderedJson::array();
  for (const auto& [name, digest] : programs)
    configuration.push_back(Described(absl::StrCat("program:", name), "sha256", digest));
  for (const SourceHead& head : heads) {
    OrderedJson described = Described(absl::StrCat("source:", head.name), "gitCommit", head.commit);
    described["annotations"] = {{"date", head.date}};
    configuration.push_back(std::move(described));
  }
  for (const std::string& file : ObservationsOf(table)) {
    ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(folder / file));
    configuration.push_back(Described(absl::StrCat(kObservation, file), "sha256", digest));
  }
  OrderedJson passed = OrderedJson::array(), warned = passed, failed = passed;
  for (const PublishedRow& row : table.rows) {
    (row.status == RowStatus::kWorks   ? passed
     : row.status == RowStatus::kFails ? failed
                                       : warned)
        .push_back(row.id);
  }
  const char* result = !failed.empty() ? "FAILED" : !warned.empty() ? "WARNED" : "PASSED";
  return OrderedJson{{"_type", kStatementType},
                     {"subject", std::move(subject)},
                     {"predicateType", kPredicateType},
                     {"predicate",
                      {{"result", result},
                       {"configuration", std::move(configuration)},
                       {"passedTests", std::move(passed)},
                       {"warnedTests", std::move(warned)},
                       {"failedTests", std::move(failed)},
                       {"date", table.date},
                       {"version", kVersion}}}};
}

absl::Status WriteAttestation(const OrderedJson& statement, const fs::path& folder,
                              const SigningKey& key) {
  const std::string payload = statement.dump();
  ASSIGN_OR_RETURN(const std::string signature, key.Sign(PreAuthenticationEncoding(payload)));
  const OrderedJson envelope = {
      {"payloadType", kPayloadType},
      {"payload", absl::Base64Escape(payload)},
      {"signatures", {{{"keyid", key.id()}, {"sig", absl::Base64Escape(signature)}}}}};
  return WriteFile(folder / kAttestationFile, ToText(envelope));
}

absl::StatusOr<CheckedAttestation> CheckAttestation(const fs::path& folder, const SigningKey& key) {
  const fs::path file = folder / kAttestationFile;
  ASSIGN_OR_RETURN(const Json statement, ReadStatement(file, key));
  const Json::json_pointer configuration("/predicate/configuration");
  if (!statement.is_object() || !statement.contains("subject") ||
      !statement.contains(configuration) || !statement.contains("predicateType") ||
      statement["predicateType"] != kPredicateType) {
    return absl::DataLossError(
        absl::StrCat(file.string(), " does not hold a statement of bkm publish"));
  }
  CheckedAttestation checked;
  ASSIGN_OR_RETURN(const auto signed_files, Digests(statement["subject"], file.string()));
  for (const auto& [name, digest] : signed_files) {
    RETURN_IF_ERROR(CheckFile(folder / name, digest));
    ++checked.files;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(folder));
  for (const std::string& name : files) {
    if (!signed_files.contains(name)) {
      return absl::DataLossError(absl::StrCat((folder / name).string(), " was not signed"));
    }
  }
  ASSIGN_OR_RETURN(const TableOnDisk table, ReadPublishedTable(folder));
  const auto is_here = [&](absl::string_view observation) {
    for (const PublishedRun& run : table.table.runs) {
      std::error_code error;
      if (absl::StartsWith(observation, run.dir + "/")) return fs::exists(folder / run.dir, error);
    }
    return false;
  };
  ASSIGN_OR_RETURN(const auto evidence, Digests(statement[configuration], file.string()));
  for (const auto& [name, digest] : evidence) {
    if (!absl::StartsWith(name, kObservation)) continue;
    const std::string observation = name.substr(kObservation.size());
    if (!is_here(observation)) {
      ++checked.absent;
      continue;
    }
    RETURN_IF_ERROR(CheckFile(folder / observation, digest));
    ++checked.observations;
  }
  return checked;
}

}  // namespace bkm
