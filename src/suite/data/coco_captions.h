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

// What people wrote about the pictures of one part of MS COCO ("train2014"): of `folder` the file
// annotations/captions_PART.json, and the pictures that it names, in PART/.
struct CocoCaptions {
  struct Sentence {
    int64_t picture = 0;  // of `pictures`
    std::string text;
  };
  std::vector<std::string> pictures;  // paths, in the order of their ids
  std::vector<Sentence> sentences;    // in the file's order

  // kIo if the file is not there, kBadInput if it is not what COCO has.
  static Result<CocoCaptions> Read(const std::string& folder, std::string_view part,
                                   const RunContext& context);
};

// Numbers for the words of sentences that occur often enough: in small letters; signs are words,
// too.
class CaptionVocabulary {
 public:
  CaptionVocabulary(const std::vector<CocoCaptions::Sentence>& sentences, int64_t least_count);

  // Words, the special ones counted in.
  int64_t size() const { return kFirstWord + static_cast<int64_t>(numbers_.size()); }
  Caption Numbers(std::string_view text) const;

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace etude::suite
