// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A driver that the test plays: it sees the messages of Dispatch and answers them.
#include "harness/ray/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/runner/fake_clock.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kNodeA[] = "aaaaaaaaaaaa";
constexpr char kNodeB[] = "bbbbbbbbbbbb";

class DispatchTest : public ::testing::Test {
 protected:
  static DispatchOptions Options() {
    return {.ledger = {.lease = absl::Seconds(10), .most_tries = 2},
            .server = {"bkm", "serve"},
            .hello = {{"type", "hello"}}};
  }

  static RayCell CellNamed(const std::string& id) {
    return {.id = id,
            .runtime = "lock",
            .run = {{"key", id}},
            .resources = {{"CPU", 1}},
            .timeout = absl::Seconds(30),
            .folder = "/run/" + id};
  }

  void Say(const Json& message) { dispatch_.OnLine(ToLine(message)); }
  void SayNodes(const std::vector<std::string>& names) {
    Json nodes = Json::array();
    for (const std::string& name : names)
      nodes.push_back({{"id", name}, {"resources", {{"CPU", 2}}}});
    Say({{"type", "nodes"}, {"nodes", nodes}});
  }
  // Answers every request for a slot so far.
  void Reserve(const std::string& node) {
    for (const Json& message : Take("reserve"))
      Say({{"type", "reserved"}, {"slot", message["slot"]}, {"node", node}});
  }
  void WorkerSays(int64_t worker, const Json& message) {
    Say({{"type", "lines"}, {"worker", worker}, {"lines", {ToLine(message)}}});
  }
  static Json Finished(const Json& run, const std::string& text) {
    return {{"type", "finished"},
            {"lease", run["lease"]},
            {"observation", {{"ending", {{"kind", "completed"}}}, {"says", text}}},
            {"files", Json::array()}};
  }
  void Gone(int64_t worker, const std::string& kind) {
    Say({{"type", "gone"}, {"worker", worker}, {"kind", kind}, {"why", "its process died"}});
  }

  // The messages of a type that the driver got, once.
  std::vector<Json> Take(const std::string& type) {
    std::vector<Json> taken;
    std::erase_if(sent_, [&](const Json& message) {
      if (message["type"] != type) return false;
      taken.push_back(message);
      return true;
    });
    return taken;
  }
  // The lines of a type that workers were sent, with the worker, once.
  std::vector<Json> TakeLines(const std::string& type) {
    std::vector<Json> taken;
    std::erase_if(sent_, [&](const Json& message) {
      if (message["type"] != "send") return false;
      Json line = *ParseJson(message["text"].get<std::string>(), "");
      if (line["type"] != type) return false;
      line["worker"] = message["worker"];
      taken.push_back(line);
      return true;
    });
    return taken;
  }
  // The one cell that was sent since the last call.
  Json TakeRun() {
    const std::vector<Json> runs = TakeLines("run");
    EXPECT_EQ(runs.size(), 1u);
    return runs.empty() ? Json{{"lease", 0}, {"worker", 0}} : runs[0];
  }
  // Starts a cell and has it sent to a node's worker, which then speaks.
  Json SendTo(const std::string& node, const std::string& id = "cell") {
    SayNodes({kNodeA, kNodeB});
    dispatch_.Start(CellNamed(id));
    Reserve(node);
    const Json run = TakeRun();
    WorkerSays(run["worker"], {{"type", "ready"}, {"machine", {{"cpu", node}}}});
    return run;
  }
  void Pass(absl::Duration time) {
    clock_.elapsed += time;
    dispatch_.Tick();
  }

  FakeClock clock_;
  std::vector<Json> sent_;
  std::vector<std::string> reports_;
  std::map<std::string, std::string> parts_;
  Dispatch dispatch_{Options(), clock_, [this](const Json& message) { sent_.push_back(message); },
                     [this](const std::string& part) -> absl::StatusOr<std::string> {
                       if (parts_.contains(part)) return parts_.at(part);
                       return absl::DataLossError("the part is missing");
                     },
                     [this](const std::string& text) { reports_.push_back(text); }};
};

TEST_F(DispatchTest, ACellIsSentOnceItsResourcesAreReserved) {
  dispatch_.Start(CellNamed("cell"));
  EXPECT_EQ(sent_[0], (Json{{"type", "reserve"},
                            {"slot", 1},
                            {"resources", {{"CPU", 1.0}}},
                            {"labels", Json::object()},
                            {"not_nodes", Json::array()}}));
  EXPECT_THAT(Take("open"), IsEmpty());
  Reserve(kNodeA);
  const std::vector<Json> opened = Take("open");
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0]["node"], kNodeA);
  EXPECT_EQ(opened[0]["argv"], Json::array({"bkm", "serve"}));
  EXPECT_EQ(TakeLines("hello").size(), 1u);
  const Json run = TakeRun();
  EXPECT_EQ(run["key"], "cell");
  WorkerSays(run["worker"], {{"type", "ready"}, {"machine", {{"cpu", "x"}}}});
  WorkerSays(run["worker"], Finished(run, "done"));
  const RayResult result = *dispatch_.TakeResult();
  EXPECT_EQ(result.id, "cell");
  EXPECT_EQ(result.folder, "/run/cell");
  EXPECT_EQ(result.seen->json()["says"], "done");
  EXPECT_EQ(result.machine["cpu"], "x");
  EXPECT_FALSE(result.late);
  EXPECT_EQ(dispatch_.running(), 0);
}

TEST_F(DispatchTest, OneWorkerPerNodeAndRuntimeAndOneSlotPerCell) {
  dispatch_.Start(CellNamed("one"));
  dispatch_.Start(CellNamed("two"));
  RayCell other = CellNamed("other");
  other.runtime = "another lock";
  dispatch_.Start(other);
  Reserve(kNodeA);
  EXPECT_EQ(Take("open").size(), 2u);
  EXPECT_EQ(TakeLines("run").size(), 3u);
}

TEST_F(DispatchTest, AFreeSlotGoesToTheCellThatWaits) {
  SayNodes({kNodeA});
  dispatch_.Start(CellNamed("one"));
  Reserve(kNodeA);
  const Json one = TakeRun();
  dispatch_.Start(CellNamed("two"));
  EXPECT_EQ(Take("reserve").size(), 1u) << "for the second cell; the cluster is full";
  WorkerSays(one["worker"], Finished(one, "done"));
  EXPECT_EQ(TakeRun()["key"], "two");
}

TEST_F(DispatchTest, ACellIsSentAgainWhenItsWorkerDies) {
  const Json run = SendTo(kNodeA);
  Gone(run["worker"], "lost");
  Reserve(kNodeB);
  const Json again = TakeRun();
  EXPECT_NE(again["worker"], run["worker"]);
  EXPECT_NE(again["lease"], run["lease"]);
  EXPECT_THAT(reports_, ElementsAre("sending cell again: node aaaaaaaa: its process died"));
  WorkerSays(again["worker"], Finished(again, "done"));
  EXPECT_EQ(dispatch_.TakeResult()->seen->json()["says"], "done");
}

TEST_F(DispatchTest, ACellThatIsLostTooOftenEndsWithASentence) {
  Json run = SendTo(kNodeA);
  Gone(run["worker"], "lost");
  Reserve(kNodeB);
  Gone(TakeRun()["worker"], "lost");
  EXPECT_EQ(dispatch_.TakeResult()->lost,
            "lost 2 times; the last time: node bbbbbbbb: its process died");
}

TEST_F(DispatchTest, AWorkerThatIsSilentLosesItsCellsButMayStillAnswer) {
  const Json run = SendTo(kNodeA);
  Pass(absl::Seconds(9));
  EXPECT_THAT(TakeLines("run"), IsEmpty());
  Pass(absl::Seconds(2));
  const Json again = TakeRun();
  EXPECT_NE(again["worker"], run["worker"]) << "a silent worker gets no cells";
  WorkerSays(again["worker"], Finished(again, "second"));
  RayResult first = *dispatch_.TakeResult();
  EXPECT_FALSE(first.late);
  EXPECT_TRUE(dispatch_.IsOpen(first.cell));
  // It continues.
  WorkerSays(run["worker"], Finished(run, "first"));
  RayResult late = *dispatch_.TakeResult();
  EXPECT_TRUE(late.late);
  EXPECT_EQ(late.id, "cell");
  EXPECT_EQ(late.folder, "/run/cell");
  EXPECT_EQ(late.seen->json()["says"], "first");
  EXPECT_FALSE(dispatch_.IsOpen(first.cell));
}

TEST_F(DispatchTest, TheFirstResultCountsAlsoOfAWorkerThatWasGivenUp) {
  const Json run = SendTo(kNodeA);
  Pass(absl::Seconds(11));
  const Json again = TakeRun();
  WorkerSays(run["worker"], Finished(run, "first"));
  EXPECT_EQ(dispatch_.TakeResult()->seen->json()["says"], "first");
  EXPECT_EQ(dispatch_.running(), 0);
  WorkerSays(again["worker"], Finished(again, "second"));
  EXPECT_TRUE(dispatch_.TakeResult()->late);
}

TEST_F(DispatchTest, SignsOfLifeKeepALeaseUntilTheCellShouldHaveEnded) {
  const Json run = SendTo(kNodeA);
  WorkerSays(run["worker"], {{"type", "started"}, {"lease", run["lease"]}});
  for (int i = 0; i < 16; ++i) {  // 30 s of the cell, and 2 minutes
    Pass(absl::Seconds(9));
    WorkerSays(run["worker"], {{"type", "alive"}});
  }
  EXPECT_THAT(TakeLines("run"), IsEmpty());
  Pass(absl::Seconds(9));
  EXPECT_EQ(TakeLines("run").size(), 1u);
}

TEST_F(DispatchTest, AWorkerMayTakeLongerThanALeaseToStart) {
  dispatch_.Start(CellNamed("cell"));
  Reserve(kNodeA);
  TakeRun();
  for (int i = 0; i < 29; ++i) Pass(absl::Seconds(10));
  EXPECT_THAT(TakeLines("run"), IsEmpty());
  Pass(absl::Seconds(11));
  Reserve(kNodeB);
  EXPECT_EQ(TakeLines("run").size(), 1u);
  EXPECT_THAT(reports_[0], HasSubstr("no worker started within 5m"));
}

TEST_F(DispatchTest, ANodeWithAnotherEnvironmentIsRefusedAndItsCellsGoElsewhere) {
  SayNodes({kNodeA, kNodeB});
  dispatch_.Start(CellNamed("cell"));
  Reserve(kNodeA);
  const Json run = TakeRun();
  WorkerSays(run["worker"], {{"type", "unfit"}, {"why", "its bkm runs other code"}});
  const std::vector<Json> wished = Take("reserve");
  ASSERT_EQ(wished.size(), 1u);
  EXPECT_EQ(wished[0]["not_nodes"], Json::array({kNodeA}));
  Say({{"type", "reserved"}, {"slot", wished[0]["slot"]}, {"node", kNodeB}});
  const Json again = TakeRun();
  WorkerSays(again["worker"], Finished(again, "done"));
  EXPECT_EQ(dispatch_.TakeResult()->seen->json()["says"], "done");
  EXPECT_THAT(reports_, ElementsAre("node aaaaaaaa cannot run cells: its bkm runs other code",
                                    StartsWith("sending cell again: ")));
}

TEST_F(DispatchTest, ACellThatEveryNodeRefusesEndsWithTheReason) {
  SayNodes({kNodeA, kNodeB});
  dispatch_.Start(CellNamed("cell"));
  Reserve(kNodeA);
  const Json run = TakeRun();
  WorkerSays(run["worker"],
             {{"type", "refused"}, {"lease", run["lease"]}, {"why", "another environment"}});
  Reserve(kNodeB);
  Gone(TakeRun()["worker"], "unstartable");
  EXPECT_EQ(dispatch_.TakeResult()->lost, "node bbbbbbbb cannot run it: its process died");
}

TEST_F(DispatchTest, CellsWaitForNodesOfAGrowingCluster) {
  RayCell large = CellNamed("cell");
  large.resources = {{"CPU", 64}};
  SayNodes({kNodeA});
  dispatch_.Start(large);
  Pass(absl::Seconds(30));
  EXPECT_FALSE(dispatch_.TakeResult());
  EXPECT_THAT(reports_, ElementsAre("1 cells wait for a node that has CPU 64 free"));
}

TEST_F(DispatchTest, ACellThatEndsWhileItIsStartedRunsUntilItsResultIsTaken) {
  DispatchOptions options = Options();
  options.may_grow = false;
  Dispatch alone(
      options, clock_, [](const Json&) {}, nullptr, nullptr);
  alone.OnLine(
      ToLine({{"type", "nodes"}, {"nodes", {{{"id", kNodeA}, {"resources", {{"CPU", 2}}}}}}}));
  RayCell large = CellNamed("cell");
  large.resources = {{"GPU", 1}};
  alone.Start(large);
  EXPECT_EQ(alone.running(), 1);
  EXPECT_EQ(alone.TakeResult()->lost, "this machine does not offer GPU 1 (--ray-resources)");
  EXPECT_EQ(alone.running(), 0);
}

TEST_F(DispatchTest, ThePartsThatANodeLacksAreSentAndNoOthers) {
  const Json run = SendTo(kNodeA);
  parts_ = {{"p1", "one"}, {"p2", "two"}};
  WorkerSays(run["worker"], {{"type", "need"}, {"lease", run["lease"]}, {"parts", {"p2"}}});
  const std::vector<Json> lines = TakeLines("parts");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["parts"], Json::array({PartJson("two")}));
  EXPECT_EQ(lines[0]["lease"], run["lease"]);
}

TEST_F(DispatchTest, AResultThatWasDamagedOnItsWayIsMeasuredAgain) {
  const Json run = SendTo(kNodeA);
  Json damaged = Finished(run, "done");
  damaged["files"] = {{{"path", "stdout"}, {"sha256", Sha256("a")}, {"data", "Yg=="}}};
  WorkerSays(run["worker"], damaged);
  EXPECT_FALSE(dispatch_.TakeResult());
  const Json again = TakeRun();
  WorkerSays(again["worker"], Finished(again, "done"));
  EXPECT_TRUE(dispatch_.TakeResult());
}

TEST_F(DispatchTest, ACellWhoseCellWorkerDiedRunsAgain) {
  const Json run = SendTo(kNodeA);
  Json lost = Finished(run, "");
  lost["observation"] = {{"ending", {{"kind", "lost"}, {"message", "signal 9"}}}};
  WorkerSays(run["worker"], lost);
  EXPECT_FALSE(dispatch_.TakeResult());
  WorkerSays(run["worker"], Finished(TakeRun(), "done"));
  EXPECT_EQ(dispatch_.TakeResult()->seen->json()["says"], "done");
}

TEST_F(DispatchTest, ADriverThatDiedIsForgottenAndItsCellsAreSentThroughTheNext) {
  const Json run = SendTo(kNodeA);
  dispatch_.Start(CellNamed("waits"));
  dispatch_.OnDriverLost("killed");
  sent_.clear();
  dispatch_.Tick();
  EXPECT_EQ(Take("reserve").size(), 2u);
  WorkerSays(run["worker"], Finished(run, "of a worker that is gone"));
  EXPECT_FALSE(dispatch_.TakeResult());
}

TEST_F(DispatchTest, NonsenseIsIgnored) {
  const Json run = SendTo(kNodeA);
  for (const char* line : {"", "{", "[]", "null", "{\"type\":7}", "{\"type\":\"lines\"}",
                           "{\"type\":\"lines\",\"worker\":99,\"lines\":[\"{}\"]}",
                           "{\"type\":\"reserved\",\"slot\":77}", "{\"type\":\"nodes\"}",
                           "{\"type\":\"gone\",\"worker\":-1}"}) {
    dispatch_.OnLine(line);
  }
  for (const char* line :
       {"nonsense", "{}", "{\"type\":\"finished\",\"lease\":12345}", "{\"type\":\"need\"}",
        "{\"type\":\"refused\"}", "{\"type\":\"started\",\"lease\":\"x\"}"}) {
    Say({{"type", "lines"}, {"worker", run["worker"]}, {"lines", {line, 7}}});
  }
  WorkerSays(run["worker"], Finished(run, "done"));
  EXPECT_EQ(dispatch_.TakeResult()->seen->json()["says"], "done");
}

TEST_F(DispatchTest, UnusedReservationsAreGivenBack) {
  const Json run = SendTo(kNodeA);
  WorkerSays(run["worker"], Finished(run, "done"));
  Pass(absl::Seconds(19));
  EXPECT_THAT(Take("release"), IsEmpty());
  Pass(absl::Seconds(2));
  EXPECT_EQ(Take("release").size(), 1u);
}

}  // namespace
}  // namespace bkm
