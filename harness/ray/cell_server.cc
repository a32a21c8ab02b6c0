// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/cell_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/descriptor.h"
#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/ray/result_files.h"
#include "harness/ray/served_cell.h"
#include "harness/runner/local_executor.h"
#include "harness/runner/machine_facts.h"
#include "harness/runner/measured_on.h"
#include "harness/session/sandbox_levels.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Lines to stdout, from two threads.
class Output {
 public:
  void Say(const Json& message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    WriteAll(STDOUT_FILENO, ToLine(message) + "\n");
  }

 private:
  std::mutex mutex_;
};

// Says that this process runs, also while it makes an environment, which takes minutes.
class Heartbeat {
 public:
  Heartbeat(Output& output, std::chrono::milliseconds every)
      : thread_([this, &output, every] {
          auto next = std::chrono::steady_clock::now();
          while (!stop_) {
            if (std::chrono::steady_clock::now() >= next) {
              output.Say({{"type", "alive"}});
              next = std::chrono::steady_clock::now() + every;
            }
            std::this_thread::sleep_for(std::min(every, std::chrono::milliseconds(100)));
          }
        }) {}
  ~Heartbeat() {
    stop_ = true;
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class NotesToOutput : public RunObserver {
 public:
  explicit NotesToOutput(Output& output) : output_(output) {}
  void OnNote(const std::string& what) override { output_.Say({{"type", "note"}, {"text", what}}); }
  void OnWarning(const std::string& what) override { OnNote(what); }

 private:
  Output& output_;
};

class Server {
 public:
  Server(const Installation& installation, fs::path folder)
      : installation_(installation), folder_(std::move(folder)), notes_(output_) {}

  absl::Status Run() {
    while (!ended_) {
      if (!executor_) {
        Read();  // nothing runs yet
        continue;
      }
      WaitResult result = executor_->WaitAny(std::chrono::seconds(60));
      if (std::holds_alternative<Interrupted>(result)) Read();
      if (const auto* cell = std::get_if<CellFinished>(&result)) Finish(*cell);
    }
    return absl::OkStatus();
  }

 private:
  // Takes what stdin has.
  void Read() {
    char bytes[65536];
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) return;
    ended_ |= n <= 0;
    if (n <= 0) return;
    size_t from = buffer_.size(), begin = 0;
    buffer_.append(bytes, static_cast<size_t>(n));
    for (size_t end; (end = buffer_.find('\n', from)) != std::string::npos; begin = from = end + 1)
      OnLine(buffer_.substr(begin, end - begin));
    buffer_.erase(0, begin);
  }

  void OnLine(const std::string& line) {
    const absl::StatusOr<Json> message = ParseJson(line, "bkm");
    if (!message.ok() || !message->is_object()) return;
    const std::string type = TextOf(*message, "type");
    if (type == "hello") {
      const absl::Status status = Begin(*message);
      if (!status.ok()) {
        output_.Say({{"type", "unfit"}, {"why", std::string(status.message())}});
        preparer_.reset();
      }
    }
    if (!preparer_) return;
    if (type == "run") OnRun(*message);
    if (type == "parts") OnParts(*message);
  }

  // Whether cells that run here are the same as on the machine that asks.
  absl::Status Begin(const Json& hello) {
    if (preparer_) return absl::InvalidArgumentError("it was greeted twice");
    ASSIGN_OR_RETURN(const SandboxLevel sandbox, SandboxOf(hello));
    ASSIGN_OR_RETURN(const std::string cell_code, installation_.CellCodeDigest());
    if (cell_code != TextOf(hello, "cell_code")) {
      return absl::FailedPreconditionError(absl::StrCat(
          "its bkm runs other code in cells (", cell_code.substr(0, 12), ", not ",
          TextOf(hello, "cell_code").substr(0, 12), "): install the same bkm on every node"));
    }
    RETURN_IF_ERROR(installation_.CheckBuilt());
    RETURN_IF_ERROR(CheckSandbox(installation_, sandbox));
    ASSIGN_OR_RETURN(const WorkMachine machine, ThisMachine(cell_code, sandbox));
    ASSIGN_OR_RETURN(
        preparer_,
        CellPreparer::Create(installation_, {.cell_code = cell_code, .sandbox = sandbox}, notes_));
    executor_ = MakeExecutor(hello, sandbox);
    output_.Say({{"type", "ready"}, {"machine", WriteFields(machine)}});
    const int64_t beat = WholeOf(hello, "beat_ms").value_or(0);
    heartbeat_ =
        std::make_unique<Heartbeat>(output_, std::chrono::milliseconds(beat > 0 ? beat : 1000));
    return absl::OkStatus();
  }

  static absl::StatusOr<SandboxLevel> SandboxOf(const Json& hello) {
    const std::optional<SandboxLevel> level = SandboxLevelFromName(TextOf(hello, "sandbox"));
    if (level) return *level;
    return absl::InvalidArgumentError("its bkm does not know the sandbox level");
  }

  std::unique_ptr<LocalExecutor> MakeExecutor(const Json& hello, SandboxLevel sandbox) const {
    return std::make_unique<LocalExecutor>(LocalExecutorOptions{
        .cell_worker = installation_.cell_worker(),
        .python_code = installation_.python_code(),
        .kernels = installation_.kernels(),
        .preload = installation_.preload(),
        .sandbox = sandbox,
        // Cells are sent as resources allow.
        .slots = 256,
        .fresh = IsTrue(hello, "fresh"),
        .interrupt_fd = STDIN_FILENO,
        .log_path = [this](const std::string&) { return folder_ / "worker.stderr"; }});
  }

  void OnRun(const Json& message) {
    absl::StatusOr<ServedCell> cell = ReadServedCell(message);
    if (!cell.ok()) return Refuse(WholeOf(message, "lease").value_or(0), cell.status());
    Try(*std::move(cell));
  }

  void OnParts(const Json& message) {
    std::vector<std::string> contents;
    for (const Json& part : ListOf(message, "parts")) {
      // A damaged part stays missing, and is asked for again.
      if (absl::StatusOr<std::string> content = PartOfJson(part); content.ok())
        contents.push_back(*std::move(content));
    }
    const absl::Status added = preparer_->AddParts(contents);
    const auto waiting = waiting_.find(WholeOf(message, "lease").value_or(0));
    if (waiting == waiting_.end()) return;
    ServedCell cell = std::move(waiting->second);
    waiting_.erase(waiting);
    if (!added.ok()) return Refuse(cell.lease, added);
    Try(std::move(cell));
  }

  void Try(ServedCell cell) {
    cell.missing.clear();
    const fs::path folder = Folder(cell.lease);
    absl::StatusOr<std::optional<CellTask>> task = preparer_->Prepare(cell, folder);
    if (!task.ok()) return Refuse(cell.lease, task.status());
    if (!*task) {
      output_.Say({{"type", "need"}, {"lease", cell.lease}, {"parts", cell.missing}});
      waiting_[cell.lease] = std::move(cell);
      return;
    }
    output_.Say({{"type", "started"}, {"lease", cell.lease}});
    memory_mib_[(*task)->id] =
        static_cast<int>(WholeOf((*task)->request["limits"], "memory_mib").value_or(0));
    executor_->Start(**task);
  }

  void Refuse(int64_t lease, const absl::Status& why) {
    output_.Say({{"type", "refused"}, {"lease", lease}, {"why", std::string(why.message())}});
  }

  void Finish(const CellFinished& cell) {
    const int64_t lease = std::stoll(cell.id);
    const fs::path folder = Folder(lease);
    absl::StatusOr<Json> files = ReadResultFiles(folder);
    if (files.ok()) {
      output_.Say({{"type", "finished"},
                   {"lease", lease},
                   {"observation", cell.facts.json()},
                   {"observed", cell.observed},
                   {"facts", ToJson(MachineFacts(folder, memory_mib_[cell.id]))},
                   {"files", *std::move(files)}});
    } else {
      Refuse(lease, files.status());
    }
    memory_mib_.erase(cell.id);
    RemoveTree(folder).IgnoreError();
  }

  fs::path Folder(int64_t lease) const { return folder_ / absl::StrCat("cell-", lease); }

  const Installation& installation_;
  const fs::path folder_;
  Output output_;
  NotesToOutput notes_;
  std::string buffer_;
  bool ended_ = false;
  std::unique_ptr<CellPreparer> preparer_;  // null until it was greeted
  std::unique_ptr<LocalExecutor> executor_;
  std::map<int64_t, ServedCell> waiting_;  // for parts
  std::map<std::string, int> memory_mib_;  // of cells that run
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace

absl::Status ServeCells(const Installation& installation) {
  ASSIGN_OR_RETURN(const fs::path folder, CreateTempDirectory(CacheDirectory() / "tmp", "served-"));
  const absl::Status status = Server(installation, folder).Run();
  RemoveTree(folder).IgnoreError();
  return status;
}

}  // namespace bkm
