#include "src/suite/tasks/speech_recognition.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/suite/data/digits.h"
#include "src/suite/data/librispeech.h"
#include "src/suite/data/spectrogram.h"
#include "src/suite/data/speech.h"
#include "src/suite/data/spoken_digits.h"
#include "src/suite/data/word_errors.h"
#include "src/suite/nn/deep_speech.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr uint64_t kTestNoiseSeed = 6;  // constant noise of the test strings

// Settings that differ between scales.
struct SpeechSetup {
  SpeechParts parts;
  Spectrogram::Shape spectrogram;
  DeepSpeechShape model;
  Hyperparameters hyperparameters;
  int64_t test_batch = 1;
};

// Input of the model, and the expected answers by utterance, longest first.
struct SpeechBatch {
  at::Tensor spectrograms;  // [N, 1, bins, frames]
  std::vector<int64_t> frames;
  std::vector<std::vector<int64_t>> answers;
};

class SpeechRecognition : public Task {
 public:
  SpeechRecognition(const TaskOptions& options, SpeechSetup setup)
      : Task(options.device, std::move(setup.hyperparameters)),
        parts_(std::move(setup.parts)),
        spectrogram_(setup.spectrogram),
        test_batch_(setup.test_batch),
        model_(root(), setup.model) {
    transcript_of_ = LabelOrder(parts_.train->size(), options.shuffled_labels, options.seed);
  }

  std::string data_set() const override { return parts_.name; }
  int64_t samples() const override { return parts_.train->size(); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    ETUDE_ASSIGN_OR_RETURN(const SpeechBatch asked, Collect(*parts_.train, batch.samples));
    std::vector<int64_t> steps;
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < asked.frames.size(); ++i) {
      steps.push_back(model_.StepsOf(asked.frames[i]));
      lengths.push_back(std::ssize(asked.answers[i]));
    }
    const int64_t longest = *std::ranges::max_element(lengths);
    std::vector<int64_t> labels;
    for (const std::vector<int64_t>& answer : asked.answers) {
      labels.insert(labels.end(), answer.begin(), answer.end());
      labels.resize(labels.size() + static_cast<size_t>(longest - std::ssize(answer)));
    }
    const at::Tensor found = model_(asked.spectrograms, asked.frames);
    return CtcLoss(found, FromValues(labels, {std::ssize(lengths), longest}).to(found.device()),
                   steps, lengths);
  }

  Result<double> Evaluate() override {
    SeedTorch(kTestNoiseSeed);
    int64_t errors = 0;
    int64_t words = 0;
    const int64_t all = parts_.test->size();
    for (int64_t begin = 0; begin < all; begin += test_batch_) {
      std::vector<int64_t> numbers;
      for (int64_t i = begin; i < std::min(all, begin + test_batch_); ++i) numbers.push_back(i);
      ETUDE_ASSIGN_OR_RETURN(const SpeechBatch asked, Collect(*parts_.test, numbers));
      // [N, steps]: the most probable symbols.
      const at::Tensor best =
          model_(asked.spectrograms, asked.frames).argmax(2).transpose(0, 1).contiguous().cpu();
      const auto* symbols = best.const_data_ptr<int64_t>();
      for (size_t i = 0; i < asked.answers.size(); ++i) {
        const auto steps = static_cast<size_t>(model_.StepsOf(asked.frames[i]));
        const std::vector<int64_t> heard = CollapseSteps({symbols, steps});
        const std::vector<Word> said = WordsOf(asked.answers[i]);
        errors += WordErrors(said, WordsOf(heard));
        words += std::ssize(said);
        symbols += best.size(1);
      }
    }
    return static_cast<double>(errors) / static_cast<double>(std::max<int64_t>(words, 1));
  }

  // Always answers the word of most utterances.
  Result<double> Baseline() override {
    std::vector<std::vector<Word>> said;
    std::map<Word, int64_t> utterances;  // by word
    for (int64_t i = 0; i < parts_.test->size(); ++i) {
      said.push_back(WordsOf(parts_.test->Transcript(i)));
      std::vector<Word> distinct = said.back();
      std::ranges::sort(distinct);
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      for (const Word& word : distinct) ++utterances[word];
    }
    std::vector<Word> answer;
    const auto frequent = std::ranges::max_element(
        utterances, {}, [](const auto& word_and_count) { return word_and_count.second; });
    if (frequent != utterances.end()) answer.push_back(frequent->first);
    int64_t errors = 0;
    int64_t words = 0;
    for (const std::vector<Word>& each : said) {
      errors += WordErrors(each, answer);
      words += std::ssize(each);
    }
    return static_cast<double>(errors) / static_cast<double>(std::max<int64_t>(words, 1));
  }

 private:
  std::vector<Word> WordsOf(std::span<const int64_t> symbols) const {
    return SplitWords(symbols, parts_.space);
  }

  Result<SpeechBatch> Collect(const Speech& speech, std::span<const int64_t> numbers) {
    struct Utterance {
      int64_t number;
      at::Tensor spectrogram;  // [bins, frames]
    };
    std::vector<Utterance> utterances;
    for (const int64_t number : numbers) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor wave, speech.Wave(number));
      utterances.push_back({number, spectrogram_(wave)});
    }
    std::ranges::stable_sort(utterances, std::greater{}, [](const Utterance& utterance) {
      return utterance.spectrogram.size(1);
    });
    SpeechBatch batch;
    batch.spectrograms = Zeros(
        {std::ssize(utterances), 1, spectrogram_.bins(), utterances.front().spectrogram.size(1)});
    const bool learned = &speech == parts_.train.get();
    for (size_t i = 0; i < utterances.size(); ++i) {
      const auto& [number, spectrogram] = utterances[i];
      const int64_t frames = spectrogram.size(1);
      batch.spectrograms.select(0, static_cast<int64_t>(i))
          .select(0, 0)
          .narrow(1, 0, frames)
          .copy_(spectrogram);
      batch.frames.push_back(frames);
      const auto own = static_cast<size_t>(number);
      batch.answers.push_back(speech.Transcript(learned ? transcript_of_[own] : number));
    }
    batch.spectrograms = batch.spectrograms.to(weights().device());
    return batch;
  }

  SpeechParts parts_;
  Spectrogram spectrogram_;
  int64_t test_batch_;
  std::vector<int64_t> transcript_of_;  // by training utterance: its own, unless shuffled
  DeepSpeech model_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeSpeechRecognition(const TaskOptions& options) {
  SpeechSetup setup;
  if (options.scale == Scale::kSmoke) {
    ETUDE_ASSIGN_OR_RETURN(setup.parts, ReadSpokenDigits(options.data));
    setup.spectrogram = {
        .rate = setup.parts.rate, .window = 200, .step = 80, .transform = 256, .mel_bands = 40};
    setup.model = {.bins = 40,
                   .channels = 128,
                   .convolutions = {{.kernel = {40, 11}, .stride = {1, 4}, .padding = {0, 5}}},
                   .layers = 1,
                   .hidden = 96,
                   .symbols = setup.parts.symbols};
    setup.hyperparameters = {.batch = 32,
                             .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 1e-3}},
                             .largest_norm = 50,
                             .evaluate_every = 10,
                             .most_steps = 800};
    setup.test_batch = 50;
  } else {
    ETUDE_ASSIGN_OR_RETURN(setup.parts, ReadLibriSpeech(options.data, options.context));
    setup.model = {.convolutions = {{.kernel = {41, 11}, .stride = {2, 2}, .padding = {20, 5}},
                                    {.kernel = {21, 11}, .stride = {2, 1}, .padding = {10, 5}}},
                   .symbols = setup.parts.symbols};
    // AIBench's hyperparameters.
    const int64_t batch = std::min<int64_t>(20, setup.parts.train->size());
    const int64_t epoch = setup.parts.train->size() / batch;
    setup.hyperparameters = {.batch = batch,
                             .optimizers = {{.rate = 3e-4, .momentum = 0.9, .nesterov = true}},
                             .schedule = {.annealing = 1.1, .anneal_every = epoch},
                             .largest_norm = 400,
                             .evaluate_every = std::max<int64_t>(1, epoch / 4),
                             .most_steps = 70 * epoch};
    setup.test_batch = 20;
  }
  return std::make_unique<SpeechRecognition>(options, std::move(setup));
}

std::string FindSpeechDataSet(Scale scale, const std::string& data) {
  return scale == Scale::kSmoke ? FindSpokenDigits(data) : FindLibriSpeech(data);
}

}  // namespace etude::suite
