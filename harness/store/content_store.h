// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_CONTENT_STORE_H_
#define HARNESS_STORE_CONTENT_STORE_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// Files named by the SHA-256 of their content, read-only, written whole or not at all. Any number
// of processes and threads may share one store.
class ContentStore {
 public:
  explicit ContentStore(std::filesystem::path root) : root_(std::move(root)) {}

  // Both return the content's SHA-256 in hex.
  absl::StatusOr<std::string> PutBytes(absl::string_view bytes) const;
  absl::StatusOr<std::string> PutFile(const std::filesystem::path& file) const;

  // Where the content lies; NotFound when it was never put.
  absl::StatusOr<std::filesystem::path> Get(absl::string_view sha256) const;

 private:
  std::filesystem::path PathOf(absl::string_view sha256) const;
  absl::Status Adopt(const std::filesystem::path& temporary, absl::string_view sha256) const;

  std::filesystem::path root_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_CONTENT_STORE_H_
