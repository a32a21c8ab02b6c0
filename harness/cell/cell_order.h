// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_ORDER_H_
#define HARNESS_CELL_CELL_ORDER_H_

#include <sys/types.h>

#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"
#include "harness/cell/cell_request.h"
#include "harness/cell/channel.h"
#include "harness/cell/minimal_root.h"

namespace bkm {

// A request with what the supervisor has prepared for the cell.
struct CellOrder {
  CellRequest request;
  uid_t user = 0;  // inside the worker's user namespace
  Descriptor out;  // the cell's stdout and stderr
  Descriptor err;
  Descriptor work;  // the folders work/ and tensors/, as mounts of their own in kFull
  Descriptor tensors;
  Descriptor cpu_account;  // invalid, or the file in which a control group counts processor time
  std::vector<Descriptor> doors;        // of control groups: the cell joins by writing "0"
  std::vector<Attachment> attachments;  // kFull: what the cell sees beside the shared paths
};

// As a message from the supervisor to the worker.
bool Send(Channel& channel, const CellOrder& order);
absl::StatusOr<CellOrder> CellOrderFrom(const Json& json, std::vector<Descriptor> descriptors);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_ORDER_H_
