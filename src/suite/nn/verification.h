#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etude::suite {

// Two pictures, by number, and whether they show the same person.
struct PicturePair {
  int64_t first = 0;
  int64_t second = 0;
  bool same = false;
};

// Pairs to be told apart by how alike their pictures are, and folds of them: the threshold for the
// pairs asked is chosen by others. Every fold needs pairs of both kinds among those it chooses by.
struct Verification {
  struct Fold {
    std::vector<int64_t> chosen_by;  // numbers of pairs
    std::vector<int64_t> asked;
  };
  std::vector<PicturePair> pairs;
  std::vector<Fold> folds;
};

// All pairs of pictures, where `people` has who is on each picture. A fold asks for the pairs among
// two people and chooses by those among all others; there is one for each two people. Needs four
// people, two of whom have two pictures or more.
Verification LeaveTwoPeopleOut(std::span<const int64_t> people);

// Sets of `set_size` pairs each, one after the other. A fold asks for a set and chooses by all
// others.
Verification LeaveSetOut(std::vector<PicturePair> pairs, int64_t set_size);

// The share of the pairs asked that are told right, those of the same person and those of different
// people weighing the same, mean over the folds. A pair is of the same person if its score is at
// least the threshold: the score, of the pairs to choose by, that tells most of them right. A kind
// that a fold does not ask for counts as told right.
double VerificationAccuracy(const Verification& verification, std::span<const float> scores);

}  // namespace etude::suite
