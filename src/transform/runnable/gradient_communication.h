#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/edit/gradient_reduction.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// A collective that reduces gradients after their backward pass.
struct LateReduction {
  uint32_t collective = 0;  // node of the rank
  size_t last = 0;          // index of the last of its gradients in the pass
};

// Communication of the gradients of one backward pass.
struct GradientCommunication {
  BackwardPass pass;
  std::vector<uint32_t> collectives;  // nodes of the rank, begun during the pass, in this order
  std::vector<LateReduction> late;    // by the arrival of their gradients
};

// Finds the collectives that reduce gradients: those begun during a backward pass, without those of
// gradients of activations, and those after it whose tensors have the memory of gradients. `rank`
// was made of `trace`, or of its conversion by ToChakra. Passes without such collectives are left
// out. kBadInput, with the reason, if none is left.
Result<std::vector<GradientCommunication>> FindGradientCommunication(const Trace& trace,
                                                                     const RunnableRank& rank);

// Returns a node that reduces gradients of activations during a backward pass, with which the pass
// goes on, as of tensor parallelism; nullopt if none is found.
std::optional<uint32_t> FindActivationReduction(const Trace& trace, const RunnableRank& rank);

struct Rebucketing {
  std::vector<std::vector<GradientBucket>> passes;  // those that had other buckets
  uint64_t recorded = 0;                            // number of their recorded all-reduces
};

// Divides the gradients of a rank of a data-parallel job into other buckets, as
// DistributedDataParallel does after its first step. Each backward pass with all-reduces gets one
// per bucket, begun by the host when the last gradient has arrived, in the median time of the
// recorded calls. Communication runs on the recorded threads or streams in turn. What waited for
// the reduction of a gradient waits for the new one. If the host copies gradients back one by one,
// the copies follow the new buckets.
//
// kBadInput, with the reason, without such all-reduces, and if they are not those of consecutive
// gradients.
Result<Rebucketing> Rebucket(const Trace& trace, const BucketSizes& sizes, RunnableRank& rank);

// Lets the communication of gradients wait for the end of its backward pass. Returns the number of
// changed collectives, 0 if all follow the pass already; kBadInput if there are none, or if the
// pass itself waits for them.
Result<uint64_t> WaitForBackward(const Trace& trace, RunnableRank& rank);

// Lets collectives that reduce gradients after their backward pass begin when these have arrived,
// in this order. What waits for the collectives stays. Returns the number of changed collectives, 0
// if all run beside the pass already; kBadInput if there are none.
Result<uint64_t> RunBesideBackward(const Trace& trace, RunnableRank& rank);

// Compression of gradients in communication.
struct GradientCompression {
  double factor = 1;  // of their bytes, at least 1
  // Uncompressed bytes that a rank compresses or decompresses; nullopt: unknown, and without time.
  std::optional<double> bytes_per_second;

  // Parses "4" or "4,20GB/s". kUsage, with the expected form, for other text.
  static Result<GradientCompression> Parse(std::string_view text);
};

// Divides the bytes of the communication of gradients, with compression before and decompression
// after it if their speed is known. Returns the number of collectives; kBadInput if there are none.
Result<uint64_t> CompressGradients(const Trace& trace, const GradientCompression& compression,
                                   RunnableRank& rank);

}  // namespace etude
