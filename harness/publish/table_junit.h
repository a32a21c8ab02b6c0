// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TABLE_JUNIT_H_
#define HARNESS_PUBLISH_TABLE_JUNIT_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// JUnit XML (junit.xsd): a suite per row, a test case per cell. Failing and flaky cells are
// failures, spurious cells are errors, and unsupported and skipped cells are skipped.
std::string TableJunit(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TABLE_JUNIT_H_
