// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_DESCRIPTOR_H_
#define HARNESS_CELL_DESCRIPTOR_H_

#include <utility>

namespace bkm {

// The worker's own descriptors live from here on, so that a forked cell can close all of them in
// one sweep and keep whatever the preloaded modules have open.
inline constexpr int kFirstPrivateDescriptor = 400;

// Owns one file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close();
  int Release() { return std::exchange(fd_, -1); }

  // The same file at a private number, close-on-exec; invalid when there is no room.
  Descriptor ToPrivate() &&;

 private:
  int fd_ = -1;
};

// In a forked child: closes every private descriptor but `keep` (-1: none).
void ClosePrivateDescriptors(int keep);

}  // namespace bkm

#endif  // HARNESS_CELL_DESCRIPTOR_H_
