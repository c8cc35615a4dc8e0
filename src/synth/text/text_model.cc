#include "src/synth/text/text_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr size_t kColumns = 12;

struct ParallelismName {
  std::string_view name;
  TextParallelism parallelism;
};
constexpr auto kParallelisms = std::to_array<ParallelismName>({
    {"MICRO", TextParallelism::kMicro},
    {"DATA", TextParallelism::kData},
    {"MODEL", TextParallelism::kModel},
    {"HYBRID_DATA_MODEL", TextParallelism::kDataModel},
    {"HYBRID_MODEL_DATA", TextParallelism::kModelData},
    {"HYBRID_DLRM", TextParallelism::kDlrm},
    {"HYBRID_DLRM_ENHANCED", TextParallelism::kDlrm},
});

std::vector<std::string_view> Split(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\n\r\v\f";
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<int64_t> Whole(std::string_view word) {
  if (word.starts_with('+') && word.size() > 1 && word[1] != '-') word.remove_prefix(1);
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool ReadLayer(std::string_view line, TextModel& model) {
  const std::vector<std::string_view> words = Split(line);
  if (words.size() < kColumns) return false;
  TextLayer& layer = model.layers.emplace_back();
  layer.name = words[0];
  size_t at = 2;  // words[1] is a dependency that Chakra ignores
  for (TextPhase* phase : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
    const auto time = Whole(words[at]);
    const auto size = Whole(words[at + 2]);
    if (!time || !size) return false;
    phase->time = *time;
    phase->comm = words[at + 1];
    phase->size = *size;
    at += 3;
  }
  return true;
}

}  // namespace

Result<TextModel> ParseTextModel(std::string_view text) {
  TextModel model;
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (lines.size() < 2) return BadInput("less than two lines");
  const std::vector<std::string_view> head = Split(lines[0]);
  const std::vector<std::string_view> count = Split(lines[1]);
  const auto layer_count = count.size() == 1 ? Whole(count[0]) : std::nullopt;
  if (head.empty() || !layer_count) return BadInput("no parallelism or no number of layers");
  model.layer_count = *layer_count;
  bool known = false;
  for (const ParallelismName& row : kParallelisms) {
    if (row.name != head[0]) continue;
    model.parallelism = row.parallelism;
    known = true;
  }
  if (!known) return BadInput(fmt::format("parallelism '{}'", head[0]));
  if (model.parallelism == TextParallelism::kDlrm) {
    const auto last = head.size() > 1 ? Whole(head[1]) : std::nullopt;
    if (!last) return BadInput("no last layer of the bottom");
    model.last_bottom = *last;
  }
  for (size_t i = 2; i < lines.size(); ++i) {
    if (!ReadLayer(lines[i], model))
      return BadInput(fmt::format("line {}, which is no layer", i + 1));
  }
  return model;
}

// Converts line ends like Python's text files.
std::string WithPlainLines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      plain += text[i];
      continue;
    }
    plain += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return plain;
}

}  // namespace etude
