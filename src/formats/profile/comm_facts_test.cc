#include "src/formats/profile/comm_facts.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(CommFacts, EachNameMeansOneField) {
  for (size_t i = 0; i < kCommFieldCount; ++i) {
    const CommFieldInfo& row = Info(static_cast<CommField>(i));
    if (!row.attr.empty()) {
      EXPECT_EQ(CommFieldOfAttr(row.attr), row.field);
    }
    if (!row.arg.empty()) {
      EXPECT_EQ(CommFieldOfArg(row.arg), row.field);
    }
  }
  EXPECT_EQ(CommFieldOfAttr(""), std::nullopt);
  EXPECT_EQ(CommFieldOfArg("External id"), std::nullopt);
}

TEST(CommFacts, ParsesLists) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(ParseIntList("[1, 2,-3]"), (List{1, 2, -3}));
  EXPECT_EQ(ParseIntList("1,2"), (List{1, 2}));
  EXPECT_EQ(ParseIntList("[]"), List{});
  EXPECT_EQ(ParseIntList(""), List{});
  for (const char* text : {"[1, 2, ...]", "[1", "1]", "[a]", "[1,,2]", "[1.5]"}) {
    EXPECT_EQ(ParseIntList(text), std::nullopt) << text;
  }
}

TEST(CommFacts, KindsFollowFromNames) {
  EXPECT_EQ(KindOfCommunication("allreduce"), NodeKind::kCollective);
  EXPECT_EQ(KindOfCommunication("send"), NodeKind::kSend);
  EXPECT_EQ(KindOfCommunication("recv"), NodeKind::kRecv);
  EXPECT_EQ(KindOfCommunication("wait"), NodeKind::kSync);
  EXPECT_EQ(KindOfCommunication("init"), NodeKind::kMetadata);
}

TEST(CommFacts, TensorsOfALabel) {
  const auto elements = [](std::string_view dims, std::string_view types) {
    CommFacts facts;
    SetTensors(facts, dims, types);
    return facts.in_elements;
  };
  EXPECT_EQ(elements("[[8,1024],[],[2]]", R"(["float","Scalar","float"])"), 8 * 1024 + 2);
  EXPECT_EQ(elements("[[[4],[2,3]]]", R"(["TensorList"])"), 10);
  EXPECT_EQ(elements("[[]]", R"(["long int"])"), 1);
  for (const std::string_view dims :
       {"", "[", "[[-1]]", "[[1.5]]", "[[4294967296,4294967296]]", "7"}) {
    EXPECT_FALSE(elements(dims, R"(["float"])")) << dims;
  }
  EXPECT_FALSE(elements("[[8]]", R"([""])"));
  EXPECT_FALSE(elements("[[8]]", R"(["float","float"])"));
}

TEST(CommFacts, MakesACommAndItsGroup) {
  TraceBuilder builder;
  CommFacts facts;
  EXPECT_TRUE(SetCommFact(facts, CommField::kName, "all_gather_into_tensor_coalesced"));
  EXPECT_TRUE(SetCommFact(facts, CommField::kDType, "BFloat16"));
  EXPECT_TRUE(SetCommFact(facts, CommField::kInElements, "10"));
  EXPECT_TRUE(SetCommFact(facts, CommField::kGroup, "7"));
  EXPECT_TRUE(SetCommFact(facts, CommField::kGroupSize, "3"));
  EXPECT_FALSE(SetCommFact(facts, CommField::kRankStart, "1")) << "kept with the node as well";
  EXPECT_FALSE(SetCommFact(facts, CommField::kRankStride, "2"));
  EXPECT_FALSE(SetCommFact(facts, CommField::kInSplit, "[1, ...]"));
  EXPECT_FALSE(SetCommFact(facts, CommField::kOutElements, "18446744073709551615"));
  const Comm comm = MakeComm(builder, facts);
  AddGroupOf(builder, facts);
  EXPECT_EQ(comm.type, CollectiveType::kAllGather);
  EXPECT_EQ(comm.dtype, DType::kBFloat16);
  EXPECT_EQ(comm.bytes, Bytes{20});
  EXPECT_EQ(comm.out_elements, std::nullopt);
  EXPECT_TRUE(comm.in_split.is_none());
  const Trace trace = builder.Finish().value();
  ASSERT_EQ(trace.process_groups().size(), 1u);
  const ProcessGroup& group = trace.process_groups()[0];
  EXPECT_EQ(trace.text(group.name), "7");
  EXPECT_EQ(std::vector<int64_t>(trace.ints(group.ranks).begin(), trace.ints(group.ranks).end()),
            (std::vector<int64_t>{1, 3, 5}));
}

TEST(CommFacts, SizesBelowOneAreKeptAsTheyAre) {
  for (const std::string_view size : {"-1", "0", "x"}) {
    CommFacts facts;
    EXPECT_FALSE(SetCommFact(facts, CommField::kGroupSize, size)) << size;
  }
}

TEST(CommFacts, UnevenOrHugeGroupsGetNoList) {
  for (const auto& [stride, size] : {std::pair("-1", "4"), std::pair("1", "99999999999"),
                                     std::pair("0", "2"), std::pair("1", "0")}) {
    TraceBuilder builder;
    CommFacts facts;
    SetCommFact(facts, CommField::kGroup, "0");
    SetCommFact(facts, CommField::kRankStart, "0");
    SetCommFact(facts, CommField::kRankStride, stride);
    SetCommFact(facts, CommField::kGroupSize, size);
    AddGroupOf(builder, facts);
    const Trace trace = builder.Finish().value();
    EXPECT_TRUE(trace.process_groups()[0].ranks.is_none()) << stride << " " << size;
  }
}

}  // namespace
}  // namespace etude
