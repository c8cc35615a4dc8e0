#include "src/suite/data/faces/labelled_faces.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/file_text.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kMostPeople = 128;  // a label is a byte
constexpr int64_t kMostFaces = 4000;  // all pairs of test pictures are compared
constexpr int64_t kFacesHeldOutEvery = 4;
constexpr int64_t kMostSetPairs = 1'000'000;

// Returns the number of people with two images or more.
int64_t PeopleWithPairs(const at::Tensor& labels) {
  return labels.bincount().ge(2).sum().item<int64_t>();
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line = Trimmed(line);
    if (line.empty()) return words;
    const auto end = std::ranges::find_if(line, IsBlank);
    const auto size = static_cast<size_t>(end - line.begin());
    words.push_back(line.substr(0, size));
    line.remove_prefix(size);
  }
}

// The non-blank lines of a file of pairs, one after the other.
class PairLines {
 public:
  PairLines(std::string path, std::string_view text) : path_(std::move(path)), rest_(text) {}

  // Returns the words of the next line, and none at the end.
  std::vector<std::string_view> Next() {
    while (!rest_.empty()) {
      line_ = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(rest_.size(), line_.size() + 1));
      ++number_;
      std::vector<std::string_view> words = WordsOf(line_);
      if (!words.empty()) return words;
    }
    line_ = {};
    return {};
  }

  tl::unexpected<Error> Wrong(std::string_view expected) const {
    return BadInput(fmt::format("{}:{}: found '{}', expected {}", path_,
                                std::max<int64_t>(number_, 1),
                                Printable(Trimmed(line_).substr(0, 60)), expected));
  }

 private:
  std::string path_;
  std::string_view rest_;
  std::string_view line_;
  int64_t number_ = 0;
};

// Returns the picture of `name` with a number, both given as words of a line.
std::optional<int64_t> PictureOf(const ImageFolder& pictures, std::string_view name,
                                 std::string_view number) {
  const std::optional<int64_t> value = ParseWhole(number);
  return value ? pictures.Find(fmt::format("{0}/{0}_{1:04}.jpg", name, *value)) : std::nullopt;
}

}  // namespace

Result<LabelledImages> ReadOrlFaces(const std::string& folder, int64_t side,
                                    const RunContext& context) {
  const std::string base = folder + "/orl-faces/";
  std::error_code error;
  if (!std::filesystem::exists(base, error)) {
    return Unavailable(base + ": missing; `etude suite setup` makes it");
  }
  ETUDE_ASSIGN_OR_RETURN(
      ImagesAndLabels all,
      ReadImages(base + "images-idx3-ubyte", base + "labels-idx1-ubyte", kMostPeople, context));
  if (all.labels.size(0) > kMostFaces) {
    return BadInput(fmt::format("{}labels-idx1-ubyte: {} pictures, expected {} at most", base,
                                all.labels.size(0), kMostFaces));
  }
  all.images = Resize(all.images, side, side);
  LabelledImages data =
      Split(all, all.labels.remainder(kFacesHeldOutEvery).eq(kFacesHeldOutEvery - 1), kMostPeople);
  if (PeopleWithPairs(data.test_labels) < 4 || PeopleWithPairs(data.train_labels) < 2) {
    return BadInput(base +
                    "labels-idx1-ubyte: too few people, expected 16 or more with two pictures or "
                    "more, numbered from 0 on");
  }
  return data;
}

Result<FacePairs> ReadLfwPairs(const std::string& path, const ImageFolder& pictures,
                               const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(path, context.limits));
  PairLines lines(path, file.text());
  const std::vector<std::string_view> header = lines.Next();
  const auto header_number = [&](size_t place) {
    return header.size() == 2 ? ParseWhole(header[place]).value_or(0) : 0;
  };
  const int64_t sets = header_number(0);
  const int64_t each = header_number(1);
  if (sets < 2 || sets > kMostSetPairs || each < 1 || each > kMostSetPairs) {
    return lines.Wrong("'10 300': sets, two or more, and pairs of each kind in a set");
  }
  FacePairs all{.set_size = 2 * each};
  for (int64_t number = 0; number < sets * all.set_size; ++number) {
    const bool same = number % all.set_size < each;
    const std::vector<std::string_view> words = lines.Next();
    if (words.size() != (same ? 3U : 4U)) {
      return lines.Wrong(same ? "'NAME number number'" : "'NAME number NAME number'");
    }
    const auto first = PictureOf(pictures, words[0], words[1]);
    const auto second =
        same ? PictureOf(pictures, words[0], words[2]) : PictureOf(pictures, words[2], words[3]);
    if (!first || !second) return lines.Wrong("pictures NAME/NAME_0001.jpg that exist");
    all.pairs.push_back({*first, *second, same});
  }
  if (!lines.Next().empty()) return lines.Wrong("the end, after the pairs of all sets");
  return all;
}

}  // namespace etude::suite
