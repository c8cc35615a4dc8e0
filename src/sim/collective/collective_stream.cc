#include "src/sim/collective/collective_stream.h"

#include "src/sim/collective/exchange_algorithms.h"
#include "src/sim/collective/in_network_algorithm.h"
#include "src/sim/collective/rooted_algorithms.h"
#include "src/sim/collective/tree_algorithm.h"

namespace etude {

const StreamAlgorithm& AlgorithmOf(CollectiveAlgorithm algorithm) {
  static const TreeAlgorithm tree;
  static const InNetworkAlgorithm in_network;
  static const BinomialTreeAlgorithm binomial;
  static const DisseminationAlgorithm dissemination;
  switch (algorithm) {
    case CollectiveAlgorithm::kDoubleBinaryTree: return tree;
    case CollectiveAlgorithm::kInNetwork: return in_network;
    case CollectiveAlgorithm::kBinomialTree: return binomial;
    case CollectiveAlgorithm::kDissemination: return dissemination;
    case CollectiveAlgorithm::kRing:
    case CollectiveAlgorithm::kDirect:
    case CollectiveAlgorithm::kHalvingDoubling: break;
  }
  return ExchangeAlgorithmOf(algorithm);
}

}  // namespace etude
