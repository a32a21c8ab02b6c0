// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/local_executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/base/descriptor.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

// A worker that is a shell script: it runs `body` for each request, with the cell's id in $id.
class LocalExecutorTest : public ::testing::Test {
 protected:
  LocalExecutorTest() : dir_(*CreateTempDirectory(::testing::TempDir(), "executor")) {}

  // The script runs `first` before it reads requests.
  LocalExecutorOptions WorkerThat(const std::string& body, const std::string& first = "") {
    const std::filesystem::path worker = dir_ / "worker";
    EXPECT_TRUE(WriteFile(worker, "#!/bin/sh\n" + first +
                                      "\nwhile read -r line; do\n  id=$(echo \"$line\" | sed "
                                      "'s/.*\"cell\":\"\\([^\"]*\\)\".*/\\1/')\n" +
                                      body + "\ndone\n")
                    .ok());
    std::filesystem::permissions(worker, std::filesystem::perms::all);
    return {.cell_worker = worker, .slots = 2, .log_path = [this](const std::string& key) {
              return dir_ / (key + ".stderr");
            }};
  }

  static CellTask Task(const std::string& id, const std::string& key = "k") {
    return {id, {.key = key, .python = "python"}, Json{{"type", "run"}, {"cell", id}}};
  }

  static CellFinished Next(LocalExecutor& executor) {
    return std::get<CellFinished>(executor.WaitAny(std::chrono::minutes(5)));
  }

  std::filesystem::path dir_;
};

constexpr char kFinish[] =
    R"(echo "{\"type\":\"finished\",\"cell\":\"$id\",\"observation\":{\"ending\":{\"kind\":\"completed\"},\"pid\":$$}}")";

TEST_F(LocalExecutorTest, CellsOfOneKeyShareAWorker) {
  LocalExecutor executor(WorkerThat(kFinish));
  executor.Start(Task("a"));
  executor.Start(Task("b"));
  EXPECT_EQ(executor.running(), 2);
  const CellFinished first = Next(executor);
  const CellFinished second = Next(executor);
  EXPECT_EQ(first.id, "a");
  EXPECT_EQ(second.id, "b");
  EXPECT_EQ(first.facts.json(), second.facts.json());
  EXPECT_EQ(executor.running(), 0);
}

TEST_F(LocalExecutorTest, LinesThatAreNoReplyAreIgnored) {
  LocalExecutor executor(WorkerThat(
      R"(echo '{"type":5}'; echo '{"type":"ready","preload_s":"x"}'; echo '[1]'; echo 'junk')"
      "\n"
      R"(echo '{"type":"finished","cell":7}'; echo '{"type":"finished","cell":"none"}')"
      "\nhead -c 200000 /dev/zero | tr '\\0' '['; echo\n" +
      std::string(kFinish)));
  executor.Start(Task("a"));
  EXPECT_EQ(Next(executor).id, "a");
  EXPECT_EQ(executor.preload_s(), 0);
}

TEST_F(LocalExecutorTest, LongReplyIsReadInTimeThatGrowsWithItsLength) {
  LocalExecutor executor(WorkerThat(
      R"(printf '{"type":"finished","cell":"%s","observation":{"ending":{"kind":"completed"},"x":"' "$id")"
      "\nhead -c 60000000 /dev/zero | tr '\\0' 'x'; echo '\"}}'"));
  executor.Start(Task("a"));
  // In time that grows with its square, the test would not end within its limit.
  EXPECT_EQ(Next(executor).facts.json()["x"].get_ref<const std::string&>().size(), 60000000u);
}

TEST_F(LocalExecutorTest, LoadedWorkerTakesTheCellsThatAreChosenLater) {
  const std::filesystem::path started = dir_ / "started";
  LocalExecutor executor(WorkerThat(kFinish, "echo $$ >> " + started.string()));
  executor.Load(Task("a").worker);
  EXPECT_EQ(executor.running(), 0);
  executor.Start(Task("a"));
  executor.Load(Task("a").worker);
  const Json pid = Next(executor).facts.json()["pid"];
  EXPECT_EQ(*ReadFile(started), pid.dump() + "\n");
}

TEST_F(LocalExecutorTest, LoadingWorkerThatNobodyAskedOfIsNotWaitedFor) {
  // Longer than the limit of the test.
  LocalExecutor(WorkerThat(kFinish, "sleep 100000")).Load(Task("a").worker);
}

TEST_F(LocalExecutorTest, FreshGivesEachCellItsOwnProcess) {
  LocalExecutorOptions options = WorkerThat(kFinish);
  options.fresh = true;
  LocalExecutor executor(options);
  executor.Start(Task("a"));
  const Json first = Next(executor).facts.json();
  executor.Start(Task("b"));
  EXPECT_NE(first, Next(executor).facts.json());
}

TEST_F(LocalExecutorTest, ReleasedWorkersThatWereUsedLastStay) {
  LocalExecutorOptions options = WorkerThat(kFinish);
  options.idle = 2;
  LocalExecutor executor(options);
  int cells = 0;
  const auto pid_of = [&](const std::string& key) {
    executor.Start(Task(std::to_string(++cells), key));
    const Json pid = Next(executor).facts.json()["pid"];
    executor.Release(key);
    return pid;
  };
  const Json a = pid_of("a"), b = pid_of("b");
  EXPECT_EQ(pid_of("a"), a);
  const Json c = pid_of("c");
  EXPECT_EQ(pid_of("a"), a) << "b had to go, not a";
  EXPECT_NE(pid_of("b"), b);
  EXPECT_NE(pid_of("c"), c);
}

TEST_F(LocalExecutorTest, CellsOfAWorkerThatDiesAreLostWithItsLastWords) {
  LocalExecutor executor(WorkerThat("echo 'out of luck' >&2; exit 7"));
  executor.Start(Task("a"));
  const CellFinished lost = Next(executor);
  EXPECT_EQ(lost.facts.json()["ending"]["kind"], "lost");
  EXPECT_EQ(lost.facts.json()["ending"]["message"], "the cell worker died (exit 7): out of luck");
}

TEST_F(LocalExecutorTest, WorkerThatCannotStartLosesTheCell) {
  LocalExecutorOptions options = WorkerThat("");
  options.cell_worker = "/no/such/worker";
  LocalExecutor executor(options);
  executor.Start(Task("a"));
  EXPECT_EQ(Next(executor).facts.json()["ending"]["kind"], "lost");
}

TEST_F(LocalExecutorTest, InterruptIsHeardWhileCellsRun) {
  const Pipe pipe = *MakePipe();
  LocalExecutorOptions options =
      WorkerThat("case $line in *cancel*) " + std::string(kFinish) + ";; esac");
  options.interrupt_fd = pipe.read.get();
  LocalExecutor executor(options);
  executor.Start(Task("a"));
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  EXPECT_TRUE(std::holds_alternative<Interrupted>(executor.WaitAny(std::chrono::minutes(5))));
  executor.CancelAll();
  EXPECT_EQ(Next(executor).id, "a");
}

}  // namespace
}  // namespace bkm
