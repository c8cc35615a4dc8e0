#include "src/suite/nn/caser.h"

#include <tuple>

#include "src/suite/nn/functional.h"

namespace etude::suite {

Caser::Caser(const Scope& scope, const CaserShape& shape)
    : shape_(shape),
      users_(scope["user_embeddings"], shape.users, shape.width,
             1 / static_cast<double>(shape.width)),
      items_(scope["item_embeddings"], shape.items + 1, shape.width,
             1 / static_cast<double>(shape.width)),
      vertical_(scope["conv_v"], 1, shape.vertical, {.kernel = {shape.length, 1}}),
      hidden_(scope["fc1"], shape.vertical * shape.width + shape.horizontal * shape.length,
              shape.width),
      answers_(scope["W2"], shape.items + 1, 2 * shape.width,
               1 / static_cast<double>(2 * shape.width)),
      answer_bias_(scope["b2"], shape.items + 1, 1, 0) {
  for (int64_t rows = 1; rows <= shape.length; ++rows) {
    horizontal_.emplace_back(scope["conv_h"][rows - 1], 1, shape.horizontal,
                             Window{.kernel = {rows, shape.width}});
  }
}

at::Tensor Caser::Features(const at::Tensor& sequences, const at::Tensor& users,
                           bool training) const {
  const at::Tensor picture = items_(sequences).unsqueeze(1);
  std::vector<at::Tensor> found = {vertical_(picture).flatten(1)};
  for (const Conv2d& filters : horizontal_) {
    found.push_back(std::get<0>(filters(picture).squeeze(3).max(2)));
  }
  const at::Tensor hidden = hidden_(Dropout(Cat(found, 1), shape_.dropped, training)).sigmoid();
  return Cat({hidden, users_(users)}, 1);
}

at::Tensor Caser::Scores(const at::Tensor& features, const at::Tensor& items) const {
  return answers_(items).matmul(features.unsqueeze(2)).squeeze(2) + answer_bias_(items).squeeze(2);
}

at::Tensor Caser::AllScores(const at::Tensor& features) const {
  return features.matmul(answers_.weight().t()) + answer_bias_.weight().t();
}

}  // namespace etude::suite
