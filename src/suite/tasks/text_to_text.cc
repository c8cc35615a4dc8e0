#include "src/suite/tasks/text_to_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/suite/data/digits.h"
#include "src/suite/data/text/bleu.h"
#include "src/suite/data/text/next_words.h"
#include "src/suite/data/text/translations.h"
#include "src/suite/data/text/vocabulary.h"
#include "src/suite/data/text/word_dictionary.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/text/beam_search.h"
#include "src/suite/nn/transformer.h"

namespace etude::suite {
namespace {

constexpr double kSmoothing = 0.1;  // of labels
constexpr int64_t kAskedAtOnce = 100;
constexpr size_t kMostInDictionary = 10'000;  // pairs for making the dictionary
constexpr int64_t kBeams = 4;
constexpr size_t kMostSearched = 200;  // maximum of texts that are translated by search
constexpr size_t kMostLonger = 10;  // maximum of words that a translation has more than its source

// Returns a text with `first` before it and `last` after it, unless these are kPaddingToken.
Tokens Framed(const Tokens& text, int64_t first, int64_t last) {
  Tokens framed;
  if (first != kPaddingToken) framed.push_back(first);
  framed.insert(framed.end(), text.begin(), text.end());
  if (last != kPaddingToken) framed.push_back(last);
  return framed;
}

// Padded pairs, on the CPU.
struct PairBatch {
  at::Tensor sources;  // int64 [N, S]: words and an end
  at::Tensor before;   // int64 [N, T]: a start and words
  at::Tensor places;   // int64 [M]: indices in N × T that have a word or an end to predict
  at::Tensor next;     // int64 [M]: the words and ends to predict
};

PairBatch Gather(const TextPairs& pairs, std::span<const int64_t> sources,
                 std::span<const int64_t> targets) {
  std::vector<Tokens> from;
  std::vector<Tokens> before;
  size_t longest = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    from.push_back(
        Framed(pairs.sources[static_cast<size_t>(sources[i])], kPaddingToken, kEndToken));
    before.push_back(
        Framed(pairs.targets[static_cast<size_t>(targets[i])], kStartToken, kPaddingToken));
    longest = std::max(longest, before.back().size());
  }
  std::vector<int64_t> places;
  std::vector<int64_t> next;
  for (size_t row = 0; row < before.size(); ++row) {
    const size_t length = before[row].size();
    for (size_t i = 0; i < length; ++i) {
      const int64_t wanted = i + 1 < length ? before[row][i + 1] : kEndToken;
      if (wanted == kUnknownToken) continue;
      places.push_back(static_cast<int64_t>(row * longest + i));
      next.push_back(wanted);
    }
  }
  return {PaddedRows(from), PaddedRows(before), FromValues(places, {std::ssize(places)}),
          FromValues(next, {std::ssize(next)})};
}

class TextToText : public Task {
 public:
  TextToText(const TaskOptions& options, Translations data, const TransformerShape& shape,
             Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        data_(std::move(data)),
        model_(root(), shape) {
    target_of_ = LabelOrder(samples(), options.shuffled_labels, options.seed);
    // Test texts of about the same length are evaluated together.
    by_length_.resize(data_.test.sources.size());
    std::iota(by_length_.begin(), by_length_.end(), 0);
    std::ranges::stable_sort(by_length_, {}, [this](int64_t i) {
      return data_.test.targets[static_cast<size_t>(i)].size();
    });
  }

  std::string data_set() const override { return data_.name; }
  int64_t samples() const override { return std::ssize(data_.train.sources); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    std::vector<int64_t> targets;
    for (const int64_t sample : batch.samples) {
      targets.push_back(target_of_[static_cast<size_t>(sample)]);
    }
    const PairBatch pairs = Gather(data_.train, batch.samples, targets);
    return CrossEntropy(Logits(pairs), There(pairs.next), -100, kSmoothing);
  }

  // Returns the share of known test words and ends that are the most probable ones after the true
  // words before them.
  Result<double> Evaluate() override {
    int64_t right = 0;
    int64_t all = 0;
    for (size_t begin = 0; begin < by_length_.size(); begin += kAskedAtOnce) {
      const std::span<const int64_t> numbers =
          std::span(by_length_)
              .subspan(begin, std::min<size_t>(kAskedAtOnce, by_length_.size() - begin));
      const PairBatch pairs = Gather(data_.test, numbers, numbers);
      right += Logits(pairs).argmax(1).eq(There(pairs.next)).sum().item<int64_t>();
      all += pairs.next.numel();
    }
    return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(all, 1));
  }

  Result<std::vector<Figure>> Figures() override {
    Bleu bleu;
    const size_t count = std::min(kMostSearched, data_.test.sources.size());
    for (size_t begin = 0; begin < count; begin += kAskedAtOnce) {
      const size_t end = std::min(count, begin + kAskedAtOnce);
      const std::vector<Tokens> said =
          Translate(std::span(data_.test.sources).subspan(begin, end - begin));
      for (size_t i = begin; i < end; ++i) bleu.Add(said[i - begin], data_.test.targets[i]);
    }
    return std::vector<Figure>{{"BLEU", bleu.score()}};
  }

  // Returns the better of two predictions: the source's words in their order, translated by a
  // dictionary from the training pairs; the word that was most frequent after the previous one.
  Result<double> Baseline() override {
    const size_t pairs = std::min(kMostInDictionary, data_.train.sources.size());
    const WordDictionary dictionary(std::span(data_.train.sources).first(pairs),
                                    std::span(data_.train.targets).first(pairs));
    NextWords next;
    for (const Tokens& text : data_.train.targets) {
      int64_t before = kStartToken;
      for (const int64_t word : Framed(text, kPaddingToken, kEndToken)) {
        if (word != kUnknownToken) next.Add(before, word);
        before = word;
      }
    }
    int64_t all = 0;
    std::array<int64_t, 2> right = {0, 0};
    for (size_t i = 0; i < data_.test.sources.size(); ++i) {
      const Tokens& source = data_.test.sources[i];
      int64_t before = kStartToken;
      const Tokens wanted = Framed(data_.test.targets[i], kPaddingToken, kEndToken);
      for (size_t place = 0; place < wanted.size(); before = wanted[place++]) {
        if (wanted[place] == kUnknownToken) continue;
        ++all;
        const int64_t word =
            place < source.size() ? dictionary.Translate(source[place]) : kEndToken;
        if (word == wanted[place]) ++right[0];
        if (next.Behind(before) == wanted[place]) ++right[1];
      }
    }
    return static_cast<double>(std::max(right[0], right[1])) /
           static_cast<double>(std::max<int64_t>(all, 1));
  }

 private:
  // Returns the logits of the words and ends to predict: [M, words].
  at::Tensor Logits(const PairBatch& pairs) {
    const AttendedText memory = model_.Encode(There(pairs.sources));
    const at::Tensor x = model_.Decode(There(pairs.before), memory).flatten(0, 1);
    return model_.Logits(x.index_select(0, There(pairs.places)));
  }

  std::vector<Tokens> Translate(std::span<const Tokens> sources) {
    std::vector<Tokens> framed;
    size_t longest = 0;
    for (const Tokens& source : sources) {
      framed.push_back(Framed(source, kPaddingToken, kEndToken));
      longest = std::max(longest, framed.back().size());
    }
    AttendedText memory = model_.Encode(There(PaddedRows(framed)));
    memory.x = memory.x.repeat_interleave(kBeams, 0);
    memory.mask = memory.mask.repeat_interleave(kBeams, 0);
    const BeamSearch search{.texts = std::ssize(sources),
                            .beams = kBeams,
                            .longest = static_cast<int64_t>(longest + kMostLonger)};
    return Search(search, weights().device(), [&](const at::Tensor& before) {
      return model_.Logits(model_.Decode(before, memory).select(1, -1)).log_softmax(1);
    });
  }

  Translations data_;
  std::vector<int64_t> target_of_;  // by training pair: its own, unless shuffled
  std::vector<int64_t> by_length_;
  Transformer model_;
};

constexpr const char* kSmokeFolder = "package-texts";
constexpr const char* kPaperFolder = "en-de";

bool HasPairs(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(folder + "/train.en", error);
}

}  // namespace

Result<std::unique_ptr<Task>> MakeTextToText(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  const std::string folder = options.data + "/" + (smoke ? kSmokeFolder : kPaperFolder);
  Translations data;
  if (HasPairs(folder)) {
    const Vocabulary::Size size = smoke ? Vocabulary::Size{.most = 4'000, .least_count = 2}
                                        : Vocabulary::Size{.most = 37'000};
    ETUDE_ASSIGN_OR_RETURN(data, ReadTranslations(folder, size, options.context));
  } else if (smoke) {
    data = MakeTranslations();
  } else {
    return Unavailable(folder +
                       ": missing; expected train.en, train.de, test.en and test.de, one "
                       "sentence a line, as of WMT or Multi30k");
  }
  TransformerShape shape{.words = data.vocabulary.size()};
  if (smoke) shape = {.words = shape.words, .width = 128, .heads = 4, .hidden = 512, .layers = 2};
  const int64_t samples = std::ssize(data.train.sources);
  // At paper scale, the settings are those of AIBench's code. The rate is the paper's maximum, √(1
  // / (512 × 4,000)).
  const int64_t batch = smoke ? 64 : std::min<int64_t>(256, samples);
  const int64_t epoch = std::max<int64_t>(1, samples / batch);
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam,
                      .rate = smoke ? 3e-3 : 6.99e-4,
                      .beta2 = 0.98,
                      .epsilon = 1e-9}},
      .schedule = {.warmup_steps = smoke ? 100 : 4'000, .inverse_root = true},
      .evaluate_every = smoke ? 10 : std::max<int64_t>(1, epoch / 4),
      .most_steps = smoke ? 600 : 20 * epoch};
  return std::make_unique<TextToText>(options, std::move(data), shape, std::move(hyperparameters));
}

std::string FindTranslations(Scale scale, const std::string& data) {
  if (scale == Scale::kPaper) return HasPairs(data + "/" + kPaperFolder) ? kPaperFolder : "";
  return HasPairs(data + "/" + kSmokeFolder) ? kSmokeFolder : "generated";
}

}  // namespace etude::suite
