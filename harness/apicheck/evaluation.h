// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_EVALUATION_H_
#define HARNESS_APICHECK_EVALUATION_H_

#include <map>
#include <vector>

#include "harness/apicheck/library.h"
#include "harness/apicheck/requirement.h"

namespace bkm {

// The answers of one version of the library to asks, each computed once.
class Evaluation {
 public:
  // All must outlive this object.
  Evaluation(SymbolTables& tables, const Asks& asks, const SourceTree& library)
      : tables_(tables), asks_(asks), library_(tables, library) {}

  const LibraryAnswer& Of(int ask);
  bool Fails(int ask) { return Of(ask).failure.has_value(); }
  Library& library() { return library_; }

 private:
  LibraryAnswer Answered(const Ask& ask);
  LibraryAnswer AnyModule(const std::string& prefix);
  LibraryAnswer AskedOf(const LibraryValue& value, const Ask& ask);

  SymbolTables& tables_;
  const Asks& asks_;
  Library library_;
  std::map<int, LibraryAnswer> answers_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_EVALUATION_H_
