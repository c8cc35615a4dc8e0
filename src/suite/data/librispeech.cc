#include "src/suite/data/librispeech.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/formats/io/byte_source.h"
#include "src/suite/data/audio.h"

namespace etude::suite {
namespace {

constexpr int64_t kLibriSpeechRate = 16000;
constexpr std::string_view kTranscriptEnd = ".trans.txt";
// Symbol 0 is CTC's blank; the order is that of AIBench's program.
constexpr std::string_view kAlphabet = "_'ABCDEFGHIJKLMNOPQRSTUVWXYZ ";
constexpr std::array kTrainingParts = {"train-clean-100", "train-clean-360", "train-other-500"};

struct SpokenText {
  std::string path;  // sound file
  std::string text;
};

class ReadSpeech : public Speech {
 public:
  explicit ReadSpeech(std::vector<SpokenText> utterances) : utterances_(std::move(utterances)) {}

  int64_t size() const override { return std::ssize(utterances_); }
  Result<at::Tensor> Wave(int64_t number) const override {
    return ReadAudio(utterances_[static_cast<size_t>(number)].path, kLibriSpeechRate);
  }
  std::vector<int64_t> Transcript(int64_t number) const override {
    std::vector<int64_t> symbols;
    for (const char letter : utterances_[static_cast<size_t>(number)].text) {
      symbols.push_back(static_cast<int64_t>(kAlphabet.find(letter)));
    }
    return symbols;
  }

 private:
  std::vector<SpokenText> utterances_;
};

// Adds a chapter's utterances from lines such as "84-121123-0000 GO DO YOU HEAR".
Status AddChapter(const std::string& path, const RunContext& context,
                  std::vector<SpokenText>& utterances) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const std::string all, ReadWholeFile(path, context.limits));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::string_view rest = all;
  for (int64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const std::string_view name = line.substr(0, space);
    const std::string_view text = space == line.npos ? "" : line.substr(space + 1);
    if (name.empty() || name.find('/') != name.npos || text.empty() ||
        text.find_first_not_of(kAlphabet.substr(1)) != text.npos) {
      return BadInput(
          fmt::format("{}:{}: found '{}', expected the name of an utterance and its text in "
                      "capitals, apostrophes and spaces",
                      path, number, line.substr(0, 80)));
    }
    utterances.push_back({fmt::format("{}/{}.flac", folder, name), std::string(text)});
  }
  return {};
}

// Adds a part of the data set, by name.
Status AddPart(const std::string& folder, const RunContext& context,
               std::vector<SpokenText>& utterances) {
  std::vector<std::string> chapters;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().string().ends_with(kTranscriptEnd)) chapters.push_back(it->path().string());
  }
  if (error) return MakeError(ErrorCode::kIo, fmt::format("{}: {}", folder, error.message()));
  std::ranges::sort(chapters);
  const size_t before = utterances.size();
  for (const std::string& chapter : chapters) {
    ETUDE_RETURN_IF_ERROR(AddChapter(chapter, context, utterances));
  }
  if (utterances.size() > before) return {};
  return BadInput(folder +
                  ": found no utterances, expected {speaker}/{chapter}/{speaker}-{chapter}" +
                  std::string(kTranscriptEnd));
}

// Returns the available training parts.
std::vector<const char*> FindParts(const std::string& folder) {
  std::vector<const char*> parts;
  std::error_code error;
  for (const char* part : kTrainingParts) {
    if (std::filesystem::exists(fmt::format("{}/LibriSpeech/{}", folder, part), error)) {
      parts.push_back(part);
    }
  }
  return parts;
}

std::string NameOf(const std::vector<const char*>& parts) {
  return fmt::format("LibriSpeech {}", fmt::join(parts, ", "));
}

}  // namespace

std::string FindLibriSpeech(const std::string& folder) {
  const std::vector<const char*> parts = FindParts(folder);
  return parts.empty() ? "" : NameOf(parts);
}

Result<SpeechParts> ReadLibriSpeech(const std::string& folder, const RunContext& context) {
  const std::string base = folder + "/LibriSpeech/";
  std::error_code error;
  std::vector<SpokenText> train;
  const std::vector<const char*> parts = FindParts(folder);
  for (const char* part : parts) {
    ETUDE_RETURN_IF_ERROR(AddPart(base + part, context, train));
  }
  const std::string held_out = base + "test-clean";
  if (train.empty() || !std::filesystem::exists(held_out, error)) {
    return Unavailable(fmt::format("{}: missing; unpack LibriSpeech's archives into {}",
                                   train.empty() ? base + kTrainingParts.front() : held_out,
                                   folder));
  }
  std::vector<SpokenText> test;
  ETUDE_RETURN_IF_ERROR(AddPart(held_out, context, test));
  return SpeechParts{.name = NameOf(parts),
                     .train = std::make_unique<ReadSpeech>(std::move(train)),
                     .test = std::make_unique<ReadSpeech>(std::move(test)),
                     .rate = kLibriSpeechRate,
                     .symbols = std::ssize(kAlphabet),
                     .space = std::ssize(kAlphabet) - 1};
}

}  // namespace etude::suite
