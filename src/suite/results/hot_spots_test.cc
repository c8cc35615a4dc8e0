#include "src/suite/results/hot_spots.h"

#include <gtest/gtest.h>

#include <set>

namespace etude::suite {
namespace {

TEST(HotSpots, OperatorsByName) {
  EXPECT_EQ(HotSpotOf("aten::mkldnn_convolution"), HotSpot::kConvolution);
  EXPECT_EQ(HotSpotOf("aten::convolution_backward"), HotSpot::kConvolution);
  EXPECT_EQ(HotSpotOf("aten::addmm"), HotSpot::kGemm);
  EXPECT_EQ(HotSpotOf("aten::mm.out"), HotSpot::kGemm);
  EXPECT_EQ(HotSpotOf("aten::native_batch_norm_backward"), HotSpot::kBatchNormalization);
  EXPECT_EQ(HotSpotOf("aten::threshold_backward"), HotSpot::kRelu);
  EXPECT_EQ(HotSpotOf("aten::relu_"), HotSpot::kRelu);
  EXPECT_EQ(HotSpotOf("aten::max_pool2d_with_indices_backward"), HotSpot::kPooling);
  EXPECT_EQ(HotSpotOf("aten::copy_"), HotSpot::kMemoryCopy);
  EXPECT_EQ(HotSpotOf("aten::_to_copy"), HotSpot::kMemoryCopy);
  EXPECT_EQ(HotSpotOf("aten::cat"), HotSpot::kDataArrangement);
  EXPECT_EQ(HotSpotOf("aten::add_.Tensor"), HotSpot::kElementWise);
  EXPECT_EQ(HotSpotOf("aten::_foreach_addcdiv_.ScalarList"), HotSpot::kElementWise);
  EXPECT_EQ(HotSpotOf("aten::embedding_dense_backward"), HotSpot::kLookup);
  EXPECT_EQ(HotSpotOf("aten::_log_softmax_backward_data"), HotSpot::kNormalization);
  EXPECT_EQ(HotSpotOf("aten::sum.dim_IntList"), HotSpot::kReduction);
}

TEST(HotSpots, UnknownOperatorsAreOther) {
  EXPECT_EQ(HotSpotOf("aten::_fft_r2c"), HotSpot::kOther);
  EXPECT_EQ(HotSpotOf("mine::mm"), HotSpot::kOther);
  EXPECT_EQ(HotSpotOf(""), HotSpot::kOther);
  EXPECT_EQ(HotSpotOf("aten::_"), HotSpot::kOther);
}

TEST(HotSpots, LayersAreThoseOfForwardPasses) {
  EXPECT_EQ(LayerOf("aten::convolution"), "convolution");
  EXPECT_EQ(LayerOf("aten::native_layer_norm"), "layer normalization");
  EXPECT_EQ(LayerOf("aten::add"), "");
}

TEST(HotSpots, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (size_t i = 0; i <= static_cast<size_t>(kLastHotSpot); ++i) {
    names.insert(Name(static_cast<HotSpot>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastHotSpot) + 1);
}

}  // namespace
}  // namespace etude::suite
