// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_BADGES_H_
#define HARNESS_PUBLISH_BADGES_H_

#include <map>
#include <string>

#include "harness/base/json.h"
#include "harness/publish/published_table.h"

namespace bkm {

// Badges for https://shields.io/badges/endpoint-badge (badge.schema.json), by file name: one per
// engine kind, which shows its newest working pair, and one per row.
std::map<std::string, OrderedJson> Badges(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_BADGES_H_
