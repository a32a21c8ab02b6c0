// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_LEDGER_H_
#define HARNESS_RAY_LEDGER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"

namespace bkm {

// What is known of cells that run on other machines: which worker has which cell, until when, and
// whether the cell has a result. Delivery is at least once: a cell whose lease is over is sent
// again, and the first result counts. Times are those of one clock's Elapsed().
//
// It forgets a cell once the cell has ended and no worker can answer for it any more.
class Ledger {
 public:
  struct Settings {
    absl::Duration lease = absl::Seconds(60);  // without a sign of life of the worker
    int most_tries = 3;                        // of one cell
  };

  explicit Ledger(const Settings& settings) : settings_(settings) {}

  // A new cell; returns its number.
  int64_t Add();

  // The cell was sent to `worker`. Returns the number of the lease, which the result names.
  int64_t Grant(int64_t cell, int64_t worker, absl::Duration now);
  // A sign of life: renews all leases of the worker.
  void Renew(int64_t worker, absl::Duration now);
  // The cell of the lease has started, and must have ended by then, whatever the worker says.
  void Bound(int64_t lease, absl::Duration until);
  // The worker did not run the cell, by no fault of the cell: the try does not count.
  void Withdraw(int64_t lease);

  struct Over {
    int64_t cell = 0;
    int64_t lease = 0;
    int64_t worker = 0;
    bool last_try = false;  // the cell must not be sent again
    bool operator==(const Over&) const = default;
  };
  // The leases that have run out since the last call. They can still be answered. A cell that has
  // ended is not reported.
  std::vector<Over> Expire(absl::Duration now);
  // The worker is gone: its leases are over and will not be answered. As above.
  std::vector<Over> EndWorker(int64_t worker);
  // One lease failed. As above; none if its cell has ended, or if it was over already.
  std::vector<Over> Fail(int64_t lease);

  // The cell ends without a result.
  void GiveUp(int64_t cell);

  enum class Kind {
    kFirst,    // counts
    kLate,     // the cell had ended: the result must equal the one that counts
    kUnknown,  // no open lease has this number
  };
  struct Answer {
    Kind kind = Kind::kUnknown;
    int64_t cell = 0;
  };
  // A result came in.
  Answer Take(int64_t lease);

  // The cell of an open lease; 0: none.
  int64_t CellOf(int64_t lease) const;
  // Whether results of the cell can still come in.
  bool IsOpen(int64_t cell) const { return cells_.contains(cell); }
  size_t open_leases() const { return leases_.size(); }

 private:
  struct Cell {
    int tries = 0;
    int open = 0;  // leases
    bool ended = false;
  };
  struct Lease {
    int64_t cell = 0;
    int64_t worker = 0;
    absl::Duration renewed;
    absl::Duration bound = absl::InfiniteDuration();
    bool over = false;
  };

  Over OverOf(int64_t number, const Lease& lease) const;
  // Forgets the lease, and its cell if that has ended and has no other.
  void Close(int64_t number);

  const Settings settings_;
  int64_t last_cell_ = 0;
  int64_t last_lease_ = 0;
  std::map<int64_t, Cell> cells_;
  std::map<int64_t, Lease> leases_;
};

}  // namespace bkm

#endif  // HARNESS_RAY_LEDGER_H_
