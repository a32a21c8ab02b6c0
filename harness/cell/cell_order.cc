// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_order.h"

#include <utility>

#include "harness/base/status_macros.h"

namespace bkm {

bool Send(Channel& channel, const CellOrder& order) {
  Json paths = Json::array();
  std::vector<int> descriptors = {order.out.get(), order.err.get(), order.work.get(),
                                  order.tensors.get()};
  for (const Descriptor& door : order.doors) descriptors.push_back(door.get());
  if (order.cpu_account.valid()) descriptors.push_back(order.cpu_account.get());
  for (const Attachment& attachment : order.attachments) {
    paths.push_back(attachment.path.string());
    descriptors.push_back(attachment.tree.get());
  }
  return channel.Send(ToLine({{"type", "run"},
                              {"request", order.request.all},
                              {"user", order.user},
                              {"doors", order.doors.size()},
                              {"cpu_account", order.cpu_account.valid()},
                              {"attachments", paths}}),
                      descriptors);
}

absl::StatusOr<CellOrder> CellOrderFrom(const Json& json, std::vector<Descriptor> descriptors) {
  ObjectReader reader(json, "order");
  CellOrder order;
  reader.String("type");
  order.user = static_cast<uid_t>(reader.Int("user", 0, 0, UINT32_MAX));
  const size_t doors = static_cast<size_t>(reader.Int("doors", 0, 0, 16));
  const bool has_account = reader.Bool("cpu_account", false);
  const std::vector<std::string> paths = reader.Strings("attachments");
  const Json* request = reader.Child("request");
  RETURN_IF_ERROR(reader.Finish());
  if (!request || descriptors.size() != 4 + doors + has_account + paths.size())
    return absl::InvalidArgumentError("order: the request or a descriptor is missing");
  ASSIGN_OR_RETURN(order.request, ParseCellRequest(*request));
  size_t at = 0;
  const auto next = [&] { return std::move(descriptors[at++]); };
  order.out = next();
  order.err = next();
  order.work = next();
  order.tensors = next();
  for (size_t i = 0; i < doors; ++i) order.doors.push_back(next());
  if (has_account) order.cpu_account = next();
  for (const std::string& path : paths) order.attachments.push_back({path, next()});
  return order;
}

}  // namespace bkm
