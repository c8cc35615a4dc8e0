#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/digits.h"
#include "src/suite/data/image_folder.h"
#include "src/suite/nn/verification.h"

namespace etude::suite {

// The Database of Faces (AT&T Laboratories Cambridge, also called ORL): 40 people with ten pictures
// each, in `folder`/orl-faces, made `side` × `side`. Labels are people; every fourth one is held
// out. kUnavailable where the set is missing, kBadInput for fewer than four people held out with
// two pictures or more, or two learned.
Result<LabelledImages> ReadOrlFaces(const std::string& folder, int64_t side,
                                    const RunContext& context);

// Pairs of Labeled Faces in the Wild (Huang 2007), from the file `path`: a line with the numbers of
// sets and of pairs of each kind in a set; then, for each set, lines "NAME number number", pairs of
// one person, and "NAME number NAME number". Blanks between are any. Pictures are
// NAME/NAME_0001.jpg of `pictures`; pairs have their numbers there. kBadInput, with the line, for
// others and for pictures that are missing.
struct FacePairs {
  std::vector<PicturePair> pairs;
  int64_t set_size = 0;
};
Result<FacePairs> ReadLfwPairs(const std::string& path, const ImageFolder& pictures,
                               const RunContext& context);

}  // namespace etude::suite
