#include "src/compat/stage/stage_tables.h"

#include <array>

namespace etude::stage {
namespace {

using enum Op;

// clang-format off
constexpr auto kAttentionRows = std::to_array<TensorRow>({
    {"input_norm.x", kIdentical, "", "@below", "B/d s D"},
    {"input_norm.y", kElement, "5", "input_norm.x", "B/d s D"},
    {"input_norm.dy", kAdd, "", "mha.dx", "B/d s D", "mha_res.dx2", "B/d s D"},
    {"input_norm.dx", kElement, "5", "input_norm.dy", "B/d s D"},
    {"mha.x", kIdentical, "", "input_norm.y", "B/d s D"},
    {"mha.wqkv", kWeight, "", "", "D D/H G/t"},
    {"mha.qkv", kEinsum, "bsm,mnh->bsnh", "mha.x", "B/d q D", "mha.wqkv", "D D/H G/t"},
    {"mha.q", kSlice, "3:H/t", "mha.qkv", "B/d q D/H G/t"},
    {"mha.k", kSlice, "3:K/t", "mha.qkv", "B/d q D/H G/t"},
    {"mha.v", kSlice, "3:K/t", "mha.qkv", "B/d q D/H G/t"},
    {"mha.attn", kIdentical, "", "mha.attn_kernel.qkv", "B/d q D/H H/t"},
    {"mha.wo", kWeight, "", "", "D/H H/t D"},
    {"mha.o1", kEinsum, "bsmh,mhn->bsn", "mha.attn", "B/d q D/H H/t", "mha.wo", "D/H H/t D"},
    {"mha.o", kIdentical, "", "mha.o1", "B/d s D"},
    {"mha.do", kIdentical, "", "mha_res.dx1", "B/d s D"},
    {"mha.do1", kIdentical, "", "mha.do", "B/d q D"},
    {"mha.dattn", kEinsum, "bsn,mhn->bsmh", "mha.do1", "B/d q D", "mha.wo", "D/H H/t D"},
    {"mha.dwo", kEinsum, "bsn,bsmh->mhn", "mha.do1", "B/d q D", "mha.attn", "B/d q D/H H/t"},
    {"mha.dv", kIdentical, "", "mha.attn_kernel.dv", "B/d q D/H K/t"},
    {"mha.dk", kIdentical, "", "mha.attn_kernel.dk", "B/d q D/H K/t"},
    {"mha.dq", kIdentical, "", "mha.attn_kernel.dq", "B/d q D/H H/t"},
    {"mha.dkv", kSlice, "3:2K/t", "mha.dv", "B/d q D/H K/t", "mha.dk", "B/d q D/H K/t"},
    {"mha.dqkv", kSlice, "3:G/t", "mha.dkv", "B/d q D/H 2K/t", "mha.dq", "B/d q D/H H/t"},
    {"mha.dwqkv", kEinsum, "bsnh,bsm->mnh", "mha.dqkv", "B/d q D/H G/t", "mha.x", "B/d q D"},
    {"mha.dx1", kEinsum, "bsnh,mnh->bsm", "mha.dqkv", "B/d q D/H G/t", "mha.wqkv", "D D/H G/t"},
    {"mha.dx", kIdentical, "", "mha.dx1", "B/d s D"},
});

constexpr auto kKernelRows = std::to_array<TensorRow>({
    {"mha.attn_kernel.q", kIdentical, "", "mha.q", "B/d q D/H H/t"},
    {"mha.attn_kernel.k", kIdentical, "", "mha.k", "B/d q D/H K/t"},
    {"mha.attn_kernel.v", kIdentical, "", "mha.v", "B/d q D/H K/t"},
    {"mha.attn_kernel.k1", kIdentical, "", "mha.attn_kernel.k", "B/d S D/H K/t"},
    {"mha.attn_kernel.v1", kIdentical, "", "mha.attn_kernel.v", "B/d S D/H K/t"},
    {"mha.attn_kernel.qkv", kCustom, "3", "mha.attn_kernel.q", "B/d q D/H H/t", "", "B/d q D/H H/t",
     "", "mha.attn_kernel.k1 mha.attn_kernel.v1"},
    {"mha.attn_kernel.dqkv", kIdentical, "", "mha.dattn", "B/d q D/H H/t"},
    {"mha.attn_kernel.dq", kCustom, "6", "mha.attn_kernel.dqkv", "B/d q D/H H/t", "", "B/d q D/H H/t"},
    {"mha.attn_kernel.dk", kCustom, "6", "mha.attn_kernel.dqkv", "B/d q D/H H/t", "", "B/d S D/H H/t", "1/c"},
    {"mha.attn_kernel.dv", kCustom, "6", "mha.attn_kernel.dqkv", "B/d q D/H H/t", "", "B/d S D/H H/t", "1/c"},
});

constexpr auto kGroupedKernelRows = std::to_array<TensorRow>({
    {"mha.attn_kernel.q", kIdentical, "", "mha.q", "B/d q D/H H/t"},
    {"mha.attn_kernel.k", kIdentical, "", "mha.k", "B/d q D/H K/t"},
    {"mha.attn_kernel.v", kIdentical, "", "mha.v", "B/d q D/H K/t"},
    {"mha.attn_kernel.k1", kIdentical, "", "mha.attn_kernel.k", "B/d S D/H K/t"},
    {"mha.attn_kernel.v1", kIdentical, "", "mha.attn_kernel.v", "B/d S D/H K/t"},
    {"mha.attn_kernel.qkv", kCustom, "3", "mha.attn_kernel.q", "B/d q D/H H/t", "", "B/d q D/H H/t",
     "", "mha.attn_kernel.k1 mha.attn_kernel.v1"},
    {"mha.attn_kernel.dqkv", kIdentical, "", "mha.dattn", "B/d q D/H H/t"},
    {"mha.attn_kernel.dq", kCustom, "6", "mha.attn_kernel.dqkv", "B/d q D/H H/t", "", "B/d q D/H H/t"},
    {"mha.attn_kernel.dk1", kCustom, "6", "mha.attn_kernel.dqkv", "B/d q D/H H/t", "", "B/d S D/H H/t", "1/c"},
    {"mha.attn_kernel.dv1", kCustom, "6", "mha.attn_kernel.dqkv", "B/d q D/H H/t", "", "B/d S D/H H/t", "1/c"},
    {"mha.attn_kernel.dk", kSlice, "3:K/t", "mha.attn_kernel.dk1", "B/d q D/H H/t"},
    {"mha.attn_kernel.dv", kSlice, "3:K/t", "mha.attn_kernel.dv1", "B/d q D/H H/t"},
});

constexpr auto kMiddleRows = std::to_array<TensorRow>({
    {"mha_res.x1", kIdentical, "", "mha.o", "B/d s D"},
    {"mha_res.x2", kIdentical, "", "input_norm.x", "B/d s D"},
    {"mha_res.y", kAdd, "", "mha_res.x1", "B/d s D", "mha_res.x2", "B/d s D"},
    {"mha_res.dy", kIdentical, "", "post_attn_norm.dx", "B/d s D"},
    {"mha_res.dx1", kIdentical, "", "mha_res.dy", "B/d s D"},
    {"mha_res.dx2", kIdentical, "", "mha_res.dy", "B/d s D"},
    {"post_attn_norm.x", kIdentical, "", "mha_res.y", "B/d s D"},
    {"post_attn_norm.y", kElement, "5", "post_attn_norm.x", "B/d s D"},
    {"post_attn_norm.dy", kAdd, "", "@ffn_dx", "B/d s D", "ffn_res.dx2", "B/d s D"},
    {"post_attn_norm.dx", kElement, "5", "post_attn_norm.dy", "B/d s D"},
});

constexpr auto kFeedForwardRows = std::to_array<TensorRow>({
    {"ffn.x0", kIdentical, "", "@x", "B/d s D"},
    {"ffn.wgate", kWeight, "", "", "D F/t"},
    {"ffn.wdown", kWeight, "", "", "F/t D"},
    {"ffn.x00", kIdentical, "", "ffn.x0", "B/d q D"},
    {"ffn.xgate", kEinsum, "bsm,mn->bsn", "ffn.x00", "B/d q D", "ffn.wgate", "D F/t"},
    {"ffn.xdown1", kEinsum, "bsm,mn->bsn", "ffn.xgate", "B/d q F/t", "ffn.wdown", "F/t D"},
    {"ffn.xdown", kIdentical, "", "ffn.xdown1", "B/d s F"},
    {"ffn.dxdown", kIdentical, "", "@dy", "B/d s D"},
    {"ffn.dxdown2", kIdentical, "", "ffn.dxdown", "B/d q D"},
    {"ffn.dwdown", kEinsum, "bsn,bsm->mn", "ffn.dxdown2", "B/d q D", "ffn.xgate", "B/d q F/t"},
    {"ffn.dxgate", kEinsum, "bsn,mn->bsm", "ffn.dxdown2", "B/d q D", "ffn.wdown", "F/t D"},
    {"ffn.x01", kIdentical, "", "ffn.x0", "B/d q D"},
    {"ffn.dwgate", kEinsum, "bsn,bsm->mn", "ffn.dxgate", "B/d q F/t", "ffn.x01", "B/d q D"},
    {"ffn.dx000", kEinsum, "bsn,mn->bsm", "ffn.dxgate", "B/d q F/t", "ffn.wgate", "D F/t"},
    {"ffn.dx0", kIdentical, "", "ffn.dx000", "B/d s D"},
});

constexpr auto kGatedFeedForwardRows = std::to_array<TensorRow>({
    {"ffn.x0", kIdentical, "", "@x", "B/d s D"},
    {"ffn.wup", kWeight, "", "", "D F/t"},
    {"ffn.wgate", kWeight, "", "", "D F/t"},
    {"ffn.wdown", kWeight, "", "", "F/t D"},
    {"ffn.x00", kIdentical, "", "ffn.x0", "B/d q D"},
    {"ffn.xup", kEinsum, "bsm,mn->bsn", "ffn.x00", "B/d q D", "ffn.wup", "D F/t"},
    {"ffn.xgate", kEinsum, "bsm,mn->bsn", "ffn.x00", "B/d q D", "ffn.wgate", "D F/t"},
    {"ffn.xupgate", kEinsum, "bsm,bsm->bsm", "ffn.xup", "B/d q F/t", "ffn.xgate", "B/d q F/t"},
    {"ffn.xdown1", kEinsum, "bsm,mn->bsn", "ffn.xupgate", "B/d q F/t", "ffn.wdown", "F/t D"},
    {"ffn.xdown", kIdentical, "", "ffn.xdown1", "B/d s F"},
    {"ffn.dxdown", kIdentical, "", "@dy", "B/d s D"},
    {"ffn.dxdown2", kIdentical, "", "ffn.dxdown", "B/d q D"},
    {"ffn.dwdown", kEinsum, "bsn,bsm->mn", "ffn.dxdown2", "B/d q D", "ffn.xupgate", "B/d q F/t"},
    {"ffn.dxupgate", kEinsum, "bsn,mn->bsm", "ffn.dxdown2", "B/d q D", "ffn.wdown", "F/t D"},
    {"ffn.dxup", kEinsum, "bsm,bsm->bsm", "ffn.dxupgate", "B/d q F/t", "ffn.xgate", "B/d q F/t"},
    {"ffn.dxgate", kEinsum, "bsm,bsm->bsm", "ffn.dxupgate", "B/d q F/t", "ffn.xup", "B/d q F/t"},
    {"ffn.x01", kIdentical, "", "ffn.x0", "B/d q D"},
    {"ffn.dwup", kEinsum, "bsn,bsm->mn", "ffn.dxup", "B/d q F/t", "ffn.x01", "B/d q D"},
    {"ffn.dwgate", kEinsum, "bsn,bsm->mn", "ffn.dxgate", "B/d q F/t", "ffn.x01", "B/d q D"},
    {"ffn.dx00", kEinsum, "bsn,mn->bsm", "ffn.dxup", "B/d q F/t", "ffn.wup", "D F/t"},
    {"ffn.dx01", kEinsum, "bsn,mn->bsm", "ffn.dxgate", "B/d q F/t", "ffn.wgate", "D F/t"},
    {"ffn.dx000", kAdd, "", "ffn.dx00", "B/d q D", "ffn.dx01", "B/d q D", "1/t"},
    {"ffn.dx0", kIdentical, "", "ffn.dx000", "B/d s D"},
});

constexpr auto kExpertFrameRows = std::to_array<TensorRow>({
    {"moe.x", kIdentical, "", "post_attn_norm.y", "B/d s D"},
    {"moe.wrouter", kWeight, "", "", "D/e k"},
    {"moe.yrouter", kEinsum, "bsm,mn->bsn", "moe.x", "B/d s D", "moe.wrouter", "D k"},
    {"moe.yrouter2", kReshape, "", "moe.yrouter", "B/d s k", "", "B/d p 1"},
    {"moe.x1", kBroadcast, "1:k", "moe.x", "B/d s D/e"},
    {"moe.xrouted", kIdentical, "", "moe.x1", "B/d r D"},
    {"moe.yrouted", kIdentical, "", "@yrouted", "B/d r D"},
    {"moe.y1", kIdentical, "", "moe.yrouted", "B/d p D/e"},
    {"moe.yrouter3", kSlice, "2:D/e", "moe.yrouter2", "B/d p 1"},
    {"moe.y2", kElement2, "1", "moe.y1", "B/d p D/e", "moe.yrouter3", "B/d p D/e"},
    {"moe.y", kBroadcast, "1:1/k", "moe.y2", "B/d p D/e"},
    {"moe.dy", kIdentical, "", "ffn_res.dx1", "B/d s D/e"},
    {"moe.dy2", kBroadcast, "1:k", "moe.dy", "B/d s D/e"},
    {"moe.dy1", kElement2, "1", "moe.dy2", "B/d p D/e", "moe.yrouter3", "B/d p D/e"},
    {"moe.dyrouter3", kElement2, "1", "moe.dy2", "B/d p D/e", "moe.y1", "B/d p D/e"},
    {"moe.dyrouter2", kSlice, "2:1", "moe.dyrouter3", "B/d p D/e"},
    {"moe.dyrouted", kIdentical, "", "moe.dy1", "B/d r D"},
    {"moe.dyrouter", kReshape, "", "moe.dyrouter2", "B/d p 1", "", "B/d s k"},
    {"moe.dwrouter", kEinsum, "bsn,bsm->mn", "moe.dyrouter", "B/d s k", "moe.x", "B/d s D/e"},
    {"moe.dx01", kEinsum, "bsn,mn->bsm", "moe.dyrouter", "B/d s k", "moe.wrouter", "D/e k"},
    {"moe.dxrouted", kIdentical, "", "@dxrouted", "B/d r D"},
    {"moe.dx1", kIdentical, "", "moe.dxrouted", "B/d p D/e"},
    {"moe.dx02", kBroadcast, "1:1/k", "moe.dx1", "B/d p D/e"},
    {"moe.dx", kAdd, "", "moe.dx01", "B/d s D/e", "moe.dx02", "B/d s D/e"},
});

constexpr auto kExpertRows = std::to_array<TensorRow>({
    {"ldis.x", kIdentical, "", "@xrouted", "B/d r D"},
    {"ldis.x_expert", kSlice, "1:s", "ldis.x", "B/d r D"},
    {"ldis.dx_expert", kIdentical, "", "ffn.dx0", "B/d s D"},
    {"ldis.dx", kSlice, "1:r", "ldis.dx_expert", "B/d s D"},
    {"ldis.y_expert", kIdentical, "", "ffn.xdown", "B/d s D"},
    {"ldis.y", kSlice, "1:r", "ldis.y_expert", "B/d s D"},
    {"ldis.dy", kIdentical, "", "@dyrouted", "B/d r D"},
    {"ldis.dy_expert", kSlice, "1:s", "ldis.dy", "B/d r D"},
});

constexpr auto kFeedForwardSumRows = std::to_array<TensorRow>({
    {"ffn_res.x1", kIdentical, "", "@ffn_y", "B/d s D"},
    {"ffn_res.x2", kIdentical, "", "post_attn_norm.x", "B/d s D"},
    {"ffn_res.y", kAdd, "", "ffn_res.x1", "B/d s D", "ffn_res.x2", "B/d s D"},
    {"ffn_res.dy", kIdentical, "", "@above", "B/d s D"},
    {"ffn_res.dx1", kIdentical, "", "ffn_res.dy", "B/d s D"},
    {"ffn_res.dx2", kIdentical, "", "ffn_res.dy", "B/d s D"},
});

constexpr auto kEmbeddingRows = std::to_array<TensorRow>({
    {"x", kIdentical, "", "@x", "B/d s i"},
    {"w", kWeight, "", "", "i o"},
    {"y", kEinsum, "bsm,mn->bsn", "x", "B/d s i", "w", "i o"},
    {"dy", kIdentical, "", "@dy", "B/d s o"},
    {"dw", kEinsum, "bsn,bsm->mn", "dy", "B/d s o", "x", "B/d s i"},
    {"dx", kEinsum, "bsn,mn->bsm", "dy", "B/d s o", "w", "i o"},
});

constexpr auto kLossRows = std::to_array<TensorRow>({
    {"y", kIdentical, "", "@x", "B/d s D"},
    {"loss", kElement, "5", "y", "B/d s D"},
    {"dy", kElement, "5", "loss", "B/d s D"},
});
// clang-format on

}  // namespace

std::string_view Name(Op op) {
  switch (op) {
    case kPlaceholder:
    case kWeight: return "T";
    case kIdentical: return "I";
    case kShadow: return "S";
    case kAdd: return "A";
    case kElement: return "E";
    case kElement2: return "E2";
    case kEinsum: return "M";
    case kSlice: return "SLICE";
    case kBroadcast: return "B";
    case kReshape: return "R";
    case kCustom: return "CUSTOM";
  }
  return "";
}

std::span<const TensorRow> AttentionRows() { return kAttentionRows; }
std::span<const TensorRow> KernelRows() { return kKernelRows; }
std::span<const TensorRow> GroupedKernelRows() { return kGroupedKernelRows; }
std::span<const TensorRow> MiddleRows() { return kMiddleRows; }
std::span<const TensorRow> FeedForwardRows() { return kFeedForwardRows; }
std::span<const TensorRow> GatedFeedForwardRows() { return kGatedFeedForwardRows; }
std::span<const TensorRow> ExpertFrameRows() { return kExpertFrameRows; }
std::span<const TensorRow> ExpertRows() { return kExpertRows; }
std::span<const TensorRow> FeedForwardSumRows() { return kFeedForwardSumRows; }
std::span<const TensorRow> EmbeddingRows() { return kEmbeddingRows; }
std::span<const TensorRow> LossRows() { return kLossRows; }

}  // namespace etude::stage
