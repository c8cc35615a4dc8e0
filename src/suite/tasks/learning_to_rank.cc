#include "src/suite/tasks/learning_to_rank.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/suite/data/interactions.h"
#include "src/suite/nn/caser.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kNamed = 10;  // items per answer
constexpr int64_t kUsersAtOnce = 500;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// Settings by which the small model learns from the large one's best items (Tang & Wang, equations
// 8 and 9).
struct Distillation {
  int64_t items = 10;                  // K
  double position_sharpness = 1;       // lambda: an item at rank r counts exp(-r / lambda)
  double discrepancy_sharpness = 0.1;  // mu: weight by how far behind the small model ranks an item
  int64_t rank_samples = 100;          // sampled items for estimating that rank
  double share = 1;                    // alpha: weight of this loss
  int64_t teacher_steps = 0;           // steps of the large model, before the small one's
  int64_t discrepancy_step = 0;        // first step that uses the estimated ranks
};

struct RankingPlan {
  int64_t targets = 1;          // items after a sequence
  int64_t negatives = 3;        // per sequence
  bool names_new_items = true;  // answers exclude items that the user already has
  CaserShape teacher;
  CaserShape student;
  Distillation distillation;
};

class LearningToRank : public Task {
 public:
  LearningToRank(const TaskOptions& options, Interactions data, SequenceWindows windows,
                 const RankingPlan& plan, Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        plan_(plan),
        data_(std::move(data)),
        unseen_(data_),
        windows_(std::move(windows)),
        last_(LastOf(data_, plan.student.length)),
        position_weights_(PositionWeights().to(options.device)),
        teacher_(root()["teacher"], plan.teacher),
        student_(root()["student"], plan.student) {
    for (size_t user = 0; user < data_.users.size(); ++user) {
      if (data_.users[user].is_asked) asked_.push_back(static_cast<int64_t>(user));
    }
  }

  int64_t samples() const override { return windows_.users.size(0); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    const at::Tensor windows = windows_.items.index_select(0, index);
    const at::Tensor users = windows_.users.index_select(0, index);
    const int64_t length = plan_.student.length;
    const Queries queries = {
        .users = users,
        .users_there = There(users),
        .sequences = There(windows.slice(1, 0, length)),
        .targets = There(windows.slice(1, length)),
        .negatives = There(unseen_.Draw(users, plan_.negatives)),
    };
    if (batch.step < plan_.distillation.teacher_steps) {
      return RankingLoss(teacher_, FeaturesOf(teacher_, queries, /*training=*/true), queries);
    }
    const at::Tensor features = FeaturesOf(student_, queries, /*training=*/true);
    return RankingLoss(student_, features, queries) +
           DistillationLoss(features, queries, batch.step) * plan_.distillation.share;
  }

  Result<double> Evaluate() override {
    return Precision([this](std::span<const int64_t> users) {
      const at::Tensor index = FromValues(users, {std::ssize(users)});
      return student_
          .AllScores(student_.Features(There(last_.index_select(0, index)), There(index),
                                       /*training=*/false))
          .to(at::kFloat)
          .cpu();
    });
  }

  // Recommends the most frequent items to everyone.
  Result<double> Baseline() override {
    std::vector<float> chosen(static_cast<size_t>(data_.items) + 1);
    for (const Interactions::User& user : data_.users) {
      for (const int64_t item : user.learned) ++chosen[static_cast<size_t>(item)];
    }
    const at::Tensor scores = FromValues(chosen, {1, std::ssize(chosen)});
    return Precision([&](std::span<const int64_t> users) {
      return scores.repeat({std::ssize(users), 1});
    });
  }

 private:
  // Users and their preceding items, with chosen and random other items.
  struct Queries {
    at::Tensor users;        // on the CPU
    at::Tensor users_there;  // this and the following: on the model's device
    at::Tensor sequences;
    at::Tensor targets;
    at::Tensor negatives;
  };

  static at::Tensor FeaturesOf(const Caser& model, const Queries& queries, bool training) {
    return model.Features(queries.sequences, queries.users_there, training);
  }

  // Returns the binary loss of a query, summed over its items.
  static at::Tensor RankingLoss(const Caser& model, const at::Tensor& features,
                                const Queries& queries) {
    const at::Tensor scores =
        model.Scores(features, Cat({queries.targets, queries.negatives}, 1)).to(at::kFloat);
    at::Tensor answers = scores.detach().new_zeros(scores.sizes());
    answers.slice(1, 0, queries.targets.size(1)).fill_(1);
    return BinaryCrossEntropy(scores, answers, /*mean=*/false).sum({1}).mean();
  }

  // Returns exp(-r / lambda) for ranks r from 1 on, as shares: [1, K].
  at::Tensor PositionWeights() const {
    const Distillation& distillation = plan_.distillation;
    std::vector<float> weights;
    for (int64_t rank = 1; rank <= distillation.items; ++rank) {
      weights.push_back(static_cast<float>(
          std::exp(-static_cast<double>(rank) / distillation.position_sharpness)));
    }
    const at::Tensor all = FromValues(weights, {1, distillation.items});
    return all / all.sum();
  }

  // Returns the large model's best items without the targets: int64 [N, K].
  at::Tensor TeachersBest(const Queries& queries) const {
    const at::NoGradGuard no_gradients;
    at::Tensor scores = teacher_.AllScores(FeaturesOf(teacher_, queries, /*training=*/false));
    scores.select(1, 0).fill_(kNever);
    scores.scatter_(1, queries.targets, kNever);
    return std::get<1>(scores.topk(plan_.distillation.items, 1));
  }

  // Returns tanh(mu × excess rank of an item in the small model), with the rank estimated from the
  // share of sampled items that score higher: [N, K] for `scores` [N, K].
  at::Tensor DiscrepancyWeights(const at::Tensor& features, const at::Tensor& scores,
                                const Queries& queries) {
    const at::NoGradGuard no_gradients;
    const Distillation& distillation = plan_.distillation;
    const at::Tensor drawn = There(unseen_.Draw(queries.users, distillation.rank_samples));
    const at::Tensor others = student_.Scores(features, drawn).to(at::kFloat);
    const at::Tensor ahead = others.unsqueeze(1).gt(scores.unsqueeze(2)).to(at::kFloat).mean({2});
    const at::Tensor ranks = (ahead * static_cast<double>(data_.items + 1)).floor();
    const at::Tensor too_far = ranks - There(Arange(distillation.items));
    return (too_far * distillation.discrepancy_sharpness).tanh().clamp_min(0);
  }

  at::Tensor DistillationLoss(const at::Tensor& features, const Queries& queries, int64_t step) {
    const at::Tensor best = TeachersBest(queries);
    const at::Tensor scores = student_.Scores(features, best).to(at::kFloat);
    at::Tensor share = position_weights_;
    if (step >= plan_.distillation.discrepancy_step) {
      share = share * DiscrepancyWeights(features, scores, queries);
    }
    const at::Tensor chosen = scores.detach().new_ones(scores.sizes());
    return (BinaryCrossEntropy(scores, chosen, /*mean=*/false) * share).sum({1}).mean();
  }

  // Returns the mean, over users with test items, of the share of their kNamed best items that they
  // chose later. scores(users): float [users, items + 1], on the CPU.
  template <typename Scores>
  double Precision(const Scores& scores) const {
    int64_t hits = 0;
    const std::span<const int64_t> asked = asked_;
    for (size_t begin = 0; begin < asked.size(); begin += kUsersAtOnce) {
      const auto users = asked.subspan(begin, std::min<size_t>(kUsersAtOnce, asked.size() - begin));
      at::Tensor of_items = scores(users);
      of_items.select(1, 0).fill_(kNever);
      if (plan_.names_new_items) Forbid(of_items, users);
      const auto [best, named] = of_items.topk(kNamed, 1);
      const auto* score = best.const_data_ptr<float>();
      const auto* item = named.const_data_ptr<int64_t>();
      for (const int64_t user : users) {
        const std::vector<int64_t>& held_out = data_.users[static_cast<size_t>(user)].held_out;
        for (int64_t place = 0; place < kNamed; ++place, ++item, ++score) {
          const bool is_named = *score > kNever;  // otherwise no items are left
          if (is_named && std::ranges::find(held_out, *item) != held_out.end()) ++hits;
        }
      }
    }
    return static_cast<double>(hits) / static_cast<double>(kNamed * std::ssize(asked));
  }

  // Excludes items that users already have.
  void Forbid(at::Tensor& scores, std::span<const int64_t> users) const {
    scores = scores.contiguous();
    auto* row = scores.mutable_data_ptr<float>();
    for (const int64_t user : users) {
      for (const int64_t item : unseen_.SeenBy(user)) row[item] = kNever;
      row += data_.items + 1;
    }
  }

  RankingPlan plan_;
  Interactions data_;
  UnseenItems unseen_;
  SequenceWindows windows_;
  at::Tensor last_;
  at::Tensor position_weights_;
  std::vector<int64_t> asked_;  // users with test items
  Caser teacher_;
  Caser student_;
};

// Reads the data. kUnavailable with `hint` if `folder` is missing.
Result<Interactions> ReadRankingData(const std::string& folder, std::string_view hint,
                                     const TaskOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(fmt::format("{}: missing; {}", folder, hint));
  }
  ETUDE_ASSIGN_OR_RETURN(Interactions data, ReadInteractions(folder, options.context));
  if (options.shuffled_labels) ShuffleLearned(data, options.seed);
  return data;
}

RankingPlan PlanFor(Scale scale, const Interactions& data) {
  const bool smoke = scale == Scale::kSmoke;
  RankingPlan plan;
  plan.teacher = {.users = std::ssize(data.users), .items = data.items, .width = smoke ? 32 : 100};
  plan.student = plan.teacher;
  plan.student.width = smoke ? 16 : 50;
  if (smoke) {
    plan.targets = 3;
    plan.names_new_items = false;
    plan.distillation.rank_samples = 20;
  }
  return plan;
}

// Returns the hyperparameters, and sets the steps of both models in `distillation`.
Hyperparameters RankingHyperparameters(Scale scale, int64_t samples, Distillation& distillation) {
  const bool smoke = scale == Scale::kSmoke;
  const int64_t batch = smoke ? 256 : std::min<int64_t>(512, samples);
  Hyperparameters hyperparameters{.batch = batch,
                                  .optimizers = {{.kind = OptimizerOptions::Kind::kAdam,
                                                  .rate = smoke ? 6e-3 : 1e-3,
                                                  .weight_decay = 1e-6}}};
  if (smoke) {
    distillation.teacher_steps = 600;
    distillation.discrepancy_step = 900;
    hyperparameters.evaluate_every = 25;
    hyperparameters.most_steps = 2000;
  } else {
    const int64_t epoch = samples / batch;
    distillation.teacher_steps = 50 * epoch;
    distillation.discrepancy_step = 60 * epoch;
    hyperparameters.evaluate_every = epoch;
    hyperparameters.most_steps = 100 * epoch;
  }
  return hyperparameters;
}

}  // namespace

Result<std::unique_ptr<Task>> MakeLearningToRank(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  const std::string folder = options.data + (smoke ? "/nycflights" : "/gowalla/test");
  const std::string_view hint =
      smoke ? "`etude suite setup` makes it"
            : "expected train.txt and test.txt as published by the paper's authors";
  ETUDE_ASSIGN_OR_RETURN(Interactions data, ReadRankingData(folder, hint, options));
  RankingPlan plan = PlanFor(options.scale, data);
  const int64_t fewest = plan.targets + std::max(kNamed, plan.distillation.items);
  if (data.items < fewest) {
    return BadInput(fmt::format("{}/train.txt: items: found {}, expected at least {}", folder,
                                data.items, fewest));
  }
  SequenceWindows windows = WindowsOf(data, plan.student.length, plan.targets);
  const int64_t samples = windows.users.size(0);
  if (samples == 0) {
    return BadInput(
        fmt::format("{}/train.txt: found no user with more than {} lines", folder, plan.targets));
  }
  Hyperparameters hyperparameters =
      RankingHyperparameters(options.scale, samples, plan.distillation);
  return std::make_unique<LearningToRank>(options, std::move(data), std::move(windows), plan,
                                          std::move(hyperparameters));
}

}  // namespace etude::suite
