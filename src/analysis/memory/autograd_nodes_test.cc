#include "src/analysis/memory/autograd_nodes.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/run/test_support.h"

namespace etude {
namespace {

using testing_support::Flow;
using testing_support::MadeUpStep;

const char kLinear[] = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";

// Returns the flags of the step's operators, in order of entry.
std::vector<bool> OfOperators(const MadeUpStep& made) {
  const Flow flow(made);
  const std::vector<bool> all = MadeAutogradNodes(flow.step);
  std::vector<bool> found;
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (flow.step.is_operator(i)) found.push_back(all[i]);
  }
  return found;
}

TEST(AutogradNodes, AreMadeWhereTheNextOperatorHasAHigherNumber) {
  MadeUpStep made;
  made.SetSequence(7);
  const uint64_t linear = made.Op(kLinear, {10, 11, 12}, {20});
  made.Add(10, 11, 13, linear);  // creates node 7
  made.SetSequence(8);
  const uint64_t inner = made.Add(13, 12, 20, linear);  // creates node 8
  made.SetSequence(-1);
  made.Add(13, 12, 20, inner);  // below autograd
  made.SetSequence(9);
  made.Add(20, 20, 21);  // creates none: the next one has the same number
  made.Add(10, 20, 22);  // creates node 9
  made.SetSequence(10);
  made.Add(22, 22, 23);  // unknown
  EXPECT_EQ(OfOperators(made), (std::vector<bool>{true, true, true, false, false, true, false}));
}

TEST(AutogradNodes, OfTheLastOperatorABackwardFunctionTells) {
  MadeUpStep made;
  made.SetSequence(3);
  made.Add(10, 11, 20);
  const uint64_t engine = made.Label("autograd::engine::evaluate_function: AddBackward0");
  const uint64_t backward = made.Label("AddBackward0", {}, engine);
  made.SetSequence(-1);
  made.Add(20, 20, 21, backward);
  EXPECT_EQ(OfOperators(made), (std::vector<bool>{true, false}));
}

TEST(AutogradNodes, OfAFunctionOfPythonsAreNotOfTheOperatorBefore) {
  MadeUpStep made;
  made.SetSequence(3);
  made.Add(10, 11, 20);
  const uint64_t function = made.Label("Exp");  // creates node 3
  made.SetSequence(-1);
  made.Add(20, 20, 21, function);
  made.SetSequence(4);
  made.Add(21, 21, 22);
  made.SetSequence(5);
  made.Add(22, 10, 23);
  EXPECT_EQ(OfOperators(made), (std::vector<bool>{false, false, true, false}));
}

// The recording ends, or an exception ended the operator that would show it.
TEST(AutogradNodes, OfTheLastOperatorThoseInsideTell) {
  MadeUpStep made;
  made.SetSequence(3);
  const uint64_t linear = made.Op(kLinear, {10, 11, 12}, {20});
  made.Add(10, 11, 13, linear);  // creates node 3
  made.SetSequence(4);
  made.Add(13, 12, 20, linear);  // unknown
  EXPECT_EQ(OfOperators(made), (std::vector<bool>{true, true, false}));
}

TEST(AutogradNodes, NoneWithoutNumbers) {
  MadeUpStep made;
  made.Add(10, 11, 20);
  made.Add(20, 11, 21);
  EXPECT_EQ(OfOperators(made), (std::vector<bool>{false, false}));
}

}  // namespace
}  // namespace etude
