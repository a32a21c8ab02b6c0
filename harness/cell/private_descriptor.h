// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PRIVATE_DESCRIPTOR_H_
#define HARNESS_CELL_PRIVATE_DESCRIPTOR_H_

#include "harness/base/descriptor.h"

namespace bkm {

// The worker's own descriptors have numbers from here on, so that a forked cell can close all of
// them in one sweep and keep whatever the preloaded modules have open.
inline constexpr int kFirstPrivateDescriptor = 400;

// The same file at a private number, close-on-exec; invalid when `descriptor` is or when no number
// is free.
Descriptor ToPrivate(Descriptor descriptor);

// In a forked child: closes every private descriptor but `keep` (-1: all of them).
void ClosePrivateDescriptors(int keep);

}  // namespace bkm

#endif  // HARNESS_CELL_PRIVATE_DESCRIPTOR_H_
