#include "src/formats/kineto/kineto_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/container/intern_table.h"
#include "src/formats/chakra/chakra_kind.h"
#include "src/formats/json/json_reader_base.h"
#include "src/formats/json/json_text.h"
#include "src/formats/json/json_walk.h"
#include "src/formats/json/mend_element.h"
#include "src/formats/kineto/comm_facts.h"
#include "src/formats/kineto/comm_order.h"
#include "src/formats/kineto/impossible_times.h"
#include "src/formats/kineto/kineto_categories.h"
#include "src/formats/kineto/kineto_processes.h"
#include "src/formats/kineto/merged_processes.h"
#include "src/formats/kineto/process_groups.h"
#include "src/formats/kineto/time_nesting.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/run/calls/launch.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

// What an argument of an event means.
enum class Arg : uint8_t {
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
  kRank,  // of the process, as TraceFusion writes it
  // Of Etude's own events.
  kKind,
  kPlace,
};

struct ArgRow {
  std::string_view name;
  Arg arg;
};

constexpr auto kArgs = std::to_array<ArgRow>({
    {"External id", Arg::kExternalId},
    {"external id", Arg::kExternalId},
    {"Record function id", Arg::kRecordFunctionId},
    {"correlation", Arg::kCorrelation},
    {"corr_id", Arg::kCorrelation},  // of rocprofv3
    {"Sequence number", Arg::kSequenceNumber},
    {"Fwd thread id", Arg::kForwardThread},
    {"device", Arg::kDevice},
    {"stream", Arg::kStream},
    {"Stream Id", Arg::kStream},  // of Ascend
    {"stream_id", Arg::kStream},  // of rocprofv3
    {"agent", Arg::kAgent},
    {"dst_agent", Arg::kAgent},
    {"queue", Arg::kQueue},
    {"finished", Arg::kFinished},
    {"rank", Arg::kRank},
    {kEtKindAttr, Arg::kKind},
    {kPlaceArg, Arg::kPlace},
});

// The profiler writes names of Python frames and of record_function's ranges as they are, quotation
// marks included, between "name": " and ", "pid".
constexpr auto kEventKeys = std::to_array<std::string_view>(
    {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "tts", "tdur"});
constexpr auto kKeysAfterEventName = std::to_array<std::string_view>({"pid"});
constexpr ElementRules kEventRules = {
    .keys = kEventKeys, .after_name = kKeysAfterEventName, .first = "ph", .required = "ph"};

// What is in the quotes of a text without escapes.
std::string_view Word(std::string_view token) {
  const bool is_text = token.size() >= 2 && token.starts_with('"') && token.ends_with('"');
  return is_text ? token.substr(1, token.size() - 2) : std::string_view();
}

std::optional<Place> PlaceFromName(std::string_view name) {
  for (size_t i = 0; i < kPlaceCount; ++i) {
    if (Name(static_cast<Place>(i)) == name) return static_cast<Place>(i);
  }
  return std::nullopt;
}

std::optional<int32_t> SmallInt(std::string_view token) {
  const auto number = JsonInt(token);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*number);
}

// The facts that both have.
Comm InBoth(Comm one, const Comm& other) {
  const auto keep = [](auto& fact, const auto& same) {
    if (fact != same) fact = std::remove_cvref_t<decltype(fact)>();
  };
  keep(one.type, other.type);
  keep(one.name, other.name);
  keep(one.group, other.group);
  keep(one.dtype, other.dtype);
  keep(one.bytes, other.bytes);
  keep(one.in_elements, other.in_elements);
  keep(one.out_elements, other.out_elements);
  keep(one.in_split, other.in_split);
  keep(one.out_split, other.out_split);
  keep(one.root, other.root);
  keep(one.src, other.src);
  keep(one.dst, other.dst);
  keep(one.tag, other.tag);
  keep(one.group_size, other.group_size);
  keep(one.priority, other.priority);
  return one;
}

// 4 of "GPU-4", in quotes or not.
std::optional<int32_t> LastNumber(std::string_view token) {
  if (token.ends_with('"')) token = Word(token);
  return SmallInt(token.substr(token.find_last_not_of("0123456789") + 1));
}

// PyTorch 2.11 writes the profiler's own marks with their phase inside of their name:
// {"name": "Record Window End\", \"ph\": \"i\", \"s\": \"g", "pid": "", …}.
constexpr std::string_view kPhaseInName = R"(", "ph": "i", "s": "g)";

class KinetoReader : public JsonReaderBase {
 public:
  KinetoReader(std::string name, TraceFormat format, const ReadOptions& options,
               const RunContext& context)
      : JsonReaderBase({.name = std::move(name),
                        .array_keys = {"traceEvents"},
                        .bare_array = true,
                        .limits = context.limits,
                        .rules = &kEventRules},
                       "event", options, context) {
    builder().info().SetFormat(format);
  }

 private:
  using Value = simdjson::ondemand::value;
  using Object = simdjson::ondemand::object;
  static constexpr auto kSuccess = simdjson::SUCCESS;
  static constexpr auto kMissing = simdjson::NO_SUCH_FIELD;

  // A piece of an event's text that may become an extra.
  struct Kept {
    std::string_view key;
    const char* begin = nullptr;
    bool is_arg = true;
  };

  // A pid or tid: a number's token or a string's text.
  struct Name {
    std::string_view text;
    const char* begin = nullptr;  // in the event's text; null if absent
  };

  // What an event says. Views live as long as the element.
  struct Event {
    std::string_view phase;
    std::string_view name;
    std::string_view category;
    bool has_name = false;
    Name pid;
    Name tid;
    std::string_view ts;  // tokens
    std::string_view dur;
    const char* dur_begin = nullptr;
    bool is_unfinished = false;  // when the recording ended, up to which `dur` then goes
    std::optional<int64_t> correlation;
    std::optional<int64_t> external_id;
    std::optional<uint64_t> rf_id;
    std::optional<int64_t> sequence;
    std::optional<uint64_t> forward_thread;
    std::optional<int32_t> device;
    std::optional<int32_t> stream;
    std::string_view stream_key;   // of the argument that says so
    std::optional<int32_t> agent;  // the device, and the stream, where no other argument says them
    std::optional<int32_t> queue;
    std::optional<int64_t> rank;
    std::optional<NodeKind> kind;  // where the rest does not say it
    std::optional<Place> place;
    bool on_no_stream = false;  // it says so: -1, whatever its tid is
    const char* device_begin = nullptr;
    const char* stream_begin = nullptr;
    CommFacts facts;
    std::vector<Kept> kept;
  };

  // A "B" event that waits for its "E".
  struct Open {
    NodeId node;
    NodeKind kind = NodeKind::kUnknown;  // by its category
    Place place = Place::kUnknown;
    Lane lane;
    Nanos start;
    size_t timed = 0;                  // its place in timed_
    std::unique_ptr<CommFacts> facts;  // null if it has none
  };

  simdjson::error_code ReadElement(const JsonItem& item, Object object) override {
    std::vector<Kept> kept = std::move(event_.kept);
    kept.clear();
    event_ = Event{.kept = std::move(kept)};
    bool is_empty = true;
    const auto read = [&](std::string_view key, Value& value) {
      is_empty = false;
      return ReadKey(key, value);
    };
    if (const auto error = ForEachMember(object, read)) return error;
    if (Is(event_.phase, "X")) return AddComplete(item.index);
    if (Is(event_.phase, "B")) return AddBegin(item.index);
    if (Is(event_.phase, "E")) return AddEnd();
    if (Is(event_.phase, "i") && event_.name == kMemoryEvent) return AddMemoryEvent(item.index);
    // Work without a known end, on Etude's timelines.
    if (Is(event_.phase, "i") && event_.kind) return AddComplete(item.index);
    if (Is(event_.phase, "M")) TakeName();
    if (Is(event_.phase, "s") || Is(event_.phase, "f")) TakeArrow();
    const bool is_mark = event_.phase.empty() && event_.name.ends_with(kPhaseInName);
    // Some writers (XLA, rocprof) begin or end the list with an event of nothing.
    if (event_.phase.empty() && !is_mark && !is_empty) return Problem("found no 'ph'", kMissing);
    builder().stats().Count(Stat::kSkippedEvent);
    return kSuccess;
  }

  simdjson::error_code ReadKey(std::string_view key, Value& value) {
    if (Is(key, "ph")) return value.get_string().get(event_.phase);
    if (Is(key, "name")) {
      event_.has_name = true;
      return value.get_string().get(event_.name);
    }
    if (Is(key, "cat")) return value.get_string().get(event_.category);
    if (Is(key, "ts")) return ReadToken(value, event_.ts);
    if (Is(key, "dur")) {
      event_.dur_begin = value.raw_json_token().data();
      return ReadToken(value, event_.dur);
    }
    if (Is(key, "pid")) return ReadName(value, event_.pid);
    if (Is(key, "tid")) return ReadName(value, event_.tid);
    if (Is(key, "args")) return ReadArgs(value);
    event_.kept.push_back({.key = key, .begin = value.raw_json_token().data(), .is_arg = false});
    return kSuccess;
  }

  // A number's token; some writers (torch_npu) put it in quotes.
  static simdjson::error_code ReadToken(Value& value, std::string_view& token) {
    token = ScalarToken(value);
    return token.starts_with('"') ? value.get_string().get(token) : kSuccess;
  }

  static simdjson::error_code ReadName(Value& value, Name& name) {
    name.text = ScalarToken(value);
    name.begin = name.text.data();
    return name.text.starts_with('"') ? value.get_string().get(name.text) : kSuccess;
  }

  simdjson::error_code ReadArgs(Value& value) {
    const char* begin = value.raw_json_token().data();
    if (*begin != '{') {
      event_.kept.push_back({.key = "args", .begin = begin, .is_arg = false});
      return kSuccess;
    }
    return ForEachMember(value,
                         [this](std::string_view key, Value& arg) { return ReadArg(key, arg); });
  }

  simdjson::error_code ReadArg(std::string_view key, Value& value) {
    const std::string_view token = ScalarToken(value);
    bool taken = false;
    const auto take = [&taken](auto& column, auto number) {
      column = number;
      taken = column.has_value();
    };
    const ArgRow* row = args_.Find(key);
    switch (row == nullptr ? Arg::kUnknown : row->arg) {
      case Arg::kCorrelation: take(event_.correlation, JsonInt(token)); break;
      case Arg::kExternalId: take(event_.external_id, JsonInt(token)); break;
      case Arg::kRecordFunctionId: take(event_.rf_id, JsonUint(token)); break;
      case Arg::kSequenceNumber: take(event_.sequence, JsonInt(token)); break;
      case Arg::kForwardThread: take(event_.forward_thread, JsonUint(token)); break;
      case Arg::kDevice:
        take(event_.device, SmallInt(token));
        event_.device_begin = token.data();
        break;
      case Arg::kStream:
        take(event_.stream, SmallInt(token));
        event_.on_no_stream = JsonInt(token).value_or(0) < 0;
        event_.stream_begin = token.data();
        event_.stream_key = row->name;
        break;
      case Arg::kAgent: event_.agent = LastNumber(token); break;
      case Arg::kQueue: event_.queue = SmallInt(token); break;
      case Arg::kRank: event_.rank = JsonInt(token); break;
      case Arg::kFinished: event_.is_unfinished = token == "false"; break;
      case Arg::kKind: take(event_.kind, chakra::KindFromName(Word(token))); break;
      case Arg::kPlace: take(event_.place, PlaceFromName(Word(token))); break;
      case Arg::kUnknown: {
        const auto fact = CommFieldOfArg(key);
        if (!fact) break;
        std::string_view text = token;
        if (token.starts_with('"')) {
          if (const auto error = value.get_string().get(text)) return error;
        }
        taken = text != "null" && SetCommFact(event_.facts, *fact, text);
        break;
      }
    }
    if (!taken) event_.kept.push_back({.key = key, .begin = token.data()});
    return kSuccess;
  }

  std::optional<Nanos> Time(std::string_view token) {
    const JsonTime time = JsonMicros(token);
    if (time.rounded) builder().stats().Count(Stat::kRoundedTime);
    if (!time.nanos) builder().stats().Count(Stat::kNonFiniteNumber);
    return time.nanos;
  }

  simdjson::error_code AddComplete(uint64_t index) {
    if (event_.category.empty() && event_.pid.begin != nullptr &&
        processes_.HasSums(builder().Intern(event_.pid.text))) {
      builder().stats().Count(Stat::kSkippedEvent);
      return kSuccess;
    }
    std::optional<Nanos> seen;
    if (!event_.dur.empty()) seen = Time(event_.dur);
    std::optional<Nanos> duration = seen;
    if (event_.is_unfinished && seen) {
      event_.kept.push_back({.key = "dur", .begin = event_.dur_begin, .is_arg = false});
      duration.reset();
    }
    if (!duration) builder().stats().Count(Stat::kUnknownDuration);
    return AddNode(index, duration, seen).error;
  }

  // A fact that an allocator told, below the operator in which it did.
  simdjson::error_code AddMemoryEvent(uint64_t index) {
    const Added added = AddNode(index, std::nullopt, std::nullopt);
    if (!added.error) builder().SetKind(added.node, NodeKind::kMetadata);
    return added.error;
  }

  simdjson::error_code AddBegin(uint64_t index) {
    const Added added = AddNode(index, std::nullopt, std::nullopt);
    if (added.error) return added.error;
    const KinetoCategory category = FindKinetoCategory(event_.category, event_.name);
    OpenOnThread().push_back({.node = added.node,
                              .kind = category.kind,
                              .place = category.place,
                              .lane = LaneOf(category),
                              .start = added.start,
                              .timed = added.timed,
                              .facts = FactsToComplete()});
    return kSuccess;
  }

  // An end need not say more than its thread and time. What it does say holds for its node, too.
  simdjson::error_code AddEnd() {
    auto& stack = OpenOnThread();
    if (stack.empty()) return Problem("found an end ('E') without a beginning", kMissing);
    const std::optional<Nanos> end = event_.ts.empty() ? std::nullopt : Time(event_.ts);
    if (!end) return Problem("found no time 'ts'", kMissing);
    KeepUnlessIn(stack.back().lane);
    if (const auto error = PrepareExtras()) return error;
    const Open open = std::move(stack.back());
    stack.pop_back();
    builder().SetIds(open.node, IdsOfEvent());
    if (event_.facts.any) CompleteComm(open);
    builder().SetTimes(open.node, std::nullopt, *end - open.start, std::nullopt);
    if (open.timed != kNotTimed && *end >= open.start) {
      timed_[open.timed].end = *end;
      timed_[open.timed].has_end = true;
    }
    AddExtras(open.node);
    return kSuccess;
  }

  // A copy of the event's facts that outlives its text; null if there are none.
  std::unique_ptr<CommFacts> FactsToComplete() {
    if (!event_.facts.any) return nullptr;
    auto facts = std::make_unique<CommFacts>(event_.facts);
    for (std::string_view* text : {&facts->name, &facts->group, &facts->group_description}) {
      *text = builder().text(builder().Intern(*text));
    }
    return facts;
  }

  // The event, an end, has facts of a communication: with those of its beginning they are all.
  void CompleteComm(const Open& open) {
    if (open.facts != nullptr) FillGaps(event_.facts, *open.facts);
    event_.name = builder().text(builder().name(open.node));
    NodeRow row{.kind = open.kind, .place = open.place};
    const std::optional<Comm> comm = SettleComm(open.node, row);
    builder().SetKind(open.node, row.kind);
    if (comm) builder().SetComm(open.node, *comm);
  }

  static constexpr size_t kNotTimed = SIZE_MAX;
  struct Added {
    simdjson::error_code error = simdjson::SUCCESS;
    NodeId node;
    Nanos start;
    size_t timed = kNotTimed;
  };

  // `seen`: for how long it contains what else began on its thread.
  Added AddNode(uint64_t index, std::optional<Nanos> duration, std::optional<Nanos> seen) {
    if (!event_.has_name) return {.error = Problem("found no 'name'", kMissing)};
    if (event_.ts.empty()) return {.error = Problem("found no time 'ts'", kMissing)};
    const std::optional<Nanos> start = Time(event_.ts);
    if (!start) return {.error = Problem("'ts' is no time in microseconds", kMissing)};

    KinetoCategory category = FindKinetoCategory(event_.category, event_.name);
    if (event_.place) category.place = *event_.place;
    NodeRow row = IdsOfEvent();
    row.source_id = index;
    row.kind = category.kind;
    row.place = category.place;
    row.scope = category.scope;
    row.name = builder().Intern(event_.name);
    const Lane lane = LaneOf(category);
    row.lane = builder().InternLane(lane);
    KeepNamesUnlessIn(lane, category.place);
    KeepUnlessIn(lane);
    row.start = start;
    row.duration = duration;
    if (const auto error = PrepareExtras()) return {.error = error};
    const std::optional<Comm> comm = SettleComm(NodeId::FromIndex(builder().node_count()), row);
    if (category.name != DefaultKinetoCategory(row.kind, row.place)) {
      extras_.push_back({.key = builder().Intern(kKinetoCategoryKey),
                         .text = builder().Intern(JsonString(category.name))});
    }
    const NodeId node = builder().AddNode(row);
    merged_.Add(builder(), event_.pid.text, event_.rank);
    if (comm) builder().SetComm(node, *comm);
    if (event_.category.empty() && row.kind == NodeKind::kUnknown) AddUncategorised(node);
    AddExtras(node);
    size_t timed = kNotTimed;
    if (row.place != Place::kDevice) {
      timed = timed_.size();
      const bool has_end = seen && seen->count >= 0;
      timed_.push_back({.node = node,
                        .lane = row.lane,
                        .start = *start,
                        .end = *start + seen.value_or(Nanos{0}),
                        .has_end = has_end});
    }
    return {.node = node, .start = *start, .timed = timed};
  }

  NodeRow IdsOfEvent() const {
    NodeRow row;
    row.rf_id = event_.rf_id;
    row.seq_id = event_.sequence;
    row.fw_tid = event_.forward_thread;
    row.correlation = event_.correlation;
    row.external_id = event_.external_id;
    return row;
  }

  // Host events run on a thread of a process, device events on a stream of a device, which Kineto
  // also gives as pid and tid.
  Lane LaneOf(const KinetoCategory& category) {
    if (category.place != Place::kDevice) return Thread();
    Lane lane;
    auto device = event_.device ? event_.device : event_.agent;
    if (!device) device = SmallInt(OwnPid());
    auto stream = event_.stream;
    if (!stream && !event_.on_no_stream) stream = SmallInt(event_.tid.text);
    if (!stream) stream = event_.queue;
    lane.device = device.value_or(-1);
    lane.stream = stream.value_or(-1);
    return lane;
  }

  // The event's pid as its process wrote it: merging the profiles of ranks puts the rank to it.
  std::string_view OwnPid() const {
    const std::optional<PidOfRank> of_rank = ReadPidOfRank(event_.pid.text);
    return of_rank ? of_rank->pid : event_.pid.text;
  }

  // What pid and tid say, of whatever category the event is.
  Lane Thread() {
    Lane lane;
    if (event_.pid.begin != nullptr) lane.process = builder().Intern(event_.pid.text);
    if (event_.tid.begin != nullptr) lane.thread = builder().Intern(event_.tid.text);
    return lane;
  }

  // Keeps pid and tid of a device event where its lane does not say them.
  void KeepNamesUnlessIn(const Lane& lane, Place place) {
    if (place != Place::kDevice) return;
    KeepUnless(event_.pid, "pid", std::to_string(lane.device));
    KeepUnless(event_.tid, "tid", std::to_string(lane.stream));
  }

  // Keeps the device and stream that the event speaks of where its lane, as those of host events,
  // does not say them.
  void KeepUnlessIn(const Lane& lane) {
    if (event_.device && event_.device != lane.device) {
      event_.kept.push_back({.key = "device", .begin = event_.device_begin});
    }
    if (event_.stream && event_.stream != lane.stream) {
      event_.kept.push_back({.key = event_.stream_key, .begin = event_.stream_begin});
    }
  }

  void KeepUnless(const Name& name, std::string_view key, std::string_view expected) {
    if (name.begin == nullptr || name.text == expected) return;
    event_.kept.push_back({.key = key, .begin = name.begin, .is_arg = false});
  }

  // Changes the row's kind if it is a communication; nullopt if it has no facts of one.
  std::optional<Comm> SettleComm(NodeId node, NodeRow& row) {
    CommFacts& facts = event_.facts;
    const bool is_kernel = row.kind == NodeKind::kKernel && IsCommKernel(event_.name);
    const KinetoCategory category{.kind = row.kind, .place = row.place};
    row.kind = event_.kind.value_or(KindOfEvent(category, event_.name, facts.name));
    const std::string_view label =
        row.place == Place::kHost && !facts.any && !event_.kind ? CommOfLabel(event_.name) : "";
    if (!label.empty()) {
      facts.name = label;
      SetTensors(facts, ExtraNamed("Input Dims"), ExtraNamed("Input type"));
      labels_.emplace_back(node, MakeComm(builder(), facts));
      return std::nullopt;
    }
    if (!facts.any && !is_kernel) return std::nullopt;
    AddGroupOf(builder(), facts);
    Comm comm = MakeComm(builder(), facts);
    if (comm.type == CollectiveType::kUnknown && facts.name.empty()) {
      comm.type = CollectiveOfKernel(event_.name);
    }
    if (row.place == Place::kHost) calls_.insert_or_assign(node, comm);
    const bool is_silent = is_kernel && !comm.bytes && !comm.in_elements;
    if (is_silent) silent_.insert_or_assign(node, comm);
    if (is_kernel && !is_silent) silent_.erase(node);
    return comm;
  }

  // What the event's process and thread are called, if it says that.
  void TakeName() {
    const bool is_label = event_.name == "process_labels";
    const bool is_process = event_.name == "process_name";
    if (!is_label && !is_process && event_.name != "thread_name") return;
    const std::string_view key = is_label ? "labels" : "name";
    const auto kept = std::ranges::find_if(
        event_.kept, [&](const Kept& one) { return one.is_arg && one.key == key; });
    if (kept == event_.kept.end() || event_.pid.begin == nullptr) return;
    const auto json = RawText(kept->begin);
    const auto text = json ? TextOf(*json) : std::nullopt;
    if (!text) return;
    const StringId process = builder().Intern(event_.pid.text);
    const StringId name = builder().Intern(*text);
    if (is_label) {
      processes_.LabelProcess(process, name);
    } else if (is_process) {
      processes_.NameProcess(process, name);
    } else if (event_.tid.begin != nullptr) {
      processes_.NameThread(process, builder().Intern(event_.tid.text), name);
    }
  }

  // The text of a JSON string without escapes.
  static std::optional<std::string_view> TextOf(std::string_view json) {
    const std::string_view word = Word(json);
    if (word.empty() || word.find('\\') != word.npos) return std::nullopt;
    return word;
  }

  // The beginning or end of an arrow from the host to the work that it launched.
  void TakeArrow() {
    if (!IsLaunchArrow(event_.category) || event_.ts.empty()) return;
    const auto id = std::ranges::find_if(
        event_.kept, [](const Kept& one) { return !one.is_arg && one.key == "id"; });
    const JsonTime at = JsonMicros(event_.ts);
    if (id == event_.kept.end() || !at.nanos) return;
    if (arrows_.size() >= context().limits.nodes) return;
    const auto text = RawText(id->begin);
    if (!text) return;
    arrows_.push_back({.id = builder().Intern(*text),
                       .lane = builder().InternLane(Thread()),
                       .at = *at.nanos,
                       .begins = Is(event_.phase, "s")});
  }

  void AddUncategorised(NodeId node) {
    UncategorisedEvent event{.node = node,
                             .process = {},
                             .thread = {},
                             .device = event_.device,
                             .stream = event_.stream,
                             .task_type = {},
                             .correlation = {}};
    if (event_.pid.begin != nullptr) event.process = builder().Intern(event_.pid.text);
    if (event_.tid.begin != nullptr) event.thread = builder().Intern(event_.tid.text);
    const auto task_type = TextOf(ExtraNamed("Task Type"));
    if (task_type) event.task_type = builder().Intern(*task_type);
    const std::string_view correlation = ExtraNamed("correlation_id");
    event.correlation = JsonInt(correlation.starts_with('"') ? Word(correlation) : correlation);
    processes_.Add(event);
  }

  // JSON of an argument that is kept of the event; "" without one.
  std::string_view ExtraNamed(std::string_view key) {
    const auto found = std::ranges::find_if(
        extras_, [&](const Extra& extra) { return builder().text(extra.key) == key; });
    return found == extras_.end() ? std::string_view() : builder().text(found->text);
  }

  // Checks what is kept of the event before anything of it goes into the trace.
  simdjson::error_code PrepareExtras() {
    extras_.clear();
    for (const Kept& kept : event_.kept) {
      const auto text = RawText(kept.begin);
      if (!text) return Problem("a value is not valid JSON", simdjson::TAPE_ERROR);
      StringId key;
      if (kept.is_arg) {
        key = builder().Intern(kept.key);
      } else {
        key_.assign(kKinetoEventPrefix);
        key_ += kept.key;
        key = builder().Intern(key_);
      }
      extras_.push_back({.key = key, .text = builder().Intern(*text)});
    }
    return kSuccess;
  }
  void AddExtras(NodeId node) {
    for (const Extra& extra : extras_) builder().AddExtra(node, extra);
  }

  // The beginnings that wait for their ends on the event's thread: that alone decides.
  std::vector<Open>& OpenOnThread() {
    const size_t thread = threads_.Intern(Thread()).index();
    if (open_.size() <= thread) open_.resize(thread + 1);
    return open_[thread];
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
    for (const auto& stack : open_) {
      if (!stack.empty()) builder().stats().Count(Stat::kUnknownDuration, stack.size());
    }
    processes_.Settle();
    ClearImpossibleTimes();
    merged_.Separate(builder());
    SetParents();
    return {};
  }

  // Times that cannot be true are unknown; what the file has instead is kept.
  void ClearImpossibleTimes() {
    const std::vector<NodeId> impossible = FindImpossibleTimes(builder());
    if (impossible.empty() && processes_.events().empty()) return;
    const StringId ts = builder().Intern(std::string(kKinetoEventPrefix) + "ts");
    const StringId dur = builder().Intern(std::string(kKinetoEventPrefix) + "dur");
    for (const NodeId node : impossible) {
      const auto keep = [&](StringId key, std::optional<Nanos> time) {
        if (!time) return;
        builder().AddExtra(node, {.key = key, .text = builder().Intern(MicrosText(*time))});
      };
      keep(ts, builder().start(node));
      keep(dur, builder().duration(node));
      builder().ClearTimes(node);
      builder().stats().Count(Stat::kUnknownTime);
    }
    std::erase_if(timed_, [&](const TimedNode& timed) {
      return builder().place(timed.node) == Place::kDevice || !builder().start(timed.node);
    });
  }

  // Work at which an arrow ends belongs to the host node in which the arrow begins, which are found
  // by time.
  struct Arrow {
    StringId id;
    LaneId lane;  // by pid and tid
    Nanos at;
    bool begins = false;
  };
  void SetLaunchers(const std::vector<NodeId>& begins_in) {
    std::unordered_map<StringId, NodeId> launchers;
    std::map<std::pair<LaneId, Nanos>, NodeId> ends;
    for (size_t i = 0; i < arrows_.size(); ++i) {
      const Arrow& arrow = arrows_[i];
      if (arrow.begins && begins_in[i]) launchers.emplace(arrow.id, begins_in[i]);
    }
    for (const Arrow& arrow : arrows_) {
      if (arrow.begins) continue;
      const auto launcher = launchers.find(arrow.id);
      if (launcher == launchers.end()) continue;
      ends.emplace(std::pair(arrow.lane, arrow.at), launcher->second);
    }
    if (ends.empty()) return;
    for (const UncategorisedEvent& event : processes_.events()) {
      const auto start = builder().start(event.node);
      if (!start || builder().place(event.node) != Place::kDevice) continue;
      const LaneId lane = builder().InternLane({.process = event.process, .thread = event.thread});
      const auto end = ends.find({lane, *start});
      if (end != ends.end()) builder().SetParent(event.node, end->second);
    }
  }

  // Profiles do not say which of their operators are autograd's nodes.
  void SetAutogradNode(NodeId node, NodeId parent) {
    const auto name_of = [&](NodeId of) { return builder().text(builder().name(of)); };
    if (builder().kind(node) != NodeKind::kOperator) return;
    if (!IsAutogradNode(name_of(node), name_of(parent))) return;
    builder().SetKind(node, NodeKind::kLabel);
    builder().SetScope(node, kBackwardScope);
    builder().AddExtra(node, {.key = builder().Intern(kKinetoCategoryKey),
                              .text = builder().Intern(JsonString("cpu_op"))});
  }

  void SetParents() {
    const bool is_needed = !labels_.empty() || !silent_.empty();
    std::vector<NodeId> parent_of(is_needed ? builder().node_count() : 0);
    for (TimedNode& timed : timed_) {
      if (IsHostThreadLabel(builder().text(builder().name(timed.node)))) timed.has_end = false;
    }
    // The beginnings of arrows are looked for like nodes, behind all of these.
    const size_t nodes = builder().node_count();
    std::vector<NodeId> begins_in(arrows_.size());
    for (size_t i = 0; i < arrows_.size(); ++i) {
      if (!arrows_[i].begins) continue;
      timed_.push_back({.node = NodeId::FromIndex(nodes + i),
                        .lane = arrows_[i].lane,
                        .start = arrows_[i].at,
                        .end = arrows_[i].at});
    }
    for (const Nesting& nesting : NestByTime(std::move(timed_))) {
      if (nesting.node.index() >= nodes) {
        begins_in[nesting.node.index() - nodes] = nesting.parent;
        continue;
      }
      builder().SetParent(nesting.node, nesting.parent);
      SetAutogradNode(nesting.node, nesting.parent);
      if (!parent_of.empty()) parent_of[nesting.node.index()] = nesting.parent;
    }
    // A backend's label stands for a communication where record_param_comms does not, and names it
    // where that is silent.
    const StringId recorded = builder().Intern(kRecordParamComms);
    for (const auto& [label, comm] : labels_) {
      NodeId node = parent_of[label.index()];
      const bool is_recorded = node && builder().name(node) == recorded;
      if (is_recorded && builder().kind(node) != NodeKind::kOperator) continue;
      if (!is_recorded) node = label;
      builder().SetKind(node, KindOfCommunication(builder().text(comm.name)));
      builder().SetComm(node, comm);
      calls_.insert_or_assign(node, comm);
    }
    SetLaunchers(begins_in);
    FillFromCalls(parent_of);
  }

  // Kernels of which the profiler says neither what nor how much they move (before PyTorch 2.2) do
  // what the call around their launch says.
  void FillFromCalls(const std::vector<NodeId>& parent_of) {
    if (silent_.empty() || calls_.empty()) return;
    std::unordered_map<int64_t, NodeId> launches;
    for (size_t i = 0; i < builder().node_count(); ++i) {
      const NodeId node = NodeId::FromIndex(i);
      if (builder().kind(node) != NodeKind::kRuntime) continue;
      const int64_t correlation = builder().correlation(node).value_or(0);
      if (correlation > 0) launches.emplace(correlation, node);
    }
    std::vector<NodeId> lost;
    for (const auto& [kernel, own] : silent_) {
      const auto launch = launches.find(builder().correlation(kernel).value_or(0));
      if (launch == launches.end()) {
        lost.push_back(kernel);
        continue;
      }
      NodeId above = parent_of[launch->second.index()];
      while (above && !calls_.contains(above)) above = parent_of[above.index()];
      if (above) FillFrom(above, kernel, own);
    }
    FillByOrder(lost, launches, parent_of);
  }

  // The outermost call around a node, or the node itself, that stands for a communication; or
  // kNone.
  NodeId CallAround(NodeId node, const std::vector<NodeId>& parent_of) {
    NodeId call;
    for (; node; node = parent_of[node.index()]) {
      if (calls_.contains(node) && IsCommunication(builder().kind(node))) call = node;
    }
    return call;
  }

  void FillFrom(NodeId call_node, NodeId kernel, const Comm& own) {
    if (builder().kind(kernel) == NodeKind::kCollective) {
      builder().SetKind(kernel, builder().kind(call_node));
    }
    Comm call = calls_.at(call_node);
    call.name = StringId::None();  // a host trace has the full one: "all_to_allv"
    builder().SetComm(kernel, FilledFrom(own, call));
  }

  // Kernels whose correlation leads to no launch, as those of RCCL in ROCm 6.1 whose correlation is
  // 0, belong to the calls without a kernel, in order.
  void FillByOrder(const std::vector<NodeId>& kernels,
                   const std::unordered_map<int64_t, NodeId>& launches,
                   const std::vector<NodeId>& parent_of) {
    if (kernels.empty()) return;
    std::unordered_set<int64_t> ran;
    std::unordered_set<NodeId> served;
    for (size_t i = 0; i < builder().node_count(); ++i) {
      const NodeId node = NodeId::FromIndex(i);
      if (builder().place(node) != Place::kDevice) continue;
      const int64_t correlation = builder().correlation(node).value_or(0);
      if (correlation <= 0) continue;
      ran.insert(correlation);
      const auto launch = launches.find(correlation);
      if (launch == launches.end() || !IsCommunication(builder().kind(node))) continue;
      served.insert(CallAround(launch->second, parent_of));
    }
    std::vector<StrayKernel> stray_kernels;
    for (const NodeId kernel : kernels) {
      const auto start = builder().start(kernel);
      if (!start) continue;
      stray_kernels.push_back({.node = kernel,
                               .stream = builder().lane_id(kernel),
                               .start = *start,
                               .end = *start + builder().duration(kernel).value_or(Nanos{}),
                               .type = silent_.at(kernel).type});
    }
    std::vector<StrayCall> stray_calls;
    for (const auto& [call, comm] : calls_) {
      const auto start = builder().start(call);
      if (!start || served.contains(call) || CallAround(call, parent_of) != call) continue;
      stray_calls.push_back(
          {.node = call, .group = comm.group, .start = *start, .type = comm.type});
    }
    // Of each call the launch in it whose work is not in the trace; kNone if there are several.
    std::unordered_map<NodeId, NodeId> launch_in;
    for (const auto& [correlation, launch] : launches) {
      if (ran.contains(correlation)) continue;
      if (!LaunchesWork(builder().text(builder().name(launch)))) continue;
      const auto [at, is_new] = launch_in.emplace(CallAround(launch, parent_of), launch);
      if (!is_new) at->second = NodeId::None();
    }
    std::unordered_set<NodeId> paired;
    for (const OrderedPair& pair : PairByOrder(stray_kernels, stray_calls)) {
      paired.insert(pair.kernel);
      paired.insert(pair.call);
      FillFrom(pair.call, pair.kernel, silent_.at(pair.kernel));
      builder().stats().Count(Stat::kCallByOrder);
      const auto launch = launch_in.find(pair.call);
      if (launch == launch_in.end() || !launch->second) continue;
      NodeRow ids;
      ids.correlation = builder().correlation(launch->second);
      builder().SetIds(pair.kernel, ids);
    }
    std::erase_if(stray_kernels, [&](const auto& one) { return paired.contains(one.node); });
    std::erase_if(stray_calls, [&](const auto& one) { return paired.contains(one.node); });
    FillFromAll(stray_kernels, stray_calls);
  }

  // Whichever call a kernel belongs to: that on which all calls agree is true of it.
  void FillFromAll(const std::vector<StrayKernel>& kernels, const std::vector<StrayCall>& calls) {
    if (kernels.empty() || kernels.size() > calls.size()) return;
    Comm common = calls_.at(calls.front().node);
    NodeKind kind = builder().kind(calls.front().node);
    for (const StrayCall& call : calls) {
      common = InBoth(common, calls_.at(call.node));
      if (builder().kind(call.node) != kind) kind = NodeKind::kCollective;
    }
    common.name = StringId::None();
    if (common == Comm()) return;
    for (const StrayKernel& kernel : kernels) {
      if (kernel.type != CollectiveType::kUnknown && common.type != CollectiveType::kUnknown &&
          kernel.type != common.type) {
        continue;
      }
      if (builder().kind(kernel.node) == NodeKind::kCollective)
        builder().SetKind(kernel.node, kind);
      builder().SetComm(kernel.node, FilledFrom(silent_.at(kernel.node), common));
      builder().stats().Count(Stat::kCallByOrder);
    }
  }

  KeyFinder<ArgRow, kArgs.size()> args_{kArgs};
  Event event_;
  std::vector<Extra> extras_;
  std::string key_;
  std::vector<TimedNode> timed_;  // host nodes
  MergedProcesses merged_;
  InternTable<Lane, struct ThreadTag> threads_;
  std::vector<std::vector<Open>> open_;  // by thread
  // Host nodes named like a backend's communication, and what they say of it.
  std::vector<std::pair<NodeId, Comm>> labels_;
  std::unordered_map<NodeId, Comm> calls_;  // host nodes that stand for a communication
  KinetoProcesses processes_{builder()};
  std::vector<Arrow> arrows_;
  // Kernels of which the profiler says only that they communicate, and what their names say.
  std::map<NodeId, Comm> silent_;
};

}  // namespace

std::unique_ptr<TraceReader> MakeKinetoReader(std::string name, const ReadOptions& options,
                                              const RunContext& context) {
  return MakeProfileReader(std::move(name), TraceFormat::kKineto, options, context);
}

std::unique_ptr<TraceReader> MakeProfileReader(std::string name, TraceFormat format,
                                               const ReadOptions& options,
                                               const RunContext& context) {
  return std::make_unique<KinetoReader>(std::move(name), format, options, context);
}

}  // namespace etude
