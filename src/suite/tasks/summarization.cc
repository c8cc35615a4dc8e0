#include "src/suite/tasks/summarization.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/suite/data/digits.h"
#include "src/suite/data/text/articles.h"
#include "src/suite/data/text/rouge.h"
#include "src/suite/data/text/vocabulary.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/text/pointer_generator.h"

namespace etude::suite {
namespace {

constexpr double kLeastProbability = 1e-12;
constexpr size_t kSummarizedAtOnce = 100;

struct SummarizationSetup {
  Articles articles;
  PointerGeneratorShape model;
  int64_t longest_text = 0;
  int64_t longest_summary = 0;  // words, the end included
  size_t most_summarized = 0;   // held-out texts per evaluation
  Hyperparameters hyperparameters;
};

class Summarization : public Task {
 public:
  Summarization(const TaskOptions& options, SummarizationSetup setup)
      : Task(options.device, setup.hyperparameters),
        setup_(std::move(setup)),
        model_(root(), setup_.model) {
    summary_of_ = LabelOrder(samples(), options.shuffled_labels, options.seed);
    // Evenly spaced, because neighbours are often similar.
    const SummarizedTexts& all = setup_.articles.test;
    const size_t count = std::min(setup_.most_summarized, all.texts.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t from = i * (all.texts.size() / count);
      held_out_.texts.push_back(all.texts[from]);
      held_out_.summaries.push_back(all.summaries[from]);
    }
  }

  std::string data_set() const override { return setup_.articles.name; }
  int64_t samples() const override { return std::ssize(setup_.articles.train.texts); }

  // Returns the mean over words and ends of -ln p plus the coverage loss.
  Result<at::Tensor> Loss(const Batch& batch) override {
    std::vector<Tokens> texts;
    std::vector<Tokens> before;
    std::vector<Tokens> after;
    const SummarizedTexts& train = setup_.articles.train;
    for (const int64_t sample : batch.samples) {
      texts.push_back(train.texts[static_cast<size_t>(sample)]);
      const auto other = static_cast<size_t>(summary_of_[static_cast<size_t>(sample)]);
      const Tokens& summary = train.summaries[other];
      before.push_back({kStartToken});
      before.back().insert(before.back().end(), summary.begin(), summary.end());
      after.push_back(summary);
      after.back().push_back(kEndToken);
    }
    const at::Tensor text = There(TextsOf(std::move(texts)));                // [N, S]
    const at::Tensor wanted = There(PaddedRows(after));                      // [N, T]
    const at::Tensor said = model_.Embed(Known(There(PaddedRows(before))));  // [N, T, width]
    auto [source, written] = model_.Encode(Known(text));
    std::vector<at::Tensor> features;
    std::vector<at::Tensor> shares;
    std::vector<at::Tensor> attentions;
    std::vector<at::Tensor> covered;
    for (int64_t i = 0; i < wanted.size(1); ++i) {
      PointerGenerator::Step step = model_(said.select(1, i), source, written);
      features.push_back(std::move(step.features));
      shares.push_back(std::move(step.share));
      attentions.push_back(std::move(step.attention));
      covered.push_back(std::move(step.covered));
    }
    const at::Tensor is_copy = text.unsqueeze(1).eq(wanted.unsqueeze(2));  // [N, T, S]
    const at::Tensor copies = (Stack(attentions, 1).to(at::kFloat) * is_copy).sum({2});
    // Words that are neither in the vocabulary nor in the text are learned as unknown words.
    const at::Tensor can_be_said =
        wanted.lt(setup_.model.words).logical_or(is_copy.any(2).logical_not());
    const at::Tensor from_words = model_.WordLogits(Stack(features, 1)).to(at::kFloat).softmax(2);
    const at::Tensor words =
        from_words.gather(2, Known(wanted).unsqueeze(2)).squeeze(2) * can_be_said;
    const at::Tensor share = Stack(shares, 1).to(at::kFloat);
    const at::Tensor chance = share * words + (1 - share) * copies;
    const at::Tensor nats = chance.clamp_min(kLeastProbability).log().neg();
    const at::Tensor counts = wanted.ne(kPaddingToken);
    return ((nats + Stack(covered, 1).to(at::kFloat)) * counts).sum() / counts.sum();
  }

  // Returns the mean ROUGE-L of greedily decoded summaries.
  Result<double> Evaluate() override {
    double sum = 0;
    for (size_t begin = 0; begin < held_out_.texts.size(); begin += kSummarizedAtOnce) {
      const size_t end = std::min(held_out_.texts.size(), begin + kSummarizedAtOnce);
      const std::vector<Tokens> said =
          Summarize(std::span(held_out_.texts).subspan(begin, end - begin));
      for (size_t i = begin; i < end; ++i) sum += RougeL(said[i - begin], held_out_.summaries[i]);
    }
    return sum / static_cast<double>(held_out_.texts.size());
  }

  // Returns the mean ROUGE-L of the first n words of each text, with the best n for these texts.
  Result<double> Baseline() override {
    double best = 0;
    for (int64_t words = 1; words <= setup_.longest_text; ++words) {
      double sum = 0;
      for (size_t i = 0; i < held_out_.texts.size(); ++i) {
        Tokens first = held_out_.texts[i];
        first.resize(std::min(first.size(), static_cast<size_t>(words)));
        sum += RougeL(first, held_out_.summaries[i]);
      }
      best = std::max(best, sum / static_cast<double>(held_out_.texts.size()));
    }
    return best;
  }

 private:
  // Replaces words outside of the vocabulary by kUnknownToken.
  at::Tensor Known(const at::Tensor& words) const {
    return words.masked_fill(words.ge(setup_.model.words), kUnknownToken);
  }
  // Returns int64 [N, longest_text]. The constant length keeps texts independent of their batch.
  at::Tensor TextsOf(std::vector<Tokens> texts) const {
    for (Tokens& text : texts) text.resize(static_cast<size_t>(setup_.longest_text), kPaddingToken);
    return PaddedRows(texts);
  }

  std::vector<Tokens> Summarize(std::span<const Tokens> texts) {
    const auto count = std::ssize(texts);
    const int64_t words = setup_.model.words;
    const at::Tensor text = There(TextsOf({texts.begin(), texts.end()}));
    // Words outside of the vocabulary are numbered by the positions of their first occurrences.
    const at::Tensor first = text.unsqueeze(2).eq(text.unsqueeze(1)).to(at::kByte).argmax(2);
    const at::Tensor copied = Where(text.ge(words), first.add(words), text);
    auto [source, written] = model_.Encode(Known(text));
    at::Tensor last = There(Zeros({count}, at::kLong)).fill_(kStartToken);
    std::vector<at::Tensor> said;
    for (int64_t i = 0; i < setup_.longest_summary; ++i) {
      const PointerGenerator::Step step = model_(model_.Embed(last), source, written);
      const at::Tensor share = step.share.to(at::kFloat).unsqueeze(1);
      const at::Tensor from_words =
          model_.WordLogits(step.features).to(at::kFloat).softmax(1) * share;
      const at::Tensor none = from_words.new_zeros({count, text.size(1)});
      at::Tensor chances = Cat({from_words, none}, 1)
                               .scatter_add(1, copied, step.attention.to(at::kFloat) * (1 - share));
      chances.slice(1, kPaddingToken, kStartToken + 1).fill_(-1);
      chances.select(1, kUnknownToken).fill_(-1);
      said.push_back(chances.argmax(1));
      last = Known(said.back());
    }
    const at::Tensor all = Stack(said, 1).cpu().contiguous();
    const auto* number = all.const_data_ptr<int64_t>();
    std::vector<Tokens> summaries(texts.size());
    for (size_t i = 0; i < texts.size(); ++i, number += all.size(1)) {
      for (int64_t t = 0; t < all.size(1) && number[t] != kEndToken; ++t) {
        const bool is_copied = number[t] >= words;
        summaries[i].push_back(is_copied ? texts[i][static_cast<size_t>(number[t] - words)]
                                         : number[t]);
      }
    }
    return summaries;
  }

  SummarizationSetup setup_;
  SummarizedTexts held_out_;
  std::vector<int64_t> summary_of_;  // by training text: its own, unless shuffled
  PointerGenerator model_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeSummarization(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  const std::string folder = options.data + (smoke ? "/package-texts" : "/gigaword");
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(folder + (smoke ? ": missing; `etude suite setup` makes it"
                                       : ": missing; expected Gigaword: train.article.txt, "
                                         "train.title.txt, valid.article.filter.txt and "
                                         "valid.title.filter.txt"));
  }
  SummarizationSetup setup{.longest_text = smoke ? 30 : 55,
                           .longest_summary = smoke ? 12 : 15,
                           .most_summarized = smoke ? 500U : 2'000U};
  ArticleFiles files{.folder = folder,
                     .train = {"train.article.txt", "train.title.txt"},
                     .test = {"test.article.txt", "test.title.txt"},
                     .most_words = smoke ? 2'000 : 50'000,
                     .longest_text = static_cast<size_t>(setup.longest_text),
                     .longest_summary = static_cast<size_t>(setup.longest_summary - 1)};
  if (!smoke) files.test = {"valid.article.filter.txt", "valid.title.filter.txt"};
  ETUDE_ASSIGN_OR_RETURN(setup.articles, ReadArticles(files, options.context));
  setup.model = {.words = setup.articles.words};
  if (smoke) setup.model = {.words = setup.articles.words, .width = 64, .hidden = 64};
  // At paper scale as AIBench's program, with See's limit of gradients.
  const int64_t samples = std::ssize(setup.articles.train.texts);
  setup.hyperparameters = {
      .batch = std::min<int64_t>(smoke ? 64 : 200, samples),
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = smoke ? 1e-2 : 1e-3}},
      .schedule = {.warmup_steps = smoke ? 20 : 0, .cosine = smoke},
      .largest_norm = 2,
      .evaluate_every = smoke ? 6 : 1'000,
      .most_steps = smoke ? 320 : 50'000};
  return std::make_unique<Summarization>(options, std::move(setup));
}

}  // namespace etude::suite
