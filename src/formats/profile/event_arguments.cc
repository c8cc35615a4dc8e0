#include "src/formats/profile/event_arguments.h"

#include "src/formats/chakra/chakra_kind.h"
#include "src/formats/json/json_text.h"

namespace etude {
namespace {

using ArgScalar = EventArguments::Scalar;

// Returns an integer. Numbers in quotes stay texts.
std::optional<int64_t> IntOf(const ArgScalar& value) {
  return value.is_text ? std::nullopt : JsonInt(value.text);
}
std::optional<uint64_t> UintOf(const ArgScalar& value) {
  return value.is_text ? std::nullopt : JsonUint(value.text);
}
std::optional<int32_t> SmallOf(const ArgScalar& value) {
  return value.is_text ? std::nullopt : SmallNumber(value.text);
}

// Returns the text, and "" for other values.
std::string_view WordOf(const ArgScalar& value) { return value.is_text ? value.text : ""; }

// Returns the number at the end of a text: 4 for "GPU-4", with or without quotes.
std::optional<int32_t> LastNumber(std::string_view text) {
  return SmallNumber(text.substr(text.find_last_not_of("0123456789") + 1));
}

std::optional<Place> PlaceFromName(std::string_view name) {
  for (size_t i = 0; i < kPlaceCount; ++i) {
    if (Name(static_cast<Place>(i)) == name) return static_cast<Place>(i);
  }
  return std::nullopt;
}

// Sets the field from a found value. Returns whether the field has a value now.
template <typename Field, typename Found>
bool Set(Field& field, Found found) {
  field = found;
  return field.has_value();
}

// Takes the task type. If several arguments have this name, the first one counts.
void TakeTaskType(const ArgScalar& value, ProfilerEvent& event) {
  if (event.has_task_type) return;
  event.has_task_type = true;
  const std::string_view word = WordOf(value);
  if (word.find('\\') == word.npos) event.task_type = word;
}

void TakeXlaCorrelation(const ArgScalar& value, ProfilerEvent& event) {
  if (event.has_xla_correlation) return;
  event.has_xla_correlation = true;
  event.xla_correlation = JsonInt(value.text);
}

}  // namespace

std::optional<int32_t> SmallNumber(std::string_view text) {
  const auto number = JsonInt(text);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*number);
}

EventArguments::Known EventArguments::Find(std::string_view name) {
  if (const NamedArg* row = names_.Find(name)) return {.arg = row->arg, .name = row->name};
  if (const auto field = CommFieldOfArg(name)) return {.arg = ArgMeaning::kComm, .field = *field};
  return {};
}

bool EventArguments::Take(const Known& known, const ArgScalar& value, ProfilerEvent& event) {
  switch (known.arg) {
    case ArgMeaning::kUnknown: return false;
    case ArgMeaning::kCorrelation: return Set(event.correlation, IntOf(value));
    case ArgMeaning::kExternalId: return Set(event.external_id, IntOf(value));
    case ArgMeaning::kRecordFunctionId: return Set(event.rf_id, UintOf(value));
    case ArgMeaning::kSequenceNumber: return Set(event.sequence, IntOf(value));
    case ArgMeaning::kForwardThread: return Set(event.forward_thread, UintOf(value));
    case ArgMeaning::kDevice:
      event.raw_device = {value.raw, 0};
      return Set(event.device, SmallOf(value));
    case ArgMeaning::kStream:
      event.raw_stream = {value.raw, 0};
      event.stream_key = known.name;
      event.on_no_stream = IntOf(value).value_or(0) < 0;
      return Set(event.stream, SmallOf(value));
    case ArgMeaning::kAgent: event.agent = LastNumber(value.text); return false;
    case ArgMeaning::kQueue: event.queue = SmallOf(value); return false;
    case ArgMeaning::kRank: event.rank = IntOf(value); return false;
    case ArgMeaning::kFinished:
      event.is_unfinished = !value.is_text && value.text == "false";
      return false;
    case ArgMeaning::kTaskType: TakeTaskType(value, event); return false;
    case ArgMeaning::kXlaCorrelation: TakeXlaCorrelation(value, event); return false;
    case ArgMeaning::kKind: return Set(event.kind, chakra::KindFromName(WordOf(value)));
    case ArgMeaning::kPlace: return Set(event.place, PlaceFromName(WordOf(value)));
    case ArgMeaning::kComm:
      return value.text != "null" && SetCommFact(event.comm, known.field, value.text);
  }
  return false;
}

}  // namespace etude
