// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SUBJECT_VIEWS_H_
#define HARNESS_CELL_SUBJECT_VIEWS_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"
#include "harness/base/json.h"

namespace bkm {

// What was seen of a cell's use of its trees.
struct TreeUse {
  Json observed;        // null if nobody watched
  std::string overrun;  // the exceeded limit in words; empty: none
};

// How a cell gets to see a subject's tree. Lives in the supervisor, which no subject reaches.
class SubjectViews {
 public:
  virtual ~SubjectViews() = default;

  // A read-only mount of `tree`, attached nowhere, for one cell. `subject`: "engine" or "library".
  virtual absl::StatusOr<Descriptor> Open(const std::string& cell, const std::string& subject,
                                          const std::filesystem::path& tree) = 0;

  // Called once all processes of the cell have ended, or the cell did not start.
  virtual TreeUse End(const std::string& cell) = 0;
};

// Trees as they are.
class PlainSubjectViews : public SubjectViews {
 public:
  absl::StatusOr<Descriptor> Open(const std::string& cell, const std::string& subject,
                                  const std::filesystem::path& tree) override;
  TreeUse End(const std::string& cell) override;
};

}  // namespace bkm

#endif  // HARNESS_CELL_SUBJECT_VIEWS_H_
