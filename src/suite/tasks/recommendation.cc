#include "src/suite/tasks/recommendation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/suite/data/interactions.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/neu_mf.h"

namespace etude::suite {
namespace {

constexpr int64_t kNegatives = 4;    // for each item that a user chose
constexpr int64_t kBestItems = 10;   // for each chosen item
constexpr int64_t kOthers = 99;      // items among which the test item is ranked
constexpr uint64_t kOthersSeed = 1;  // for choosing these items: the same for all runs
constexpr int64_t kQuestionsAtOnce = 4096;

// Users with a test item, and the items among which it is ranked.
struct Questions {
  at::Tensor users;       // int64 [N]
  at::Tensor candidates;  // int64 [N, 1 + kOthers]: the item held out, then items that are new to
                          // the user; 0 where there are no more of these
};

Questions QuestionsOf(const Interactions& data, const UnseenItems& unseen) {
  std::vector<int64_t> users;
  std::vector<int64_t> candidates;
  RandomStream random(kOthersSeed);
  for (size_t user = 0; user < data.users.size(); ++user) {
    const Interactions::User& one = data.users[user];
    if (one.held_out.empty()) continue;
    const int64_t held_out = one.held_out.front();
    users.push_back(static_cast<int64_t>(user));
    candidates.push_back(held_out);
    const std::vector<int64_t> others =
        unseen.Sample(static_cast<int64_t>(user), held_out, kOthers, random);
    candidates.insert(candidates.end(), others.begin(), others.end());
    candidates.insert(candidates.end(), static_cast<size_t>(kOthers - std::ssize(others)), 0);
  }
  const int64_t count = std::ssize(users);
  return {FromValues(users, {count}), FromValues(candidates, {count, 1 + kOthers})};
}

class Recommendation : public Task {
 public:
  Recommendation(const TaskOptions& options, Interactions data, NeuMfShape shape,
                 Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        data_(std::move(data)),
        unseen_(data_),
        questions_(QuestionsOf(data_, unseen_)),
        model_(root(), shape) {
    std::vector<int64_t> users;
    std::vector<int64_t> items;
    for (size_t user = 0; user < data_.users.size(); ++user) {
      const std::vector<int64_t>& learned = data_.users[user].learned;
      items.insert(items.end(), learned.begin(), learned.end());
      users.insert(users.end(), learned.size(), static_cast<int64_t>(user));
    }
    users_ = FromValues(users, {std::ssize(users)});
    items_ = FromValues(items, {std::ssize(items)});
  }

  int64_t samples() const override { return items_.size(0); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    const at::Tensor users = users_.index_select(0, index);
    const at::Tensor chosen = items_.index_select(0, index).unsqueeze(1);
    const at::Tensor items = Cat({chosen, unseen_.Draw(users, kNegatives)}, 1);
    const at::Tensor scores = model_(There(users), There(items) - 1).to(at::kFloat);
    at::Tensor answers = scores.detach().new_zeros(scores.sizes());
    answers.slice(1, 0, 1).fill_(1);
    return BinaryCrossEntropy(scores, answers);
  }

  Result<double> Evaluate() override { return Ranked().hits; }
  Result<std::vector<Figure>> Figures() override {
    return std::vector<Figure>{{"NDCG@10", Ranked().gain}};
  }

  // Recommends the most frequently chosen items to everyone.
  Result<double> Baseline() override {
    std::vector<float> chosen(static_cast<size_t>(data_.items) + 1);
    for (const Interactions::User& user : data_.users) {
      for (const int64_t item : user.learned) ++chosen[static_cast<size_t>(item)];
    }
    const at::Tensor scores = FromValues(chosen, {std::ssize(chosen)});
    return QualityOf([&](const at::Tensor& /*users*/, const at::Tensor& items) {
             return scores.index_select(0, items.flatten()).view(items.sizes());
           })
        .hits;
  }

 private:
  struct Quality {
    double hits = 0;  // HR@10
    double gain = 0;  // NDCG@10
  };

  Quality Ranked() {
    return QualityOf([this](const at::Tensor& users, const at::Tensor& items) {
      return model_(There(users), There(items.sub(1).clamp_min(0))).to(at::kFloat).cpu();
    });
  }

  // The rank of the test item is the number of others with at least its score. scores(users,
  // items): float [N, M], on the CPU.
  template <typename Scores>
  Quality QualityOf(const Scores& scores) const {
    const int64_t count = questions_.users.size(0);
    Quality sum;
    for (int64_t begin = 0; begin < count; begin += kQuestionsAtOnce) {
      const at::Tensor items = questions_.candidates.slice(0, begin, begin + kQuestionsAtOnce);
      const at::Tensor of_items =
          scores(questions_.users.slice(0, begin, begin + kQuestionsAtOnce), items);
      const at::Tensor is_ahead = of_items.slice(1, 1).ge(of_items.slice(1, 0, 1));
      const at::Tensor ranks =
          is_ahead.logical_and(items.slice(1, 1).ne(0)).sum({1}).to(at::kLong).contiguous();
      const auto* rank = ranks.const_data_ptr<int64_t>();
      for (int64_t row = 0; row < ranks.size(0); ++row) {
        if (rank[row] >= kBestItems) continue;
        sum.hits += 1;
        sum.gain += 1 / std::log2(static_cast<double>(rank[row]) + 2);
      }
    }
    return {sum.hits / static_cast<double>(count), sum.gain / static_cast<double>(count)};
  }

  Interactions data_;
  UnseenItems unseen_;
  Questions questions_;
  at::Tensor users_;  // of training samples, on the CPU like the others
  at::Tensor items_;
  NeuMf model_;
};

Result<Interactions> ReadChoices(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  const std::string path = options.data + (smoke ? "/nycflights" : "/ml-20m/ratings.csv");
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Unavailable(fmt::format("{}: missing; {}", path,
                                   smoke ? "`etude suite setup` makes it"
                                         : "expected MovieLens 20M as GroupLens distributes it"));
  }
  if (!smoke) return ReadRatings(path, options.context);
  return ReadInteractions(path, options.context);
}

}  // namespace

Result<std::unique_ptr<Task>> MakeRecommendation(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  ETUDE_ASSIGN_OR_RETURN(Interactions data, ReadChoices(options));
  LeaveLastOut(data);
  const auto is_asked = [](const Interactions::User& user) { return user.is_asked; };
  if (std::ranges::none_of(data.users, is_asked)) {
    return BadInput(
        "interactions: no user has chosen three items, expected one whose last item "
        "can be held out");
  }
  if (options.shuffled_labels) ShuffleLearned(data, options.seed);
  const NeuMfShape shape{
      .users = std::ssize(data.users),
      .items = data.items,
      .factors = smoke ? 8 : 64,
      .widths = smoke ? std::vector<int64_t>{64, 32, 16} : std::vector<int64_t>{256, 256, 128, 64}};
  int64_t samples = 0;
  for (const Interactions::User& user : data.users) samples += std::ssize(user.learned);
  // With negatives, there are 65,536 rows at paper scale.
  const int64_t batch = smoke ? 256 : std::min<int64_t>(65536 / (1 + kNegatives), samples);
  const int64_t epoch = std::max<int64_t>(samples / batch, 1);
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = smoke ? 2e-3 : 2e-4}},
      .evaluate_every = smoke ? 40 : epoch,
      .most_steps = (smoke ? 30 : 20) * epoch};
  return std::make_unique<Recommendation>(options, std::move(data), shape,
                                          std::move(hyperparameters));
}

}  // namespace etude::suite
