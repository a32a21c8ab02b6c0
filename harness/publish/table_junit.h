// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_TABLE_JUNIT_H_
#define HARNESS_PUBLISH_TABLE_JUNIT_H_

#include <string>

#include "harness/publish/published_table.h"

namespace bkm {

// JUnit XML as CI systems read it (junit.xsd): a suite per row, a case per cell. Red and flaky
// cells are failures; a spurious one is an error; one that the harness or the device cannot do is
// skipped.
std::string TableJunit(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_TABLE_JUNIT_H_
