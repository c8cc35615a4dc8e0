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

// Pairs to classify by the similarity of their pictures, in folds. Each fold classifies some pairs
// with a threshold that is chosen by others, which must include pairs of both kinds.
struct Verification {
  struct Fold {
    std::vector<int64_t> chosen_by;  // numbers of pairs
    std::vector<int64_t> asked;
  };
  std::vector<PicturePair> pairs;
  std::vector<Fold> folds;
};

// Returns all pairs of pictures, where `people` contains the person on each picture. There is one
// fold for each two people. It classifies the pairs among them, and chooses by those among all
// others. Requires four people, two of whom have two pictures or more.
Verification LeaveTwoPeopleOut(std::span<const int64_t> people);

// Returns sets of `set_size` pairs each, one after the other. A fold classifies a set and chooses
// by all others.
Verification LeaveSetOut(std::vector<PicturePair> pairs, int64_t set_size);

// Returns the share of pairs that are classified correctly, with equal weights for pairs of the
// same person and of different people, as the mean over the folds. A pair counts as the same person
// if its score is at least the threshold: the score of the choosing pairs that classifies most of
// them correctly. A kind without pairs in a fold counts as correct.
double VerificationAccuracy(const Verification& verification, std::span<const float> scores);

}  // namespace etude::suite
