#include "src/suite/nn/compression/multi_scale_ssim.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows RowsOf(const at::Tensor& plane) {
  Rows rows;
  const at::Tensor values = plane.contiguous();
  const auto* value = values.const_data_ptr<float>();
  for (int64_t y = 0; y < values.size(0); ++y) {
    rows.emplace_back(value, value + values.size(1));
    value += values.size(1);
  }
  return rows;
}

Rows Half(const Rows& rows) {
  Rows half(rows.size() / 2, std::vector<double>(rows[0].size() / 2));
  for (size_t y = 0; y < half.size(); ++y) {
    for (size_t x = 0; x < half[y].size(); ++x) {
      half[y][x] = (rows[2 * y][2 * x] + rows[2 * y + 1][2 * x] + rows[2 * y][2 * x + 1] +
                    rows[2 * y + 1][2 * x + 1]) /
                   4;
    }
  }
  return half;
}

// Weighted mean values of a window.
struct Moments {
  double a = 0;
  double b = 0;
  double aa = 0;
  double bb = 0;
  double ab = 0;
};

Moments MomentsAt(const Rows& a, const Rows& b, size_t top, size_t left) {
  Moments sums;
  double total = 0;
  for (size_t y = 0; y < 11; ++y) {
    for (size_t x = 0; x < 11; ++x) {
      const double far =
          std::pow(static_cast<double>(y) - 5, 2) + std::pow(static_cast<double>(x) - 5, 2);
      const double weight = std::exp(-far / (2 * 1.5 * 1.5));
      const double u = a[top + y][left + x];
      const double v = b[top + y][left + x];
      total += weight;
      sums.a += weight * u;
      sums.b += weight * v;
      sums.aa += weight * u * u;
      sums.bb += weight * v * v;
      sums.ab += weight * u * v;
    }
  }
  return {sums.a / total, sums.b / total, sums.aa / total, sums.bb / total, sums.ab / total};
}

// The definition, window by window, in double precision.
double ByHand(Rows a, Rows b) {
  constexpr std::array<double, 5> kExponents = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
  double similarity = 1;
  for (size_t scale = 0; scale < kExponents.size(); ++scale) {
    double sum = 0;
    size_t windows = 0;
    for (size_t y = 0; y + 11 <= a.size(); ++y) {
      for (size_t x = 0; x + 11 <= a[0].size(); ++x, ++windows) {
        const Moments m = MomentsAt(a, b, y, x);
        const double contrast =
            (2 * (m.ab - m.a * m.b) + 0.0009) / (m.aa - m.a * m.a + m.bb - m.b * m.b + 0.0009);
        const double luminance = (2 * m.a * m.b + 0.0001) / (m.a * m.a + m.b * m.b + 0.0001);
        sum += scale + 1 < kExponents.size() ? contrast : contrast * luminance;
      }
    }
    similarity *= std::pow(sum / static_cast<double>(windows), kExponents[scale]);
    a = Half(a);
    b = Half(b);
  }
  return similarity;
}

TEST(MultiScaleSsim, IsTheMeanOverColoursOfTheDefinition) {
  SeedTorch(1);
  const at::Tensor pictures = Resize(Uniform({2, 2, 40, 40}, 0, 1), 180, 176);
  const at::Tensor copies = (pictures + Normal(pictures.sizes(), 0, 0.1)).clamp(0, 1);
  const at::Tensor found = MultiScaleSsim(pictures, copies);
  ASSERT_EQ(found.sizes(), (std::vector<int64_t>{2}));
  const double expected = (ByHand(RowsOf(pictures[1][0]), RowsOf(copies[1][0])) +
                           ByHand(RowsOf(pictures[1][1]), RowsOf(copies[1][1]))) /
                          2;
  EXPECT_NEAR(found[1].item<double>(), expected, 1e-4);
  EXPECT_LT(expected, 0.99);
}

TEST(MultiScaleSsim, EqualAndOppositePictures) {
  SeedTorch(2);
  const at::Tensor pictures = Uniform({1, 3, 176, 176}, 0, 1);
  EXPECT_NEAR(MultiScaleSsim(pictures, pictures).item<double>(), 1, 1e-5);
  EXPECT_EQ(MultiScaleSsim(pictures, 1 - pictures).item<double>(), 0);
}

TEST(PeakSignalToNoise, IsOfTheMeanSquare) {
  const at::Tensor grey = Full({1, 3, 4, 4}, 0.5);
  EXPECT_NEAR(PeakSignalToNoise(grey, grey + 0.1).item<double>(), 20, 1e-3);
  EXPECT_NEAR(PeakSignalToNoise(grey, grey).item<double>(), 100, 1e-3);
}

}  // namespace
}  // namespace etude::suite
