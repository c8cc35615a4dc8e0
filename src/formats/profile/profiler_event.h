#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/units.h"
#include "src/formats/profile/comm_facts.h"
#include "src/trace/words/enums.h"

namespace etude {

// One event of a profile, as a tokenizer read it from a file of any format. ProfileBuilder makes a
// node of it. Views point into the tokenizer's buffers and are valid until its next event.
struct ProfilerEvent {
  // A value in the form of an extra: JSON text. If a tokenizer must scan a value to find its end,
  // it may set an empty text that points to the first byte. It then cuts the text when
  // ProfileBuilder needs it.
  struct Extra {
    std::string_view key;
    std::string_view text;
    bool is_arg = true;  // false: a member of the event itself
  };

  // A process or thread: a number or a text.
  struct Name {
    std::string_view text;
    std::string_view raw;  // in the form of an extra

    bool is_known() const { return raw.data() != nullptr; }
  };

  // Resets the event, but keeps its memory for the next one.
  void Reset() {
    std::vector<Extra> memory = std::move(extras);
    memory.clear();
    *this = ProfilerEvent();
    extras = std::move(memory);
  }

  std::string_view name;
  std::string_view category;  // "": none
  Name process;
  Name thread;
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  std::string_view raw_duration;  // in the form of an extra
  bool is_unfinished = false;  // whether `duration` ends with the recording, before the event's end

  // Set from arguments (EventArguments).
  std::optional<int64_t> correlation;
  std::optional<int64_t> external_id;
  std::optional<uint64_t> rf_id;
  std::optional<int64_t> sequence;
  std::optional<uint64_t> forward_thread;
  std::optional<int32_t> device;
  std::optional<int32_t> stream;
  std::string_view raw_device;   // in the form of an extra
  std::string_view raw_stream;   // the same
  std::string_view stream_key;   // name of the argument with the stream
  bool on_no_stream = false;     // whether the stream and the thread are -1
  std::optional<int32_t> agent;  // device, if no other argument has it
  std::optional<int32_t> queue;  // stream, if neither an argument nor the thread is one
  std::optional<int64_t> rank;   // of the process
  std::optional<NodeKind> kind;  // of Etude's own events
  std::optional<Place> place;    // the same
  std::string_view task_type;    // of Ascend's devices; "": none
  bool has_task_type = false;
  std::optional<int64_t> xla_correlation;
  bool has_xla_correlation = false;
  CommFacts comm;

  // Arguments and members without a field above, in the file's order.
  std::vector<Extra> extras;
};

}  // namespace etude
