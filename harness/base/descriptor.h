// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_DESCRIPTOR_H_
#define HARNESS_BASE_DESCRIPTOR_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// Owns one file descriptor, or none, and closes it when it goes out of scope.
class Descriptor {
 public:
  Descriptor() = default;
  // Takes ownership of what a system call such as open(2) returned. A negative number means none.
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Returns 0, or the errno of close(2). The descriptor is gone either way.
  int Close();
  // Gives the descriptor up without closing it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

// Both ends are close-on-exec.
absl::StatusOr<Pipe> MakePipe();

// Keeps SIGTERM and SIGINT from ending this thread, and is readable (signalfd_siginfo) after one of
// them, so that a loop can wait for them and for other descriptors in one place. Close-on-exec.
Descriptor TakeStopSignals();

// Reads until the end of the file, pipe or socket. After an error, what came before it.
std::string ReadAll(int fd);

// Writes all of `bytes`; false, with errno set, when write(2) fails.
bool WriteAll(int fd, absl::string_view bytes);

}  // namespace bkm

#endif  // HARNESS_BASE_DESCRIPTOR_H_
