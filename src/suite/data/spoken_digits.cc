#include "src/suite/data/spoken_digits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/base/text/folder_names.h"
#include "src/suite/data/audio.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kDigitRate = 8000;
constexpr int64_t kHeldOutTakes = 5;
constexpr int64_t kTrainingStrings = 4000;
constexpr int64_t kTestStrings = 200;
constexpr uint64_t kMostDigits = 5;
constexpr uint64_t kLongestPause = kDigitRate / 5;

// A data set in the folder of its name. Synthetic voices are easier to recognise and get more
// noise, so that both sets take about equally long.
struct DigitSet {
  const char* name;
  double noise;  // deviation of the noise relative to the voice's
};
constexpr std::array kDigitSets = {DigitSet{"free-spoken-digit-dataset", 0.5},
                                   DigitSet{"spoken-digits", 1}};

struct DigitName {
  int64_t digit = 0;
  std::string speaker;
  int64_t take = 0;
};

// Splits "7_jackson_32" into its parts.
std::optional<DigitName> ParseDigitName(std::string_view stem) {
  const size_t first = stem.find('_');
  const size_t last = stem.rfind('_');
  if (first != 1 || last <= first + 1 || stem[0] < '0' || stem[0] > '9') return std::nullopt;
  DigitName name{.digit = stem[0] - '0',
                 .speaker = std::string(stem.substr(first + 1, last - first - 1)),
                 .take = 0};
  const char* end = stem.data() + stem.size();
  const auto parsed = std::from_chars(stem.data() + last + 1, end, name.take);
  if (parsed.ec != std::errc() || parsed.ptr != end || name.take < 0) return std::nullopt;
  return name;
}

// One spoken digit.
struct SpokenDigit {
  int64_t symbol = 0;
  at::Tensor wave;  // deviation 1
};

// By speaker, sorted by name.
using Speakers = std::vector<std::vector<SpokenDigit>>;

class DigitStrings : public Speech {
 public:
  DigitStrings(Speakers speakers, double noise, uint64_t seed, int64_t count)
      : speakers_(std::move(speakers)), noise_(noise), seed_(seed), count_(count) {}

  int64_t size() const override { return count_; }

  Result<at::Tensor> Wave(int64_t number) const override {
    RandomStream random = StreamOf(number);
    std::vector<at::Tensor> parts;
    for (const SpokenDigit* digit : DigitsOf(random)) {
      parts.push_back(digit->wave);
      parts.push_back(Zeros({static_cast<int64_t>(random.Below(kLongestPause))}));
    }
    const at::Tensor wave = Cat(parts, 0);
    return wave + Normal({wave.size(0)}, 0, noise_);
  }

  std::vector<int64_t> Transcript(int64_t number) const override {
    RandomStream random = StreamOf(number);
    std::vector<int64_t> symbols;
    for (const SpokenDigit* digit : DigitsOf(random)) symbols.push_back(digit->symbol);
    return symbols;
  }

 private:
  RandomStream StreamOf(int64_t number) const {
    return RandomStream(HashMix(HashMix(0, seed_), static_cast<uint64_t>(number)));
  }

  std::vector<const SpokenDigit*> DigitsOf(RandomStream& random) const {
    const std::vector<SpokenDigit>& voice = speakers_[random.Below(speakers_.size())];
    std::vector<const SpokenDigit*> digits(1 + random.Below(kMostDigits));
    for (const SpokenDigit*& digit : digits) digit = &voice[random.Below(voice.size())];
    return digits;
  }

  Speakers speakers_;
  double noise_;
  uint64_t seed_;
  int64_t count_;
};

// Returns the folder's recordings, by name.
Result<std::vector<std::string>> ListRecordings(const std::string& folder) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (std::filesystem::path(name).extension() == ".wav") paths.push_back(folder + "/" + name);
  }
  return paths;
}

Result<SpeechParts> ReadRecordings(const std::string& folder, double noise) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListRecordings(folder));
  std::map<std::string, std::vector<SpokenDigit>> train;
  std::map<std::string, std::vector<SpokenDigit>> test;
  for (const std::string& path : paths) {
    const auto name = ParseDigitName(std::filesystem::path(path).stem().string());
    if (!name) {
      return BadInput(path + ": expected a name such as 7_jackson_32.wav (digit, speaker, take)");
    }
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor wave, ReadAudio(path, kDigitRate));
    const double deviation = wave.square().mean().sqrt().item<double>();
    (name->take < kHeldOutTakes ? test : train)[name->speaker].push_back(
        {name->digit + 1, deviation > 0 ? wave / deviation : wave});
  }
  const auto strings = [noise](auto& by_name, uint64_t seed, int64_t count) {
    Speakers speakers;
    for (auto& [name, digits] : by_name) speakers.push_back(std::move(digits));
    return std::make_unique<DigitStrings>(std::move(speakers), noise, seed, count);
  };
  if (train.empty() || test.empty()) {
    return BadInput(
        fmt::format("{}: found no recordings to {}, expected {{digit}}_{{speaker}}_{{take}}.wav "
                    "with takes >= {} for training and others for testing",
                    folder, train.empty() ? "train with" : "test", kHeldOutTakes));
  }
  SpeechParts parts{.name = {},
                    .train = strings(train, 1, kTrainingStrings),
                    .test = strings(test, 2, kTestStrings),
                    .rate = kDigitRate,
                    .symbols = 1 + 10,
                    .space = std::nullopt};
  return parts;
}

}  // namespace

std::string FindSpokenDigits(const std::string& folder) {
  std::error_code error;
  for (const DigitSet& set : kDigitSets) {
    if (std::filesystem::exists(fmt::format("{}/{}", folder, set.name), error)) return set.name;
  }
  return "";
}

Result<SpeechParts> ReadSpokenDigits(const std::string& folder) {
  const std::string name = FindSpokenDigits(folder);
  for (const DigitSet& set : kDigitSets) {
    if (set.name != name) continue;
    ETUDE_ASSIGN_OR_RETURN(
        SpeechParts parts,
        ReadRecordings(fmt::format("{}/{}/recordings", folder, name), set.noise));
    parts.name = name;
    return parts;
  }
  return Unavailable(folder + "/spoken-digits: missing; `etude suite setup` makes it");
}

}  // namespace etude::suite
