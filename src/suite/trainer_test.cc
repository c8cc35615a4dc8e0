#include "src/suite/trainer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "src/suite/data_parallel.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"
#include "src/torch/group/rank_group.h"

namespace etude::suite {
namespace {

// Learns y = x · (1, 2, 3) of 64 samples.
class LineTask : public Task {
 public:
  explicit LineTask(Hyperparameters hyperparameters, double dropped = 0.1)
      : Task(at::kCPU, std::move(hyperparameters)),
        layer_(root()["line"], 3, 1),
        dropped_(dropped) {
    SeedTorch(5);
    x_ = Normal({64, 3}, 0, 1);
    const std::vector<float> weights = {1, 2, 3};
    y_ = x_.matmul(FromValues(std::span<const float>(weights), {3, 1}));
  }
  int64_t samples() const override { return 64; }
  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    const at::Tensor x = Dropout(x_.index_select(0, index), dropped_, is_training());
    return (layer_(x) - y_.index_select(0, index)).square().mean();
  }
  Result<double> Evaluate() override { return (layer_(x_) - y_).square().mean().item<double>(); }
  Result<double> Baseline() override { return y_.square().mean().item<double>(); }

 private:
  Linear layer_;
  double dropped_;
  at::Tensor x_;
  at::Tensor y_;
};

Hyperparameters HyperparametersWith(OptimizerOptions optimizer) {
  return {.batch = 16, .optimizers = {optimizer}, .most_steps = 100};
}

std::unique_ptr<Trainer> TrainerOf(Task& task, const Hyperparameters& hyperparameters,
                                   bool frozen = false) {
  auto trainer =
      Trainer::Make(task, {.hyperparameters = hyperparameters, .seed = 3, .frozen = frozen});
  EXPECT_TRUE(trainer.has_value());
  return *std::move(trainer);
}

std::vector<double> Losses(Trainer& trainer, int64_t steps) {
  std::vector<double> losses;
  for (int64_t i = 0; i < steps; ++i) losses.push_back(trainer.Step().value());
  return losses;
}

TEST(Trainer, GoesOnFromACheckpointAsItWouldHaveGone) {
  for (const auto kind : {OptimizerOptions::Kind::kSgd, OptimizerOptions::Kind::kAdamW}) {
    const Hyperparameters hyperparameters =
        HyperparametersWith({.kind = kind, .rate = 0.05, .momentum = 0.9});
    const std::string path =
        (std::filesystem::temp_directory_path() / ("etude_trainer." + std::to_string(getpid())))
            .string();
    SeedTorch(1);
    LineTask whole(hyperparameters);
    const auto straight = TrainerOf(whole, hyperparameters);
    Losses(*straight, 7);
    ASSERT_TRUE(straight->Save(path, {{"a", "b"}}).has_value());
    const std::vector<double> expected = Losses(*straight, 5);

    SeedTorch(2);
    LineTask other(hyperparameters);
    const auto resumed = TrainerOf(other, hyperparameters);
    const auto facts = resumed->Load(path, {});
    ASSERT_TRUE(facts.has_value()) << facts.error().message;
    EXPECT_EQ(facts->at("a"), "b");
    EXPECT_EQ(resumed->steps_done(), 7);
    EXPECT_EQ(Losses(*resumed, 5), expected);
    std::filesystem::remove(path);
  }
}

TEST(Trainer, ACheckpointOfAnotherModelIsRefused) {
  const Hyperparameters adam =
      HyperparametersWith({.kind = OptimizerOptions::Kind::kAdam, .rate = 0.05});
  const Hyperparameters sgd = HyperparametersWith({.rate = 0.05});
  const std::string path =
      (std::filesystem::temp_directory_path() / ("etude_other." + std::to_string(getpid())))
          .string();
  LineTask task(sgd);
  const auto trainer = TrainerOf(task, sgd);
  ASSERT_TRUE(trainer->Save(path, {}).has_value());
  LineTask other(adam);
  const auto wrong = TrainerOf(other, adam)->Load(path, {});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kBadInput);
  EXPECT_NE(wrong.error().message.find("line.weight"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Trainer, LearnsUnlessFrozen) {
  const Hyperparameters hyperparameters = HyperparametersWith({.rate = 0.1});
  LineTask task(hyperparameters);
  const auto trainer = TrainerOf(task, hyperparameters);
  Losses(*trainer, 60);
  EXPECT_LT(trainer->Evaluate().value(), 0.1 * trainer->Baseline().value());
  LineTask still(hyperparameters);
  const auto frozen = TrainerOf(still, hyperparameters, /*frozen=*/true);
  const double before = frozen->Evaluate().value();
  Losses(*frozen, 5);
  EXPECT_EQ(frozen->Evaluate().value(), before);
}

TEST(Trainer, SkipsAStepThatTheLossScaleMakesOverflow) {
  const Hyperparameters hyperparameters = HyperparametersWith({.rate = 0.1});
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    LineTask task(hyperparameters);
    const auto trainer = Trainer::Make(
        task, {.hyperparameters = hyperparameters, .precision = precision, .loss_scale = 3e38});
    ASSERT_TRUE(trainer.has_value());
    const double before = (*trainer)->Evaluate().value();
    Losses(**trainer, 2);
    EXPECT_EQ((*trainer)->Evaluate().value(), before);
    EXPECT_EQ((*trainer)->loss_scale().skipped(), 2);
  }
}

// Trains five steps as one of two ranks; with `spoils` rank 1 then changes a weight. Returns the
// error of CompareRanks, or the name of a weight that differs from training by one rank on whole
// batches; "" if there is none.
std::string TrainAsRank(int64_t rank, const MeetingPlace& place, bool spoils) {
  const Hyperparameters hyperparameters = HyperparametersWith({.rate = 0.05, .momentum = 0.9});
  RankGroup group({.rank = rank, .size = 2, .place = place});
  auto ranks = DataParallel::Connect(group);
  if (!ranks) return ranks.error().message;
  SeedTorch(rank == 0 ? 1 : 2);
  LineTask task(hyperparameters, /*dropped=*/0);
  const auto trainer =
      Trainer::Make(task, {.hyperparameters = hyperparameters, .seed = 3, .ranks = ranks->get()});
  if (!trainer) return trainer.error().message;
  Losses(**trainer, 5);
  if (spoils && rank == 1) task.weights().entries()[0].value.detach()[0][2].add_(1e-6);
  const Status same = (*trainer)->CompareRanks();
  const Status left = group.Leave();
  if (!same) return same.error().message;
  if (!left) return left.error().message;

  SeedTorch(1);
  LineTask alone(hyperparameters, /*dropped=*/0);
  Losses(*TrainerOf(alone, hyperparameters), 5);
  for (size_t i = 0; i < alone.weights().entries().size(); ++i) {
    const Weights::Entry& expected = alone.weights().entries()[i];
    if (!task.weights().entries()[i].value.allclose(expected.value, 1e-5, 1e-6)) {
      return expected.name;
    }
  }
  return "";
}

// Returns the messages of both ranks.
std::string TrainAsTwoRanks(bool spoils) {
  const auto place = MeetingPlace::Open();
  EXPECT_TRUE(place.has_value());
  std::array<int, 2> pipe_ends{};
  EXPECT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  const std::string said = TrainAsRank(child == 0 ? 1 : 0, *place, spoils);
  if (child == 0) {
    const bool told = write(pipe_ends[1], said.data(), said.size()) == std::ssize(said);
    _exit(told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(pipe_ends[1]);
  std::string other(4096, '\0');
  other.resize(
      static_cast<size_t>(std::max<ssize_t>(0, read(pipe_ends[0], other.data(), other.size()))));
  close(pipe_ends[0]);
  EXPECT_EQ(said, other);
  return said;
}

TEST(Trainer, RanksTrainTheModelOfOneRankWithTheWholeBatch) {
  EXPECT_EQ(TrainAsTwoRanks(/*spoils=*/false), "");
}

TEST(Trainer, RanksWhoseWeightsDifferAreNoticed) {
  EXPECT_EQ(TrainAsTwoRanks(/*spoils=*/true),
            "after 5 steps the weights of rank 1 differ from those of rank 0");
}

TEST(Trainer, AnnealsTheRate) {
  Hyperparameters hyperparameters = HyperparametersWith({.rate = 0.1});
  hyperparameters.schedule = {.annealing = 1e20, .anneal_every = 3};
  LineTask task(hyperparameters);
  const auto trainer = TrainerOf(task, hyperparameters);
  const double before = trainer->Evaluate().value();
  Losses(*trainer, 3);
  const double after = trainer->Evaluate().value();
  EXPECT_LT(after, before);
  Losses(*trainer, 3);
  EXPECT_EQ(trainer->Evaluate().value(), after);
}

TEST(Trainer, LowersTheRateToZeroAtTheLastStep) {
  Hyperparameters hyperparameters = HyperparametersWith({.rate = 1e-3});
  hyperparameters.batch = 64;  // all samples, so that steps differ by the rate only
  hyperparameters.most_steps = 6;
  hyperparameters.schedule = {.linear_from = 1.0 / 3};
  LineTask task(hyperparameters, /*dropped=*/0);
  const auto trainer = TrainerOf(task, hyperparameters);
  std::vector<double> moved;
  for (int step = 0; step < 8; ++step) {
    const double before = trainer->Evaluate().value();
    Losses(*trainer, 1);
    moved.push_back(before - trainer->Evaluate().value());
  }
  EXPECT_NEAR(moved[1] / moved[0], 1, 0.02);
  EXPECT_NEAR(moved[4] / moved[2], 0.5, 0.02);
  EXPECT_NEAR(moved[5] / moved[2], 0.25, 0.02);
  EXPECT_EQ(moved[6], 0);
  EXPECT_EQ(moved[7], 0);
}

TEST(Trainer, RefusesABatchThatIsLargerThanTheData) {
  Hyperparameters hyperparameters = HyperparametersWith({});
  hyperparameters.batch = 65;
  LineTask task(hyperparameters);
  const auto trainer = Trainer::Make(task, {.hyperparameters = hyperparameters});
  ASSERT_FALSE(trainer.has_value());
  EXPECT_EQ(trainer.error().code, ErrorCode::kUsage);
}

// Returns one parameter after `steps` steps from 1 with a constant `gradient`.
double Moved(const OptimizerOptions& hyperparameters, double gradient, int steps) {
  Weights weights(at::kCPU);
  const at::Tensor value = Scope(weights).Parameter("w", Full({1}, 1));
  Optimizer optimizer(weights, 0, hyperparameters);
  for (int i = 0; i < steps; ++i) {
    optimizer.Clear();
    value.mul(gradient).sum().backward();
    optimizer.Step(1);
  }
  return value.item<double>();
}

TEST(Optimizer, MovesAsComputedByHand) {
  using Kind = OptimizerOptions::Kind;
  EXPECT_NEAR(Moved({.rate = 0.1}, 2, 1), 1 - 0.2, 1e-6);
  // Momentum: 2, then 0.9 · 2 + 2 = 3.8.
  EXPECT_NEAR(Moved({.rate = 0.1, .momentum = 0.9}, 2, 2), 1 - 0.2 - 0.38, 1e-6);
  // Nesterov: 2 + 0.9 · 2 = 3.8.
  EXPECT_NEAR(Moved({.rate = 0.1, .momentum = 0.9, .nesterov = true}, 2, 1), 1 - 0.38, 1e-6);
  // Adam's first step is the rate; with decay 0.5 the gradient is 2.5, which changes nothing.
  EXPECT_NEAR(Moved({.kind = Kind::kAdam, .rate = 0.1, .weight_decay = 0.5}, 2, 1), 0.9, 1e-6);
  // AdamW shrinks first: 1 · (1 − 0.1 · 0.5) − 0.1.
  EXPECT_NEAR(Moved({.kind = Kind::kAdamW, .rate = 0.1, .weight_decay = 0.5}, 2, 1), 0.85, 1e-6);
  // RMSprop: 2 / √(0.01 · 4) = 10.
  EXPECT_NEAR(Moved({.kind = Kind::kRmsprop, .rate = 0.01}, 2, 1), 0.9, 1e-5);
}

TEST(Optimizer, ClipsTheNormOfAllGradients) {
  Weights weights(at::kCPU);
  const at::Tensor a = Scope(weights).Parameter("a", Full({1}, 1));
  const at::Tensor b = Scope(weights).Parameter("b", Full({1}, 1));
  Optimizer optimizer(weights, 0, {.rate = 1});
  a.mul(3).add(b.mul(4)).sum().backward();
  EXPECT_NEAR(optimizer.ClipNorm(1), 5, 1e-6);
  EXPECT_NEAR(a.grad().item<double>(), 0.6, 1e-5);
  EXPECT_NEAR(b.grad().item<double>(), 0.8, 1e-5);
}

TEST(LossScale, HalvesAfterAnOverflowAndDoublesAfterManyGoodSteps) {
  LossScale scale(Precision::kFp16, std::nullopt);
  EXPECT_EQ(scale.factor(), 65536);
  EXPECT_FALSE(scale.Accept(HUGE_VAL));
  EXPECT_EQ(scale.factor(), 32768);
  EXPECT_EQ(scale.skipped(), 1);
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(scale.Accept(1));
  EXPECT_EQ(scale.factor(), 65536);
  EXPECT_FALSE(LossScale(Precision::kFp16, 8.0).Accept(std::nan("")));
  EXPECT_EQ(LossScale(Precision::kBf16, std::nullopt).factor(), 1);
}

TEST(CountUnderflow, CountsWhatFloat16Loses) {
  Weights weights(at::kCPU);
  const at::Tensor value = Scope(weights).Parameter("w", Full({4}, 1));
  // 2^-25 becomes 0 in float16, 2^-24 does not; an exact 0 is none of its values.
  const std::vector<float> gradient = {0x1p-25F, 0x1p-24F, 0, 1};
  value.mutable_grad() = FromValues(std::span<const float>(gradient), {4});
  const std::vector<at::Tensor> all = {value};
  const Underflow count = CountUnderflow(all, 1);
  EXPECT_EQ(count.values, 3);
  EXPECT_EQ(count.lost, 1);
  EXPECT_EQ(CountUnderflow(all, 0.5).lost, 0) << "twice as large before they were clipped";
  value.mutable_grad()[0] = std::nan("");
  EXPECT_EQ(CountUnderflow(all, 1).values, 2);
}

TEST(SampleOrder, SeesEachSampleOnceAnEpochInAnotherOrder) {
  SampleOrder order(10, 3, 1);
  EXPECT_EQ(order.steps_per_epoch(), 3);
  std::vector<int64_t> first;
  std::vector<int64_t> second;
  for (int64_t step = 0; step < 6; ++step) {
    const auto batch = order.BatchOf(step);
    auto& to = step < 3 ? first : second;
    to.insert(to.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 9);
  EXPECT_NE(first, second);
  SampleOrder again(10, 3, 1);
  const auto batch = again.BatchOf(4);
  EXPECT_TRUE(std::equal(batch.begin(), batch.end(), second.begin() + 3));
}

TEST(ShareOf, SharesDifferByOneAtMost) {
  const std::vector<int64_t> batch = {0, 1, 2, 3, 4, 5, 6};
  std::vector<int64_t> all;
  for (int64_t part = 0; part < 3; ++part) {
    const auto share = ShareOf(batch, part, 3);
    EXPECT_GE(share.size(), 2);
    EXPECT_LE(share.size(), 3);
    all.insert(all.end(), share.begin(), share.end());
  }
  EXPECT_EQ(all, batch);
}

// A network of two layers that learns a product, for masks.
class NetTask : public Task {
 public:
  NetTask()
      : Task(at::kCPU, HyperparametersWith({.kind = OptimizerOptions::Kind::kAdam, .rate = 0.01})),
        first_(root()["first"], 8, 32),
        second_(root()["second"], 32, 1) {
    SeedTorch(5);
    x_ = Normal({64, 8}, 0, 1);
    y_ = x_.slice(1, 0, 1).mul(x_.slice(1, 1, 2));
  }
  int64_t samples() const override { return 64; }
  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    return (Out(x_.index_select(0, index)) - y_.index_select(0, index)).square().mean();
  }
  Result<double> Evaluate() override { return (Out(x_) - y_).square().mean().item<double>(); }
  Result<double> Baseline() override { return y_.square().mean().item<double>(); }
  at::Tensor WeightOf(std::string_view name) {
    for (const Weights::Entry& entry : weights().entries()) {
      if (entry.name == name) return entry.value;
    }
    return {};
  }

 private:
  at::Tensor Out(const at::Tensor& x) const { return second_(first_(x).relu()); }
  Linear first_;
  Linear second_;
  at::Tensor x_;
  at::Tensor y_;
};

// Steps a sparse run; the number of weights that are not 0 never exceeds the mask's.
std::vector<at::Tensor> SparseFirstWeights(
    SparseOptions::Method method, int64_t steps,
    SparseOptions::Kernels kernels = SparseOptions::Kernels::kDense) {
  NetTask task;
  Hyperparameters hyperparameters = task.hyperparameters();
  hyperparameters.most_steps = 100;
  auto trainer = *Trainer::Make(
      task, {.hyperparameters = hyperparameters,
             .seed = 3,
             .sparse = SparseOptions{
                 .method = method, .density = 0.25, .update_every = 10, .kernels = kernels}});
  const int64_t all = 8 * 32 + 32;
  std::vector<at::Tensor> weights;
  for (int64_t step = 0; step <= steps; ++step) {
    const at::Tensor first = task.WeightOf("first.weight");
    const at::Tensor second = task.WeightOf("second.weight");
    EXPECT_LE(first.count_nonzero().item<int64_t>() + second.count_nonzero().item<int64_t>(),
              all / 4);
    weights.push_back(first.detach().clone());
    if (step == steps) break;
    EXPECT_TRUE(trainer->Step().has_value());
  }
  const std::vector<Figure> figures = *trainer->Figures();
  EXPECT_EQ(figures.front().name, "density");
  EXPECT_EQ(figures.front().value, 0.25);
  return weights;
}

int64_t ChangedPlaces(const at::Tensor& a, const at::Tensor& b) {
  return a.ne(0).ne(b.ne(0)).count_nonzero().item<int64_t>();
}

TEST(SparseTraining, AStaticMaskStays) {
  const auto weights = SparseFirstWeights(SparseOptions::Method::kStatic, 40);
  EXPECT_EQ(ChangedPlaces(weights[1], weights[40]), 0);
}

TEST(SparseTraining, MasksMoveWhereTheyAreDueAndNewWeightsBeginAtZero) {
  for (const auto method : {SparseOptions::Method::kSet, SparseOptions::Method::kRigl}) {
    const auto weights = SparseFirstWeights(method, 80);
    EXPECT_EQ(ChangedPlaces(weights[5], weights[10]), 0);
    // The step after 10 steps drops weights and adds others, which are still 0.
    const int64_t before = weights[10].count_nonzero().item<int64_t>();
    const int64_t after = weights[11].count_nonzero().item<int64_t>();
    EXPECT_LT(after, before);
    EXPECT_EQ(weights[11].ne(0).logical_and(weights[10].eq(0)).count_nonzero().item<int64_t>(), 0);
    // Those that stay do not move in that step, and the added ones do in the next.
    const at::Tensor stayed = weights[11].ne(0);
    EXPECT_TRUE(weights[11].equal(weights[10].mul(stayed)));
    EXPECT_GT(weights[12].count_nonzero().item<int64_t>(), after);
    // In the last quarter masks stay.
    EXPECT_EQ(ChangedPlaces(weights[77], weights[80]), 0);
  }
}

TEST(SparseTraining, SparseKernelsTrainAsMasksDo) {
  if (!CsrWeight::IsAvailable()) GTEST_SKIP() << "PyTorch without MKL";
  for (const auto method : {SparseOptions::Method::kStatic, SparseOptions::Method::kSet,
                            SparseOptions::Method::kRigl}) {
    const auto dense = SparseFirstWeights(method, 25);
    const auto csr = SparseFirstWeights(method, 25, SparseOptions::Kernels::kCsr);
    for (size_t step = 0; step < dense.size(); ++step) {
      ASSERT_TRUE(csr[step].allclose(dense[step], 1e-4, 1e-4)) << Name(method) << ' ' << step;
    }
    EXPECT_GT(dense[25].sub(dense[0]).abs().max().item<float>(), 0.01);
  }
}

TEST(SparseTraining, SparseKernelsNeedMaskedLinearLayersInFloat32) {
  if (!CsrWeight::IsAvailable()) GTEST_SKIP() << "PyTorch without MKL";
  NetTask task;
  const SparseOptions csr = {.density = 0.25, .kernels = SparseOptions::Kernels::kCsr};
  const auto half = Trainer::Make(
      task,
      {.hyperparameters = task.hyperparameters(), .precision = Precision::kBf16, .sparse = csr});
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().message, "--sparse-kernels csr requires --precision fp32");
  SparseOptions all = csr;
  all.density = 1;
  const auto whole =
      Trainer::Make(task, {.hyperparameters = task.hyperparameters(), .sparse = all});
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().message,
            "--sparse-kernels csr: the model has no linear layer with masked weights");
}

TEST(SparseTraining, ACheckpointKeepsTheMasks) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "etude-sparse.safetensors").string();
  // The kernels that follow masks elsewhere, too.
  const auto kernels =
      CsrWeight::IsAvailable() ? SparseOptions::Kernels::kCsr : SparseOptions::Kernels::kDense;
  const auto make = [&](Task& task) {
    Hyperparameters hyperparameters = task.hyperparameters();
    hyperparameters.most_steps = 100;
    return *Trainer::Make(task, {.hyperparameters = hyperparameters,
                                 .seed = 3,
                                 .sparse = SparseOptions{.method = SparseOptions::Method::kRigl,
                                                         .density = 0.25,
                                                         .update_every = 10,
                                                         .kernels = kernels}});
  };
  NetTask whole;
  auto trainer = make(whole);
  for (int step = 0; step < 15; ++step) ASSERT_TRUE(trainer->Step());
  ASSERT_TRUE(trainer->Save(path, {}));
  for (int step = 0; step < 15; ++step) ASSERT_TRUE(trainer->Step());
  NetTask resumed;
  auto again = make(resumed);
  ASSERT_TRUE(again->Load(path, {}));
  for (int step = 0; step < 15; ++step) ASSERT_TRUE(again->Step());
  EXPECT_TRUE(whole.WeightOf("first.weight").equal(resumed.WeightOf("first.weight")));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace etude::suite
