// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/private_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>

namespace bkm {

Descriptor ToPrivate(Descriptor descriptor) {
  if (!descriptor.valid()) return {};
  return Descriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, kFirstPrivateDescriptor));
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
