#include "src/suite/tasks/language_modelling.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/data/text/documents.h"
#include "src/suite/data/text/next_words.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/text/bert.h"

namespace etude::suite {
namespace {

// Most of the words to predict are masked, some are replaced by other words, and the others stay.
constexpr double kMasked = 0.8;
constexpr double kReplaced = 0.1;

constexpr uint64_t kMaskSeed = 19;  // for masks of test texts: the same for all runs
constexpr int64_t kMostAskedTexts = 400;
constexpr int64_t kTextsAtOnce = 100;
constexpr int64_t kMostCounted = 100'000;  // maximum of texts for the baseline

// Settings that differ between scales.
struct LanguageSetup {
  Documents documents;
  BertShape model;
  size_t longest = 128;          // maximum of tokens in a text
  double guessed = 0.15;         // share of its words to predict
  bool whole_documents = false;  // texts begin at each sentence; otherwise at the first
  Hyperparameters hyperparameters;
};

// A sentence that a text begins with; another one follows.
struct TextBegin {
  size_t document = 0;
  size_t sentence = 0;
};

// A start, words, an end, more words and an end.
struct TwoPartText {
  Tokens tokens;
  Tokens parts;  // 0 or 1, of each token
};

// Padded texts, on the CPU.
struct TextBatch {
  at::Tensor tokens;  // int64 [N, T]
  at::Tensor parts;   // int64 [N, T]
};

TextBatch GatherTexts(const std::vector<TwoPartText>& texts, int64_t padding) {
  std::vector<Tokens> tokens;
  std::vector<Tokens> parts;
  for (const TwoPartText& text : texts) {
    tokens.push_back(text.tokens);
    parts.push_back(text.parts);
  }
  return {PaddedRows(tokens, padding), PaddedRows(parts, 0)};
}

class LanguageModelling : public Task {
 public:
  LanguageModelling(const TaskOptions& options, LanguageSetup setup)
      : Task(options.device, std::move(setup.hyperparameters)),
        documents_(std::move(setup.documents)),
        longest_(setup.longest),
        guessed_(setup.guessed),
        begins_(BeginsOf(documents_.train, setup.whole_documents)),
        model_(root(), setup.model) {
    HoldOut(BeginsOf(documents_.test, setup.whole_documents));
  }

  std::string data_set() const override { return documents_.name; }
  int64_t samples() const override { return std::ssize(begins_); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const int64_t count = std::ssize(batch.samples);
    // Half of the texts continue with the sentence after another one.
    const at::Tensor draws = Uniform({2, count}, 0, 1);
    const auto* draw = draws.const_data_ptr<float>();
    std::vector<TwoPartText> texts;
    std::vector<int64_t> follows;
    for (int64_t i = 0; i < count; ++i) {
      const auto own = static_cast<size_t>(batch.samples[static_cast<size_t>(i)]);
      const double other = static_cast<double>(draw[count + i]) * static_cast<double>(samples());
      follows.push_back(draw[i] < 0.5F ? 1 : 0);
      texts.push_back(TextOf(documents_.train, begins_[own],
                             begins_[follows.back() == 1 ? own : static_cast<size_t>(other)]));
    }
    const TextBatch batch_texts = GatherTexts(texts, documents_.marks.padding);
    const at::Tensor& tokens = batch_texts.tokens;
    const at::Tensor chances = Uniform({2, tokens.size(0), tokens.size(1)}, 0, 1);
    const at::Tensor words = Uniform(tokens.sizes(), 0, 1)
                                 .mul(static_cast<double>(documents_.words))
                                 .to(at::kLong)
                                 .clamp_max(documents_.words - 1);
    const at::Tensor guessed = chances.select(0, 0).lt(guessed_).logical_and(IsWord(tokens));
    const at::Tensor how = chances.select(0, 1);
    at::Tensor seen =
        tokens.masked_fill(guessed.logical_and(how.lt(kMasked)), documents_.marks.mask);
    seen = Where(guessed.logical_and(how.ge(1 - kReplaced)), words, seen);
    const at::Tensor places = guessed.flatten().nonzero().squeeze(1);
    const at::Tensor x = Seen(seen, batch_texts.parts);
    at::Tensor loss = CrossEntropy(model_.NextLogits(x), There(FromValues(follows, {count})));
    if (places.numel() > 0) {
      const at::Tensor logits = model_.WordLogits(x.flatten(0, 1).index_select(0, There(places)));
      loss = loss + CrossEntropy(logits, There(tokens.flatten().index_select(0, places)));
    }
    return loss;
  }

  Result<double> Evaluate() override { return Ask().words; }
  Result<std::vector<Figure>> Figures() override {
    return std::vector<Figure>{{"next-sentence accuracy", Ask().next}};
  }

  // Returns the better of two predictions: always the most frequent word; the word that is most
  // frequent after the left neighbour, if that is not masked.
  Result<double> Baseline() override {
    NextWords next;
    const auto count = static_cast<size_t>(std::min(kMostCounted, samples()));
    for (size_t i = 0; i < count; ++i) {
      const Tokens tokens = TextOf(documents_.train, begins_[i], begins_[i]).tokens;
      for (size_t place = 1; place < tokens.size(); ++place) {
        if (IsWord(tokens[place])) next.Add(tokens[place - 1], tokens[place]);
      }
    }
    int64_t all = 0;
    int64_t frequent = 0;
    int64_t behind = 0;
    const int64_t most_frequent = next.MostFrequent();
    for (const HeldOut& text : held_out_) {
      for (const size_t place : text.masked) {
        const int64_t wanted = text.text.tokens[place];
        const bool neighbour_is_masked = std::ranges::binary_search(text.masked, place - 1);
        const int64_t before = text.text.tokens[place - 1];
        ++all;
        if (most_frequent == wanted) ++frequent;
        if ((neighbour_is_masked ? most_frequent : next.Behind(before)) == wanted) ++behind;
      }
    }
    return static_cast<double>(std::max(frequent, behind)) /
           static_cast<double>(std::max<int64_t>(all, 1));
  }

 private:
  struct HeldOut {
    TwoPartText text;
    std::vector<size_t> masked;  // positions, ascending
    bool follows = false;
  };
  struct Quality {
    double words = 0;
    double next = 0;
  };

  static std::vector<TextBegin> BeginsOf(const std::vector<Document>& documents, bool all) {
    std::vector<TextBegin> begins;
    for (size_t document = 0; document < documents.size(); ++document) {
      const size_t last = all ? documents[document].size() - 1 : 1;
      for (size_t sentence = 0; sentence < last; ++sentence) begins.push_back({document, sentence});
    }
    return begins;
  }

  bool IsWord(int64_t token) const {
    const LanguageMarks& marks = documents_.marks;
    return token != marks.padding && token != marks.start && token != marks.end &&
           token != marks.unknown && token != marks.mask;
  }
  at::Tensor IsWord(const at::Tensor& tokens) const {
    const LanguageMarks& marks = documents_.marks;
    at::Tensor none = tokens.eq(marks.padding);
    for (const int64_t mark : {marks.start, marks.end, marks.unknown, marks.mask}) {
      none = none.logical_or(tokens.eq(mark));
    }
    return none.logical_not();
  }

  // Returns a sentence and the sentences after it or another one, as far as there is room.
  TwoPartText TextOf(const std::vector<Document>& documents, const TextBegin& first,
                     const TextBegin& second) const {
    const Tokens& sentence = documents[first.document][first.sentence];
    TwoPartText text;
    text.tokens.push_back(documents_.marks.start);
    text.tokens.insert(
        text.tokens.end(), sentence.begin(),
        sentence.begin() + static_cast<ptrdiff_t>(std::min(sentence.size(), longest_ / 2 - 2)));
    text.tokens.push_back(documents_.marks.end);
    text.parts.assign(text.tokens.size(), 0);
    const Document& other = documents[second.document];
    for (size_t i = second.sentence + 1; i < other.size(); ++i) {
      const size_t place = longest_ - 1 - text.tokens.size();
      const auto end = static_cast<ptrdiff_t>(std::min(place, other[i].size()));
      text.tokens.insert(text.tokens.end(), other[i].begin(), other[i].begin() + end);
    }
    text.tokens.push_back(documents_.marks.end);
    text.parts.resize(text.tokens.size(), 1);
    return text;
  }

  // Every second test text continues with the sentence after another one.
  void HoldOut(const std::vector<TextBegin>& begins) {
    RandomStream random(kMaskSeed);
    const auto count = std::min<size_t>(kMostAskedTexts, begins.size());
    for (size_t i = 0; i < count; ++i) {
      HeldOut one;
      one.follows = i % 2 == 0;
      const size_t other = one.follows ? i : (i + begins.size() / 2) % begins.size();
      one.text = TextOf(documents_.test, begins[i], begins[other]);
      for (size_t place = 1; place < one.text.tokens.size(); ++place) {
        const bool drawn = static_cast<double>(random.Uniform()) < guessed_;
        if (drawn && IsWord(one.text.tokens[place])) one.masked.push_back(place);
      }
      held_out_.push_back(std::move(one));
    }
  }

  at::Tensor Seen(const at::Tensor& tokens, const at::Tensor& parts) {
    const at::Tensor mask = tokens.ne(documents_.marks.padding).unsqueeze(1).unsqueeze(1);
    return model_(There(tokens), There(parts), There(mask));
  }

  Quality Ask() {
    int64_t words = 0;
    int64_t right_words = 0;
    int64_t right_next = 0;
    for (size_t begin = 0; begin < held_out_.size(); begin += kTextsAtOnce) {
      const size_t end = std::min(held_out_.size(), begin + kTextsAtOnce);
      std::vector<TwoPartText> texts;
      std::vector<int64_t> wanted;
      std::vector<int64_t> follows;
      for (size_t i = begin; i < end; ++i) {
        texts.push_back(held_out_[i].text);
        follows.push_back(held_out_[i].follows ? 1 : 0);
        for (const size_t place : held_out_[i].masked) {
          wanted.push_back(std::exchange(texts.back().tokens[place], documents_.marks.mask));
        }
      }
      const TextBatch batch = GatherTexts(texts, documents_.marks.padding);
      const at::Tensor x = Seen(batch.tokens, batch.parts);
      const at::Tensor next = There(FromValues(follows, {std::ssize(follows)}));
      right_next += model_.NextLogits(x).argmax(1).eq(next).sum().item<int64_t>();
      if (wanted.empty()) continue;
      const at::Tensor places = batch.tokens.flatten().eq(documents_.marks.mask).nonzero();
      const at::Tensor logits =
          model_.WordLogits(x.flatten(0, 1).index_select(0, There(places.squeeze(1))));
      const at::Tensor answers = There(FromValues(wanted, {std::ssize(wanted)}));
      right_words += logits.argmax(1).eq(answers).sum().item<int64_t>();
      words += std::ssize(wanted);
    }
    const auto share = [](int64_t right, int64_t all) {
      return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(all, 1));
    };
    return {share(right_words, words), share(right_next, std::ssize(held_out_))};
  }

  Documents documents_;
  size_t longest_;
  double guessed_;
  std::vector<TextBegin> begins_;
  std::vector<HeldOut> held_out_;
  Bert model_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeLanguageModelling(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  const std::string folder = options.data + (smoke ? "/package-texts" : "/wikipedia");
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(folder + (smoke ? ": missing; `etude suite setup` makes it"
                                       : ": missing; expected train.txt and test.txt, one sentence "
                                         "a line, and vocab.txt, one piece of a word a line"));
  }
  LanguageSetup setup;
  if (smoke) {
    ETUDE_ASSIGN_OR_RETURN(setup.documents, ReadDocuments(folder, 1'000, 2, options.context));
    // Keep a third of the documents, whose neighbouring words can be learned in less than a minute.
    std::vector<Document> kept;
    for (size_t i = 0; i < setup.documents.train.size(); i += 3) {
      kept.push_back(std::move(setup.documents.train[i]));
    }
    setup.documents.train = std::move(kept);
    setup.model = {.width = 128,
                   .heads = 2,
                   .hidden = 512,
                   .layers = 2,
                   .places = 20,
                   .dropped = 0,
                   .deviation = 0.06};
    setup.longest = 20;
    setup.guessed = 0.3;
    setup.hyperparameters = {.batch = 64,
                             .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 2e-3}},
                             .schedule = {.warmup_steps = 50},
                             .evaluate_every = 15,
                             .most_steps = 1'500};
  } else {
    ETUDE_ASSIGN_OR_RETURN(setup.documents, ReadDocumentsInPieces(folder, options.context));
    setup.model = {};
    setup.whole_documents = true;
    // The paper's settings: a million steps of 256 texts.
    setup.hyperparameters = {.batch = 256,
                             .optimizers = {{.kind = OptimizerOptions::Kind::kAdamW,
                                             .rate = 1e-4,
                                             .weight_decay = 0.01,
                                             .epsilon = 1e-6}},
                             .schedule = {.warmup_steps = 10'000, .cosine = true},
                             .largest_norm = 1,
                             .evaluate_every = 1'000,
                             .most_steps = 1'000'000};
  }
  setup.model.words = setup.documents.words;
  if (options.shuffled_labels) ShuffleWords(setup.documents, options.seed);
  int64_t sentences = 0;
  for (const Document& document : setup.documents.train) sentences += std::ssize(document) - 1;
  setup.hyperparameters.batch = std::min(setup.hyperparameters.batch, sentences);
  return std::make_unique<LanguageModelling>(options, std::move(setup));
}

}  // namespace etude::suite
