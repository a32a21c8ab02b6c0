// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace bkm {
namespace {

constexpr size_t kLongest = 1 << 20;

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    auto ends = *Channel::MakePair();
    raw_ = ends.first.get();
    one_ = Channel(std::move(ends.first), kLongest);
    other_ = Channel(std::move(ends.second), kLongest);
  }

  int raw_ = -1;
  Channel one_;
  Channel other_;
};

TEST_F(ChannelTest, TextsArriveWholeAndInOrder) {
  const std::string large(700000, 'x');
  std::thread sender([&] {
    one_.Send("first");
    one_.Send(large);
    one_.Send("");
    one_.EndSending();
  });
  std::vector<Packet> packets;
  while (other_.Receive(packets)) {
  }
  sender.join();

  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].text, "first");
  EXPECT_EQ(packets[1].text, large);
  EXPECT_EQ(packets[2].text, "");
}

TEST_F(ChannelTest, DescriptorsStayWithTheirText) {
  const Pipe a = *MakePipe();
  const Pipe b = *MakePipe();
  one_.Send("none");
  one_.Send("two", {a.write.get(), b.write.get()});
  one_.Send("one", {a.write.get()});
  std::vector<Packet> packets;
  while (packets.size() < 3) ASSERT_TRUE(other_.Receive(packets));

  EXPECT_TRUE(packets[0].descriptors.empty());
  ASSERT_EQ(packets[1].descriptors.size(), 2u);
  ASSERT_EQ(packets[2].descriptors.size(), 1u);
  ASSERT_EQ(::write(packets[1].descriptors[1].get(), "b", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(b.read.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'b');
}

TEST_F(ChannelTest, APeerThatAnnouncesTooMuchIsGone) {
  const uint32_t header[2] = {kLongest + 1, 0};
  ASSERT_EQ(::write(raw_, header, sizeof header), static_cast<ssize_t>(sizeof header));
  std::vector<Packet> packets;

  EXPECT_FALSE(other_.Receive(packets));
  EXPECT_TRUE(packets.empty());
}

TEST_F(ChannelTest, APeerThatAnnouncesDescriptorsItDoesNotSendIsGone) {
  const uint32_t header[2] = {0, 1};
  ASSERT_EQ(::write(raw_, header, sizeof header), static_cast<ssize_t>(sizeof header));
  std::vector<Packet> packets;

  EXPECT_FALSE(other_.Receive(packets));
}

TEST_F(ChannelTest, SendingToNobodyFails) {
  other_ = Channel();

  EXPECT_FALSE(one_.Send("lost"));
}

}  // namespace
}  // namespace bkm
