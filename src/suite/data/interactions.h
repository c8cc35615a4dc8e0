#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/random_stream.h"
#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Choices of each user, split into training choices and later ones. Items are numbered from 1; 0
// means none.
struct Interactions {
  struct User {
    std::vector<int64_t> learned;   // by time
    std::vector<int64_t> held_out;  // training items only; others can never be recommended
    bool is_asked = false;          // `held_out` is not empty
  };
  std::vector<User> users;
  int64_t items = 0;
};

// Reads `folder`/train.txt and test.txt in the format of Caser's programs: lines "user item
// rating", by time for each user. Ratings are ignored. kBadInput for other lines, and for users of
// test.txt that train.txt lacks.
Result<Interactions> ReadInteractions(const std::string& folder, const RunContext& context);

// Reads ratings in MovieLens's format, ratings.csv: a header, then lines
// "userId,movieId,rating,timestamp". Items of a user are in order of time, and ties in order of the
// file. Ratings are ignored, and there is no test set. Returns kBadInput for other lines.
Result<Interactions> ReadRatings(const std::string& path, const RunContext& context);

// Keeps the first choice of each item by a user, from training or test set. For users with three or
// more, moves the last of these to the test set.
void LeaveLastOut(Interactions& data);

// Moves the training choices to other places, also of other users, so that only the frequency of
// each item remains.
void ShuffleLearned(Interactions& data, uint64_t seed);

// All windows of `length` training items of a user, each followed by `targets` items. Users with
// too few items have one row with leading zeros; those with at most `targets` items have none.
struct SequenceWindows {
  at::Tensor items;  // int64 [N, length + targets]
  at::Tensor users;  // int64 [N]
};
SequenceWindows WindowsOf(const Interactions& data, int64_t length, int64_t targets);
// Returns the last `length` training items of each user, with leading zeros: int64 [users, length].
at::Tensor LastOf(const Interactions& data, int64_t length);

// Items that each user has not chosen in training. Immutable.
class UnseenItems {
 public:
  explicit UnseenItems(const Interactions& data);

  // Draws, for each of `users` (int64 [N], on the CPU), `count` unseen items uniformly by PyTorch's
  // generator: int64 [N, count]. Draws any items for users who have seen all.
  at::Tensor Draw(const at::Tensor& users, int64_t count) const;
  // Returns up to `count` different items that the user has not, without `other`, in random order.
  // Returns fewer if there are no more.
  std::vector<int64_t> Sample(int64_t user, int64_t other, int64_t count,
                              RandomStream& random) const;
  // Returns the user's items, ascending.
  const std::vector<int64_t>& SeenBy(int64_t user) const {
    return seen_[static_cast<size_t>(user)];
  }

 private:
  int64_t items_;
  std::vector<std::vector<int64_t>> seen_;  // by user
};

}  // namespace etude::suite
