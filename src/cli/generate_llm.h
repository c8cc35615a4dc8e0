#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/options.h"
#include "src/synth/transformer_job.h"

namespace etude {

// What `etude generate llm` is asked for, beside what all of `generate` has.
class LlmOptions {
 public:
  void Declare(Options& options);
  // The first option that was given; "" if none was.
  std::string Given() const;

  struct Made {
    TransformerJob job;
    std::string
        text;  // what was made: "llama-3-8b: 8,030,261,248 parameters, tp 2 × cp 1 × dp 2 × pp 2"
  };
  // `model`: a preset, or a file with a model.
  Result<Made> Make(const std::string& model, const RunContext& context) const;

 private:
  Result<TransformerModel> ReadModel(const std::string& model, const RunContext& context) const;
  Result<TransformerPlan> Plan() const;

  std::optional<int64_t> tensor_;
  std::optional<int64_t> context_;
  std::optional<int64_t> expert_;
  std::optional<int64_t> data_;
  std::optional<int64_t> stages_;
  std::optional<int64_t> chunks_;
  std::optional<int64_t> micro_batches_;
  std::optional<int64_t> sequences_;
  std::optional<int64_t> layers_;
  std::optional<int64_t> sequence_;
  std::optional<int64_t> zero_;
  std::optional<std::string> schedule_;
  std::optional<std::string> recompute_;
  std::optional<std::string> attention_;
  std::optional<std::string> bucket_;
  bool whole_tokens_ = false;
};

}  // namespace etude
