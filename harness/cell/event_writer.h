// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_EVENT_WRITER_H_
#define HARNESS_CELL_EVENT_WRITER_H_

#include <sys/types.h>

#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// The cell's end of the event pipe. Only the process that created it writes: a process that the
// subject forks and that returns into the harness stays silent.
class EventWriter {
 public:
  explicit EventWriter(int descriptor);

  // Writes one event, given as JSON text, with the time and this process's memory.
  void WriteText(absl::string_view json) const;
  void Write(const Json& event) const;

  bool IsOwner() const;

 private:
  int descriptor_;
  pid_t owner_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_EVENT_WRITER_H_
