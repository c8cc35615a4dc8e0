#include "src/trace/job/motifs.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "src/trace/job/packed_numbers.h"

namespace etude {
namespace {

using Sequence = std::vector<uint32_t>;

TEST(Motifs, AreWrittenOnce) {
  // Four times "0 1 2", with a 3 in between.
  const Sequence sequence = {0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 0, 1, 2};
  const MotifProgram program = FindMotifs(sequence, 4);
  EXPECT_EQ(program.Expand(), sequence);
  EXPECT_LE(program.size(), 8u) << "012 | 012 012 | twice around 3";
}

TEST(Motifs, LongRunsAreShort) {
  const Sequence sequence(1 << 12, 7);
  const MotifProgram program = FindMotifs(sequence, 8);
  EXPECT_EQ(program.Expand(), sequence);
  EXPECT_LE(program.size(), 2 * 13u);
}

// "0 1 2" and "0 1" twice each: without the boundary "0 1 2 0 1" would be one motif.
TEST(Motifs, KeepToWhatBegins) {
  const Sequence sequence = {0, 1, 2, 0, 1, 0, 1, 2, 0, 1};
  const std::vector<size_t> begins = {3, 5, 8};
  const MotifProgram whole = FindMotifs(sequence, 3);
  EXPECT_EQ(whole.parts.size(), 2u);
  const MotifProgram program = FindMotifs(sequence, 3, begins);
  EXPECT_EQ(program.Expand(), sequence);
  EXPECT_TRUE(program.is_sound());
  ASSERT_EQ(program.parts.size(), 4u);
  EXPECT_EQ(program.parts[0], program.parts[2]);
  EXPECT_EQ(program.parts[1], program.parts[3]);
}

TEST(Motifs, GiveEverySequenceBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Sequence sequence;
    const uint32_t tokens = 1 + static_cast<uint32_t>(random() % 5);
    for (size_t i = random() % 200; i > 0; --i) {
      sequence.push_back(static_cast<uint32_t>(random() % tokens));
    }
    const MotifProgram program = FindMotifs(sequence, tokens);
    ASSERT_EQ(program.Expand(), sequence);
    ASSERT_LE(program.size(), sequence.size());
    std::vector<int> uses(program.motifs.size());
    for (size_t i = 0; i < program.motifs.size(); ++i) {
      for (const uint32_t part : program.motifs[i]) {
        ASSERT_LT(part, tokens + i) << "motifs are made of those before them";
        if (part >= tokens) ++uses[part - tokens];
      }
    }
    for (const uint32_t part : program.parts) {
      if (part >= tokens) ++uses[part - tokens];
    }
    for (const int count : uses) ASSERT_GE(count, 2);
  }
}

// 0 1 twice inside 0 1 0 1 2, which occurs twice itself, and once more.
TEST(Motifs, SayWhereTheyAre) {
  const MotifProgram program = {
      .tokens = 4, .motifs = {{0, 1}, {4, 4, 2}}, .parts = {3, 5, 5, 3, 4}};
  EXPECT_EQ(program.Lengths(), (std::vector<uint64_t>{2, 5}));
  EXPECT_EQ(program.Places(), (std::vector<std::vector<size_t>>{{1, 3, 6, 8, 12}, {1, 6}}));
}

std::vector<int64_t> Unpacked(const PackedNumbers& packed, const std::vector<uint64_t>& contexts) {
  NumberReader reader(packed);
  std::vector<int64_t> numbers;
  for (const uint64_t context : contexts) numbers.push_back(reader.Next(context));
  return numbers;
}

TEST(PackedNumbers, ExpectWhatCameBefore) {
  std::vector<int64_t> steps;
  std::vector<uint64_t> contexts;
  for (int64_t i = 0; i < 1000; ++i) {
    steps.push_back(i % 2 == 0 ? 100 + 7 * i : -5);
    contexts.push_back(static_cast<uint64_t>(i % 2));
  }
  const PackedNumbers packed = PackNumbers(steps, contexts);
  EXPECT_EQ(packed.expect, PackedNumbers::Expect::kAlikeSteps);
  EXPECT_LT(packed.bytes.size(), 16u);
  EXPECT_EQ(Unpacked(packed, contexts), steps);
}

TEST(PackedNumbers, HoldAnyNumbers) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> numbers;
    std::vector<uint64_t> contexts;
    const unsigned bits = static_cast<unsigned>(random() % 64);
    for (size_t i = random() % 50; i > 0; --i) {
      numbers.push_back(static_cast<int64_t>(random() >> bits));
      contexts.push_back(random() % 3);
    }
    ASSERT_EQ(Unpacked(PackNumbers(numbers, contexts), contexts), numbers);
  }
  const std::vector<int64_t> ends = {INT64_MIN, INT64_MAX, -1, 0, INT64_MIN, INT64_MIN};
  const std::vector<uint64_t> contexts(ends.size());
  EXPECT_EQ(Unpacked(PackNumbers(ends, contexts), contexts), ends);
}

}  // namespace
}  // namespace etude
