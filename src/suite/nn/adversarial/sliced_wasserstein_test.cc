#include "src/suite/nn/adversarial/sliced_wasserstein.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr SlicedWasserstein::Shape kShape{.channels = 2, .side = 8, .directions = 3, .seed = 5};

// The definition, value by value, in double precision.
double ByHand(const at::Tensor& left, const at::Tensor& right) {
  SeedTorch(kShape.seed);
  double sum = 0;
  int64_t resolutions = 0;
  for (int64_t side = kShape.side; side >= 4; side /= 2, ++resolutions) {
    const int64_t block = kShape.side / side;
    const at::Tensor drawn = Normal({kShape.channels * side * side, kShape.directions}, 0, 1);
    double distances = 0;
    for (int64_t direction = 0; direction < kShape.directions; ++direction) {
      double length = 0;
      for (int64_t i = 0; i < drawn.size(0); ++i) {
        length += std::pow(drawn[i][direction].item<double>(), 2);
      }
      const auto projected = [&](const at::Tensor& pictures) {
        std::vector<double> values(static_cast<size_t>(pictures.size(0)));
        for (int64_t n = 0; n < pictures.size(0); ++n) {
          for (int64_t i = 0; i < drawn.size(0); ++i) {
            const int64_t row = i / side % side * block;
            const int64_t column = i % side * block;
            const double pixel = pictures[n][i / (side * side)]
                                     .slice(0, row, row + block)
                                     .slice(1, column, column + block)
                                     .mean()
                                     .item<double>();
            values[static_cast<size_t>(n)] += pixel * drawn[i][direction].item<double>();
          }
        }
        std::ranges::sort(values);
        return values;
      };
      const std::vector<double> a = projected(left);
      const std::vector<double> b = projected(right);
      for (size_t n = 0; n < a.size(); ++n) {
        distances += std::abs(a[n] - b[n]) / std::sqrt(length) / static_cast<double>(a.size());
      }
    }
    sum += distances / static_cast<double>(kShape.directions);
  }
  return sum / static_cast<double>(resolutions);
}

TEST(SlicedWasserstein, IsTheDefinition) {
  SeedTorch(1);
  const at::Tensor left = Uniform({6, 2, 8, 8}, -1, 1);
  const at::Tensor right = Uniform({6, 2, 8, 8}, -0.5, 1);
  const SlicedWasserstein sliced(kShape);
  const double found = SlicedWasserstein::Distance(sliced.Project(left), sliced.Project(right));
  EXPECT_NEAR(found, ByHand(left, right), 1e-5);
  EXPECT_GT(found, 0.05);
}

TEST(SlicedWasserstein, DependsOnTheSetOnly) {
  SeedTorch(1);
  const at::Tensor pictures = Uniform({6, 2, 8, 8}, -1, 1);
  const SlicedWasserstein sliced(kShape);
  const auto projections = sliced.Project(pictures);
  EXPECT_NEAR(SlicedWasserstein::Distance(projections, sliced.Project(pictures.flip({0}))), 0,
              1e-6);
  // A picture that fills the set is one picture, which is far from all.
  const at::Tensor one = pictures.slice(0, 0, 1).expand({6, 2, 8, 8});
  EXPECT_GT(SlicedWasserstein::Distance(projections, sliced.Project(one)), 0.05);
}

TEST(SlicedWasserstein, SetsOfTwoSizesThrow) {
  const SlicedWasserstein sliced(kShape);
  EXPECT_THROW(SlicedWasserstein::Distance(sliced.Project(Zeros({2, 2, 8, 8})),
                                           sliced.Project(Zeros({3, 2, 8, 8}))),
               c10::Error);
}

}  // namespace
}  // namespace etude::suite
