#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/formats/trace_reader.h"

namespace etude {

// Extras that come from an event's `args` have the argument's name as key; those with this before
// it are keys of the event itself ("event/id", "event/cat").
inline constexpr std::string_view kKinetoEventPrefix = "event/";
// The event's category, where it is not the one that its kind has by default.
inline constexpr std::string_view kKinetoCategoryKey = "event/cat";

// Reads Kineto's and other Chrome traces (JSON): an object with `traceEvents`, or the bare array.
// See docs/formats/kineto.md for what goes where. A node's source id is the number of its event in
// the file; parents are found by containment of times among the host events of one lane. All args
// without a column are extras.
std::unique_ptr<TraceReader> MakeKinetoReader(std::string name, const ReadOptions& options,
                                              const RunContext& context);
// The same of events that were written in another format, which IsProfile.
std::unique_ptr<TraceReader> MakeProfileReader(std::string name, TraceFormat format,
                                               const ReadOptions& options,
                                               const RunContext& context);

}  // namespace etude
