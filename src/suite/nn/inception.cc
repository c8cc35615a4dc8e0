#include "src/suite/nn/inception.h"

#include <array>
#include <utility>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

using Branches = std::vector<InceptionBlock::BranchShape>;
using Pool = InceptionBlock::Pool;

constexpr double kInceptionEpsilon = 1e-3;

// Max pool that halves the size.
at::Tensor Halved(const at::Tensor& x) { return MaxPool2d(x, {.kernel = {3}, .stride = {2}}); }

// Convolutions before the blocks; pools follow the third and the fifth.
constexpr std::array kFirst = {InceptionConvolution::Shape{"Conv2d_1a_3x3", 32, 3, 3, 2, false},
                               InceptionConvolution::Shape{"Conv2d_2a_3x3", 32, 3, 3, 1, false},
                               InceptionConvolution::Shape{"Conv2d_2b_3x3", 64, 3, 3, 1, true},
                               InceptionConvolution::Shape{"Conv2d_3b_1x1", 80, 1, 1, 1, true},
                               InceptionConvolution::Shape{"Conv2d_4a_3x3", 192, 3, 3, 1, false}};
constexpr bool PoolFollows(size_t number) { return number == 2 || number == 4; }

// Blocks of the paper's figures 5, 10, 6 and 7.
Branches LargeGrid(int64_t of_pool) {
  return {{.chain = {{"branch1x1", 64}}},
          {.chain = {{"branch5x5_1", 48}, {"branch5x5_2", 64, 5, 5}}},
          {.chain = {{"branch3x3dbl_1", 64},
                     {"branch3x3dbl_2", 96, 3, 3},
                     {"branch3x3dbl_3", 96, 3, 3}}},
          {.pool = Pool::kAverage, .chain = {{"branch_pool", of_pool}}}};
}

Branches HalvesLargeGrid() {
  return {{.chain = {{"branch3x3", 384, 3, 3, 2, false}}},
          {.chain = {{"branch3x3dbl_1", 64},
                     {"branch3x3dbl_2", 96, 3, 3},
                     {"branch3x3dbl_3", 96, 3, 3, 2, false}}},
          {.pool = Pool::kHalve}};
}

Branches MiddleGrid(int64_t width) {
  return {
      {.chain = {{"branch1x1", 192}}},
      {.chain = {{"branch7x7_1", width}, {"branch7x7_2", width, 1, 7}, {"branch7x7_3", 192, 7, 1}}},
      {.chain = {{"branch7x7dbl_1", width},
                 {"branch7x7dbl_2", width, 7, 1},
                 {"branch7x7dbl_3", width, 1, 7},
                 {"branch7x7dbl_4", width, 7, 1},
                 {"branch7x7dbl_5", 192, 1, 7}}},
      {.pool = Pool::kAverage, .chain = {{"branch_pool", 192}}}};
}

Branches HalvesMiddleGrid() {
  return {{.chain = {{"branch3x3_1", 192}, {"branch3x3_2", 320, 3, 3, 2, false}}},
          {.chain = {{"branch7x7x3_1", 192},
                     {"branch7x7x3_2", 192, 1, 7},
                     {"branch7x7x3_3", 192, 7, 1},
                     {"branch7x7x3_4", 192, 3, 3, 2, false}}},
          {.pool = Pool::kHalve}};
}

Branches SmallGrid() {
  return {{.chain = {{"branch1x1", 320}}},
          {.chain = {{"branch3x3_1", 384}},
           .ends = {{"branch3x3_2a", 384, 1, 3}, {"branch3x3_2b", 384, 3, 1}}},
          {.chain = {{"branch3x3dbl_1", 448}, {"branch3x3dbl_2", 384, 3, 3}},
           .ends = {{"branch3x3dbl_3a", 384, 1, 3}, {"branch3x3dbl_3b", 384, 3, 1}}},
          {.pool = Pool::kAverage, .chain = {{"branch_pool", 192}}}};
}

Window WindowOf(const InceptionConvolution::Shape& shape) {
  return {
      .kernel = {shape.height, shape.width},
      .stride = {shape.stride},
      .padding = {shape.keeps_size ? shape.height / 2 : 0, shape.keeps_size ? shape.width / 2 : 0}};
}

}  // namespace

InceptionConvolution::InceptionConvolution(const Scope& scope, int64_t in, const Shape& shape)
    : convolution_(scope[shape.name]["conv"], in, shape.out, WindowOf(shape), /*bias=*/false,
                   Conv2d::Start::kHe),
      norm_(scope[shape.name]["bn"], shape.out, kInceptionEpsilon) {}

at::Tensor InceptionConvolution::operator()(const at::Tensor& x) const {
  return norm_(convolution_(x)).relu_();
}

InceptionBlock::InceptionBlock(const Scope& scope, int64_t in,
                               const std::vector<BranchShape>& branches) {
  for (const BranchShape& shape : branches) {
    Branch& branch = branches_.emplace_back();
    branch.pool = shape.pool;
    int64_t width = in;
    for (const InceptionConvolution::Shape& one : shape.chain) {
      branch.chain.emplace_back(scope, width, one);
      width = one.out;
    }
    for (const InceptionConvolution::Shape& one : shape.ends) {
      branch.ends.emplace_back(scope, width, one);
      out_ += one.out;
    }
    if (shape.ends.empty()) out_ += width;
  }
}

at::Tensor InceptionBlock::operator()(const at::Tensor& x) const {
  std::vector<at::Tensor> parts;
  for (const Branch& branch : branches_) {
    at::Tensor y = x;
    if (branch.pool == Pool::kHalve) y = Halved(x);
    if (branch.pool == Pool::kAverage) y = AveragePool2d(x, {.kernel = {3}, .padding = {1}});
    for (const InceptionConvolution& one : branch.chain) y = one(y);
    for (const InceptionConvolution& one : branch.ends) parts.push_back(one(y));
    if (branch.ends.empty()) parts.push_back(y);
  }
  return Cat(parts, 1);
}

InceptionV3::InceptionV3(const Scope& scope) {
  int64_t width = 3;
  for (const InceptionConvolution::Shape& one : kFirst) {
    first_.emplace_back(scope, width, one);
    width = one.out;
  }
  const auto add = [&](const char* name, const Branches& branches) {
    width = blocks_.emplace_back(scope[name], width, branches).out();
  };
  add("Mixed_5b", LargeGrid(32));
  add("Mixed_5c", LargeGrid(64));
  add("Mixed_5d", LargeGrid(64));
  add("Mixed_6a", HalvesLargeGrid());
  add("Mixed_6b", MiddleGrid(128));
  add("Mixed_6c", MiddleGrid(160));
  add("Mixed_6d", MiddleGrid(160));
  add("Mixed_6e", MiddleGrid(192));
  add("Mixed_7a", HalvesMiddleGrid());
  add("Mixed_7b", SmallGrid());
  add("Mixed_7c", SmallGrid());
}

at::Tensor InceptionV3::operator()(const at::Tensor& x) const {
  at::Tensor y = x;
  for (size_t i = 0; i < first_.size(); ++i) {
    y = first_[i](y);
    if (PoolFollows(i)) y = Halved(y);
  }
  for (const InceptionBlock& block : blocks_) y = block(y);
  return GlobalAveragePool(y);
}

}  // namespace etude::suite
