#include "src/suite/data/coco_captions.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/formats/json/json_document.h"

namespace etude::suite {
namespace {

constexpr size_t kLongestSentence = 4096;  // bytes

bool IsPartOfWord(char c) {
  return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '\'' || static_cast<unsigned char>(c) >= 0x80;
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  for (char c : text) {
    c = Lower(c);
    if (IsPartOfWord(c)) {
      if (!in_word) words.emplace_back();
      words.back() += c;
      in_word = true;
      continue;
    }
    in_word = false;
    if (static_cast<unsigned char>(c) > ' ') words.emplace_back(1, c);
  }
  return words;
}

// Returns the file of each picture, by its id.
std::map<int64_t, std::string> ReadPictures(const JsonMembers& document) {
  std::map<int64_t, std::string> files;
  for (const JsonMembers& image : document.Objects("images")) {
    const std::optional<int64_t> id = image.Whole("id", 0);
    const std::optional<std::string> name = image.Text("file_name");
    if (!id) {
      image.Refuse("id", "a number");
    } else if (!name || name->empty() || name->find('/') != std::string::npos) {
      image.Refuse("file_name", "the file name of an image");
    } else if (!files.emplace(*id, *name).second) {
      image.Refuse("id", "a unique value");
    }
  }
  return files;
}

}  // namespace

Result<CocoCaptions> CocoCaptions::Read(const std::string& folder, std::string_view part,
                                        const RunContext& context) {
  const std::string path = fmt::format("{}/annotations/captions_{}.json", folder, part);
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ReadForeignDocument(path, "captions of COCO", context));
  Status status;
  const JsonMembers document(path, json, status);
  CocoCaptions captions;
  std::map<int64_t, int64_t> number_of;
  for (const auto& [id, file] : ReadPictures(document)) {
    number_of[id] = std::ssize(captions.pictures);
    captions.pictures.push_back(fmt::format("{}/{}/{}", folder, part, file));
  }
  for (const JsonMembers& annotation : document.Objects("annotations")) {
    const std::optional<int64_t> id = annotation.Whole("image_id", 0);
    const std::optional<std::string> text = annotation.Text("caption");
    const auto picture = id ? number_of.find(*id) : number_of.end();
    if (picture == number_of.end()) {
      annotation.Refuse("image_id", "the id of one of the images");
      continue;
    }
    if (!text || text->size() > kLongestSentence) {
      annotation.Refuse("caption", fmt::format("a sentence of at most {} bytes", kLongestSentence));
      continue;
    }
    captions.sentences.push_back({picture->second, *text});
  }
  ETUDE_RETURN_IF_ERROR(status);
  if (captions.sentences.empty()) {
    return BadInput(path +
                    ": found no captions, expected \"images\" and \"annotations\" as in COCO");
  }
  return captions;
}

CaptionVocabulary::CaptionVocabulary(const std::vector<CocoCaptions::Sentence>& sentences,
                                     int64_t least_count) {
  std::map<std::string, int64_t> counts;
  for (const CocoCaptions::Sentence& sentence : sentences) {
    for (const std::string& word : SplitWords(sentence.text)) ++counts[word];
  }
  for (const auto& [word, count] : counts) {
    if (count >= least_count) numbers_.emplace(word, size());
  }
}

Caption CaptionVocabulary::Numbers(std::string_view text) const {
  Caption caption;
  for (const std::string& word : SplitWords(text)) {
    const auto found = numbers_.find(word);
    caption.push_back(found == numbers_.end() ? kUnknownWord : found->second);
  }
  return caption;
}

}  // namespace etude::suite
