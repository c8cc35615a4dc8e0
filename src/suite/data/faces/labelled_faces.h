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

// Reads the Database of Faces (AT&T Laboratories Cambridge, also called ORL) from
// `folder`/orl-faces: 40 people with ten pictures each, resized to `side` × `side`. Labels are
// people, and every fourth one is in the test set. Returns kUnavailable if the set is missing, and
// kBadInput if there are fewer than four test people with two pictures or more, or fewer than two
// training people.
Result<LabelledImages> ReadOrlFaces(const std::string& folder, int64_t side,
                                    const RunContext& context);

// Pairs of Labeled Faces in the Wild (Huang 2007), read from the file `path`. Its first line has
// the number of sets and of pairs of each kind in a set. For each set follow lines "NAME number
// number", pairs of one person, and lines "NAME number NAME number". Fields are separated by any
// blanks. Pictures are NAME/NAME_0001.jpg of `pictures`, and pairs contain their numbers there.
// Other lines and missing pictures are kBadInput, with the line.
struct FacePairs {
  std::vector<PicturePair> pairs;
  int64_t set_size = 0;
};
Result<FacePairs> ReadLfwPairs(const std::string& path, const ImageFolder& pictures,
                               const RunContext& context);

}  // namespace etude::suite
