// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/disturbance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "harness/base/clock.h"
#include "harness/base/file_steps.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

struct Plan {
  fs::path journal;  // empty: none
  int slow_ms = 0;
  int full_from = 0, full_to = -1;
  std::string eio;  // empty: none
  bool jumps = false;
  uint64_t clock_seed = 0;
  fs::path acts;  // empty: none
};

absl::StatusOr<Plan> ParsePlan(absl::string_view text) {
  Plan plan;
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [name, value] = parts;
    bool good = true;
    if (name == "journal") {
      plan.journal = value;
    } else if (name == "slow") {
      good = absl::SimpleAtoi(value, &plan.slow_ms);
    } else if (name == "full") {
      const std::pair<std::string, std::string> range = absl::StrSplit(value, '-');
      good = absl::SimpleAtoi(range.first, &plan.full_from) &&
             absl::SimpleAtoi(range.second, &plan.full_to);
    } else if (name == "acts") {
      plan.acts = value;
    } else if (name == "eio") {
      plan.eio = value;
    } else if (name == "clock") {
      plan.jumps = good = absl::SimpleAtoi(value, &plan.clock_seed);
    } else {
      good = false;
    }
    if (!good)
      return absl::InvalidArgumentError(absl::StrCat("BKM_DISTURB: '", word, "' is unknown"));
  }
  return plan;
}

class DisturbedSteps : public FileSteps {
 public:
  explicit DisturbedSteps(const Plan& plan) : plan_(plan) {
    if (!plan_.journal.empty())
      journal_.open(plan_.journal / "journal", std::ios::app | std::ios::binary);
    if (!plan_.acts.empty())
      acts_ = ::open(plan_.acts.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
  ~DisturbedSteps() override {
    if (acts_ >= 0) ::close(acts_);
  }

  int Write(int file, const fs::path& path, absl::string_view content) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++writes_;
      if (writes_ >= plan_.full_from && writes_ <= plan_.full_to) {
        Act();
        return ENOSPC;
      }
    }
    if (const int error = Enter(path)) return error;
    const int error = FileSteps::Write(file, path, content);
    if (error == ENOSPC) Act();
    if (!error) Record("write", path, "", content);
    return error;
  }
  int Sync(int file, const fs::path& path) override {
    if (const int error = Enter(path)) return error;
    const int error = FileSteps::Sync(file, path);
    if (!error && journal_.is_open()) Record("sync", path, "", ReadFile(path).value_or(""));
    return error;
  }
  int Rename(const fs::path& from, const fs::path& to) override {
    if (const int error = Enter(to)) return error;
    const int error = FileSteps::Rename(from, to);
    if (!error) Record("rename", from, to, "");
    return error;
  }
  int SyncFolder(int folder, const fs::path& path) override {
    if (const int error = Enter(path)) return error;
    const int error = FileSteps::SyncFolder(folder, path);
    if (!error) Record("sync-folder", path, "", "");
    return error;
  }
  int SyncTree(int folder, const fs::path& path) override {
    if (const int error = Enter(path)) return error;
    // Syncing everything that other programs have written would take long and prove nothing.
    static_cast<void>(folder);
    Record("sync-tree", path, "", "");
    return 0;
  }
  void Remove(const fs::path& path) override { Record("remove", path, "", ""); }

 private:
  int Enter(const fs::path& path) const {
    if (plan_.slow_ms > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(plan_.slow_ms));
      Act();
    }
    if (plan_.jumps && absl::AbsDuration(RealClock().Now() - absl::Now()) > absl::Hours(24)) Act();
    if (plan_.eio.empty() || !absl::StrContains(path.string(), plan_.eio)) return 0;
    Act();
    return EIO;
  }
  // One byte, at the file's end: a process that is killed later has told it.
  void Act() const {
    if (acts_ >= 0 && ::write(acts_, "x", 1) != 1) ::perror("BKM_DISTURB: acts");
  }
  void Record(const char* step, const fs::path& path, const fs::path& to,
              absl::string_view content) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!journal_.is_open()) return;
    journal_ << step << '\t' << path.string() << '\t' << to.string() << '\t' << content.size()
             << '\n';
    journal_.write(content.data(), static_cast<std::streamsize>(content.size()));
    journal_ << '\n';
    journal_.flush();
  }

  const Plan plan_;
  std::mutex mutex_;
  int writes_ = 0;
  std::ofstream journal_;
  int acts_ = -1;
};

class InjectedDisturbance : public Disturbance {
 public:
  explicit InjectedDisturbance(const Plan& plan) : steps_(plan), replaced_(steps_) {
    if (plan.jumps) RealClock::LetJump(plan.clock_seed);
  }

 private:
  DisturbedSteps steps_;
  const ReplacedFileSteps replaced_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Disturbance>> Disturbance::FromEnvironment() {
  const char* text = std::getenv("BKM_DISTURB");
  if (!text || !*text) return std::unique_ptr<Disturbance>();
  ASSIGN_OR_RETURN(const Plan plan, ParsePlan(text));
  return std::unique_ptr<Disturbance>(std::make_unique<InjectedDisturbance>(plan));
}

}  // namespace bkm
