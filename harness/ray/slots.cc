// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/slots.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

std::string KindOf(const Slots::Wish& wish) { return Json(wish.resources).dump(); }

std::string ShapeOf(const Slots::Wish& wish) {
  std::string shape = KindOf(wish);
  for (const auto& [node, why] : wish.not_nodes) absl::StrAppend(&shape, " ", node);
  return shape;
}

}  // namespace

std::optional<int64_t> Slots::Find(const Wish& wish) const {
  const std::string kind = KindOf(wish);
  for (const auto& [number, slot] : slots_) {
    if (slot.lease == 0 && !slot.node.empty() && slot.kind == kind &&
        !wish.not_nodes.contains(slot.node))
      return number;
  }
  return std::nullopt;
}

std::string Slots::NodeOf(int64_t lease) const {
  for (const auto& [number, slot] : slots_) {
    if (lease != 0 && slot.lease == lease) return slot.node;
  }
  return "";
}

void Slots::Free(int64_t lease, bool release, absl::Duration now) {
  const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                 [&](const auto& entry) { return entry.second.lease == lease; });
  if (lease == 0 || slot == slots_.end()) return;
  slot->second.lease = 0;
  slot->second.free_since = now;
  if (!release) return;
  send_({{"type", "release"}, {"slot", slot->first}});
  slots_.erase(slot);
}

void Slots::ReleaseIf(const std::function<bool(const Slot&)>& unwanted) {
  std::erase_if(slots_, [&](const auto& entry) {
    const auto& [number, slot] = entry;
    if (slot.lease != 0 || !unwanted(slot)) return false;
    send_({{"type", "release"}, {"slot", number}});
    return true;
  });
}

void Slots::AskFor(const std::vector<Wish>& wishes) {
  std::map<std::string, int> missing;
  for (const Wish& wish : wishes) ++missing[ShapeOf(wish)];
  // Free slots that nobody wishes for keep what others wait for.
  ReleaseIf([&](const Slot& slot) {
    const auto wanted = missing.find(slot.shape);
    return !slot.node.empty() || wanted == missing.end() || wanted->second-- <= 0;
  });
  for (const Wish& wish : wishes) {
    const std::string shape = ShapeOf(wish);
    if (--missing[shape] < 0) continue;
    Json nodes = Json::array();
    for (const auto& [node, why] : wish.not_nodes) nodes.push_back(node);
    slots_[++last_] = {.kind = KindOf(wish), .shape = shape};
    send_({{"type", "reserve"},
           {"slot", last_},
           {"resources", wish.resources},
           {"labels", labels_},
           {"not_nodes", std::move(nodes)}});
  }
}

void Slots::OnReserved(int64_t number, const std::string& node, absl::Duration now) {
  const auto slot = slots_.find(number);
  if (slot == slots_.end()) return;
  slot->second.node = node;
  slot->second.free_since = now;
}

void Slots::OnNodes(const std::map<std::string, RayResources>& nodes) {
  ReleaseIf([&](const Slot& slot) { return !slot.node.empty() && !nodes.contains(slot.node); });
}

void Slots::ReleaseUnused(absl::Duration since) {
  ReleaseIf([&](const Slot& slot) { return !slot.node.empty() && slot.free_since <= since; });
}

}  // namespace bkm
