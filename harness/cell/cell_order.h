// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_ORDER_H_
#define HARNESS_CELL_CELL_ORDER_H_

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"
#include "harness/cell/cell_request.h"
#include "harness/cell/channel.h"

namespace bkm {

// What the cell alone reads: a later cell is forked with all that the worker's memory holds.
struct CellQuestion {
  CellRequest request;
  std::vector<std::filesystem::path> attached;  // where each of CellOrder::attachments belongs
};

// A cell to start, with what the supervisor has prepared for it.
struct CellOrder {
  std::string cell;
  RequestedLimits limits;
  uid_t user = 0;       // inside the worker's user namespace
  Descriptor question;  // a file with the CellQuestion
  Descriptor out;       // the cell's stdout and stderr
  Descriptor err;
  Descriptor work;  // the folders work/ and tensors/, as mounts of their own in kFull
  Descriptor tensors;
  Descriptor cpu_account;  // invalid, or the file in which a control group counts processor time
  std::vector<Descriptor> doors;        // of control groups: the cell joins by writing "0"
  std::vector<Descriptor> attachments;  // kFull: mounts that the cell sees beside the shared paths
};

// A file in memory with `request` and `attached`, for CellOrder::question.
absl::StatusOr<Descriptor> WriteQuestion(const Json& request,
                                         const std::vector<std::filesystem::path>& attached);
// `order.question` must be one of WriteQuestion(). It can be read once.
absl::StatusOr<CellQuestion> ReadQuestion(const CellOrder& order);

// As a message from the supervisor to the worker.
bool Send(Channel& channel, const CellOrder& order);
absl::StatusOr<CellOrder> CellOrderFrom(const Json& json, std::vector<Descriptor> descriptors);

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_ORDER_H_
