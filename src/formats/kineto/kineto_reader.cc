#include "src/formats/kineto/kineto_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "src/formats/json/json_reader_base.h"
#include "src/formats/json/json_text.h"
#include "src/formats/json/json_walk.h"
#include "src/formats/json/mend_element.h"
#include "src/formats/kineto/json_arguments.h"
#include "src/formats/profile/process_groups.h"
#include "src/formats/profile/profile_builder.h"
#include "src/trace/words/memory_event.h"

namespace etude {
namespace {

// The profiler does not escape names of Python frames and of record_function's ranges. They may
// contain quotation marks, and lie between "name": " and ", "pid".
constexpr auto kEventKeys = std::to_array<std::string_view>(
    {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "tts", "tdur"});
constexpr auto kKeysAfterEventName = std::to_array<std::string_view>({"pid"});
constexpr ElementRules kEventRules = {
    .keys = kEventKeys, .after_name = kKeysAfterEventName, .first = "ph", .required = "ph"};

// PyTorch 2.11 writes the profiler's own marks with their phase inside of their name:
// {"name": "Record Window End\", \"ph\": \"i\", \"s\": \"g", "pid": "", …}.
constexpr std::string_view kPhaseInName = R"(", "ph": "i", "s": "g)";

class KinetoReader : public JsonReaderBase {
 public:
  KinetoReader(std::string name, const ReadOptions& options, const RunContext& context)
      : JsonReaderBase({.name = std::move(name),
                        .array_keys = {"traceEvents"},
                        .bare_array = true,
                        .limits = context.limits,
                        .rules = &kEventRules},
                       "event", options, context),
        profile_(builder(), context.limits) {
    builder().info().SetFormat(TraceFormat::kKineto);
  }

 private:
  using Value = simdjson::ondemand::value;
  using Object = simdjson::ondemand::object;
  static constexpr auto kSuccess = simdjson::SUCCESS;
  static constexpr auto kMissing = simdjson::NO_SUCH_FIELD;

  simdjson::error_code ReadElement(const JsonItem& item, Object object) override {
    event_.Reset();
    phase_ = ts_ = dur_ = {};
    has_name_ = false;
    bool is_empty = true;
    const auto read = [&](std::string_view key, Value& value) {
      is_empty = false;
      return ReadKey(key, value);
    };
    if (const auto error = ForEachMember(object, read)) return error;
    if (Is(phase_, "X")) return AddComplete(item.index);
    if (Is(phase_, "B")) return AddBegin(item.index);
    if (Is(phase_, "E")) return AddEnd();
    if (Is(phase_, "i") && event_.name == kMemoryEvent) return AddMemoryEvent(item.index);
    // Etude's timelines contain work without a known end.
    if (Is(phase_, "i") && event_.kind) return AddComplete(item.index);
    if (Is(phase_, "M")) TakeName();
    if (Is(phase_, "s") || Is(phase_, "f")) TakeArrow();
    const bool is_mark = phase_.empty() && event_.name.ends_with(kPhaseInName);
    // Some writers (XLA, rocprof) begin or end the list with an empty event.
    if (phase_.empty() && !is_mark && !is_empty) return Problem("found no 'ph'", kMissing);
    builder().stats().Count(Stat::kSkippedEvent);
    return kSuccess;
  }

  simdjson::error_code ReadKey(std::string_view key, Value& value) {
    if (Is(key, "ph")) return value.get_string().get(phase_);
    if (Is(key, "name")) {
      has_name_ = true;
      return value.get_string().get(event_.name);
    }
    if (Is(key, "cat")) return value.get_string().get(event_.category);
    if (Is(key, "ts")) return ReadToken(value, ts_);
    if (Is(key, "dur")) {
      event_.raw_duration = {value.raw_json_token().data(), 0};
      return ReadToken(value, dur_);
    }
    if (Is(key, "pid")) return ReadName(value, event_.process);
    if (Is(key, "tid")) return ReadName(value, event_.thread);
    if (Is(key, "args")) return ReadArgs(value);
    KeepUncut(key, value);
    return kSuccess;
  }

  void KeepUncut(std::string_view key, Value& value) {
    event_.extras.push_back(
        {.key = key, .text = {value.raw_json_token().data(), 0}, .is_arg = false});
  }

  // Reads the token of a number, which some writers (torch_npu) put in quotes.
  static simdjson::error_code ReadToken(Value& value, std::string_view& token) {
    token = ScalarToken(value);
    return token.starts_with('"') ? value.get_string().get(token) : kSuccess;
  }

  static simdjson::error_code ReadName(Value& value, ProfilerEvent::Name& name) {
    name.text = ScalarToken(value);
    name.raw = {name.text.data(), 0};
    return name.text.starts_with('"') ? value.get_string().get(name.text) : kSuccess;
  }

  simdjson::error_code ReadArgs(Value& value) {
    if (*value.raw_json_token().data() != '{') {
      KeepUncut("args", value);
      return kSuccess;
    }
    return ForEachMember(value, [this](std::string_view key, Value& arg) {
      return arguments_.Read(key, arg, event_);
    });
  }

  std::optional<Nanos> Time(std::string_view token) {
    const JsonTime time = JsonMicros(token);
    if (time.rounded) builder().stats().Count(Stat::kRoundedTime);
    if (!time.nanos) builder().stats().Count(Stat::kNonFiniteNumber);
    return time.nanos;
  }

  // Reads the members that every node needs.
  simdjson::error_code ReadStart() {
    if (!has_name_) return Problem("found no 'name'", kMissing);
    if (ts_.empty()) return Problem("found no time 'ts'", kMissing);
    event_.start = Time(ts_);
    return event_.start ? kSuccess : Problem("'ts' is not a time in microseconds", kMissing);
  }

  simdjson::error_code CutTexts() {
    if (CutExtras(event_, element_end(), builder().stats())) return kSuccess;
    return Problem("a value is not valid JSON", simdjson::TAPE_ERROR);
  }

  // Makes a node of the event with `add`, a function of ProfileBuilder.
  simdjson::error_code AddNode(uint64_t index,
                               void (ProfileBuilder::*add)(ProfilerEvent&,
                                                           const ProfileBuilder::Spot&, uint64_t)) {
    if (const auto error = ReadStart()) return error;
    const ProfileBuilder::Spot spot = profile_.Locate(event_);
    if (const auto error = CutTexts()) return error;
    (profile_.*add)(event_, spot, index);
    return kSuccess;
  }

  simdjson::error_code AddComplete(uint64_t index) {
    if (profile_.SkipsSum(event_)) return kSuccess;
    if (!dur_.empty()) event_.duration = Time(dur_);
    profile_.TakeDuration(event_);
    return AddNode(index, &ProfileBuilder::Add);
  }

  simdjson::error_code AddMemoryEvent(uint64_t index) {
    return AddNode(index, &ProfileBuilder::AddMemoryEvent);
  }

  simdjson::error_code AddBegin(uint64_t index) {
    return AddNode(index, &ProfileBuilder::AddBegin);
  }

  // An end needs only its thread and time.
  simdjson::error_code AddEnd() {
    if (!profile_.LocateEnd(event_)) {
      return Problem("found an end ('E') without a begin ('B')", kMissing);
    }
    const std::optional<Nanos> end = ts_.empty() ? std::nullopt : Time(ts_);
    if (!end) return Problem("found no time 'ts'", kMissing);
    if (const auto error = CutTexts()) return error;
    profile_.AddEnd(event_, *end);
    return kSuccess;
  }

  // Returns the text of an extra that is not cut yet, and nullopt if there is none or it is not
  // valid JSON.
  std::optional<std::string_view> RawExtra(std::string_view key, bool is_arg) {
    const auto found = std::ranges::find_if(event_.extras, [&](const ProfilerEvent::Extra& one) {
      return one.is_arg == is_arg && one.key == key;
    });
    return found == event_.extras.end() ? std::nullopt : RawText(found->text.data());
  }

  // Takes the names of the event's process and thread, if it has any.
  void TakeName() {
    const bool is_label = event_.name == "process_labels";
    const bool is_process = event_.name == "process_name";
    if (!is_label && !is_process && event_.name != "thread_name") return;
    if (!event_.process.is_known()) return;
    const std::string_view name =
        BetweenQuotes(RawExtra(is_label ? "labels" : "name", true).value_or(""));
    if (name.empty() || name.find('\\') != name.npos) return;
    if (is_label) {
      profile_.LabelProcess(event_, name);
    } else if (is_process) {
      profile_.NameProcess(event_, name);
    } else if (event_.thread.is_known()) {
      profile_.NameThread(event_, name);
    }
  }

  void TakeArrow() {
    if (!IsLaunchArrow(event_.category) || ts_.empty()) return;
    event_.start = JsonMicros(ts_).nanos;
    if (!event_.start) return;
    if (const auto id = RawExtra("id", false)) profile_.AddArrow(event_, *id, Is(phase_, "s"));
  }

  void ReadMember(std::string_view key, std::string_view text) override {
    if (key == "schemaVersion") {
      builder().info().schema = text;
      return;
    }
    KeepMember(key, text);
    if (key == "distributedInfo") ReadDistributedInfo(builder(), text);
  }

  Status BeforeFinish() override {
    const auto& info = builder().info();
    if (!saw_array()) {
      return BadInput(name() +
                      ": found JSON without an array 'traceEvents', expected a Kineto trace");
    }
    if (builder().node_count() == 0 && builder().stats()[Stat::kSkippedEvent] == 0 &&
        info.schema.empty() && info.extras.empty()) {
      return BadInput(name() + ": found no events, expected a Kineto trace");
    }
    profile_.Finish();
    return {};
  }

  ProfileBuilder profile_;
  JsonArguments arguments_;
  // The current event. Its views are valid as long as the element.
  ProfilerEvent event_;
  std::string_view phase_;
  std::string_view ts_;  // tokens
  std::string_view dur_;
  bool has_name_ = false;
};

}  // namespace

std::unique_ptr<TraceReader> MakeKinetoReader(std::string name, const ReadOptions& options,
                                              const RunContext& context) {
  return std::make_unique<KinetoReader>(std::move(name), options, context);
}

}  // namespace etude
