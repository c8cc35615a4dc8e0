#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Double binary tree. The second tree mirrors the first, with its root at the other end. An
// all-reduce goes up to the root of one of them and back down.
class TreeAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

}  // namespace etude
