// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "harness/cell/private_descriptor.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

// Stands before each text.
struct Header {
  uint32_t size;
  uint32_t descriptors;
};

constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * Channel::kMostDescriptors);

// sendmsg of the first bytes, which carry the descriptors.
ssize_t SendFirst(int socket, absl::string_view bytes, const std::vector<int>& descriptors) {
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, kControlBytes> control = {};
  if (!descriptors.empty()) {
    const size_t size = sizeof(int) * descriptors.size();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(entry), descriptors.data(), size);
  }
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n;
}

}  // namespace

absl::StatusOr<std::pair<Descriptor, Descriptor>> Channel::MakePair() {
  int ends[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return SystemError("cannot create a pair of sockets");
  return std::pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

bool Channel::Send(absl::string_view text, const std::vector<int>& descriptors) {
  if (descriptors.size() > kMostDescriptors || text.size() > UINT32_MAX) return false;
  const Header header = {static_cast<uint32_t>(text.size()),
                         static_cast<uint32_t>(descriptors.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(text.data(), text.size());
  const ssize_t first = SendFirst(socket_.get(), bytes, descriptors);
  if (first <= 0) return false;
  absl::string_view rest = bytes;
  rest.remove_prefix(static_cast<size_t>(first));
  while (!rest.empty()) {
    const ssize_t n = SendFirst(socket_.get(), rest, {});
    if (n <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void Channel::EndSending() { ::shutdown(socket_.get(), SHUT_WR); }

bool Channel::Receive(std::vector<Packet>& packets) {
  char buffer[65536];
  iovec part = {buffer, sizeof buffer};
  alignas(cmsghdr) std::array<char, kControlBytes> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<int> numbers(count);
    std::memcpy(numbers.data(), CMSG_DATA(entry), count * sizeof(int));
    for (const int number : numbers) descriptors_.push_back(ToPrivate(Descriptor(number)));
  }
  if (message.msg_flags & MSG_CTRUNC) return false;
  bytes_.append(buffer, static_cast<size_t>(n));
  return Take(packets);
}

bool Channel::Take(std::vector<Packet>& packets) {
  size_t at = 0;
  while (bytes_.size() - at >= sizeof(Header)) {
    Header header = {};
    std::memcpy(&header, bytes_.data() + at, sizeof header);
    if (header.size > longest_ || header.descriptors > kMostDescriptors) return false;
    if (bytes_.size() - at - sizeof header < header.size) break;
    if (descriptors_.size() < header.descriptors) return false;
    Packet packet;
    packet.text = bytes_.substr(at + sizeof header, header.size);
    for (uint32_t i = 0; i < header.descriptors; ++i)
      packet.descriptors.push_back(std::move(descriptors_[i]));
    descriptors_.erase(descriptors_.begin(), descriptors_.begin() + header.descriptors);
    packets.push_back(std::move(packet));
    at += sizeof header + header.size;
  }
  bytes_.erase(0, at);
  // A peer that sends descriptors which it does not announce would fill our table.
  return descriptors_.size() <= kMostDescriptors;
}

}  // namespace bkm
