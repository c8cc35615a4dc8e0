#include "src/trace/words/operator_name.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include <fmt/format.h>

namespace etude {
namespace {

TEST(OperatorName, PositionsOfArguments) {
  constexpr std::string_view kSend =
      "c10d::send(Tensor[] tensors, __torch__.ProcessGroup process_group, int dst, int tag) -> X";
  EXPECT_EQ(ArgumentPosition(kSend, "tensors"), 0u);
  EXPECT_EQ(ArgumentPosition(kSend, "dst"), 2u);
  EXPECT_EQ(ArgumentPosition(kSend, "tag"), 3u);
  EXPECT_EQ(ArgumentPosition(kSend, "src"), std::nullopt);
  EXPECT_EQ(ArgumentPosition(kSend, "st"), std::nullopt) << "a part of a name";
  constexpr std::string_view kSum =
      "aten::x(Tensor(a!) self, int[2] size=[0, 0], *, int? dtype=None) -> (Tensor dst, int tag)";
  EXPECT_EQ(ArgumentPosition(kSum, "size"), 1u);
  EXPECT_EQ(ArgumentPosition(kSum, "dtype"), 2u);
  EXPECT_EQ(ArgumentPosition(kSum, "tag"), std::nullopt) << "a result";
  for (const char* text : {"", "c10d::send", "f(", "f(int", "f(int dst", "f)int dst)", "f()"}) {
    EXPECT_EQ(ArgumentPosition(text, "dst"), std::nullopt) << text;
  }
}

TEST(OperatorName, SignaturesHaveTypesAndNames) {
  const auto text = [](std::span<const DeclaredValue> values) {
    std::string joined;
    for (const DeclaredValue& value : values)
      joined += fmt::format("{}:{};", value.type, value.name);
    return joined;
  };
  const OperatorSignature max = SignatureOf(
      "aten::x(Tensor(a!) self, int[2] size=[0, 0], *, ScalarType? dtype=None) -> (Tensor values, "
      "Tensor(a!))");
  EXPECT_EQ(text(max.arguments), "Tensor(a!):self;int[2]:size;ScalarType?:dtype;");
  EXPECT_EQ(text(max.results), "Tensor:values;Tensor(a!):;");
  const OperatorSignature split =
      SignatureOf("aten::split(Tensor(a -> *) self, int dim=0) -> (Tensor(a -> *), int)");
  EXPECT_EQ(text(split.arguments), "Tensor(a -> *):self;int:dim;");
  EXPECT_EQ(text(split.results), "Tensor(a -> *):;int:;");
  const OperatorSignature relu = SignatureOf("aten::relu(Tensor self) -> Tensor");
  EXPECT_EQ(text(relu.arguments), "Tensor:self;");
  EXPECT_TRUE(relu.results.empty());
}

TEST(OperatorName, LabelsOfCommunications) {
  EXPECT_EQ(CommOfLabel("gloo:all_reduce"), "all_reduce");
  EXPECT_EQ(CommOfLabel("nccl:send"), "send");
  EXPECT_EQ(CommOfLabel("nccl:coalesced"), "");
  EXPECT_TRUE(IsCommLabel("nccl:coalesced"));
  EXPECT_TRUE(IsCoalescedLabel("nccl:coalesced"));
  EXPECT_FALSE(IsCoalescedLabel("nccl:allreduce_coalesced"));
  EXPECT_FALSE(IsCoalescedLabel("coalesced"));
  EXPECT_FALSE(IsCommLabel("aten::mm"));
  EXPECT_EQ(CommOfLabel("all_reduce"), "");
}

TEST(IsOfPyTorch, ByTheWholeNamespace) {
  EXPECT_TRUE(IsOfPyTorch("aten::add"));
  EXPECT_TRUE(IsOfPyTorch("fsdp::chunk_cat"));
  EXPECT_FALSE(IsOfPyTorch("acme::add"));
  EXPECT_FALSE(IsOfPyTorch("aten_acme::add"));
  EXPECT_FALSE(IsOfPyTorch("aten"));
  EXPECT_FALSE(IsOfPyTorch(""));
}

}  // namespace
}  // namespace etude
