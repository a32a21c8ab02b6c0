// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace bkm {
namespace {

constexpr int64_t kSecond = 1000000;
constexpr int64_t kMib = 1024;

TEST(EventLogTest, NothingSeenIsAnEmptyObservation) {
  const EventLog log;

  EXPECT_EQ(log.Observation(), Json({{"schema", 1}, {"stages", Json::array()}}));
}

TEST(EventLogTest, AStageLastsUntilTheNextOrDone) {
  EventLog log;
  log.Feed(FrameEvent(1 * kSecond, 10 * kMib, R"({"stage":"import"})"));
  log.Feed(FrameEvent(3 * kSecond, 20 * kMib, R"({"stage":"load"})"));
  log.Feed(FrameEvent(3.5 * kSecond, 15 * kMib, R"({"done":true})"));

  EXPECT_TRUE(log.done());
  EXPECT_EQ(log.Observation()["stages"],
            Json::parse(R"([{"stage":"import","seconds":2.0,"rss_mib":20},
                            {"stage":"load","seconds":0.5,"rss_mib":15}])"));
}

TEST(EventLogTest, TheStageInWhichACellEndedHasNoSeconds) {
  EventLog log;
  log.Feed(FrameEvent(1 * kSecond, 10 * kMib, R"({"stage":"import"})"));
  log.Feed(FrameEvent(2 * kSecond, 20 * kMib, R"({"exception":{"type":"ImportError"}})"));

  EXPECT_TRUE(log.raised());
  EXPECT_FALSE(log.done());
  EXPECT_EQ(log.Observation(),
            Json::parse(R"({"schema":1, "stages":[{"stage":"import","rss_mib":10}],
                            "exception":{"type":"ImportError"}})"));
}

TEST(EventLogTest, SetMergesObjectsAndReplacesTheRest) {
  EventLog log;
  log.Feed(
      FrameEvent(0, 0, R"({"set":{"backend":{"configured":"flex","ops":["a"]},"shims":["x"]}})"));
  log.Feed(FrameEvent(0, 0, R"({"set":{"backend":{"ops":["b","c"]}}})"));

  const Json observation = log.Observation();
  EXPECT_EQ(observation["backend"], Json::parse(R"({"configured":"flex","ops":["b","c"]})"));
  EXPECT_EQ(observation["shims"], Json::parse(R"(["x"])"));
}

TEST(EventLogTest, AppendMakesAndExtendsAList) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"append":{"steps":{"loss":2}}})"));
  log.Feed(FrameEvent(0, 0, R"({"append":{"steps":{"loss":1}, "warnings":"w"}})"));

  const Json observation = log.Observation();
  EXPECT_EQ(observation["steps"], Json::parse(R"([{"loss":2},{"loss":1}])"));
  EXPECT_EQ(observation["warnings"], Json::parse(R"(["w"])"));
}

TEST(EventLogTest, AppendReachesIntoAnObjectThatIsThere) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"set":{"mask":{"reach":{}}}})"));
  log.Feed(FrameEvent(0, 0, R"({"append":{"mask":{"calls":{"layer":"0"}}}})"));

  EXPECT_EQ(log.Observation()["mask"], Json::parse(R"({"reach":{},"calls":[{"layer":"0"}]})"));
}

TEST(EventLogTest, TheOrderOfEventsIsKeptWhereverThePipeCutsThem) {
  const std::string all =
      FrameEvent(7, 0, R"({"set":{"a":{"b":1}}})") + FrameEvent(8, 0, R"({"set":{"a":{"b":2}}})");
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    EventLog log;
    log.Feed(all.substr(0, cut));
    log.Feed(all.substr(cut));

    EXPECT_EQ(log.Observation()["a"], Json({{"b", 2}})) << "cut at " << cut;
    EXPECT_EQ(log.ignored(), 0) << "cut at " << cut;
  }
}

TEST(EventLogTest, AFurtherKeyBesideAnEventIsNoHarm) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"stage":"import","at":12.5})"));

  EXPECT_EQ(log.ignored(), 0);
  EXPECT_EQ(log.Observation()["stages"].size(), 1u);
}

TEST(EventLogTest, NumbersThatAreNotFiniteBecomeNull) {
  EventLog log;
  log.Feed(
      FrameEvent(0, 0, R"({"append":{"steps":{"loss":NaN,"low":-Infinity,"text":"NaN \" NaN"}}})"));

  EXPECT_EQ(log.Observation()["steps"],
            Json::parse(R"([{"loss":null,"low":null,"text":"NaN \" NaN"}])"));
}

// Text that a subject can write to a descriptor that it finds.
class GarbageTest : public testing::TestWithParam<std::string> {};

TEST_P(GarbageTest, IsCountedAndHarmsNothing) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"set":{"a":1}})"));
  log.Feed(GetParam() + "\n");
  log.Feed(FrameEvent(0, 0, R"({"set":{"b":2}})"));

  EXPECT_EQ(log.Observation(), Json::parse(R"({"schema":1,"stages":[],"a":1,"b":2,
                                               "ignored_events":1})"));
}

INSTANTIATE_TEST_SUITE_P(Lines, GarbageTest,
                         testing::Values("", "hello", "1 2", "1 2 ", "1 2 {", "1 2 [1]",
                                         "x 2 {\"set\":{\"a\":3}}", "{\"set\":{\"a\":3}}", "1 2 {}",
                                         "1 2 {\"stage\":3}", "1 2 {\"set\":[1]}",
                                         "1 2 {\"append\":{\"a\":3}}", "1 2 {\"done\":false}",
                                         std::string("\0\xff\xfe", 3)));

TEST(EventLogTest, AHalfLineAtTheEndIsCounted) {
  EventLog log;
  log.Feed(R"(1 2 {"set":{"a")");

  EXPECT_EQ(log.Observation()["ignored_events"], 1);
}

TEST(EventLogTest, EventsAfterTheEndAreIgnored) {
  EventLog log;
  log.Feed(FrameEvent(1 * kSecond, 0, R"({"stage":"import"})"));
  log.Feed(FrameEvent(2 * kSecond, 0, R"({"done":true})"));
  log.Feed(FrameEvent(3 * kSecond, 0, R"({"stage":"load"})"));
  log.Feed(FrameEvent(3 * kSecond, 0, R"({"set":{"a":1}})"));
  log.Feed(FrameEvent(3 * kSecond, 0, R"({"append":{"a":1}})"));
  log.Feed(FrameEvent(4 * kSecond, 0, R"({"done":true})"));

  EXPECT_EQ(log.Observation(), Json::parse(R"({"schema":1, "ignored_events":3,
              "stages":[{"stage":"import","seconds":1.0,"rss_mib":0}]})"));
}

TEST(EventLogTest, AStageHasAShortPlainName) {
  EventLog log;
  for (const std::string& name : {std::string(), std::string("Import"), std::string("a b"),
                                  std::string("\\u001b[2J"), std::string(33, 'a')})
    log.Feed(FrameEvent(0, 0, "{\"stage\":\"" + name + "\"}"));

  EXPECT_EQ(log.Observation(),
            Json({{"schema", 1}, {"stages", Json::array()}, {"ignored_events", 5}}));
}

TEST(EventLogTest, TimesThatCouldOverflowAreNoFrame) {
  EventLog log;
  for (const char* frame : {"-1 0", "0 -1", "9223372036854775807 0", "0 9223372036854775807"})
    log.Feed(std::string(frame) + " {\"stage\":\"import\"}\n");

  EXPECT_EQ(log.ignored(), 4);
  EXPECT_TRUE(log.Observation()["stages"].empty());
}

// What a subject can send to exceed a limit, and the limit.
struct Flood {
  std::string name;
  std::string limit;
  std::function<std::string(int64_t)> piece;  // the i-th piece of the stream
};

std::string Repeated(const std::string& text, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += text;
  return all;
}

class FloodTest : public testing::TestWithParam<Flood> {};

TEST_P(FloodTest, IsAnOverrunInSecondsAndBoundedMemory) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"set":{"a":1}})"));
  int64_t i = 0;
  for (; i < 2'000'000 && log.overrun().empty(); ++i) log.Feed(GetParam().piece(i));

  EXPECT_EQ(log.overrun(), GetParam().limit);
  EXPECT_EQ(log.Observation()["a"], 1) << "what was reported before is kept";
  EXPECT_FALSE(log.Observation().contains("after"));
  log.Feed("\n" + FrameEvent(0, 0, R"({"set":{"after":1}})"));
  EXPECT_FALSE(log.Observation().contains("after"));
}

INSTANTIATE_TEST_SUITE_P(
    Streams, FloodTest,
    testing::Values(
        Flood{"a line without end", "an event has more than 8 MiB",
              [](int64_t) { return std::string(1 << 20, 'x'); }},
        Flood{"junk lines", "its events have more than 32 MiB",
              [](int64_t) { return std::string(1 << 20, 'x') + "\n"; }},
        Flood{"large events", "its events have more than 32 MiB",
              [](int64_t) {
                return FrameEvent(0, 0, "{\"set\":{\"b\":\"" + std::string(4 << 20, 'x') + "\"}}");
              }},
        Flood{"empty lines", "it reported more than 200000 events",
              [](int64_t) { return std::string(1000, '\n'); }},
        Flood{"stages", "it entered more than 20000 stages",
              [](int64_t) { return Repeated(FrameEvent(0, 0, R"({"stage":"import"})"), 1000); }},
        Flood{"a deep list", "an event is nested deeper than 64 levels",
              [](int64_t) { return FrameEvent(0, 0, "{\"set\":" + std::string(1000000, '[')); }},
        Flood{"a deep object", "an event is nested deeper than 64 levels",
              [](int64_t) {
                return FrameEvent(0, 0, Repeated("{\"set\":", 1000) + "1" + Repeated("}", 1000));
              }},
        Flood{"a wide list", "its events have more than 1000000 values",
              [](int64_t) {
                return FrameEvent(0, 0, "{\"set\":{\"b\":[" + Repeated("[],", 1'000'000) + "1]}}");
              }},
        Flood{"many small facts", "its events have more than 1000000 values",
              [](int64_t i) {
                return FrameEvent(
                    0, 0,
                    "{\"append\":{\"b" + std::to_string(i) + "\":[" + Repeated("0,", 999) + "0]}}");
              }}),
    [](const auto& flood) {
      std::string name = flood.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST(EventLogTest, FactsCannotTakeTheWorkersOwnPlaces) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"set":{"schema":9,"stages":"none"}})"));

  EXPECT_EQ(log.Observation(), Json({{"schema", 1}, {"stages", Json::array()}}));
}

TEST(EventLogTest, KnowsWhyACellCouldNotBeSetUp) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"failed_to_start":"no space"})"));

  EXPECT_EQ(log.failed_to_start(), "no space");
}

TEST(EventLogTest, ASubjectCannotClaimThatItsCellDidNotStart) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"handed_over":true})"));
  log.Feed(FrameEvent(0, 0, R"({"failed_to_start":"no space"})"));

  EXPECT_FALSE(log.failed_to_start());
  EXPECT_EQ(log.ignored(), 1);
}

TEST(EventLogTest, ASubjectCannotStateTheFactsOfTheHarness) {
  EventLog log;
  log.Feed(FrameEvent(0, 0, R"({"set":{"sandbox":["mount"]}})"));
  log.Feed(FrameEvent(0, 0, R"({"handed_over":true})"));
  log.Feed(FrameEvent(0, 0, R"({"set":{"sandbox":[],"usage":{"wall_s":"x"},"a":1}})"));
  log.Feed(FrameEvent(0, 0, R"({"append":{"sandbox":"pid","timeouts":7,"measured":"x"}})"));
  log.Feed(
      FrameEvent(0, 0, R"({"set":{"ending":{"kind":"cancelled"},"observed":{},"versions":5}})"));

  EXPECT_EQ(log.Observation(), Json::parse(R"({"schema":1,"stages":[],"sandbox":["mount"],"a":1,
                                               "ignored_events":3})"));
}

}  // namespace
}  // namespace bkm
