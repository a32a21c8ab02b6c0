// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CHANNEL_H_
#define HARNESS_CELL_CHANNEL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

// A text with open files.
struct Packet {
  std::string text;
  std::vector<Descriptor> descriptors;
};

// One end of the connection between a supervisor and its worker. A peer that breaks the format, or
// sends more than the bounds allow, counts as gone.
class Channel {
 public:
  Channel() = default;
  // `longest`: the longest text that may arrive.
  Channel(Descriptor socket, size_t longest) : socket_(std::move(socket)), longest_(longest) {}

  // Two connected sockets.
  static absl::StatusOr<std::pair<Descriptor, Descriptor>> MakePair();

  int fd() const { return socket_.get(); }
  // Waits until the other end has room. False, if the other end is gone.
  bool Send(absl::string_view text, const std::vector<int>& descriptors = {});
  // Tells the other end that no more is sent.
  void EndSending();
  // Reads once, waiting if nothing is there, and appends what is complete. False at the end.
  bool Receive(std::vector<Packet>& packets);

  static constexpr size_t kMostDescriptors = 64;

 private:
  bool Take(std::vector<Packet>& packets);

  Descriptor socket_;
  size_t longest_ = 0;
  std::string bytes_;
  std::vector<Descriptor> descriptors_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_CHANNEL_H_
