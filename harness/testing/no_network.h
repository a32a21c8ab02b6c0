// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TESTING_NO_NETWORK_H_
#define HARNESS_TESTING_NO_NETWORK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bkm {

// Whether the complaint of bkm, uv or git says that a transfer failed because no connection could
// be made: no name service, no route, nobody listening, a proxy that refuses, a timeout, or uv told
// to work offline. An answer of the other side, such as an HTTP error, is not that.
bool IsNoNetwork(absl::string_view complaint);
bool IsNoNetwork(const absl::Status& status);

}  // namespace bkm

#endif  // HARNESS_TESTING_NO_NETWORK_H_
