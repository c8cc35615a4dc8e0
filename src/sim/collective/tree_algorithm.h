#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Double binary tree: the second tree is the first one with its root at the other end. All-reduces
// go to the root of one of them and back.
class TreeAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

}  // namespace etude
