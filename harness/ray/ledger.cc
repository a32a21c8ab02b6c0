// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/ledger.h"

#include <algorithm>

#include "harness/base/check.h"

namespace bkm {

int64_t Ledger::Add() {
  cells_[++last_cell_] = {};
  return last_cell_;
}

int64_t Ledger::Grant(int64_t cell, int64_t worker, absl::Duration now) {
  const auto found = cells_.find(cell);
  HARNESS_CHECK(found != cells_.end() && !found->second.ended) << "no cell " << cell;
  ++found->second.tries;
  ++found->second.open;
  leases_[++last_lease_] = {.cell = cell, .worker = worker, .renewed = now};
  return last_lease_;
}

void Ledger::Renew(int64_t worker, absl::Duration now) {
  for (auto& [number, lease] : leases_) {
    if (lease.worker == worker) lease.renewed = std::max(lease.renewed, now);
  }
}

void Ledger::Bound(int64_t lease, absl::Duration until) {
  const auto found = leases_.find(lease);
  if (found != leases_.end()) found->second.bound = until;
}

void Ledger::Withdraw(int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  --cells_.at(found->second.cell).tries;
  Close(lease);
}

Ledger::Over Ledger::OverOf(int64_t number, const Lease& lease) const {
  return {.cell = lease.cell,
          .lease = number,
          .worker = lease.worker,
          .last_try = cells_.at(lease.cell).tries >= settings_.most_tries};
}

std::vector<Ledger::Over> Ledger::Expire(absl::Duration now) {
  std::vector<Over> over;
  for (auto& [number, lease] : leases_) {
    if (lease.over || (now < lease.renewed + settings_.lease && now < lease.bound)) continue;
    lease.over = true;
    if (!cells_.at(lease.cell).ended) over.push_back(OverOf(number, lease));
  }
  return over;
}

std::vector<Ledger::Over> Ledger::EndWorker(int64_t worker) {
  std::vector<int64_t> numbers;
  for (const auto& [number, lease] : leases_) {
    if (lease.worker == worker) numbers.push_back(number);
  }
  std::vector<Over> over;
  for (const int64_t number : numbers) {
    const std::vector<Over> one = Fail(number);
    over.insert(over.end(), one.begin(), one.end());
  }
  return over;
}

std::vector<Ledger::Over> Ledger::Fail(int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return {};
  std::vector<Over> over;
  // A lease that was over before has had its cell sent again already.
  if (!found->second.over && !cells_.at(found->second.cell).ended)
    over.push_back(OverOf(lease, found->second));
  Close(lease);
  return over;
}

void Ledger::GiveUp(int64_t cell) {
  const auto found = cells_.find(cell);
  if (found == cells_.end()) return;
  found->second.ended = true;
  if (found->second.open == 0) cells_.erase(found);
}

Ledger::Answer Ledger::Take(int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return {};
  const int64_t cell = found->second.cell;
  const Kind kind = cells_.at(cell).ended ? Kind::kLate : Kind::kFirst;
  cells_.at(cell).ended = true;
  Close(lease);
  return {kind, cell};
}

int64_t Ledger::CellOf(int64_t lease) const {
  const auto found = leases_.find(lease);
  return found == leases_.end() ? 0 : found->second.cell;
}

void Ledger::Close(int64_t number) {
  const auto lease = leases_.find(number);
  const auto cell = cells_.find(lease->second.cell);
  leases_.erase(lease);
  if (--cell->second.open == 0 && cell->second.ended) cells_.erase(cell);
}

}  // namespace bkm
