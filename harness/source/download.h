// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_DOWNLOAD_H_
#define HARNESS_SOURCE_DOWNLOAD_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace bkm {

// Writes what `url` (http, https) gives to `target`, of at most 1 GiB, with the proxies,
// certificates and credentials of the environment. `python` runs our own program in isolation.
// Unavailable: it cannot be had, and why.
absl::Status Download(const std::filesystem::path& python, const std::string& url,
                      const std::filesystem::path& target);

}  // namespace bkm

#endif  // HARNESS_SOURCE_DOWNLOAD_H_
