#include "src/formats/native/capture_reader.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"
#include "src/base/text/format_count.h"
#include "src/formats/native/capture_allocations.h"
#include "src/formats/native/capture_blocks.h"
#include "src/formats/native/capture_calls.h"
#include "src/formats/native/capture_clocks.h"
#include "src/formats/native/capture_format.h"
#include "src/formats/native/capture_values.h"
#include "src/formats/pytorch_et/et_names.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using capture::BlockKind;
using capture::Definition;
using capture::Event;
using capture::RecordView;
using Json = nlohmann::json;

constexpr uint64_t kProcessNode = 1;
// PyTorch's observer records its start and end in milliseconds of the same clock.
constexpr int64_t kNanosOfMilli = 1'000'000;

// A thread of the recorded process. Its clock stops while the recorder works.
struct Thread {
  uint64_t node = 0;
  uint64_t tid = 0;
  uint32_t posix_id = 0;  // 0: unknown
  LaneId lane;
  int64_t overhead = 0;
  int64_t clock = 0;    // at the last event
  bool asks = false;    // issues communications
  uint64_t handle = 0;  // of the last begun call
  bool lost = false;    // a block was lost: calls may end without a recorded begin
  std::vector<OpenCall> open;
};

class CaptureReader : public TraceReader {
 public:
  CaptureReader(std::string name, const ReadOptions& options, const RunContext& context)
      : name_(std::move(name)),
        options_(options),
        context_(context),
        builder_(context.limits),
        values_(builder_, strings_, context.limits),
        calls_(builder_),
        blocks_(context.limits.element_bytes) {
    builder_.info().SetFormat(TraceFormat::kNative);
  }

  Status Push(std::string_view chunk) override;
  Result<Trace> Finish(bool cut) override;

 private:
  Status TakeBlock(const CaptureBlocks::Block& block);
  Status Damaged(std::string_view what);
  Status Lost(BlockKind kind, std::string_view what);
  void NoteLostBlock(Thread& thread);
  uint64_t LostNodes() const;
  Status ReadHeader(std::string_view json);
  Status ReadEnd(std::string_view json);
  bool ReadDefinitions(RecordView records);
  bool ReadEvents(RecordView records);
  int64_t ReadClock(RecordView& records, Thread& thread);
  bool ReadEnter(RecordView& records, Thread& thread);
  int64_t TakeOutCallback(Thread& thread, int64_t last, int64_t own);
  bool ReadExit(RecordView& records, Thread& thread);
  bool ReadExitOver(RecordView& records, Thread& thread);
  bool ReadExitElsewhere(RecordView& records, Thread& thread);
  bool ReadAllocation(RecordView& records, Thread& thread, bool gives_out);
  bool Computes(const Thread& thread) const;
  void AddRoots();

  std::string name_;
  ReadOptions options_;
  const RunContext& context_;
  TraceBuilder builder_;
  std::vector<StringId> strings_;
  struct Function {
    StringId name;
    StringId schema;
  };
  std::vector<Function> functions_;
  std::vector<Thread> threads_;
  CaptureValues values_;
  CaptureCalls calls_;
  CaptureClocks clocks_;
  std::vector<Allocation> allocations_;

  CaptureBlocks blocks_;
  bool saw_header_ = false;
  bool saw_end_ = false;
  bool broken_ = false;  // the rest is unreadable
  std::string first_damage_;
  uint64_t damages_ = 0;
  StringId process_;
  int64_t version_ = 0;
  int64_t callback_ = 0;  // cost of calling a recorder, in ns
  // For the last event of the block.
  int64_t time_ = 0;
  uint64_t node_ = 0;
  uint64_t handle_ = 0;

  uint64_t last_node_ = 0;   // max node number
  uint64_t said_nodes_ = 0;  // the same, as stated at the end
};

Status CaptureReader::Damaged(std::string_view what) {
  const std::string text = fmt::format("{}: byte {}: {}", name_, blocks_.offset(), what);
  if (options_.strict) return BadInput(text);
  if (first_damage_.empty()) first_damage_ = text;
  ++damages_;
  return {};
}

// Without lost definitions, later names would be wrong.
Status CaptureReader::Lost(BlockKind kind, std::string_view what) {
  if (kind != BlockKind::kDefinitions) return Damaged(what);
  broken_ = true;
  return Damaged(fmt::format("{}, and it defines names: skipped the rest", what));
}

// Node numbers are consecutive: missing ones were lost.
uint64_t CaptureReader::LostNodes() const {
  const uint64_t last = std::max(last_node_, said_nodes_);
  const uint64_t read = calls_.count() + threads_.size() + kProcessNode;
  const uint64_t missing = last > read ? last - read : 0;
  return std::clamp<uint64_t>(missing, damages_,
                              std::max<uint64_t>(damages_, context_.limits.nodes));
}

Status CaptureReader::Push(std::string_view chunk) {
  if (broken_ || saw_end_) return {};
  blocks_.Push(chunk);
  while (!broken_ && !saw_end_) {
    const auto block = blocks_.Next();
    if (!block) break;
    ETUDE_RETURN_IF_ERROR(TakeBlock(*block));
  }
  if (blocks_.is_other_file()) {
    return BadInput(name_ + ": found unknown content, expected a native capture");
  }
  if (!blocks_.is_broken() || broken_) return {};
  broken_ = true;
  return Damaged("found no block, expected one: skipped the rest");
}

Status CaptureReader::TakeBlock(const CaptureBlocks::Block& block) {
  if (!block.damage.empty()) return Lost(block.kind, block.damage);
  if (!saw_header_) {
    if (!first_damage_.empty()) return BadInput(first_damage_);
    if (block.kind != BlockKind::kHeader) {
      return BadInput(name_ + ": found a block of another kind, expected the header first");
    }
    saw_header_ = true;
    return ReadHeader(block.records);
  }
  bool good = true;
  switch (block.kind) {
    case BlockKind::kHeader: good = false; break;
    case BlockKind::kDefinitions: good = ReadDefinitions(RecordView(block.records)); break;
    case BlockKind::kEvents: good = ReadEvents(RecordView(block.records)); break;
    case BlockKind::kEnd: return ReadEnd(block.records);
  }
  if (!good) return Lost(block.kind, "found invalid content in a block: skipped the rest of it");
  return {};
}

Status CaptureReader::ReadHeader(std::string_view text) {
  const Json json = ParseBounded<Json>(text, context_.limits.depth);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer()) {
    return BadInput(name_ + ": found a header that is not a JSON object with a version");
  }
  const auto version = version_ = json["version"].get<int64_t>();
  if (version < 1 || version > capture::kVersion) {
    return BadInput(fmt::format("{}: found a native capture of version {}, expected 1 to {}", name_,
                                version, capture::kVersion));
  }
  TraceInfo& info = builder_.info();
  info.schema = fmt::format("{}{}", kNativeSchema, version);
  for (const auto& [key, value] : json.items()) {
    const auto number = [&]() -> std::optional<int64_t> {
      if (value.is_number_integer()) return value.get<int64_t>();
      return std::nullopt;
    };
    if (key == "pid" && number()) {
      info.pid = number();
    } else if (key == "rank" && number()) {
      info.rank = number();
    } else if (key == "world_size" && number()) {
      info.world_size = number();
    } else if (key == "time" && value.is_string()) {
      info.time = value.get<std::string>();
    } else if (key != "format" && key != "version") {
      constexpr int64_t kMostCallback = 100'000;
      if (key == "monotonic_ns" && number()) info.start_ts = *number() / kNanosOfMilli;
      if (key == "callback_ns" && number())
        callback_ = std::clamp<int64_t>(*number(), 0, kMostCallback);
      info.extras.push_back({.key = builder_.Intern(key), .text = builder_.Intern(value.dump())});
    }
  }
  if (info.pid) process_ = builder_.Intern(std::to_string(*info.pid));
  return {};
}

Status CaptureReader::ReadEnd(std::string_view text) {
  saw_end_ = true;
  const Json json = ParseBounded<Json>(text, context_.limits.depth);
  if (!json.is_object()) return Damaged("the end record is not a JSON object");
  if (const auto nodes = json.find("nodes"); nodes != json.end() && nodes->is_number_unsigned()) {
    said_nodes_ = nodes->get<uint64_t>();
  }
  if (const auto dropped = json.find("dropped_blocks");
      dropped != json.end() && dropped->is_number_unsigned() && *dropped != 0) {
    return Damaged("the recorder dropped " +
                   FormatCount(dropped->get<uint64_t>(), "block of events", "blocks of events"));
  }
  if (const auto end = json.find("finish_monotonic_ns");
      end != json.end() && end->is_number_integer()) {
    builder_.info().finish_ts = end->get<int64_t>() / kNanosOfMilli;
  }
  if (const auto why = json.find("no_allocations"); why != json.end() && why->is_string()) {
    context_.Warn(
        fmt::format("{}: allocations were not recorded: {}", name_, why->get<std::string>()));
  }
  return {};
}

bool CaptureReader::ReadDefinitions(RecordView records) {
  while (!records.done()) {
    switch (static_cast<Definition>(records.Byte())) {
      case Definition::kString: strings_.push_back(builder_.Intern(records.Text())); break;
      case Definition::kFunction: {
        const uint64_t name = records.Varint();
        const uint64_t schema = records.Varint();
        if (records.failed() || name >= strings_.size() || schema > strings_.size()) return false;
        functions_.push_back(
            {strings_[name], schema == 0 ? StringId::None() : strings_[schema - 1]});
        break;
      }
      case Definition::kThread: {
        const uint64_t number = records.Varint();
        Thread thread;
        thread.node = records.Varint();
        last_node_ = std::max(last_node_, thread.node);
        thread.tid = records.Varint();
        const StringId system_tid = builder_.Intern(std::to_string(records.Varint()));
        if (version_ >= 3) thread.posix_id = static_cast<uint32_t>(records.Varint());
        if (records.failed() || number != threads_.size()) return false;
        thread.lane = builder_.InternLane({.process = process_, .thread = system_tid});
        threads_.push_back(std::move(thread));
        break;
      }
      default: return false;
    }
  }
  return !records.failed();
}

// Advances the block's time and the thread's overhead; returns the time of its own clock.
int64_t CaptureReader::ReadClock(RecordView& records, Thread& thread) {
  time_ =
      static_cast<int64_t>(static_cast<uint64_t>(time_) + static_cast<uint64_t>(records.Signed()));
  const auto spent = static_cast<int64_t>(records.Varint());
  const int64_t more = options_.keep_recorder_time ? 0 : spent;
  if (__builtin_add_overflow(thread.overhead, more, &thread.overhead)) thread.overhead = 0;
  int64_t own = 0;
  thread.clock = __builtin_sub_overflow(time_, thread.overhead, &own) ? time_ : own;
  return thread.clock;
}

// Removes the cost of calling a recorder, which lies between the last event and the beginning of a
// call, from the caller's time. Never more than the elapsed time.
int64_t CaptureReader::TakeOutCallback(Thread& thread, int64_t last, int64_t own) {
  int64_t passed = 0;
  if (options_.keep_recorder_time) return own;
  if (__builtin_sub_overflow(own, last, &passed) || passed <= 0) return own;
  const int64_t taken = std::min(passed, callback_);
  if (__builtin_add_overflow(thread.overhead, taken, &thread.overhead)) return own;
  thread.clock = own - taken;
  return thread.clock;
}

bool CaptureReader::ReadEvents(RecordView records) {
  const uint64_t number = records.Varint();
  if (records.failed() || number >= threads_.size()) return false;
  Thread& thread = threads_[number];
  time_ = static_cast<int64_t>(records.Varint());
  node_ = records.Varint();
  handle_ = records.Varint();
  if (damages_ != 0 && handle_ != thread.handle) NoteLostBlock(thread);
  while (!records.done()) {
    bool good = false;
    switch (static_cast<Event>(records.Byte())) {
      case Event::kEnter: good = ReadEnter(records, thread); break;
      case Event::kExit: good = ReadExit(records, thread); break;
      case Event::kExitOver: good = ReadExitOver(records, thread); break;
      case Event::kExitElsewhere: good = ReadExitElsewhere(records, thread); break;
      case Event::kAllocate: good = ReadAllocation(records, thread, /*gives_out=*/true); break;
      case Event::kFree: good = ReadAllocation(records, thread, /*gives_out=*/false); break;
    }
    if (!good || records.failed()) return false;
    if (thread.asks) {
      clocks_.Add(thread.lane, {.time = time_, .own = thread.clock}, Computes(thread));
    }
  }
  return !records.failed();
}

bool CaptureReader::Computes(const Thread& thread) const {
  if (thread.open.empty()) return false;
  const NodeRow& row = thread.open.back().row;
  return row.kind == NodeKind::kOperator && !IsCommOperator(builder_.text(row.name));
}

// The thread's previous block is missing: it may have ended any of the open calls.
void CaptureReader::NoteLostBlock(Thread& thread) {
  thread.lost = true;
  for (OpenCall& call : thread.open) calls_.Detach(std::move(call));
  thread.open.clear();
}

bool CaptureReader::ReadEnter(RecordView& records, Thread& thread) {
  const int64_t last = thread.clock;
  const int64_t own = ReadClock(records, thread);
  const uint64_t node = node_ += static_cast<uint64_t>(records.Signed());
  last_node_ = std::max(last_node_, node);
  const uint64_t handle = handle_ += static_cast<uint64_t>(records.Signed());
  thread.handle = handle;
  const uint64_t function = records.Varint();
  const uint8_t scope = records.Byte();
  const uint64_t sequence = records.Varint();
  const uint64_t forward_thread = records.Varint();
  const uint8_t modes = records.Byte();
  if (records.failed() || function >= functions_.size()) return false;
  OpenCall& call = thread.open.emplace_back();
  call.handle = handle;
  call.begin = {.time = time_, .own = TakeOutCallback(thread, last, own)};
  call.modes = modes;
  call.parent_modes = capture::kGradMode;
  if (thread.open.size() > 1) {
    const OpenCall& caller = thread.open[thread.open.size() - 2];
    call.parent_modes = caller.modes;
    call.in_label = IsHostThreadLabel(builder_.text(caller.row.name));
    call.group = caller.group;
    call.group_size = caller.group_size;
  }
  NodeRow& row = call.row;
  row.source_id = node;
  row.place = Place::kHost;
  row.name = functions_[function].name;
  row.op_schema = functions_[function].schema;
  row.kind = row.op_schema ? NodeKind::kOperator : NodeKind::kLabel;
  row.parent =
      thread.open.size() > 1 ? thread.open[thread.open.size() - 2].row.source_id : thread.node;
  row.lane = thread.lane;
  row.rf_id = handle;
  row.seq_id = static_cast<int64_t>(sequence - 1);
  row.scope = scope;
  row.tid = thread.tid;
  if (forward_thread != 0) row.fw_tid = forward_thread;
  const std::optional<ValueListId> inputs = values_.Read(records);
  if (!inputs) return false;
  row.inputs = *inputs;
  if (const std::string ranges = values_.ranges(); !ranges.empty()) {
    row.tensor_range = builder_.Intern(ranges);
  }
  if (!values_.statistics().empty()) {
    row.index_statistics = builder_.Intern(ToText(values_.statistics()));
    if (const std::string values = values_.index_values(); !values.empty()) {
      row.index_values = builder_.Intern(values);
    }
  }
  if (values_.group()) {
    call.names_group = thread.asks = true;
    call.group = values_.group()->name;
    call.group_size = values_.group()->size;
  }
  return true;
}

bool CaptureReader::ReadAllocation(RecordView& records, Thread& thread, bool gives_out) {
  if (allocations_.size() >= context_.limits.nodes) return false;
  Allocation& one = allocations_.emplace_back();
  one.start = ReadClock(records, thread);
  one.time = time_;
  one.parent = thread.open.empty() ? thread.node : thread.open.back().row.source_id;
  one.lane = thread.lane;
  one.tid = thread.tid;
  one.address = records.Fixed64();
  if (gives_out) one.bytes = records.Varint();
  return true;
}

// Ends the innermost call. After a lost block its begin may be missing.
bool CaptureReader::ReadExit(RecordView& records, Thread& thread) {
  if (thread.open.empty() && !thread.lost) return false;
  const int64_t own = ReadClock(records, thread);
  const std::optional<ValueListId> outputs = values_.Read(records);
  if (thread.open.empty()) return true;
  OpenCall call = std::move(thread.open.back());
  thread.open.pop_back();
  calls_.End(call, outputs.value_or(ValueListId::None()), Moment{.time = time_, .own = own});
  return true;
}

bool CaptureReader::ReadExitOver(RecordView& records, Thread& thread) {
  const uint64_t inside = records.Varint();
  if (inside >= thread.open.size() && !thread.lost) return false;
  for (uint64_t i = 0; i < inside && !thread.open.empty(); ++i) {
    calls_.Detach(std::move(thread.open.back()));
    thread.open.pop_back();
  }
  return ReadExit(records, thread);
}

bool CaptureReader::ReadExitElsewhere(RecordView& records, Thread& thread) {
  const uint64_t handle = records.Varint();
  ReadClock(records, thread);
  const std::optional<ValueListId> outputs = values_.Read(records);
  if (!outputs) return false;
  calls_.EndElsewhere(handle, *outputs, time_);
  return true;
}

// Adds the process and its threads, named as by PyTorch's observer.
void CaptureReader::AddRoots() {
  NodeRow root;
  root.source_id = kProcessNode;
  root.kind = NodeKind::kProcess;
  root.place = Place::kHost;
  root.name = builder_.Intern(kEtProcessRoot);
  builder_.AddNode(root);
  for (const Thread& thread : threads_) {
    NodeRow row;
    row.source_id = thread.node;
    row.kind = NodeKind::kThread;
    row.place = Place::kHost;
    row.name = builder_.Intern(kEtThreadRoot);
    row.parent = kProcessNode;
    row.lane = thread.lane;
    row.tid = thread.tid;
    const NodeId node = builder_.AddNode(row);
    if (thread.posix_id == 0) continue;
    builder_.AddExtra(node, {.key = builder_.Intern(kPosixThreadKey),
                             .text = builder_.Intern(std::to_string(thread.posix_id))});
  }
}

Result<Trace> CaptureReader::Finish(bool cut) {
  if (!saw_header_ && !first_damage_.empty()) return BadInput(first_damage_);
  if (!saw_header_) {
    return BadInput(name_ + ": found a native capture without a complete header");
  }
  if (!saw_end_ || cut) {
    if (options_.strict) {
      return BadInput(fmt::format("{}: found no end after {} bytes, expected a complete capture",
                                  name_, blocks_.end_offset()));
    }
    builder_.stats().Count(Stat::kTruncated);
    context_.Warn(fmt::format("{}: the recording is incomplete: read up to byte {}", name_,
                              blocks_.end_offset()));
  } else if (blocks_.rest() != 0) {
    builder_.stats().Count(Stat::kTrailingData, blocks_.rest());
  }
  if (!first_damage_.empty()) context_.Warn(first_damage_);
  for (Thread& thread : threads_) {
    for (OpenCall& call : thread.open) calls_.Detach(std::move(call));
  }
  calls_.EndDetached();
  if (damages_ != 0) builder_.stats().Count(Stat::kMalformedElement, LostNodes());
  AddRoots();
  AddAllocations(std::move(allocations_), last_node_, builder_);
  for (const auto& group : values_.groups()) builder_.AddProcessGroup(group);
  calls_.Finish();
  if (!options_.keep_recorder_time) clocks_.Settle(calls_.AskedLabels(), builder_);
  Result<Trace> trace = builder_.Finish();
  if (!trace) return MakeError(trace.error().code, name_ + ": " + trace.error().message);
  return trace;
}

}  // namespace

std::unique_ptr<TraceReader> MakeCaptureReader(std::string name, const ReadOptions& options,
                                               const RunContext& context) {
  return std::make_unique<CaptureReader>(std::move(name), options, context);
}

}  // namespace etude
