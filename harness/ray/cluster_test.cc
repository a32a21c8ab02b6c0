// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The real bkm on real Ray: what cells give on a cluster is what they give here, whatever dies
// meanwhile, and nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/subprocess.h"
#include "harness/ray/testing_ray.h"
#include "harness/runner/inherited_cells.h"
#include "harness/testing/bkm_under_test.h"
#include "harness/testing/no_network.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::chrono::minutes kPatience(4);  // on a busy machine

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string command;      // words, each followed by a 0
  std::string environment;  // the same
};

std::vector<Process> AllProcesses() {
  std::vector<Process> processes;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    Process process{.pid = std::stoi(name)};
    process.command = ReadFile(entry.path() / "cmdline").value_or("");
    process.environment = ReadFile(entry.path() / "environ").value_or("");
    const std::string stat = ReadFile(entry.path() / "stat").value_or("");
    if (const size_t at = stat.rfind(") "); at != std::string::npos && stat.size() > at + 4)
      process.parent = std::atoi(stat.c_str() + at + 4);
    processes.push_back(std::move(process));
  }
  return processes;
}

bool WaitFor(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

// A cluster whose head runs no cells. Each node has a cache of its own.
class TestCluster {
 public:
  TestCluster(const RayEnvironment& environment, const BkmUnderTest& bkm) : bkm_(bkm) {
    process_ = *StartPiped({.argv = {environment.python.string(),
                                     Runfile("harness/ray/python/cluster_under_test.py").string()},
                            .unset_env = {"BKM_CACHE", "BKM_UV", "BKM_PYTHON", "RAY_ADDRESS"}},
                           bkm.folder() / "cluster.stderr");
    address_ = TextOf(Answer(), "address");
  }
  ~TestCluster() {
    process_.to_child.Close();
    ::waitpid(process_.pid, nullptr, 0);
  }

  const std::string& address() const { return address_; }
  fs::path Cache(const std::string& node) const { return bkm_.folder() / ("cache-" + node); }
  // Returns the raylet's pid.
  pid_t Add(const std::string& node, std::map<std::string, std::string> environment = {}) {
    environment["BKM_CACHE"] = Cache(node).string();
    environment["BKM_TEST_NODE"] = node;
    return static_cast<pid_t>(
        Ask({{"add", node}, {"environment", environment}}).value("raylet", 0));
  }
  void Remove(const std::string& node) { Ask({{"remove", node}}); }

 private:
  Json Ask(const Json& message) {
    WriteAll(process_.to_child.get(), ToLine(message) + "\n");
    return Answer();
  }
  Json Answer() {
    std::string line;
    for (char c = 0; ::read(process_.from_child.get(), &c, 1) == 1 && c != '\n';) line += c;
    absl::StatusOr<Json> answer = ParseJson(line, "cluster");
    EXPECT_TRUE(answer.ok()) << *ReadFile(bkm_.folder() / "cluster.stderr");
    return answer.ok() ? *answer : Json::object();
  }

  const BkmUnderTest& bkm_;
  PipedProcess process_;
  std::string address_;
};

class RayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<RayEnvironment> made = RayFor(bkm_);
    if (IsNoNetwork(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    environment_ = *made;
  }

  // A run on this machine alone, to compare with.
  void RunHere(const fs::path& matrix) {
    const ProcessResult ran = bkm_.Run({"run", matrix, "--no-store"});
    ASSERT_NE(ran.exit_code, 2) << ran.err;
    fs::rename(bkm_.out(), Here());
  }
  fs::path Here() const { return bkm_.folder() / "here"; }

  Command RayCommand(const fs::path& matrix, const std::vector<std::string>& more,
                     const std::string& resources = "memory=0") const {
    std::vector<std::string> words = {
        "run", matrix, "--no-store", "--executor", "ray", "--ray-resources", resources};
    words.insert(words.end(), more.begin(), more.end());
    Command command = bkm_.MakeCommand(words, {{"BKM_PYTHON", CellPython().string()}});
    command.argv.back() = "4";  // --jobs
    command.timeout = std::chrono::seconds(400);
    return command;
  }

  // The same verdicts, and observations without a difference that counts.
  void ExpectSameAsHere() const {
    const Json here = *ReadJsonFile(Here() / "run.json"), there = bkm_.ReadRun();
    EXPECT_EQ(Difference(StableRun(bkm_, here), StableRun(bkm_, there)), "");
    for (const Json& cell : there["cells"]) {
      const fs::path mine = Here() / cell["dir"], other = bkm_.out() / cell["dir"];
      const absl::StatusOr<Json> before = ReadJsonFile(mine / "observation.json");
      const absl::StatusOr<Json> after = ReadJsonFile(other / "observation.json");
      ASSERT_TRUE(before.ok() && after.ok()) << cell;
      EXPECT_EQ(FirstDifference(*before, mine, *after, other), "") << cell["id"];
      EXPECT_EQ(TextOf(*ReadJsonFile(mine / "request.json"), "key"),
                TextOf(*ReadJsonFile(other / "request.json"), "key"));
      EXPECT_EQ(*ReadFile(mine / "stdout"), *ReadFile(other / "stdout")) << cell["id"];
    }
  }

  // Processes that work for cells of this test: drivers, servers and what they started.
  std::vector<Process> Working() const {
    std::vector<Process> processes = AllProcesses();
    std::erase_if(processes, [&](const Process& process) {
      const bool ours = absl::StrContains(process.environment, bkm_.folder().string()) ||
                        absl::StrContains(process.command, bkm_.folder().string());
      const bool works = absl::StrContains(process.command, "cell_worker") ||
                         absl::StrContains(process.command, "bkm_ray.driver") ||
                         absl::EndsWith(process.command, absl::string_view("\0serve\0", 7));
      return !ours || !works;
    });
    return processes;
  }
  // `bkm serve` on all nodes, without the keepers that it forks, whose command is the same.
  std::vector<Process> Servers() const {
    std::vector<Process> processes = Working();
    std::erase_if(processes, [](const Process& process) {
      return !absl::EndsWith(process.command, absl::string_view("\0serve\0", 7));
    });
    std::vector<Process> servers;
    for (const Process& process : processes) {
      const bool is_keeper =
          std::any_of(processes.begin(), processes.end(),
                      [&](const Process& other) { return other.pid == process.parent; });
      if (!is_keeper) servers.push_back(process);
    }
    return servers;
  }
  std::vector<std::string> WorkingCommands() const {
    std::vector<std::string> commands;
    for (const Process& process : Working()) commands.push_back(process.command);
    return commands;
  }

  const BkmUnderTest bkm_;
  RayEnvironment environment_;
};

using LocalRayTest = RayTest;

TEST_F(LocalRayTest, ResultsEqualThoseOfThisMachineAndNothingStays) {
  const fs::path matrix = bkm_.WriteMatrix({"passes", "refuses", "import_raises", "exits"});
  RunHere(matrix);
  const ProcessResult ran = *RunCommand(RayCommand(matrix, {}));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  ExpectSameAsHere();
  EXPECT_TRUE(WaitFor([&] { return bkm_.RunningProcesses().empty(); }))
      << ::testing::PrintToString(bkm_.RunningProcesses());
}

TEST_F(LocalRayTest, AClusterThatIsNotThereIsToldAtOnce) {
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  const ProcessResult ran = *RunCommand(RayCommand(matrix, {"--address", "127.0.0.1:1"}));
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("cannot use Ray: no cluster answers at 127.0.0.1:1 "));
}

TEST_F(LocalRayTest, ACellThatIsTooLargeForThisMachineEndsWithASentence) {
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  const ProcessResult ran = *RunCommand(RayCommand(matrix, {}, "memory=0,GPU=64"));
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(bkm_.ReadRun()["cells"][0]["message"].get<std::string>(),
              HasSubstr("this machine does not offer "));
}

class ClusterTest : public RayTest {
 protected:
  void SetUp() override {
    RayTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    cluster_.emplace(environment_, bkm_);
    // The import takes long enough for something to happen meanwhile.
    bkm_.WritePair("sleeps", "import time; time.sleep(10)");
  }

  std::future<ProcessResult> StartRun(const fs::path& matrix, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--address", cluster_->address()});
    return std::async(std::launch::async,
                      [command = RayCommand(matrix, more)] { return *RunCommand(command); });
  }

  // The server on a node in which a cell has started; nullopt: none.
  std::optional<Process> Server(const std::string& node) const {
    bool has_cell = false;
    std::error_code error;
    for (const auto& served : fs::directory_iterator(cluster_->Cache(node) / "tmp", error)) {
      for (const auto& cell : fs::directory_iterator(served.path(), error))
        has_cell |= fs::exists(cell.path() / "work", error);
    }
    if (!has_cell) return std::nullopt;
    for (const Process& process : Servers()) {
      if (absl::StrContains(process.environment, "BKM_TEST_NODE=" + node)) return process;
    }
    return std::nullopt;
  }
  // Waits until a cell runs that takes long; returns the node.
  std::string BusyNode() const {
    std::string busy;
    EXPECT_TRUE(WaitFor([&] {
      for (const char* node : {"a", "b"}) {
        if (Server(node)) busy = node;
      }
      if (busy.empty()) return false;
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return Server(busy).has_value();
    }));
    return busy;
  }
  void ExpectGoodRun(std::future<ProcessResult>& run) {
    const ProcessResult ran = run.get();
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    err_ = ran.err;
    ExpectSameAsHere();
    EXPECT_TRUE(WaitFor([&] { return Working().empty(); }))
        << ::testing::PrintToString(WorkingCommands());
  }

  std::optional<TestCluster> cluster_;
  std::string err_;
};

TEST_F(ClusterTest, ResultsOfTwoNodesEqualThoseOfThisMachine) {
  cluster_->Add("a");
  cluster_->Add("b");
  const fs::path matrix =
      bkm_.WriteMatrix({"passes", "refuses", "import_raises", "exits", "segfaults", "sleeps"});
  RunHere(matrix);
  std::future<ProcessResult> run = StartRun(matrix);
  ExpectGoodRun(run);
}

TEST_F(ClusterTest, ANodeThatIsRemovedLosesNoCell) {
  cluster_->Add("a");
  cluster_->Add("b");
  const fs::path matrix = bkm_.WriteMatrix({"passes", "sleeps"});
  RunHere(matrix);
  std::future<ProcessResult> run = StartRun(matrix);
  cluster_->Remove(BusyNode());
  ExpectGoodRun(run);
  EXPECT_THAT(err_, HasSubstr("again: node "));
}

TEST_F(ClusterTest, AKilledRayletLosesNoCell) {
  const std::map<std::string, pid_t> raylets = {{"a", cluster_->Add("a")},
                                                {"b", cluster_->Add("b")}};
  const fs::path matrix = bkm_.WriteMatrix({"passes", "sleeps"});
  RunHere(matrix);
  std::future<ProcessResult> run = StartRun(matrix);
  ASSERT_EQ(::kill(raylets.at(BusyNode()), SIGKILL), 0);
  ExpectGoodRun(run);
  EXPECT_THAT(err_, HasSubstr("again: node "));
}

TEST_F(ClusterTest, AKilledActorAndAKilledServerLoseNoCell) {
  cluster_->Add("a");
  const fs::path matrix = bkm_.WriteMatrix({"passes", "sleeps"});
  RunHere(matrix);
  std::future<ProcessResult> run = StartRun(matrix);
  BusyNode();
  const Process first = *Server("a");
  ASSERT_EQ(::kill(first.parent, SIGKILL), 0);  // Ray's worker
  EXPECT_TRUE(WaitFor([&] { return ::kill(first.pid, 0) != 0; })) << "it dies with its actor";
  std::optional<Process> second;
  EXPECT_TRUE(WaitFor([&] {
    second = Server("a");
    return second && second->pid != first.pid;
  }));
  ASSERT_EQ(::kill(second->pid, SIGKILL), 0);
  ExpectGoodRun(run);
}

TEST_F(ClusterTest, AKilledDriverIsStartedAgain) {
  cluster_->Add("a");
  const fs::path matrix = bkm_.WriteMatrix({"passes", "sleeps"});
  RunHere(matrix);
  std::future<ProcessResult> run = StartRun(matrix);
  BusyNode();
  int killed = 0;
  for (const Process& process : Working()) {
    if (absl::StrContains(process.command, "bkm_ray.driver"))
      killed += ::kill(process.pid, SIGKILL) == 0;
  }
  EXPECT_EQ(killed, 1);
  ExpectGoodRun(run);
  EXPECT_THAT(err_, HasSubstr("the Ray driver ended"));
}

TEST_F(ClusterTest, ALateResultMustBeEqualOrTheCellIsFlaky) {
  cluster_->Add("a");
  bkm_.WritePair("varies",
                 "import time, random\ntime.sleep(10)\nraise ValueError(random.random())");
  bkm_.WritePair("sleeps_long", "import time; time.sleep(60)");
  const fs::path matrix = bkm_.WriteMatrix({"sleeps", "varies", "sleeps_long"}, /*timeout_s=*/100);
  std::future<ProcessResult> run = StartRun(matrix, {"--ray-lease", "2", "--no-controls"});
  BusyNode();
  const Process server = *Server("a");
  ASSERT_EQ(::kill(server.pid, SIGSTOP), 0);
  // Long past the lease: the cells were sent to another server.
  EXPECT_TRUE(WaitFor([&] { return Servers().size() == 2; }));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  ASSERT_EQ(::kill(server.pid, SIGCONT), 0);
  const ProcessResult ran = run.get();
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(",steps=1 ran twice, with equal results"));
  EXPECT_THAT(ran.err, HasSubstr("its results differ in exception: it is flaky"));
  const Json cells = bkm_.ReadRun();
  EXPECT_EQ(BkmUnderTest::CellOf(cells, "varies")["stability"]["runs"], 2);
  EXPECT_EQ(BkmUnderTest::CellOf(cells, "sleeps").count("stability"), 0u);
  EXPECT_TRUE(WaitFor([&] { return Working().empty(); }))
      << ::testing::PrintToString(WorkingCommands());
}

TEST_F(ClusterTest, ANodeWithOtherCellCodeIsRefused) {
  const fs::path other = bkm_.folder() / "other-root";
  fs::copy(bkm_.root(), other, fs::copy_options::recursive);
  ASSERT_TRUE(WriteFile(other / "harness/cell/python/bkm_cell/more.py", "x = 1\n").ok());
  cluster_->Add("b", {{"BKM_ROOT", other.string()}});
  const fs::path matrix = bkm_.WriteMatrix({"passes", "refuses"});
  RunHere(matrix);
  {
    const ProcessResult alone = StartRun(matrix).get();
    EXPECT_THAT(alone.err, HasSubstr("cannot run cells: its bkm runs other code in cells ("));
    for (const Json& cell : bkm_.ReadRun()["cells"]) EXPECT_EQ(cell["verdict"], "spurious") << cell;
  }
  fs::remove_all(bkm_.out());
  cluster_->Add("a");
  std::future<ProcessResult> run = StartRun(matrix);
  ExpectGoodRun(run);
}

TEST_F(ClusterTest, AnInterruptLeavesNothingBehind) {
  cluster_->Add("a");
  const fs::path matrix = bkm_.WriteMatrix({"passes", "sleeps"});
  Command command = RayCommand(matrix, {"--address", cluster_->address()});
  const PipedProcess bkm = *StartPiped(command, bkm_.folder() / "bkm.stderr");
  BusyNode();
  EXPECT_THAT(Working(), Not(IsEmpty()));
  ASSERT_EQ(::kill(bkm.pid, SIGINT), 0);
  int status = 0;
  ::waitpid(bkm.pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3) << *ReadFile(bkm_.folder() / "bkm.stderr");
  EXPECT_TRUE(WaitFor([&] { return Working().empty(); }))
      << ::testing::PrintToString(WorkingCommands());
}

TEST_F(ClusterTest, AKilledBkmLeavesNothingBehind) {
  cluster_->Add("a");
  const fs::path matrix = bkm_.WriteMatrix({"passes", "sleeps"});
  const Command command = RayCommand(matrix, {"--address", cluster_->address()});
  const PipedProcess bkm = *StartPiped(command, bkm_.folder() / "bkm.stderr");
  BusyNode();
  for (const Process& process : AllProcesses()) {
    if (process.parent == bkm.pid) ::kill(process.pid, SIGKILL);  // below its keeper
  }
  ::waitpid(bkm.pid, nullptr, 0);
  EXPECT_TRUE(WaitFor([&] { return Working().empty(); }))
      << ::testing::PrintToString(WorkingCommands());
}

}  // namespace
}  // namespace bkm
