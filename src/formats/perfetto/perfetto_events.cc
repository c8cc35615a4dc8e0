#include "src/formats/perfetto/perfetto_events.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/formats/json/json_text.h"
#include "src/formats/json/json_walk.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/operator_name.h"

namespace etude::perfetto {
namespace {

// Category of an event without one, by the arguments that PyTorch gives it. PyTorch's writer does
// not write categories. The first matching row counts.
struct UsualCategory {
  std::string_view arg;          // that the event has
  std::string_view name_prefix;  // of the event
  std::string_view category;
};
constexpr UsualCategory kUsualCategories[] = {
    {"cuda_sync_kind", "", "cuda_sync"},  {"stream", "Memcpy", "gpu_memcpy"},
    {"stream", "Memset", "gpu_memset"},   {"stream", "", "kernel"},
    {"cbid", "", "cuda_runtime"},         {"Record function id", kStepMark, "user_annotation"},
    {"Record function id", "", "cpu_op"},
};

bool HasKey(std::string_view args, std::string_view key) {
  return args.find("\"" + std::string(key) + "\":") != std::string_view::npos;
}

// The minimum time cannot be negated, so it counts as unknown.
std::optional<Nanos> KnownTime(Nanos time) {
  return time.count == INT64_MIN ? std::nullopt : std::optional(time);
}

std::string_view UsualCategoryOf(std::string_view name, std::string_view args) {
  for (const UsualCategory& row : kUsualCategories) {
    if (HasKey(args, row.arg) && name.starts_with(row.name_prefix)) return row.category;
  }
  return {};
}

}  // namespace

bool IsWork(EventType type, std::string_view name, std::string_view args) {
  return type == EventType::kInstant && (HasKey(args, kEtKindAttr) || name == kMemoryEvent);
}

SliceEvents::SliceEvents(std::string name, const Limits& limits, const StringPool& strings,
                         const Tracks& tracks, TraceBuilder& builder)
    : name_(std::move(name)),
      limits_(limits),
      strings_(strings),
      tracks_(tracks),
      builder_(builder),
      profile_(builder, limits),
      brackets_(limits.depth - std::min<size_t>(limits.depth, 1)) {}

const Tracks::Lane& SliceEvents::LaneOf(uint64_t track) {
  const auto [at, is_new] = lanes_.try_emplace(track);
  if (is_new) at->second = tracks_.LaneOf(track);
  return at->second;
}

Status SliceEvents::CheckNodes() const {
  if (builder_.node_count() < limits_.nodes) return {};
  return BadInput(fmt::format("{}: more than {} events (limit 'nodes')", name_, limits_.nodes));
}

Status SliceEvents::Add(const TrackEvent& slice, uint64_t index) {
  ETUDE_RETURN_IF_ERROR(CheckNodes());
  const std::string_view args = strings_.Get(slice.args);
  ETUDE_RETURN_IF_ERROR(TakeArgs(args, index));
  if (!ReadEvent(slice, args) || !AddEvent(slice, index)) {
    builder_.stats().Count(Stat::kMalformedElement);
  }
  return {};
}

Status SliceEvents::TakeArgs(std::string_view args, uint64_t index) {
  if (args.size() > limits_.element_bytes) {
    return BadInput(
        fmt::format("{}: slice {}: arguments of more than {} bytes (limit "
                    "'element_bytes')",
                    name_, index, limits_.element_bytes));
  }
  args_.assign("{").append(args).append("}");
  brackets_.Reset();
  brackets_.Scan(args_);
  if (brackets_.state() == BracketScanner::State::kTooDeep) {
    return BadInput(fmt::format("{}: slice {}: more than {} nested brackets (limit 'depth')", name_,
                                index, brackets_.depth() + 1));
  }
  if (brackets_.saw_backslash()) RepairJsonStrings(args_, builder_.stats());
  return {};
}

bool SliceEvents::ReadArgs() {
  args_.reserve(args_.size() + simdjson::SIMDJSON_PADDING);
  // Simdjson grows to exactly the requested size, so request it in steps.
  if (args_.size() > parser_.capacity()) {
    const size_t capacity = std::max(args_.size() * 2, size_t{4} << 10);
    if (parser_.allocate(std::min<size_t>(capacity, simdjson::SIMDJSON_MAXSIZE_BYTES)) !=
        simdjson::SUCCESS) {
      return false;
    }
  }
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  const simdjson::padded_string_view text(args_.data(), args_.size(), args_.capacity());
  if (parser_.iterate(text).get(document) != simdjson::SUCCESS) return false;
  if (document.get_object().get(object) != simdjson::SUCCESS) return false;
  const auto read = [&](std::string_view key, simdjson::ondemand::value& value) {
    return arguments_.Read(key, value, event_);
  };
  return ForEachMember(object, read) == simdjson::SUCCESS;
}

bool SliceEvents::ReadEvent(const TrackEvent& slice, std::string_view args) {
  event_.Reset();
  event_.name = strings_.Get(slice.name);
  event_.category =
      slice.category ? strings_.Get(slice.category) : UsualCategoryOf(event_.name, args);
  const Tracks::Lane& lane = LaneOf(slice.track);
  if (!lane.pid.empty()) event_.process = {.text = lane.pid, .raw = lane.pid};
  if (!lane.raw_tid.empty()) event_.thread = {.text = lane.tid, .raw = lane.raw_tid};
  event_.start = KnownTime(Nanos{slice.time});
  return event_.start && (args.empty() || ReadArgs());
}

bool SliceEvents::AddEvent(const TrackEvent& slice, uint64_t index) {
  const bool is_instant = slice.type == EventType::kInstant;
  const bool is_memory = is_instant && event_.name == kMemoryEvent;
  if (is_instant && !is_memory && !event_.kind) {
    builder_.stats().Count(Stat::kSkippedEvent);
    return true;
  }
  if (!is_memory) {
    if (profile_.SkipsSum(event_)) return true;
    if (slice.has_end) {
      event_.duration = KnownTime(Nanos{slice.end} - Nanos{slice.time});
      if (!event_.duration) builder_.stats().Count(Stat::kNonFiniteNumber);
    }
    if (event_.duration) {
      duration_ = MicrosText(*event_.duration);
      event_.raw_duration = duration_;
    }
    profile_.TakeDuration(event_);
  }
  const ProfileBuilder::Spot spot = profile_.Locate(event_);
  if (!CutExtras(event_, args_.data() + args_.size(), builder_.stats())) return false;
  if (is_memory) {
    profile_.AddMemoryEvent(event_, spot, index);
  } else {
    profile_.Add(event_, spot, index);
  }
  return true;
}

void SliceEvents::Finish() { profile_.Finish(); }

}  // namespace etude::perfetto
