#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/base/container/key_finder.h"
#include "src/formats/profile/comm_facts.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/profile/profiler_event.h"
#include "src/formats/pytorch_et/et_json_reader.h"

namespace etude {

// Meanings of an event's arguments.
enum class ArgMeaning : uint8_t {
  kUnknown,
  kCorrelation,
  kExternalId,
  kRecordFunctionId,
  kSequenceNumber,
  kForwardThread,
  kDevice,
  kStream,
  kAgent,  // a device, as a text that ends with its number
  kQueue,  // a stream, if the event has no other
  kFinished,
  kRank,            // of the process, in TraceFusion's files
  kTaskType,        // of Ascend devices
  kXlaCorrelation,  // of XLA events
  // Arguments of Etude's own events.
  kKind,
  kPlace,
  // A fact of a communication (CommField).
  kComm,
};

struct NamedArg {
  std::string_view name;
  ArgMeaning arg;
};

inline constexpr auto kNamedArgs = std::to_array<NamedArg>({
    {"External id", ArgMeaning::kExternalId},
    {"external id", ArgMeaning::kExternalId},
    {"Record function id", ArgMeaning::kRecordFunctionId},
    {"correlation", ArgMeaning::kCorrelation},
    {"corr_id", ArgMeaning::kCorrelation},  // of rocprofv3
    {"Sequence number", ArgMeaning::kSequenceNumber},
    {"Fwd thread id", ArgMeaning::kForwardThread},
    {"device", ArgMeaning::kDevice},
    {"stream", ArgMeaning::kStream},
    {"Stream Id", ArgMeaning::kStream},  // of Ascend
    {"stream_id", ArgMeaning::kStream},  // of rocprofv3
    {"agent", ArgMeaning::kAgent},
    {"dst_agent", ArgMeaning::kAgent},
    {"queue", ArgMeaning::kQueue},
    {"finished", ArgMeaning::kFinished},
    {"rank", ArgMeaning::kRank},
    {"Task Type", ArgMeaning::kTaskType},
    {"correlation_id", ArgMeaning::kXlaCorrelation},
    {kEtKindAttr, ArgMeaning::kKind},
    {kPlaceArg, ArgMeaning::kPlace},
});

// Finds the arguments of events by name and sets the corresponding fields. Not thread-safe.
class EventArguments {
 public:
  struct Known {
    ArgMeaning arg = ArgMeaning::kUnknown;
    std::string_view name;               // static
    CommField field = CommField::kName;  // kComm only
  };

  // A scalar. The begin of an array or an object is a scalar without a meaning.
  struct Scalar {
    std::string_view text;  // a number or word as written, or a text without its quotes
    bool is_text = false;
    const char* raw = nullptr;  // begin of an extra's text
  };

  // Returns kUnknown for an argument without a field in the event.
  Known Find(std::string_view name);
  // Returns whether escapes in the text must be resolved. Only facts of communications need this,
  // so a tokenizer may keep other escapes.
  static bool NeedsUnescaped(const Known& known) { return known.arg == ArgMeaning::kComm; }
  // Sets the field of an argument. Returns false if the argument must also become an extra.
  static bool Take(const Known& known, const Scalar& value, ProfilerEvent& event);

 private:
  KeyFinder<NamedArg, kNamedArgs.size()> names_{kNamedArgs};
};

// Parses a number from 0 to INT32_MAX. Returns nullopt for any other text.
std::optional<int32_t> SmallNumber(std::string_view text);

}  // namespace etude
