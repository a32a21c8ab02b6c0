// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_EVENT_WRITER_H_
#define HARNESS_CELL_EVENT_WRITER_H_

#include <sys/types.h>

#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// The cell's end of the event pipe. Only the process that made it writes: what a subject forks
// and lets run back into the harness stays silent.
class EventWriter {
 public:
  explicit EventWriter(int descriptor);

  // One event as JSON text, stamped with the time and this process's memory.
  void WriteText(absl::string_view json) const;
  void Write(const Json& event) const;

  bool IsOwner() const;

 private:
  int descriptor_;
  pid_t owner_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_EVENT_WRITER_H_
