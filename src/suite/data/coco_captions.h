#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/captions.h"

namespace etude::suite {

// Captions of one part of MS COCO ("train2014"), from annotations/captions_PART.json in `folder`,
// and the pictures in PART/.
struct CocoCaptions {
  struct Sentence {
    int64_t picture = 0;  // index in `pictures`
    std::string text;
  };
  std::vector<std::string> pictures;  // paths, in the order of their ids
  std::vector<Sentence> sentences;    // in file order

  // Reads a part. kIo for a missing file, kBadInput if it is not a valid COCO file.
  static Result<CocoCaptions> Read(const std::string& folder, std::string_view part,
                                   const RunContext& context);
};

// Numbers of words that are frequent enough. Case is ignored; punctuation marks are words.
class CaptionVocabulary {
 public:
  CaptionVocabulary(const std::vector<CocoCaptions::Sentence>& sentences, int64_t least_count);

  // Returns the number of words, including special ones.
  int64_t size() const { return kFirstWord + static_cast<int64_t>(numbers_.size()); }
  Caption Numbers(std::string_view text) const;

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace etude::suite
