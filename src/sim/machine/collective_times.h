#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/trace/words/enums.h"

namespace etude {

// Time of a communication on an idle machine, from the last rank's call to the end on all ranks.
struct CommunicationTime {
  int64_t nanos = 0;
  double cores = 0;       // of the host, kept busy by each rank meanwhile; 0: none
  std::string how{};      // where the time is from: "measured", "ring LL128"
  bool doubtful = false;  // noisy, or beyond the measured sizes; `how` says so
};

// Times of whole communications, measured or by formula, instead of a network of links.
class CollectiveTimes {
 public:
  virtual ~CollectiveTimes() = default;
  virtual std::string_view name() const = 0;  // of the model, with its version
  // Returns the factor by which each communication takes the duration of its node on each rank
  // instead, from when the last member has begun it; 0: none does. TimeOf and TimeOfMessage are 0
  // then.
  virtual double factor_of_nodes() const { return 0; }

  // Returns the time of a collective of `ranks`, ranks of the job. `bytes`: input of each rank; of
  // the root for a broadcast or scatter. kBadInput if it is unknown; the message says what is
  // known.
  virtual Result<CommunicationTime> TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                           int64_t bytes) const = 0;
  // Returns the time of a message between two ranks. Errors as above.
  virtual Result<CommunicationTime> TimeOfMessage(int64_t from, int64_t to,
                                                  int64_t bytes) const = 0;
};

// The recorded times of a job's own communications, times `factor`.
class RecordedCommunications : public CollectiveTimes {
 public:
  explicit RecordedCommunications(double factor = 1) : factor_(factor) {}

  std::string_view name() const override { return "recorded-1"; }
  double factor_of_nodes() const override { return factor_; }
  Result<CommunicationTime> TimeOf(CollectiveType /*type*/, std::span<const int64_t> /*ranks*/,
                                   int64_t /*bytes*/) const override {
    return CommunicationTime{.how = "recorded"};
  }
  Result<CommunicationTime> TimeOfMessage(int64_t /*from*/, int64_t /*to*/,
                                          int64_t /*bytes*/) const override {
    return CommunicationTime{.how = "recorded"};
  }

 private:
  double factor_ = 1;
};

}  // namespace etude
