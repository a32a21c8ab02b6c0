// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/testing/no_network.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace bkm {
namespace {

bool Contains(absl::string_view line, std::initializer_list<absl::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](absl::string_view phrase) { return absl::StrContains(line, phrase); });
}

// bkm prints the chain of causes of a failed transfer in one line: what was asked for, and why
// that failed.
bool IsFailedConnection(absl::string_view line) {
  if (absl::StrContains(line, "unavailable because the network was disabled")) return true;
  const bool of_uv = Contains(line, {"Failed to fetch", "Failed to download"});
  const bool of_git = absl::StrContains(line, "unable to access '");
  return (of_uv || of_git) &&
         Contains(line,
                  {"Name or service not known", "Temporary failure in name resolution", "dns error",
                   "tcp connect error", "tunnel error", "Connection refused", "Connection reset",
                   "Connection timed out", "operation timed out", "Network is unreachable",
                   "No route to host", "Could not resolve host", "Could not resolve proxy",
                   "Couldn't connect to server", "Failed to connect to"});
}

}  // namespace

bool IsNoNetwork(absl::string_view complaint) {
  const std::vector<absl::string_view> lines = absl::StrSplit(complaint, '\n');
  return std::any_of(lines.begin(), lines.end(), IsFailedConnection);
}

bool IsNoNetwork(const absl::Status& status) { return IsNoNetwork(status.message()); }

}  // namespace bkm
