#include "src/sim/collective/collective_stream.h"

#include "src/sim/collective/exchange_algorithms.h"
#include "src/sim/collective/in_network_algorithm.h"
#include "src/sim/collective/rooted_algorithms.h"
#include "src/sim/collective/step_algorithm.h"
#include "src/sim/collective/tree_algorithm.h"

namespace etude {

const StreamAlgorithm& AlgorithmOf(const CollectivePhase& phase) {
  static const StepAlgorithm steps;
  static const TreeAlgorithm tree;
  static const InNetworkAlgorithm in_network;
  static const BinomialTreeAlgorithm binomial;
  static const DisseminationAlgorithm dissemination;
  if (IsInSteps(phase)) return steps;
  switch (phase.choice.algorithm) {
    case CollectiveAlgorithm::kDoubleBinaryTree: return tree;
    case CollectiveAlgorithm::kInNetwork: return in_network;
    case CollectiveAlgorithm::kBinomialTree: return binomial;
    case CollectiveAlgorithm::kDissemination: return dissemination;
    case CollectiveAlgorithm::kRing:
    case CollectiveAlgorithm::kDirect:
    case CollectiveAlgorithm::kHalvingDoubling:
    case CollectiveAlgorithm::kBidirectionalRing:
    case CollectiveAlgorithm::kBruck:
    case CollectiveAlgorithm::kPat:
    case CollectiveAlgorithm::kSlicedAllReduce: break;
  }
  return ExchangeAlgorithmOf(phase.choice.algorithm);
}

}  // namespace etude
