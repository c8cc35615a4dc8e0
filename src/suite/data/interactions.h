#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/random_stream.h"
#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// What each user chose, split into what is learned from and what came after it. Items are numbered
// from 1 on; 0 stands for none.
struct Interactions {
  struct User {
    std::vector<int64_t> learned;   // in order of time
    std::vector<int64_t> held_out;  // items of training; others can never be named
    bool is_asked = false;          // something is held out
  };
  std::vector<User> users;
  int64_t items = 0;
};

// `folder`/train.txt and test.txt as the programs of Caser have them: a line is "user item rating",
// the lines of a user in order of time; ratings are not looked at. kBadInput for other lines, and
// for users of test.txt that train.txt does not have.
Result<Interactions> ReadInteractions(const std::string& folder, const RunContext& context);

// Ratings as MovieLens has them, ratings.csv: a header, then lines
// "userId,movieId,rating,timestamp". Items of a user are in order of time, ties in order of the
// file; ratings are not looked at. Nothing is held out. kBadInput for other lines.
Result<Interactions> ReadRatings(const std::string& path, const RunContext& context);

// Keeps the first choice of each item by a user, learned or held out, and holds the last of these
// out, of users with three or more.
void LeaveLastOut(Interactions& data);

// Gives what was learned from to other places, also of other users: how often an item is chosen is
// all that is left to be learned.
void ShuffleLearned(Interactions& data, uint64_t seed);

// Learned items `length` by `length` with the `targets` items behind them, from each place of each
// user. Users with too few have one row that begins with zeros; those with no more than `targets`
// have none.
struct SequenceWindows {
  at::Tensor items;  // int64 [N, length + targets]
  at::Tensor users;  // int64 [N]
};
SequenceWindows WindowsOf(const Interactions& data, int64_t length, int64_t targets);
// The last `length` learned items of each user, zeros before them: int64 [users, length].
at::Tensor LastOf(const Interactions& data, int64_t length);

// Which items each user has not learned. Immutable.
class UnseenItems {
 public:
  explicit UnseenItems(const Interactions& data);

  // For each of `users` (int64 [N], on the CPU) `count` items that the user has not, each equally
  // likely, by PyTorch's generator: int64 [N, count]. Any items, for users who have all.
  at::Tensor Draw(const at::Tensor& users, int64_t count) const;
  // Up to `count` different items that the user has not, without `other`, in random order; fewer
  // where there are no more.
  std::vector<int64_t> Sample(int64_t user, int64_t other, int64_t count,
                              RandomStream& random) const;
  // What the user has, ascending.
  const std::vector<int64_t>& SeenBy(int64_t user) const {
    return seen_[static_cast<size_t>(user)];
  }

 private:
  int64_t items_;
  std::vector<std::vector<int64_t>> seen_;  // by user
};

}  // namespace etude::suite
