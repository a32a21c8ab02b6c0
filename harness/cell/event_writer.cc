// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "harness/base/descriptor.h"
#include "harness/cell/event_log.h"

namespace bkm {
namespace {

int64_t MonotonicMicroseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t ResidentKib() {
  const Descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  const ssize_t n = file.valid() ? ::read(file.get(), text, sizeof text - 1) : -1;
  long size = 0;
  long resident = 0;
  if (n <= 0 || std::sscanf(text, "%ld %ld", &size, &resident) != 2) return 0;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

EventWriter::EventWriter(int descriptor) : descriptor_(descriptor), owner_(::getpid()) {}

bool EventWriter::IsOwner() const { return ::getpid() == owner_; }

void EventWriter::WriteText(absl::string_view json) const {
  if (!IsOwner()) return;
  std::string line = FrameEvent(MonotonicMicroseconds(), ResidentKib(), json);
  std::replace(line.begin(), line.end() - 1, '\n', ' ');
  // Fails when the subject closed the descriptor: the cell continues.
  WriteAll(descriptor_, line);
}

void EventWriter::Write(const Json& event) const { WriteText(ToLine(event)); }

}  // namespace bkm
