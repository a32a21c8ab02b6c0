// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/testing/no_network.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(NoNetworkTest, ConnectionThatCannotBeMadeIsNoNetwork) {
  for (const char* complaint :
       {"bkm ended with 2: bkm: cannot resolve runtime cpu: Failed to fetch: "
        "https://pypi.org/simple/torch/: failed to lookup address information: Name or service not "
        "known (check the network and the registry: UV_DEFAULT_INDEX, HTTPS_PROXY)",
        "cannot look up pypi:verl==1: Failed to fetch: http://127.0.0.1:1/simple/verl/: Connection "
        "refused (os error 111) (check the network and the registry)",
        "cannot install: Failed to download `torch==2.0`: operation timed out",
        "x: Failed to fetch: https://pypi.org/simple/a/: tunnel error: unsuccessful",
        "x: Because a was not found in the cache: Packages were unavailable because the network "
        "was disabled. When the network is disabled, registry packages may only be read",
        "[ 1/7] x\nbkm: cannot clone verl from https://github.com/verl.git: unable to access "
        "'https://github.com/verl.git/': Could not resolve host: github.com (check the network)",
        "cannot fetch files of /m/verl.git: unable to access 'https://h/': Failed to connect to "
        "h port 443 after 0 ms: Couldn't connect to server (check the network)"}) {
    EXPECT_TRUE(IsNoNetwork(complaint)) << complaint;
    EXPECT_TRUE(IsNoNetwork(absl::UnavailableError(complaint))) << complaint;
  }
}

TEST(NoNetworkTest, SentenceThatMentionsANetworkIsNot) {
  for (const char* complaint :
       {"", "bkm ended with 1: networkx==3.0 does not install", "bkm: unknown option --network",
        "cannot resolve: Because networkx==3.0 depends on scipy<1, no version fits.",
        "x: HTTP status server error (503 Service Unavailable) for url (https://pypi.org/simple/): "
        "Failed to fetch: https://pypi.org/ (check the network and the registry)",
        "cannot clone verl: repository '/m/verl.git' does not exist (check the network, or give a "
        "folder of mirrors with --git-mirror)",
        "the cell died: [c10d] connect to [::1]:29500 failed: Connection refused",
        "Failed to fetch a row\nthe probe failed: operation timed out"}) {
    EXPECT_FALSE(IsNoNetwork(complaint)) << complaint;
  }
  EXPECT_FALSE(IsNoNetwork(absl::OkStatus()));
}

}  // namespace
}  // namespace bkm
