#include "src/suite/tasks/architecture_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/suite/data/text/bigram_model.h"
#include "src/suite/data/text/word_stream.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/search/cell_architecture.h"
#include "src/suite/nn/search/cell_controller.h"
#include "src/suite/nn/search/shared_cells.h"

namespace etude::suite {
namespace {

// Groups of parameters.
constexpr int kShared = 0;
constexpr int kController = 1;

constexpr double kReward = 80;    // by the perplexity
constexpr double kMostNats = 10;  // of a word, for rewards
constexpr double kEntropyWeight = 1e-4;
constexpr double kBaselineDecay = 0.9;

// Cells that evaluations draw: the same numbers in all runs.
constexpr uint64_t kFoundSeed = 17;
constexpr uint64_t kRandomSeed = 18;
constexpr int64_t kWordsAtOnce = 4'000;

struct SearchSetup {
  WordStreams streams;
  SharedCellsShape cells;
  CellControllerShape controller;
  int64_t window = 35;  // words of a training sample
  int64_t controller_updates = 1;
  int64_t rewarded = 64;    // windows of validation text for a reward, at most all
  int64_t candidates = 10;  // cells to choose from in an evaluation
  int64_t chosen_by = 0;    // words of validation text that choose
  int64_t rows = 64;        // parts of an evaluated text that are read side by side
  Hyperparameters hyperparameters;
};

class ArchitectureSearch : public Task {
 public:
  ArchitectureSearch(const TaskOptions& options, SearchSetup setup)
      : Task(options.device, setup.hyperparameters),
        setup_(std::move(setup)),
        seed_(options.seed),
        next_(setup_.streams.train.begin() + 1, setup_.streams.train.end()),
        cells_(root(kShared)["cells"], setup_.cells),
        controller_(root(kController)["controller"], setup_.controller),
        mean_reward_(root()["mean_reward"].Buffer("value", Zeros({}))) {
    if (options.shuffled_labels) {
      RandomStream random(options.seed);
      Shuffle(std::span(next_), random);
    }
  }

  std::string data_set() const override { return setup_.streams.name; }
  int64_t samples() const override { return WindowsOf(setup_.streams.train); }
  int64_t updates_per_step() const override { return 1 + setup_.controller_updates; }
  int GroupOf(int64_t update) const override { return update == 0 ? kShared : kController; }

  Result<at::Tensor> Loss(const Batch& batch) override {
    // Does not depend on the rank: all draw the same cells.
    RandomStream random(HashMix(HashMix(seed_, static_cast<uint64_t>(batch.step)),
                                static_cast<uint64_t>(batch.update)));
    if (GroupOf(batch.update) == kController) return LossOfController(random);
    const CellArchitecture cell = DrawnCell(random);
    return Nats(WindowsAt(setup_.streams.train, batch.samples), WindowsAt(next_, batch.samples),
                cell);
  }

  void Updated(const Batch& batch) override {
    if (GroupOf(batch.update) == kController) {
      mean_reward_.mul_(kBaselineDecay).add_(reward_, 1 - kBaselineDecay);
    }
  }

  // Returns the perplexity of the test text by the best cell of those that the controller draws,
  // which validation text chooses.
  Result<double> Evaluate() override { return TestPerplexity(BestOf(FoundCells())); }

  Result<std::vector<Figure>> Figures() override {
    const CellArchitecture best = BestOf(FoundCells());
    RandomStream random(kRandomSeed);
    std::vector<CellArchitecture> others;
    double sum = 0;
    for (int64_t i = 0; i < setup_.candidates; ++i) {
      others.push_back(DrawCell(setup_.cells.nodes, random));
      sum += TestPerplexity(others.back());
    }
    return std::vector<Figure>{{"random cells", sum / static_cast<double>(setup_.candidates)},
                               {"random search", TestPerplexity(BestOf(others))},
                               {"controller entropy", FoundEntropy()},
                               {.name = "best cell", .text = ToText(best)}};
  }

  Result<double> Baseline() override {
    return BigramModel(setup_.streams.train, setup_.streams.words).Perplexity(setup_.streams.test);
  }

 private:
  // A window begins at each multiple of its length, if another word follows it.
  int64_t WindowsOf(const Tokens& text) const { return (std::ssize(text) - 1) / setup_.window; }

  // Returns int64 [window, N], on the model's device.
  at::Tensor WindowsAt(const Tokens& text, std::span<const int64_t> windows,
                       int64_t first = 0) const {
    std::vector<int64_t> words;
    words.reserve(windows.size() * static_cast<size_t>(setup_.window));
    for (const int64_t window : windows) {
      const auto begin = text.begin() + window * setup_.window + first;
      words.insert(words.end(), begin, begin + setup_.window);
    }
    return There(FromValues(words, {std::ssize(windows), setup_.window}).t().contiguous());
  }

  // Returns the mean of -ln p of the next words.
  at::Tensor Nats(const at::Tensor& words, const at::Tensor& next,
                  const CellArchitecture& cell) const {
    at::Tensor state;
    const at::Tensor logits = cells_.Logits(cells_(words, cell, state));
    return CrossEntropy(logits.flatten(0, 1), next.flatten());
  }

  CellArchitecture DrawnCell(RandomStream& random) const {
    const at::NoGradGuard no_gradients;
    return controller_.Draw(random).cell;
  }

  // By REINFORCE (Williams 1992), with the moving average of rewards as the baseline.
  at::Tensor LossOfController(RandomStream& random) {
    const CellController::Drawn drawn = controller_.Draw(random);
    std::vector<int64_t> windows;
    const auto all = static_cast<uint64_t>(WindowsOf(setup_.streams.valid));
    while (std::ssize(windows) < std::min(setup_.rewarded, static_cast<int64_t>(all))) {
      windows.push_back(static_cast<int64_t>(random.Below(all)));
    }
    {
      const at::NoGradGuard no_gradients;
      weights().set_training(false);
      const at::Tensor nats = Nats(WindowsAt(setup_.streams.valid, windows),
                                   WindowsAt(setup_.streams.valid, windows, 1), drawn.cell);
      weights().set_training(true);
      reward_ = kReward * nats.to(at::kFloat).clamp_max(kMostNats).neg().exp();
      if (mean_reward_.item<double>() == 0) mean_reward_.copy_(reward_);
    }
    return (mean_reward_ - reward_) * drawn.log_probability - kEntropyWeight * drawn.entropy;
  }

  // Returns the different cells among those drawn.
  std::vector<CellArchitecture> FoundCells() const {
    RandomStream random(kFoundSeed);
    std::vector<CellArchitecture> found;
    for (int64_t i = 0; i < setup_.candidates; ++i) {
      CellArchitecture cell = DrawnCell(random);
      if (std::ranges::find(found, cell) == found.end()) found.push_back(std::move(cell));
    }
    return found;
  }

  double FoundEntropy() const {
    RandomStream random(kFoundSeed);
    double sum = 0;
    for (int64_t i = 0; i < setup_.candidates; ++i) {
      sum += controller_.Draw(random).entropy.item<double>();
    }
    return sum / static_cast<double>(setup_.candidates);
  }

  CellArchitecture BestOf(std::span<const CellArchitecture> cells) const {
    const Tokens& valid = setup_.streams.valid;
    const auto words = static_cast<size_t>(std::min(setup_.chosen_by + 1, std::ssize(valid)));
    const CellArchitecture* best = &cells.front();
    double least = Perplexity(std::span(valid).first(words), *best);
    for (const CellArchitecture& cell : cells.subspan(1)) {
      const double perplexity = Perplexity(std::span(valid).first(words), cell);
      if (perplexity >= least) continue;
      least = perplexity;
      best = &cell;
    }
    return *best;
  }

  double TestPerplexity(const CellArchitecture& cell) const {
    return Perplexity(setup_.streams.test, cell);
  }

  // Reads a text in rows, each from its begin to its end with the state of the cell.
  double Perplexity(std::span<const int64_t> text, const CellArchitecture& cell) const {
    const int64_t rows = std::min(setup_.rows, std::ssize(text) - 1);
    const int64_t length = (std::ssize(text) - 1) / rows;
    const auto in_rows = [&](size_t first) {
      const auto part = text.subspan(first, static_cast<size_t>(rows * length));
      return There(FromValues(part, {rows, length}).t().contiguous());
    };
    const at::Tensor words = in_rows(0);
    const at::Tensor next = in_rows(1);
    at::Tensor state;
    double nats = 0;
    const int64_t at_once = std::max<int64_t>(1, kWordsAtOnce / rows);
    for (int64_t begin = 0; begin < length; begin += at_once) {
      const int64_t end = std::min(length, begin + at_once);
      const at::Tensor logits = cells_.Logits(cells_(words.slice(0, begin, end), cell, state));
      const at::Tensor mean =
          CrossEntropy(logits.flatten(0, 1), next.slice(0, begin, end).flatten());
      nats += mean.item<double>() * static_cast<double>(end - begin);
    }
    return std::exp(nats / static_cast<double>(length));
  }

  SearchSetup setup_;
  uint64_t seed_;
  Tokens next_;  // by training word; others' next words with shuffled labels
  SharedCells cells_;
  CellController controller_;
  at::Tensor mean_reward_;  // moving average; 0 before the first reward
  at::Tensor reward_;       // of the current update
};

Status CheckLength(const std::string& file, const Tokens& text, int64_t window) {
  if (std::ssize(text) > window) return {};
  return BadInput(fmt::format("{}: found {} words and ends of lines, expected more than {}", file,
                              text.size(), window));
}

SearchSetup SmokeSetup(WordStreams streams) {
  SearchSetup setup{.streams = std::move(streams),
                    .window = 20,
                    .rewarded = 32,
                    .candidates = 8,
                    .chosen_by = 4'000,
                    .rows = 100};
  setup.cells = {.width = 64, .nodes = 4, .word_range = 0.3, .range = 0.125};
  setup.controller = {.nodes = 4, .hidden = 32, .temperature = 1};
  const OptimizerOptions adam{.kind = OptimizerOptions::Kind::kAdam};
  setup.hyperparameters = {.batch = 32,
                           .optimizers = {adam, adam},
                           .schedule = {.warmup_steps = 20, .cosine = true},
                           .largest_norm = 1,
                           .evaluate_every = 20,
                           .most_steps = 1'000};
  setup.hyperparameters.optimizers[kShared].rate = 0.02;
  setup.hyperparameters.optimizers[kController].rate = 5e-3;
  return setup;
}

// Settings of ENAS's programs. A step is an update of the shared weights, and a share of the
// controller's.
SearchSetup PaperSetup(WordStreams streams) {
  SearchSetup setup{.streams = std::move(streams), .controller_updates = 5};
  setup.chosen_by = setup.rewarded * setup.window;
  setup.cells.dropped = {.words = 0.1, .input = 0.65, .output = 0.4};
  const int64_t epoch =
      std::max<int64_t>(1, (std::ssize(setup.streams.train) - 1) / setup.window / 64);
  setup.hyperparameters = {
      .batch = 64,
      .optimizers = {{.kind = OptimizerOptions::Kind::kSgd, .rate = 20, .weight_decay = 1e-7},
                     {.kind = OptimizerOptions::Kind::kAdam, .rate = 3.5e-4}},
      .schedule = {.annealing = 1 / 0.96, .anneal_every = epoch},
      .largest_norm = 0.25,
      .evaluate_every = std::max<int64_t>(1, epoch / 4),
      .most_steps = 150 * epoch};
  return setup;
}

}  // namespace

Result<std::unique_ptr<Task>> MakeArchitectureSearch(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  const std::string folder = options.data + (smoke ? "/package-texts" : "/ptb");
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(folder + (smoke ? ": missing; `etude suite setup` makes it"
                                       : ": missing; expected the Penn Treebank: ptb.train.txt, "
                                         "ptb.valid.txt and ptb.test.txt, one sentence a line"));
  }
  ETUDE_ASSIGN_OR_RETURN(WordStreams streams, smoke
                                                  ? ReadSynopses(folder, 1'000, 3, options.context)
                                                  : ReadPtb(folder, 100'000, options.context));
  SearchSetup setup = smoke ? SmokeSetup(std::move(streams)) : PaperSetup(std::move(streams));
  const auto file = [&](const char* part) {
    return fmt::format("{}/{}", folder,
                       smoke ? fmt::format("{}.title.txt", part) : fmt::format("ptb.{}.txt", part));
  };
  ETUDE_RETURN_IF_ERROR(CheckLength(file("train"), setup.streams.train, setup.window));
  ETUDE_RETURN_IF_ERROR(
      CheckLength(file(smoke ? "test" : "valid"), setup.streams.valid, setup.window));
  ETUDE_RETURN_IF_ERROR(CheckLength(file("test"), setup.streams.test, setup.window));
  setup.cells.words = setup.streams.words;
  const int64_t samples = (std::ssize(setup.streams.train) - 1) / setup.window;
  setup.hyperparameters.batch = std::min(setup.hyperparameters.batch, samples);
  return std::make_unique<ArchitectureSearch>(options, std::move(setup));
}

}  // namespace etude::suite
