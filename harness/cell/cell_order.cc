// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_order.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "harness/base/status_macros.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

Json AsJson(const RequestedLimits& limits) {
  return {{"timeout_s", limits.timeout_s},
          {"cpu_s", limits.cpu_s},
          {"memory_mib", limits.memory_mib},
          {"output_mib", limits.output_mib},
          {"processes", limits.processes}};
}

}  // namespace

absl::StatusOr<Descriptor> WriteQuestion(const Json& request,
                                         const std::vector<std::filesystem::path>& attached) {
  Json paths = Json::array();
  for (const std::filesystem::path& path : attached) paths.push_back(path.string());
  Descriptor file(::memfd_create("request", MFD_CLOEXEC));
  if (!file.valid() ||
      !WriteAll(file.get(), ToLine({{"request", request}, {"attached", std::move(paths)}})) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return SystemError("cannot hand over the cell's request");
  return file;
}

absl::StatusOr<CellQuestion> ReadQuestion(const CellOrder& order) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(ReadAll(order.question.get()), "request"));
  ObjectReader reader(json, "order");
  CellQuestion question;
  const std::vector<std::string> attached = reader.Strings("attached");
  const Json* request = reader.Child("request");
  RETURN_IF_ERROR(reader.Finish());
  if (!request || attached.size() != order.attachments.size())
    return absl::InvalidArgumentError("order: the request or a path is missing");
  ASSIGN_OR_RETURN(question.request, ParseCellRequest(*request));
  question.attached.assign(attached.begin(), attached.end());
  return question;
}

bool Send(Channel& channel, const CellOrder& order) {
  std::vector<int> descriptors = {order.question.get(), order.out.get(), order.err.get(),
                                  order.work.get(), order.tensors.get()};
  for (const Descriptor& door : order.doors) descriptors.push_back(door.get());
  if (order.cpu_account.valid()) descriptors.push_back(order.cpu_account.get());
  for (const Descriptor& tree : order.attachments) descriptors.push_back(tree.get());
  return channel.Send(ToLine({{"type", "run"},
                              {"cell", order.cell},
                              {"limits", AsJson(order.limits)},
                              {"user", order.user},
                              {"doors", order.doors.size()},
                              {"cpu_account", order.cpu_account.valid()},
                              {"attachments", order.attachments.size()}}),
                      descriptors);
}

absl::StatusOr<CellOrder> CellOrderFrom(const Json& json, std::vector<Descriptor> descriptors) {
  ObjectReader reader(json, "order");
  CellOrder order;
  reader.String("type");
  order.cell = reader.String("cell");
  const Json* limits = reader.Child("limits");
  order.user = static_cast<uid_t>(reader.Int("user", 0, 0, UINT32_MAX));
  const size_t doors = static_cast<size_t>(reader.Int("doors", 0, 0, 16));
  const bool has_account = reader.Bool("cpu_account", false);
  const size_t attachments =
      static_cast<size_t>(reader.Int("attachments", 0, 0, Channel::kMostDescriptors));
  RETURN_IF_ERROR(reader.Finish());
  if (!limits || descriptors.size() != 5 + doors + has_account + attachments)
    return absl::InvalidArgumentError("order: the limits or a descriptor is missing");
  ASSIGN_OR_RETURN(order.limits, ParseLimits(*limits));
  size_t at = 0;
  const auto next = [&] { return std::move(descriptors[at++]); };
  order.question = next();
  order.out = next();
  order.err = next();
  order.work = next();
  order.tensors = next();
  for (size_t i = 0; i < doors; ++i) order.doors.push_back(next());
  if (has_account) order.cpu_account = next();
  for (size_t i = 0; i < attachments; ++i) order.attachments.push_back(next());
  return order;
}

}  // namespace bkm
