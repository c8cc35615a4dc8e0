#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"

namespace etude::suite {

// Utterances with transcripts. Not thread-safe.
class Speech {
 public:
  virtual ~Speech() = default;
  Speech(const Speech&) = delete;
  Speech& operator=(const Speech&) = delete;

  virtual int64_t size() const = 0;
  // Returns the sound of an utterance: float [samples].
  virtual Result<at::Tensor> Wave(int64_t number) const = 0;
  // Returns its symbols, from 1: 0 is CTC's blank.
  virtual std::vector<int64_t> Transcript(int64_t number) const = 0;

 protected:
  Speech() = default;
};

// A data set with a training and a test part.
struct SpeechParts {
  std::string name;
  std::unique_ptr<Speech> train;
  std::unique_ptr<Speech> test;
  int64_t rate = 0;              // samples per second
  int64_t symbols = 0;           // including the blank
  std::optional<int64_t> space;  // symbol between words; nullopt: each symbol is a word
};

}  // namespace etude::suite
