// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_HASH_H_
#define HARNESS_BASE_HASH_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// SHA-256 as 64 lower-case hex digits.
std::string Sha256(absl::string_view bytes);

// SHA-1 as 40 lower-case hex digits. Only for git object ids.
std::string Sha1(absl::string_view bytes);

// SHA-256 of a file's content. Reads the file in pieces, so its size does not matter.
absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& path);

// Like Sha256OfFile, for what follows in an open file. `path` names it in the error.
absl::StatusOr<std::string> Sha256OfOpenFile(int file, const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_BASE_HASH_H_
