#include "src/suite/tasks/advertising.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/suite/data/clicks.h"
#include "src/suite/data/digits.h"
#include "src/suite/nn/area_under_curve.h"
#include "src/suite/nn/dlrm.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kSamplesAtOnce = 4096;
constexpr int64_t kLogisticSteps = 500;
constexpr double kLogisticRate = 4;

class Advertising : public Task {
 public:
  Advertising(const TaskOptions& options, Clicks data, const DlrmShape& shape,
              Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        caravan_(options.caravan),
        data_(std::move(data)),
        model_(root(), shape) {
    if (options.shuffled_labels) {
      data_.learned.labels = Shuffled(data_.learned.labels, options.seed);
    }
  }

  std::string data_set() const override { return caravan_ ? "caravan" : ""; }
  bool has_target() const override { return !caravan_; }
  int64_t samples() const override { return data_.learned.labels.size(0); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    const Impressions& all = data_.learned;
    const at::Tensor logits = model_(There(all.numbers.index_select(0, index)),
                                     There(all.categories.index_select(0, index)))
                                  .to(at::kFloat);
    return BinaryCrossEntropy(logits, There(all.labels.index_select(0, index)));
  }

  Result<double> Evaluate() override { return AreaUnderCurve(Scores(), data_.held_out.labels); }

  Result<std::vector<Figure>> Figures() override {
    const at::Tensor& labels = data_.held_out.labels;
    const double right = Scores().gt(0).eq(labels.gt(0)).to(at::kFloat).mean().item<double>();
    const double clicks = labels.mean().item<double>();
    std::vector<Figure> figures = {
        {"accuracy", right},
        {"accuracy of the most frequent answer", std::max(clicks, 1 - clicks)}};
    if (data_.probabilities.defined()) {
      figures.push_back(
          {"AUC of the true probabilities", AreaUnderCurve(data_.probabilities, labels)});
    }
    return figures;
  }

  // Logistic regression with a weight for each number and each category, by gradient descent over
  // all samples. Each table's gradient is divided by the frequency of a category (its curvature).
  Result<double> Baseline() override {
    const Impressions& all = data_.learned;
    const auto samples = static_cast<double>(all.labels.size(0));
    const int64_t tables = all.categories.size(1);
    at::Tensor slopes = Zeros({all.numbers.size(1)});
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> counts;
    for (int64_t i = 0; i < tables; ++i) {
      weights.push_back(Zeros({data_.rows[static_cast<size_t>(i)]}));
      counts.push_back(weights.back().clone().index_add_(0, all.categories.select(1, i),
                                                         Ones({all.labels.size(0)})));
    }
    const auto logits = [&](const Impressions& rows) {
      at::Tensor sum = rows.numbers.matmul(slopes);
      for (int64_t i = 0; i < tables; ++i) {
        sum += weights[static_cast<size_t>(i)].index_select(0, rows.categories.select(1, i));
      }
      return sum;
    };
    const double share = 1 / static_cast<double>(tables + 1);
    for (int64_t step = 0; step < kLogisticSteps; ++step) {
      const at::Tensor wrong = all.labels - logits(all).sigmoid();
      slopes += all.numbers.t().matmul(wrong) * (kLogisticRate * share / samples);
      for (int64_t i = 0; i < tables; ++i) {
        at::Tensor& table = weights[static_cast<size_t>(i)];
        const at::Tensor gradient =
            table.new_zeros(table.sizes()).index_add_(0, all.categories.select(1, i), wrong);
        table += gradient / (counts[static_cast<size_t>(i)] + 1) * (kLogisticRate * share);
      }
    }
    return AreaUnderCurve(logits(data_.held_out), data_.held_out.labels);
  }

 private:
  // Returns the logits of the test samples: float [N], on the CPU.
  at::Tensor Scores() {
    std::vector<at::Tensor> parts;
    const Impressions& all = data_.held_out;
    for (int64_t begin = 0; begin < all.labels.size(0); begin += kSamplesAtOnce) {
      const int64_t end = begin + kSamplesAtOnce;
      parts.push_back(model_(There(all.numbers.slice(0, begin, end)),
                             There(all.categories.slice(0, begin, end)))
                          .to(at::kFloat)
                          .cpu());
    }
    return Cat(parts, 0);
  }

  bool caravan_;
  Clicks data_;
  Dlrm model_;
};

Result<Clicks> ReadClicks(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke && !options.caravan) return GenerateClicks();
  const std::string path =
      options.data + (options.caravan ? "/caravan/ticdata2000.txt" : "/criteo/train.txt");
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Unavailable(fmt::format(
        "{}: missing; {}", path,
        options.caravan ? "`etude suite setup` makes it"
                        : "expected Criteo's Display Advertising Challenge set as distributed"));
  }
  if (options.caravan) return ReadCaravan(path, options.context);
  return ReadCriteo(path, options.table_rows.value_or(INT64_MAX), options.context);
}

}  // namespace

Result<std::unique_ptr<Task>> MakeAdvertising(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  ETUDE_ASSIGN_OR_RETURN(Clicks data, ReadClicks(options));
  DlrmShape shape{.tables = data.rows, .width = smoke ? 8 : 16, .bottom = {}, .top = {}};
  const int64_t numbers = data.learned.numbers.size(1);
  if (smoke) {
    shape.bottom = {numbers, 32, shape.width};
    shape.top = {32, 16, 1};
  } else {
    shape.bottom = {numbers, 512, 256, 64, shape.width};
    shape.top = {512, 256, 1};
  }
  const int64_t samples = data.learned.labels.size(0);
  const int64_t batch = smoke ? 256 : std::min<int64_t>(128, samples);
  const int64_t epoch = samples / batch;
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.kind = smoke ? OptimizerOptions::Kind::kAdam : OptimizerOptions::Kind::kSgd,
                      .rate = smoke ? 5e-3 : 0.1}},
      .evaluate_every = smoke ? 25 : std::max<int64_t>(epoch / 20, 1),
      .most_steps = smoke ? 1600 : epoch};
  if (options.caravan) {
    // Few customers, of whom few have a policy.
    hyperparameters.optimizers.front().rate = 1e-3;
    hyperparameters.most_steps = 400;
  }
  return std::make_unique<Advertising>(options, std::move(data), shape, std::move(hyperparameters));
}

}  // namespace etude::suite
