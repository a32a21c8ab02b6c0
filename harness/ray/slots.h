// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_SLOTS_H_
#define HARNESS_RAY_SLOTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "harness/base/json.h"
#include "harness/ray/resources.h"

namespace bkm {

// Reasons by node.
using NodeReasons = std::map<std::string, std::string>;

// Resources that Ray has reserved for cells, and those that it was asked for. A slot serves one
// cell at a time, and one cell after the other.
class Slots {
 public:
  // Sends messages to the driver. `labels`: a node must have them.
  Slots(std::function<void(const Json&)> send, std::map<std::string, std::string> labels)
      : send_(std::move(send)), labels_(std::move(labels)) {}

  // What a cell waits for.
  struct Wish {
    RayResources resources;
    NodeReasons not_nodes;
  };

  // A free slot with these resources on another node than these.
  std::optional<int64_t> Find(const Wish& wish) const;
  const std::string& node(int64_t slot) const { return slots_.at(slot).node; }
  void Take(int64_t slot, int64_t lease) { slots_.at(slot).lease = lease; }
  // The node of the slot that a lease has; empty: it has none.
  std::string NodeOf(int64_t lease) const;
  // The lease has ended. `release`: the slot may be on a node that is gone.
  void Free(int64_t lease, bool release, absl::Duration now);

  // Asks for as many slots as there are wishes, and gives back free ones that nobody wishes for.
  void AskFor(const std::vector<Wish>& wishes);
  // The driver reserved what was asked for.
  void OnReserved(int64_t slot, const std::string& node, absl::Duration now);
  // Gives back free slots on nodes that are gone.
  void OnNodes(const std::map<std::string, RayResources>& nodes);
  // Gives back slots that have been free since then.
  void ReleaseUnused(absl::Duration since);
  // The driver is gone, and with it all slots.
  void Clear() { slots_.clear(); }

 private:
  struct Slot {
    std::string kind;   // of the resources
    std::string shape;  // the same, and the nodes that it must not be on
    std::string node;   // empty: asked for
    int64_t lease = 0;  // 0: free
    absl::Duration free_since;
  };

  void ReleaseIf(const std::function<bool(const Slot&)>& unwanted);

  const std::function<void(const Json&)> send_;
  const std::map<std::string, std::string> labels_;
  std::map<int64_t, Slot> slots_;
  int64_t last_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_RAY_SLOTS_H_
