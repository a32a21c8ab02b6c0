// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_LIBRARY_USE_H_
#define HARNESS_APICHECK_LIBRARY_USE_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/apicheck/dotted_name.h"
#include "harness/apicheck/requirement.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// Records what the engine asks of the library: each ask, its place and its grade.
class LibraryUse {
 public:
  // `asks` must outlive this object.
  LibraryUse(std::string library, Asks& asks) : library_(std::move(library)), asks_(asks) {}

  const std::string& library() const { return library_; }
  bool Owns(absl::string_view dotted) const { return IsWithin(dotted, library_); }

  // The grade of certain asks from now on.
  void SetPhase(Grade phase) { phase_ = phase; }
  // Records the ask at this line of the frame's module, and returns its answer.
  EngineValue Need(Ask ask, int line, const WalkFrame& frame);
  // The module's value, without recording an ask.
  EngineValue Module(const std::string& dotted);

  // Records that the engine assigns this attribute to a thing of the library; "*": a computed name.
  void AddStored(const std::string& name) { stored_.insert(name); }
  bool HasStored(const std::string& name) const { return stored_.contains(name); }

  // Sorted, with the gravest grade of each ask at each place.
  std::vector<Requirement> Requirements() const;

 private:
  const std::string library_;
  Asks& asks_;
  Grade phase_ = Grade::kImport;
  std::set<std::string> stored_;
  std::map<std::pair<int, std::pair<int, int>>, Grade> needs_;  // by (ask, (module, line))
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_LIBRARY_USE_H_
