// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/local_executor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string LastLine(const std::filesystem::path& path) {
  constexpr std::streamoff kEnough = 4096;  // of a log that a subject may have written
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  std::string text(static_cast<size_t>(std::min(std::max<std::streamoff>(size, 0), kEnough)), '\0');
  file.seekg(size - static_cast<std::streamoff>(text.size()));
  if (text.empty() || !file.read(text.data(), static_cast<std::streamsize>(text.size()))) return "";
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? -1 : start));
}

}  // namespace

LocalExecutor::~LocalExecutor() {
  for (Worker& worker : workers_) {
    CloseInput(worker);
    // A worker that is loading its runtime does not notice that its input is closed.
    if (!worker.used) ::kill(-worker.process.pid, SIGKILL);
  }
  const auto deadline = SteadyClock::now() + std::chrono::seconds(5);
  while (!workers_.empty() && SteadyClock::now() < deadline)
    WaitAny(std::chrono::milliseconds(100));
  for (Worker& worker : workers_) {
    ::kill(-worker.process.pid, SIGKILL);
    ::waitpid(worker.process.pid, nullptr, 0);
  }
}

int LocalExecutor::running() const {
  int total = static_cast<int>(finished_.size());
  for (const Worker& worker : workers_) total += static_cast<int>(worker.cells.size());
  return total;
}

std::list<LocalExecutor::Worker>::iterator LocalExecutor::FindWorker(const std::string& key) {
  return std::find_if(workers_.begin(), workers_.end(),
                      [&](const Worker& worker) { return worker.key == key && !worker.closed; });
}

absl::Status LocalExecutor::StartWorker(const WorkerSetup& setup, const std::string& key) {
  Worker worker{.key = key, .log = options_.log_path(setup.key)};
  RETURN_IF_ERROR(CreateDirectories(worker.log.parent_path()));
  Command command{.argv = {options_.cell_worker.string(), "serve", "--python",
                           setup.python.string(), "--python-code", options_.python_code.string(),
                           "--jobs", absl::StrCat(options_.fresh ? 1 : options_.slots), "--sandbox",
                           std::string(Name(options_.sandbox))}};
  if (!options_.kernels.empty())
    command.argv.insert(command.argv.end(), {"--kernels", options_.kernels.string()});
  if (!options_.preload.empty() && !setup.cold)
    command.argv.insert(command.argv.end(), {"--preload", options_.preload.string()});
  if (!setup.bytecode.empty())
    command.argv.insert(command.argv.end(), {"--bytecode", setup.bytecode.string()});
  for (const std::filesystem::path& path : setup.reads)
    command.argv.insert(command.argv.end(), {"--read", path.string()});
  if (setup.alone) command.argv.push_back("--alone");
  ASSIGN_OR_RETURN(worker.process, StartPiped(command, worker.log));
  ::fcntl(worker.process.from_child.get(), F_SETFL, O_NONBLOCK);
  workers_.push_back(std::move(worker));
  return absl::OkStatus();
}

void LocalExecutor::Lose(const std::string& id, const std::string& message) {
  finished_.push_back({id, CellFacts::NeverRan(EndingKind::kLost, message)});
}

void LocalExecutor::Load(const WorkerSetup& setup) {
  // The first cell reports the error.
  if (!options_.fresh && FindWorker(setup.key) == workers_.end())
    StartWorker(setup, setup.key).IgnoreError();
}

void LocalExecutor::Start(const CellTask& task) {
  const std::string key = options_.fresh ? task.id : task.worker.key;
  auto worker = FindWorker(key);
  if (worker == workers_.end()) {
    const absl::Status started = StartWorker(task.worker, key);
    if (!started.ok()) return Lose(task.id, std::string(started.message()));
    worker = std::prev(workers_.end());
  }
  worker->used = true;
  worker->cells.insert(task.id);
  worker->released = options_.fresh;
  // If the worker has died, its output is closed and Reap loses its cells.
  WriteAll(worker->process.to_child.get(), ToLine(task.request) + "\n");
}

void LocalExecutor::CloseInput(Worker& worker) {
  worker.process.to_child.Close();
  worker.closed = true;
}

void LocalExecutor::Release(const std::string& worker_key) {
  const auto worker = FindWorker(worker_key);
  if (worker == workers_.end()) return;
  worker->released = true;
  workers_.splice(workers_.end(), workers_, worker);
  CloseIdle();
}

void LocalExecutor::CloseIdle() {
  int room = options_.fresh ? 0 : options_.idle;
  for (auto worker = workers_.rbegin(); worker != workers_.rend(); ++worker) {
    if (!worker->released || !worker->cells.empty() || worker->closed) continue;
    if (--room < 0) CloseInput(*worker);
  }
}

void LocalExecutor::CancelAll() {
  options_.interrupt_fd = -1;  // WaitAny must still return the cells that end now
  for (Worker& worker : workers_) {
    for (const std::string& id : worker.cells) {
      WriteAll(worker.process.to_child.get(), ToLine({{"type", "cancel"}, {"cell", id}}) + "\n");
    }
  }
}

void LocalExecutor::HandleLine(Worker& worker, const std::string& line) {
  absl::StatusOr<Json> message = ParseJson(line, "worker");
  if (!message.ok() || !message->is_object()) return;
  const std::string type = TextOf(*message, "type");
  if (type == "ready") preload_s_ += FiniteOf(*message, "preload_s").value_or(0);
  if (type == "fatal") worker.fatal = TextOf(*message, "message");
  if (type != "finished") return;
  const std::string id = TextOf(*message, "cell");
  if (worker.cells.erase(id) == 0) return;
  finished_.push_back({id, CellFacts::OfReport(std::move((*message)["observation"])),
                       MemberOf(*message, "observed")});
  CloseIdle();
}

void LocalExecutor::Reap(Worker& worker) {
  CloseInput(worker);
  int status = 0;
  ::kill(-worker.process.pid, SIGKILL);
  while (::waitpid(worker.process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  worker.process.from_child.Close();
  for (const std::string& id : worker.cells) {
    const std::string why =
        !worker.fatal.empty()
            ? worker.fatal
            : absl::StrCat("the cell worker died (",
                           WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                               : absl::StrCat("exit ", WEXITSTATUS(status)),
                           "): ", LastLine(worker.log));
    Lose(id, why);
  }
}

void LocalExecutor::Read(Worker& worker) {
  char bytes[65536];
  for (;;) {
    const ssize_t n = ::read(worker.process.from_child.get(), bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return Reap(worker);
    // Only the new bytes are searched, and the buffer is cut once: a reply can have many MiB.
    size_t from = worker.buffer.size(), begin = 0;
    worker.buffer.append(bytes, static_cast<size_t>(n));
    for (size_t end; (end = worker.buffer.find('\n', from)) != std::string::npos;
         begin = from = end + 1) {
      HandleLine(worker, worker.buffer.substr(begin, end - begin));
    }
    worker.buffer.erase(0, begin);
  }
}

WaitResult LocalExecutor::WaitAny(std::chrono::milliseconds deadline) {
  const auto until = SteadyClock::now() + deadline;
  while (finished_.empty()) {
    std::vector<pollfd> fds;
    for (const Worker& worker : workers_)
      fds.push_back({worker.process.from_child.get(), POLLIN, 0});
    if (options_.interrupt_fd >= 0) fds.push_back({options_.interrupt_fd, POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    if (left <= 0) return DeadlinePassed{};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, 60000)));
    if (options_.interrupt_fd >= 0 && fds.back().revents) return Interrupted{};
    size_t at = 0;
    for (Worker& worker : workers_) {
      if (fds[at++].revents) Read(worker);
    }
    workers_.remove_if([](const Worker& worker) { return !worker.process.from_child.valid(); });
  }
  CellFinished result = std::move(finished_.front());
  finished_.pop_front();
  return result;
}

}  // namespace bkm
