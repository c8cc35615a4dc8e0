#include "src/trace/words/enums.h"

#include <string>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Enums, DTypesAreFoundByEverySpelling) {
  EXPECT_EQ(DTypeFromText("Tensor(float)"), DType::kFloat32);
  EXPECT_EQ(DTypeFromText("long int"), DType::kInt64);
  EXPECT_EQ(DTypeFromText("long"), DType::kInt64);
  EXPECT_EQ(DTypeFromText("Tensor(c10::BFloat16)"), DType::kBFloat16);
  EXPECT_EQ(DTypeFromText("c10::complex<float>"), DType::kComplex64);
  EXPECT_EQ(ElementBytes(DType::kComplex64), 8);
  EXPECT_EQ(DTypeFromText("Tensor(nullptr (uninitialized))"), DType::kUnknown);
  EXPECT_EQ(DTypeFromText(""), DType::kUnknown);
  EXPECT_EQ(ElementBytes(DType::kUnknown), std::nullopt);
}

TEST(Enums, ScalarTypesRoundTrip) {
  for (int number = 0; number < 64; ++number) {
    const DType dtype = DTypeFromScalarType(number);
    if (dtype == DType::kUnknown) continue;
    EXPECT_EQ(ScalarTypeNumber(dtype), number);
  }
}

TEST(Enums, DTypesOfIntegersAndOfFloatingPoint) {
  std::string integers;
  std::string floating;
  for (int number = -1; number < 64; ++number) {
    const DType dtype = DTypeFromScalarType(number);
    if (IsInteger(dtype)) integers.append(Name(dtype)).append(" ");
    if (IsFloating(dtype)) floating.append(Name(dtype)).append(" ");
  }
  EXPECT_EQ(integers, "uint8 int8 int16 int32 int64 uint16 uint32 uint64 ");
  EXPECT_EQ(floating,
            "float16 float32 float64 bfloat16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz "
            "float8_e4m3fnuz float8_e8m0fnu ");
}

struct NameCase {
  std::string_view name;
  std::optional<CollectiveType> type;
};

class CollectiveNames : public testing::TestWithParam<NameCase> {};

TEST_P(CollectiveNames, AreRecognised) {
  EXPECT_EQ(CollectiveFromName(GetParam().name), GetParam().type) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(
    All, CollectiveNames,
    testing::Values(
        NameCase{"allreduce", CollectiveType::kAllReduce},
        NameCase{"nccl:all_reduce", CollectiveType::kAllReduce},
        NameCase{"c10d::allreduce_", CollectiveType::kAllReduce},
        NameCase{"gloo:all_reduce", CollectiveType::kAllReduce},
        NameCase{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
                 CollectiveType::kAllReduce},
        NameCase{"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
                 CollectiveType::kAllGather},
        NameCase{"c10d::_allgather_base_", CollectiveType::kAllGather},
        NameCase{"_c10d_functional::all_gather_into_tensor", CollectiveType::kAllGather},
        NameCase{"reduce_scatter_tensor_coalesced", CollectiveType::kReduceScatter},
        NameCase{"reduce", CollectiveType::kReduce}, NameCase{"gather", CollectiveType::kGather},
        NameCase{"scatter", CollectiveType::kScatter},
        NameCase{"alltoall_base", CollectiveType::kAllToAll},
        NameCase{"all_to_allv", CollectiveType::kAllToAll},
        NameCase{"broadcast", CollectiveType::kBroadcast},
        NameCase{"barrier", CollectiveType::kBarrier}, NameCase{"wait", std::nullopt},
        NameCase{"init", std::nullopt}, NameCase{"ncclDevKernel_SendRecv", std::nullopt},
        NameCase{"volta_sgemm_64x64_tn", std::nullopt}));

TEST(Enums, CollectivesComeBackFromTheirOwnNames) {
  EXPECT_EQ(CollectiveFromOwnName("all_reduce"), CollectiveType::kAllReduce);
  EXPECT_EQ(CollectiveFromOwnName("reduce_scatter_block"), CollectiveType::kReduceScatterBlock);
  EXPECT_EQ(CollectiveFromOwnName("barrier"), CollectiveType::kBarrier);
  EXPECT_EQ(CollectiveFromOwnName("unknown"), CollectiveType::kUnknown);
  EXPECT_EQ(CollectiveFromOwnName("allreduce"), std::nullopt);
  EXPECT_EQ(CollectiveFromOwnName(""), std::nullopt);
}

TEST(Enums, PointToPoint) {
  EXPECT_EQ(PointToPointFromName("nccl:send"), NodeKind::kSend);
  EXPECT_EQ(PointToPointFromName("c10d::recv_"), NodeKind::kRecv);
  EXPECT_EQ(PointToPointFromName("sendrecv"), std::nullopt);
}

}  // namespace
}  // namespace etude
