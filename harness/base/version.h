// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_VERSION_H_
#define HARNESS_BASE_VERSION_H_

namespace bkm {

// The version of bkm: `bkm --version`, the manual page. No commit is stamped in, so that a build is
// reproducible.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace bkm

#endif  // HARNESS_BASE_VERSION_H_
