#pragma once

#include <cstdint>
#include <string_view>

namespace etude::suite {

// Kind of work of an operator. The first eight are the categories of AIBench's hot-spot functions;
// the others divide its remaining functions further.
enum class HotSpot : uint8_t {
  kDataArrangement,
  kConvolution,
  kGemm,
  kBatchNormalization,
  kElementWise,
  kRelu,
  kPooling,
  kMemoryCopy,
  kLookup,         // embedding and indexing
  kNormalization,  // softmax and normalization of layers
  kRecurrentCell,
  kReduction,
  kRandom,
  kSorting,
  kLoss,
  kOther,
};
inline constexpr HotSpot kLastHotSpot = HotSpot::kOther;

// Returns "convolution", "GEMM", …: stable, appears in files.
std::string_view Name(HotSpot category);

// Returns the category of an operator by its name with or without overload ("aten::mm.out"); kOther
// for unknown ones and those outside `aten::`.
HotSpot HotSpotOf(std::string_view operator_name);

// Returns the kind of layer that an operator of a forward pass belongs to: "convolution",
// "batch normalization", "LSTM", "embedding", …; "" for operators that belong to no layer.
std::string_view LayerOf(std::string_view operator_name);

}  // namespace etude::suite
