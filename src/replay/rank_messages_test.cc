#include "src/replay/rank_messages.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(RankMessages, StatusesComeAsTheyWent) {
  const RankStatus said{.doing = "in c10d::allreduce_",
                        .begun = {{"0", 3}},
                        .partners = {1, 2},
                        .partners_channel = "0",
                        .call = 7};
  const RankStatus heard = ToStatus(ToBytes(said)).value();
  EXPECT_EQ(heard.doing, said.doing);
  EXPECT_EQ(heard.begun, said.begun);
  EXPECT_EQ(heard.partners, said.partners);
  EXPECT_EQ(heard.partners_channel, said.partners_channel);
  EXPECT_EQ(heard.call, said.call);
}

TEST(RankMessages, CallsComeAsTheyWent) {
  CommLog said;
  said.rank = 3;
  said.world_size = 4;
  said.groups = {{.name = "0", .ranks = {1, 3}}};
  CommCall& call = said.calls.emplace_back();
  call.kind = NodeKind::kCollective;
  call.type = CollectiveType::kBarrier;
  call.name = "barrier";
  call.bytes = Bytes{8};
  call.node = 9;
  const CommLog heard = ToLog(ToBytes(said)).value();
  EXPECT_EQ(heard.rank, 3);
  EXPECT_EQ(heard.world_size, 4);
  EXPECT_EQ(heard.groups, said.groups);
  ASSERT_EQ(heard.calls.size(), 1u);
  EXPECT_EQ(heard.calls[0].type, CollectiveType::kBarrier);
  EXPECT_EQ(heard.calls[0].bytes, Bytes{8});
  EXPECT_FALSE(heard.calls[0].peer);
  EXPECT_EQ(heard.calls[0].node, 9u);
}

TEST(RankMessages, OthersAreErrors) {
  for (const std::string_view text : {"", "{", "[]", "7", R"({"doing": 1})"}) {
    EXPECT_FALSE(ToStatus(ToBytes(text))) << text;
    EXPECT_FALSE(ToLog(ToBytes(text))) << text;
  }
  const auto of_call = [](std::string_view call) {
    return ToLog(ToBytes(R"({"rank": 0, "world": null, "groups": [["0", []]], "calls": [[)" +
                         std::string(call) + "]]}"));
  };
  EXPECT_TRUE(of_call(R"(10, 1, "", 0, 0, -1, false, null, null, 1)"));
  EXPECT_FALSE(of_call(R"(10, 1, "", 1, 0, -1, false, null, null, 1)")) << "no such group";
  EXPECT_FALSE(of_call(R"(10, 99, "", 0, 0, -1, false, null, null, 1)")) << "no such type";
  EXPECT_FALSE(of_call(R"(3, 1, "", 0, 0, -1, false, null, null, 1)")) << "no communication";
  EXPECT_FALSE(of_call(R"(10, 1, "")"));
}

}  // namespace
}  // namespace etude
