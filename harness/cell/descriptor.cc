// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>

namespace bkm {

void Descriptor::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Descriptor Descriptor::ToPrivate() && {
  if (fd_ < 0) return {};
  Descriptor result(::fcntl(fd_, F_DUPFD_CLOEXEC, kFirstPrivateDescriptor));
  Close();
  return result;
}

void ClosePrivateDescriptors(int keep) {
  constexpr unsigned kFirst = kFirstPrivateDescriptor;
  if (keep < kFirstPrivateDescriptor) {
    ::close_range(kFirst, UINT_MAX, 0);
    return;
  }
  const unsigned kept = static_cast<unsigned>(keep);
  if (kept > kFirst) ::close_range(kFirst, kept - 1, 0);
  ::close_range(kept + 1, UINT_MAX, 0);
}

}  // namespace bkm
