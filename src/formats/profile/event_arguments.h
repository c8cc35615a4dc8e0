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
  kAgent,  // a device by a text that ends with its number
  kQueue,  // a stream where the event names none
  kFinished,
  kRank,            // of the process, as TraceFusion writes it
  kTaskType,        // of Ascend's devices
  kXlaCorrelation,  // of XLA's events
  // Of Etude's own events.
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

// Knows the arguments of events by name and puts them into the event's fields. Not thread-safe.
class EventArguments {
 public:
  struct Known {
    ArgMeaning arg = ArgMeaning::kUnknown;
    std::string_view name;               // static
    CommField field = CommField::kName;  // kComm only
  };

  // A scalar; what begins an array or an object is one without meaning.
  struct Scalar {
    std::string_view text;  // a number or word as written, or a text without its quotes
    bool is_text = false;
    const char* raw = nullptr;  // where an extra's text begins
  };

  // kUnknown for an argument that none of the event's fields has.
  Known Find(std::string_view name);
  // Escapes in a text matter only to facts of communications: a tokenizer may leave them elsewhere.
  static bool NeedsUnescaped(const Known& known) { return known.arg == ArgMeaning::kComm; }
  // Takes in an argument. False if it is to become an extra, too.
  static bool Take(const Known& known, const Scalar& value, ProfilerEvent& event);

 private:
  KeyFinder<NamedArg, kNamedArgs.size()> names_{kNamedArgs};
};

// A number of 0 to INT32_MAX; nullopt for any other text.
std::optional<int32_t> SmallNumber(std::string_view text);

}  // namespace etude
