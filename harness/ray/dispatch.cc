// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/dispatch.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"

namespace bkm {
namespace {

// Content per line: a node can work on some parts while others travel.
constexpr size_t kMostBytesOfParts = 4 << 20;

int64_t NumberOf(const Json& message, const char* key) { return WholeOf(message, key).value_or(0); }

}  // namespace

void Dispatch::Start(RayCell cell) {
  const int64_t number = ledger_.Add();
  cells_[number] = {.what = std::move(cell), .since = clock_.Elapsed()};
  waiting_.push_back(number);
  Assign();
}

std::optional<RayResult> Dispatch::TakeResult() {
  if (results_.empty()) return std::nullopt;
  RayResult result = std::move(results_.front());
  results_.pop_front();
  return result;
}

int Dispatch::running() const {
  const auto untaken = std::count_if(results_.begin(), results_.end(),
                                     [](const RayResult& result) { return !result.late; });
  return static_cast<int>(cells_.size()) + static_cast<int>(untaken);
}

void Dispatch::OnLine(const std::string& line) {
  const absl::StatusOr<Json> message = ParseJson(line, "driver");
  if (message.ok() && message->is_object()) OnMessage(*message);
}

void Dispatch::OnMessage(const Json& message) {
  const std::string type = TextOf(message, "type");
  if (type == "fatal") fatal_ = TextOf(message, "message");
  if (type == "nodes") OnNodes(message);
  if (type == "reserved") {
    slots_.OnReserved(NumberOf(message, "slot"), TextOf(message, "node"), clock_.Elapsed());
    Assign();
  }
  if (type == "unreserved") EndAll(absl::StrCat("Ray cannot reserve: ", TextOf(message, "why")));
  if (type == "lines") {
    for (const Json& line : ListOf(message, "lines")) {
      if (line.is_string()) OnWorkerLine(NumberOf(message, "worker"), line.get<std::string>());
    }
  }
  if (type == "gone")
    OnGone(NumberOf(message, "worker"), TextOf(message, "kind"), TextOf(message, "why"));
}

void Dispatch::OnNodes(const Json& message) {
  nodes_.clear();
  for (const Json& node : ListOf(message, "nodes"))
    nodes_[TextOf(node, "id")] = RayResourcesOf(MemberOf(node, "resources"));
  slots_.OnNodes(nodes_);
  Assign();
}

Slots::Wish Dispatch::WishOf(const Cell& cell) const {
  Slots::Wish wish{.resources = cell.what.resources, .not_nodes = cell.refused};
  if (const auto of_runtime = refused_.find(cell.what.runtime); of_runtime != refused_.end())
    wish.not_nodes.insert(of_runtime->second.begin(), of_runtime->second.end());
  return wish;
}

void Dispatch::Assign() {
  std::vector<Slots::Wish> wishes;
  const std::deque<int64_t> waiting = std::exchange(waiting_, {});
  for (const int64_t number : waiting) {
    if (!cells_.contains(number) || IsHopeless(number)) continue;
    Slots::Wish wish = WishOf(cells_.at(number));
    if (const std::optional<int64_t> slot = slots_.Find(wish)) {
      SendCell(number, *slot);
    } else {
      waiting_.push_back(number);
      wishes.push_back(std::move(wish));
    }
  }
  if (!wishes.empty()) slots_.AskFor(wishes);
}

// A cell that no node can run ends with the sentence that says why.
bool Dispatch::IsHopeless(int64_t number) {
  if (nodes_.empty()) return false;
  const Cell& cell = cells_.at(number);
  const NodeReasons refused = WishOf(cell).not_nodes;
  std::string why;
  bool fits = false;
  for (const auto& [node, resources] : nodes_) {
    if (CellsThatFit(cell.what.resources, resources) == 0) continue;
    fits = true;
    const auto found = refused.find(node);
    if (found == refused.end()) return false;
    why = absl::StrCat("node ", NodeName(node), " cannot run it: ", found->second);
  }
  if (!fits && options_.may_grow) return false;
  if (!fits)
    why = absl::StrCat("this machine does not offer ", RayResourcesText(cell.what.resources),
                       " (--ray-resources)");
  Lose(number, why);
  return true;
}

void Dispatch::SendCell(int64_t number, int64_t slot) {
  const RayCell& cell = cells_.at(number).what;
  const int64_t worker = FindWorker(slots_.node(slot), cell.runtime);
  const int64_t lease = ledger_.Grant(number, worker, clock_.Elapsed());
  slots_.Take(slot, lease);
  Json run = cell.run;
  run["type"] = "run";
  run["lease"] = lease;
  SendLine(worker, run);
}

int64_t Dispatch::FindWorker(const std::string& node, const std::string& runtime) {
  for (const auto& [number, worker] : workers_) {
    if (worker.node == node && worker.runtime == runtime && !worker.silent) return number;
  }
  const int64_t number = ++last_worker_;
  workers_[number] = {.node = node, .runtime = runtime, .asked = clock_.Elapsed()};
  send_({{"type", "open"},
         {"worker", number},
         {"node", node},
         {"argv", options_.server},
         {"environment", options_.environment}});
  SendLine(number, options_.hello);
  return number;
}

void Dispatch::SendLine(int64_t worker, const Json& line) {
  send_({{"type", "send"}, {"worker", worker}, {"text", ToLine(line) + "\n"}});
}

void Dispatch::OnWorkerLine(int64_t number, const std::string& line) {
  const auto worker = workers_.find(number);
  if (worker == workers_.end()) return;
  worker->second.heard = true;
  worker->second.silent = false;
  ledger_.Renew(number, clock_.Elapsed());
  const absl::StatusOr<Json> message = ParseJson(line, "worker");
  if (message.ok() && message->is_object()) OnWorkerMessage(number, *message);
}

void Dispatch::OnWorkerMessage(int64_t number, const Json& message) {
  Worker& worker = workers_.at(number);
  const std::string type = TextOf(message, "type");
  const int64_t lease = NumberOf(message, "lease");
  if (type == "ready") worker.machine = MemberOf(message, "machine");
  if (type == "note")
    report_(absl::StrCat("node ", NodeName(worker.node), ": ", TextOf(message, "text")));
  if (type == "unfit") OnGone(number, "unfit", TextOf(message, "why"));
  if (type == "need") OnNeed(number, message);
  if (type == "refused") OnRefused(lease, TextOf(message, "why"));
  if (type == "finished") OnFinished(number, message);
  if (type == "started") {
    const auto cell = cells_.find(ledger_.CellOf(lease));
    if (cell != cells_.end())
      ledger_.Bound(lease, clock_.Elapsed() + cell->second.what.timeout + options_.grace);
  }
}

void Dispatch::OnFinished(int64_t number, const Json& message) {
  const int64_t lease = NumberOf(message, "lease");
  if (ledger_.CellOf(lease) == 0) return;
  absl::StatusOr<ResultFiles> files = ResultFilesOf(MemberOf(message, "files"));
  const Json& observation = MemberOf(message, "observation");
  CellFacts seen = CellFacts::OfReport(observation);
  const bool is_lost = seen.ending().is_lost();
  if (!files.ok() || !observation.is_object() || is_lost) {
    const std::string why = is_lost      ? seen.ending().told()
                            : files.ok() ? "a result has no observation"
                                         : std::string(files.status().message());
    Again(ledger_.Fail(lease), why, /*release=*/false);
    slots_.Free(lease, /*release=*/false, clock_.Elapsed());
    return Assign();
  }
  const Ledger::Answer answer = ledger_.Take(lease);
  slots_.Free(lease, /*release=*/false, clock_.Elapsed());
  RayResult result{.cell = answer.cell,
                   .late = answer.kind == Ledger::Kind::kLate,
                   .seen = std::move(seen),
                   .observed = MemberOf(message, "observed"),
                   .facts = MachineFactsOf(MemberOf(message, "facts")),
                   .machine = workers_.at(number).machine,
                   .files = *std::move(files)};
  if (result.late) {
    const auto ended = ended_.find(answer.cell);
    if (ended == ended_.end()) return;  // it was given up
    std::tie(result.id, result.folder) = ended->second;
  } else {
    const auto cell = cells_.find(answer.cell);
    result.id = cell->second.what.id;
    result.folder = cell->second.what.folder;
    result.runtime = cell->second.what.runtime;
    cells_.erase(cell);
    std::erase(waiting_, answer.cell);
    ended_[answer.cell] = {result.id, result.folder};
  }
  if (!ledger_.IsOpen(answer.cell)) ended_.erase(answer.cell);
  results_.push_back(std::move(result));
  Assign();
}

void Dispatch::OnNeed(int64_t number, const Json& message) {
  const int64_t lease = NumberOf(message, "lease");
  if (ledger_.CellOf(lease) == 0) return;
  Json parts = Json::array();
  size_t bytes = 0;
  for (const Json& name : ListOf(message, "parts")) {
    const absl::StatusOr<std::string> content =
        name.is_string() ? read_part_(name.get<std::string>())
                         : absl::StatusOr<std::string>(absl::InvalidArgumentError("no part"));
    if (!content.ok()) return OnRefused(lease, std::string(content.status().message()));
    bytes += content->size();
    parts.push_back(PartJson(*content));
    if (bytes < kMostBytesOfParts) continue;
    SendLine(number, {{"type", "parts"}, {"parts", std::exchange(parts, Json::array())}});
    bytes = 0;
  }
  SendLine(number, {{"type", "parts"}, {"lease", lease}, {"parts", std::move(parts)}});
}

void Dispatch::OnRefused(int64_t lease, const std::string& why) {
  const auto cell = cells_.find(ledger_.CellOf(lease));
  const std::string node = slots_.NodeOf(lease);
  // Without a node, the cell was sent again already.
  if (cell != cells_.end() && !node.empty()) {
    cell->second.refused[node] = why;
    report_(absl::StrCat("node ", NodeName(node), " cannot run ", cell->second.what.id, ": ", why));
    waiting_.push_front(cell->first);
  }
  ledger_.Withdraw(lease);
  slots_.Free(lease, /*release=*/false, clock_.Elapsed());
  Assign();
}

// `kind`: "unstartable", "unfit" or "ended": the node cannot run such a worker. "lost": the node or
// the worker is gone.
void Dispatch::OnGone(int64_t number, const std::string& kind, const std::string& why) {
  const auto found = workers_.find(number);
  if (found == workers_.end()) return;
  const Worker worker = found->second;
  workers_.erase(found);
  if (kind == "unfit") send_({{"type", "close"}, {"worker", number}});
  const bool cannot =
      kind == "unstartable" || kind == "unfit" || (kind == "ended" && !worker.heard);
  if (cannot) {
    refused_[worker.runtime][worker.node] = why;
    report_(absl::StrCat("node ", NodeName(worker.node), " cannot run cells: ", why));
  }
  std::vector<Ledger::Over> over = ledger_.EndWorker(number);
  // What it was sent did not run.
  for (Ledger::Over& each : over) each.last_try &= !cannot;
  Again(over, absl::StrCat("node ", NodeName(worker.node), ": ", why), /*release=*/true);
  Assign();
}

// Sends the cells of leases that are over again, or ends them.
void Dispatch::Again(const std::vector<Ledger::Over>& over, const std::string& why, bool release) {
  for (const Ledger::Over& each : over) {
    slots_.Free(each.lease, release, clock_.Elapsed());
    const auto cell = cells_.find(each.cell);
    if (cell == cells_.end()) continue;
    if (each.last_try) {
      Lose(each.cell,
           absl::StrCat("lost ", options_.ledger.most_tries, " times; the last time: ", why));
      continue;
    }
    report_(absl::StrCat("sending ", cell->second.what.id, " again: ", why));
    cell->second.since = clock_.Elapsed();
    waiting_.push_front(each.cell);
  }
}

void Dispatch::Lose(int64_t number, const std::string& why) {
  const auto cell = cells_.find(number);
  results_.push_back({.id = cell->second.what.id,
                      .folder = cell->second.what.folder,
                      .cell = number,
                      .lost = why});
  cells_.erase(cell);
  ledger_.GiveUp(number);
}

void Dispatch::Tick() {
  const absl::Duration now = clock_.Elapsed();
  std::vector<int64_t> unheard;
  for (const auto& [number, worker] : workers_) {
    if (!worker.heard && now >= worker.asked + options_.start_limit) unheard.push_back(number);
    // A worker that is still starting gives no sign of life.
    if (!worker.heard) ledger_.Renew(number, now);
  }
  for (const int64_t number : unheard) {
    send_({{"type", "close"}, {"worker", number}});
    OnGone(number, "lost",
           absl::StrCat("no worker started within ", absl::FormatDuration(options_.start_limit)));
  }
  for (const Ledger::Over& each : ledger_.Expire(now)) {
    const auto worker = workers_.find(each.worker);
    std::string node;
    if (worker != workers_.end()) {
      worker->second.silent = true;
      node = NodeName(worker->second.node);
    }
    Again({each},
          absl::StrCat("node ", node, ": no sign of life for ",
                       absl::FormatDuration(options_.ledger.lease), ", or the cell did not end"),
          /*release=*/false);
  }
  std::erase_if(ended_, [&](const auto& entry) { return !ledger_.IsOpen(entry.first); });
  slots_.ReleaseUnused(now - options_.idle_limit);
  Assign();
  if (waiting_.empty() || ledger_.open_leases() > 0) return;
  const Cell& cell = cells_.at(waiting_.front());
  if (now < cell.since + options_.waiting_limit || now < told_waiting_ + absl::Minutes(1)) return;
  told_waiting_ = now;
  report_(absl::StrCat(waiting_.size(), " cells wait for a node that has ",
                       RayResourcesText(cell.what.resources), " free"));
}

void Dispatch::OnDriverLost(const std::string& why) {
  slots_.Clear();
  nodes_.clear();
  refused_.clear();
  std::vector<Ledger::Over> over;
  for (const auto& [number, worker] : std::exchange(workers_, {})) {
    const std::vector<Ledger::Over> ended = ledger_.EndWorker(number);
    over.insert(over.end(), ended.begin(), ended.end());
  }
  Again(over, why, /*release=*/false);
}

void Dispatch::EndAll(const std::string& why) {
  std::vector<int64_t> numbers;
  for (const auto& [number, cell] : cells_) numbers.push_back(number);
  for (const int64_t number : numbers) Lose(number, why);
  waiting_.clear();
}

}  // namespace bkm
