#include "src/sim/plan/collective_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/limits.h"
#include "src/base/text/bounded_json.h"
#include "src/base/text/nearest.h"

namespace etude {
namespace {

using PlanFileJson = nlohmann::json;

constexpr std::pair<std::string_view, CollectiveType> kPlanTypes[] = {
    {"allreduce", CollectiveType::kAllReduce},         {"allgather", CollectiveType::kAllGather},
    {"reducescatter", CollectiveType::kReduceScatter}, {"broadcast", CollectiveType::kBroadcast},
    {"alltoall", CollectiveType::kAllToAll},
};

// Operations of the file. Those that move data may signal and flush afterwards.
struct PlanOpInfo {
  std::string_view name;
  std::optional<PlanStep> step;  // nullopt: none; it orders the threads of a block
  bool works = false;
  bool signals = false;
  bool flushes = false;
};
constexpr PlanOpInfo kPlanOps[] = {
    {"nop", std::nullopt},
    {"put", PlanStep::kMove},
    {"pws", PlanStep::kMove, false, true},
    {"pwsf", PlanStep::kMove, false, true, true},
    {"get", PlanStep::kMove},
    {"copy", PlanStep::kMove, true},
    {"re", PlanStep::kMove, true},
    {"res", PlanStep::kMove, true},
    {"rre", PlanStep::kMove, true},
    {"rres", PlanStep::kMove, true},
    {"signal", PlanStep::kSignal},
    {"rlxsignal", PlanStep::kSignal},
    {"wait", PlanStep::kWait},
    {"rlxwait", PlanStep::kWait},
    {"flush", PlanStep::kFlush},
    {"barrier", PlanStep::kBarrier},
    {"sem_acquire", PlanStep::kAcquire},
    {"sem_release", PlanStep::kRelease},
    {"glres", PlanStep::kSwitch},
    {"gstore", PlanStep::kMulticast},
};
// Operations on packets, whose data carry flags instead of signals.
constexpr std::string_view kPacketOps[] = {"ppkt", "rppkt", "respkt", "cpkt",
                                           "upkt", "repkt", "recpkt", "recspkt"};

constexpr int64_t kMostGpus = 4096;
constexpr int64_t kMostChunks = 1 << 16;
constexpr int64_t kMostBlocks = 1 << 16;

struct PlanWatch : JsonWatch<PlanFileJson> {
  using JsonWatch::JsonWatch;
};

class PlanParser {
 public:
  PlanParser(const PlanFileJson& root, const std::string& path) : root_(root) { plan_.path = path; }

  Result<CollectivePlan> Run() {
    where_ = plan_.path;
    if (!root_.is_object()) return Wrong("found no object, expected an execution plan of MSCCL++");
    ETUDE_ASSIGN_OR_RETURN(plan_.name, Word(root_, "name"));
    ETUDE_ASSIGN_OR_RETURN(const std::string type, Word(root_, "collective"));
    const auto found =
        std::ranges::find(kPlanTypes, type, &std::pair<std::string_view, CollectiveType>::first);
    if (found == std::end(kPlanTypes)) {
      return Wrong(fmt::format(
          "collective: found '{}', expected allreduce, allgather, reducescatter, broadcast or "
          "alltoall",
          type));
    }
    plan_.type = found->second;
    ETUDE_RETURN_IF_ERROR(TakeBytes("min_message_size", plan_.least_bytes));
    ETUDE_RETURN_IF_ERROR(TakeBytes("max_message_size", plan_.most_bytes));
    if (plan_.least_bytes > plan_.most_bytes) {
      return Wrong(fmt::format("min_message_size: found {}, expected max_message_size ({}) or less",
                               plan_.least_bytes, plan_.most_bytes));
    }
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* gpus, List(root_, "gpus"));
    if (gpus->empty() || std::ssize(*gpus) > kMostGpus) {
      return Wrong(fmt::format("gpus: found {}, expected 1 to {}", gpus->size(), kMostGpus));
    }
    plan_.gpus.resize(gpus->size());
    counts_.resize(gpus->size());
    for (gpu_ = 0; gpu_ < gpus->size(); ++gpu_) ETUDE_RETURN_IF_ERROR(ReadChannels((*gpus)[gpu_]));
    ConnectChannels();
    for (gpu_ = 0; gpu_ < gpus->size(); ++gpu_) ETUDE_RETURN_IF_ERROR(ReadGpu((*gpus)[gpu_]));
    return std::move(plan_);
  }

 private:
  // A buffer of a GPU: 'i' (input), 'o' (output) or 's' (scratch).
  struct Buffer {
    int64_t gpu = 0;
    char type = 'i';
  };
  struct SwitchChannel {
    std::vector<int64_t> ranks;
    std::optional<char> buffer;  // type, of all ranks; nullopt: not stated
  };

  tl::unexpected<Error> Wrong(std::string_view what) const {
    return BadInput(fmt::format("{}: {}", where_, what));
  }

  Result<const PlanFileJson*> Member(const PlanFileJson& json, const char* key) const {
    if (!json.is_object()) return Wrong("found no object");
    const auto found = json.find(key);
    if (found == json.end()) return Wrong(fmt::format("missing '{}'", key));
    return &*found;
  }
  Result<const PlanFileJson*> List(const PlanFileJson& json, const char* key) const {
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* list, Member(json, key));
    if (!list->is_array()) return Wrong(fmt::format("{}: expected a list", key));
    return list;
  }
  // Returns an empty list if there is none.
  Result<const PlanFileJson*> ListIfAny(const PlanFileJson& json, const char* key) const {
    static const PlanFileJson kEmpty = PlanFileJson::array();
    if (!json.is_object() || !json.contains(key)) return &kEmpty;
    return List(json, key);
  }
  Result<std::string> Word(const PlanFileJson& json, const char* key) const {
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* word, Member(json, key));
    if (!word->is_string()) return Wrong(fmt::format("{}: expected a text", key));
    return word->get<std::string>();
  }
  // The type of a channel has two names.
  Result<std::string> ChannelType(const PlanFileJson& json) const {
    const bool is_short = json.is_object() && !json.contains("channel_type");
    return Word(json, is_short ? "type" : "channel_type");
  }
  Result<int64_t> NumberOf(const PlanFileJson& json, const char* key, int64_t least,
                           int64_t most) const {
    if (!json.is_number_integer() || json.get<double>() < static_cast<double>(least) ||
        json.get<double>() > static_cast<double>(most)) {
      return Wrong(fmt::format("{}: found {}, expected a whole number from {} to {}", key,
                               json.dump(), least, most));
    }
    return json.get<int64_t>();
  }
  Result<int64_t> Number(const PlanFileJson& json, const char* key, int64_t least,
                         int64_t most) const {
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* number, Member(json, key));
    return NumberOf(*number, key, least, most);
  }
  Status TakeBytes(const char* key, int64_t& to) const {
    const auto found = root_.find(key);
    if (found == root_.end()) return {};
    if (found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{INT64_MAX}) return {};
    ETUDE_ASSIGN_OR_RETURN(to, NumberOf(*found, key, 0, INT64_MAX / 2));
    return {};
  }
  Result<std::vector<int64_t>> Numbers(const PlanFileJson& json, const char* key,
                                       int64_t most) const {
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* list, ListIfAny(json, key));
    std::vector<int64_t> numbers;
    for (const PlanFileJson& one : *list) {
      ETUDE_ASSIGN_OR_RETURN(numbers.emplace_back(), NumberOf(one, key, 0, most));
    }
    return numbers;
  }
  int64_t LastGpu() const { return std::ssize(plan_.gpus) - 1; }

  // Reads the GPU's chunks and channels; those of one type have numbers in the order of the file.
  Status ReadChannels(const PlanFileJson& json) {
    where_ = fmt::format("{}: GPU {}", plan_.path, gpu_);
    ETUDE_ASSIGN_OR_RETURN(const int64_t id, Number(json, "id", 0, LastGpu()));
    if (id != static_cast<int64_t>(gpu_)) {
      return Wrong(fmt::format("id: found {}, expected {}", id, gpu_));
    }
    if (json.contains("inputChunks")) {
      return Wrong("found 'inputChunks' of an older form, expected 'input_chunks'");
    }
    ETUDE_ASSIGN_OR_RETURN(const int64_t input, Number(json, "input_chunks", 0, kMostChunks));
    ETUDE_ASSIGN_OR_RETURN(const int64_t output, Number(json, "output_chunks", 0, kMostChunks));
    if (input + output == 0) return Wrong("found neither chunks of input nor of output");
    const int64_t chunks = input > 0 ? input : output;
    if (gpu_ > 0 && (chunks != plan_.chunks || plan_.is_of_output != (input == 0))) {
      return Wrong(fmt::format("found {} chunks, expected {} as on GPU 0", chunks, plan_.chunks));
    }
    plan_.chunks = chunks;
    plan_.is_of_output = input == 0;
    int64_t scratch = 0;
    if (json.contains("scratch_chunks")) {
      ETUDE_ASSIGN_OR_RETURN(scratch, Number(json, "scratch_chunks", 0, kMostChunks));
    }
    counts_[gpu_] = {{'i', input}, {'o', output}, {'s', scratch}};
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* channels, ListIfAny(json, "channels"));
    for (const PlanFileJson& one : *channels) {
      ETUDE_ASSIGN_OR_RETURN(const std::string type, ChannelType(one));
      if (type == "switch") {
        // The type of the buffer has two names.
        std::optional<char> buffer;
        for (const char* key : {"buffer_type", "buff"}) {
          if (!one.contains(key)) continue;
          ETUDE_ASSIGN_OR_RETURN(buffer, BufferType(one, key));
        }
        ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* groups, List(one, "rank_groups"));
        for (const PlanFileJson& group : *groups) {
          ETUDE_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, Numbers(group, "ranks", LastGpu()));
          ETUDE_RETURN_IF_ERROR(CheckGroup(group, ranks));
          groups_[gpu_].push_back({.ranks = std::move(ranks), .buffer = buffer});
        }
        continue;
      }
      if (type != "memory" && type != "port") {
        return Wrong(fmt::format("channels: found '{}', expected memory, port or switch", type));
      }
      ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                             Numbers(one, "connected_to", LastGpu()));
      for (const int64_t end : ends) {
        if (end == static_cast<int64_t>(gpu_)) {
          return Wrong(
              fmt::format("connected_to: found {}, the GPU itself, expected another one", end));
        }
        std::vector<CollectivePlan::Channel>& all = plan_.gpus[gpu_].channels;
        numbers_[{gpu_, type}].push_back(static_cast<uint32_t>(all.size()));
        between_[{gpu_, end, type}].push_back(static_cast<uint32_t>(all.size()));
        all.push_back({.gpu = static_cast<uint32_t>(end)});
      }
    }
    return {};
  }
  Result<char> BufferType(const PlanFileJson& json, const char* key) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string type, Word(json, key));
    if (type == "i" || type == "o" || type == "s") return type[0];
    return Wrong(
        fmt::format("{}: found '{}', expected i (input), o (output) or s (scratch)", key, type));
  }
  // Checks the members of a switch channel.
  Status CheckGroup(const PlanFileJson& json, std::vector<int64_t> ranks) const {
    std::ranges::sort(ranks);
    if (std::ranges::adjacent_find(ranks) != ranks.end()) {
      return Wrong("rank_groups: found a rank twice in 'ranks'");
    }
    if (!json.contains("size")) return {};
    ETUDE_ASSIGN_OR_RETURN(const int64_t size, Number(json, "size", 0, kMostChunks));
    if (size != std::ssize(ranks)) {
      return Wrong(fmt::format("rank_groups: found size {} with {} ranks", size, ranks.size()));
    }
    return {};
  }
  // The k-th channel from one GPU to another is the k-th channel back.
  void ConnectChannels() {
    for (const auto& [ends, channels] : between_) {
      const auto& [from, to, type] = ends;
      const auto back = between_.find({static_cast<size_t>(to), static_cast<int64_t>(from), type});
      for (size_t i = 0; i < channels.size(); ++i) {
        if (back == between_.end() || i >= back->second.size()) continue;
        plan_.gpus[from].channels[channels[i]].other = back->second[i];
      }
    }
  }

  Status ReadGpu(const PlanFileJson& json) {
    where_ = fmt::format("{}: GPU {}", plan_.path, gpu_);
    CollectivePlan::Gpu& gpu = plan_.gpus[gpu_];
    remote_.clear();
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* remote, ListIfAny(json, "remote_buffers"));
    for (const PlanFileJson& one : *remote) {
      Buffer& buffer = remote_.emplace_back();
      ETUDE_ASSIGN_OR_RETURN(buffer.gpu, Number(one, "rank", 0, LastGpu()));
      if (buffer.gpu == static_cast<int64_t>(gpu_)) {
        return Wrong(
            fmt::format("remote_buffers: rank: found {}, the GPU itself, expected another "
                        "one",
                        buffer.gpu));
      }
      ETUDE_ASSIGN_OR_RETURN(buffer.type, BufferType(one, "type"));
    }
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* semaphores, ListIfAny(json, "semaphores"));
    for (const PlanFileJson& one : *semaphores) {
      ETUDE_ASSIGN_OR_RETURN(gpu.semaphores.emplace_back(),
                             Number(one, "init_value", 0, INT32_MAX));
    }
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* blocks, List(json, "threadblocks"));
    if (std::ssize(*blocks) > kMostBlocks) return Wrong("found too many thread blocks");
    gpu.blocks.resize(blocks->size());
    for (block_ = 0; block_ < blocks->size(); ++block_) {
      ETUDE_RETURN_IF_ERROR(ReadBlock((*blocks)[block_], gpu.blocks[block_]));
    }
    return {};
  }

  Status ReadBlock(const PlanFileJson& json, std::vector<PlanOp>& steps) {
    where_ = fmt::format("{}: GPU {}, thread block {}", plan_.path, gpu_, block_);
    block_channels_.clear();
    block_buffers_.clear();
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* channels, ListIfAny(json, "channels"));
    for (const PlanFileJson& one : *channels) {
      ETUDE_ASSIGN_OR_RETURN(const std::string type, ChannelType(one));
      ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                             Numbers(one, "channel_ids", INT32_MAX));
      const size_t most = type == "switch" ? groups_[gpu_].size() : numbers_[{gpu_, type}].size();
      for (const int64_t id : ids) {
        if (id >= static_cast<int64_t>(most)) {
          return Wrong(
              fmt::format("channel_ids: found {}, the GPU has {} {} channels", id, most, type));
        }
        block_channels_[type].push_back(id);
      }
    }
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* refs, ListIfAny(json, "remote_buffer_refs"));
    for (const PlanFileJson& one : *refs) {
      ETUDE_ASSIGN_OR_RETURN(const std::string type, Word(one, "access_channel_type"));
      ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                             Numbers(one, "remote_buffer_ids", std::ssize(remote_) - 1));
      for (const int64_t id : ids) block_buffers_[type].push_back(remote_[static_cast<size_t>(id)]);
    }
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* ops, List(json, "ops"));
    for (size_t i = 0; i < ops->size(); ++i) {
      const PlanOpPlace place{.gpu = static_cast<int64_t>(gpu_),
                              .block = static_cast<int64_t>(block_),
                              .op = static_cast<int64_t>(i)};
      const PlanFileJson& op = (*ops)[i];
      const bool is_pipeline = op.is_object() && op.contains("name") && op["name"] == "pipeline";
      ETUDE_RETURN_IF_ERROR(is_pipeline ? ReadPipeline(op, place, steps)
                                        : ReadOp(op, place, steps));
    }
    return {};
  }

  Status ReadPipeline(const PlanFileJson& json, PlanOpPlace place, std::vector<PlanOp>& steps) {
    SetPlace(place, "pipeline");
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* context, Member(json, "iter_context"));
    ETUDE_ASSIGN_OR_RETURN(const int64_t unit, Number(*context, "unit_size", 1, INT32_MAX));
    ETUDE_ASSIGN_OR_RETURN(const int64_t chunks, Number(*context, "num_chunks", 1, kMostChunks));
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* ops, List(json, "ops"));
    const size_t first = steps.size();
    for (size_t i = 0; i < ops->size(); ++i) {
      place.inner = static_cast<int64_t>(i);
      ETUDE_RETURN_IF_ERROR(ReadOp((*ops)[i], place, steps));
    }
    if (steps.size() == first) return {};
    steps[first].pipeline_steps = static_cast<int64_t>(steps.size() - first);
    steps[first].unit_bytes = unit;
    steps[first].pipeline_chunks = chunks;
    return {};
  }

  void SetPlace(const PlanOpPlace& place, std::string_view name) {
    where_ = TextOf(plan_, {.name = std::string(name), .place = place});
  }

  Status ReadOp(const PlanFileJson& json, const PlanOpPlace& place, std::vector<PlanOp>& steps) {
    SetPlace(place, "?");
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Word(json, "name"));
    SetPlace(place, name);
    const auto info = std::ranges::find(kPlanOps, name, &PlanOpInfo::name);
    if (std::ranges::count(kPacketOps, name) > 0) {
      return Wrong("packets (protocol LL) are not simulated");
    }
    if (info == std::end(kPlanOps)) {
      std::vector<std::string> names = {"pipeline"};
      for (const PlanOpInfo& one : kPlanOps) names.emplace_back(one.name);
      return Wrong(fmt::format("unknown operation{}", MeantOrAll(name, names)));
    }
    if (!info->step) return {};
    PlanOp op{.step = *info->step, .name = name, .place = place, .works = info->works};
    std::string type = "none";
    if (json.contains("channel_type") || json.contains("channel_ids")) {
      ETUDE_ASSIGN_OR_RETURN(type, Word(json, "channel_type"));
    }
    op.by_port = type == "port";
    ETUDE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, Numbers(json, "channel_ids", INT32_MAX));
    // Operations of switches may name their channel in the buffers only.
    if (type == "switch" && ids.empty()) {
      for (const char* key : {"dst_buff", "src_buff"}) {
        ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* buffers, ListIfAny(json, key));
        for (const PlanFileJson& one : *buffers) {
          if (!ids.empty() || !one.contains("switch_channel_id")) continue;
          ETUDE_ASSIGN_OR_RETURN(const int64_t id, Number(one, "switch_channel_id", 0, INT32_MAX));
          ids.push_back(id);
        }
      }
    }
    const std::vector<int64_t>& of_block = block_channels_[type];
    for (const int64_t id : ids) {
      if (id >= std::ssize(of_block)) {
        return Wrong(fmt::format("channel_ids: found {}, the thread block has {} {} channels", id,
                                 of_block.size(), type));
      }
      const auto of_gpu = static_cast<size_t>(of_block[static_cast<size_t>(id)]);
      if (type == "switch") {
        op.group = groups_[gpu_][of_gpu].ranks;
      } else {
        op.channels.push_back(numbers_[{gpu_, type}][of_gpu]);
      }
    }
    ETUDE_ASSIGN_OR_RETURN(op.reads, Chunks(json, "src_buff", type));
    ETUDE_ASSIGN_OR_RETURN(op.writes, Chunks(json, "dst_buff", type));
    ETUDE_RETURN_IF_ERROR(ReadRest(json, op));
    ETUDE_RETURN_IF_ERROR(CheckOp(op));
    steps.push_back(op);
    const auto add = [&](PlanStep step) {
      steps.push_back({.step = step,
                       .name = name,
                       .place = place,
                       .channels = op.channels,
                       .by_port = op.by_port});
    };
    if (info->signals) add(PlanStep::kSignal);
    if (info->flushes) add(PlanStep::kFlush);
    return {};
  }

  Status ReadRest(const PlanFileJson& json, PlanOp& op) const {
    if (const auto group = json.find("tbg_info"); group != json.end()) {
      ETUDE_ASSIGN_OR_RETURN(op.parts, Number(*group, "tbg_size", 1, kMostBlocks));
      ETUDE_ASSIGN_OR_RETURN(op.part, Number(*group, "tb_id", 0, op.parts - 1));
    }
    if (op.step == PlanStep::kBarrier) {
      ETUDE_ASSIGN_OR_RETURN(op.barrier, Number(json, "barrier_id", 0, INT32_MAX));
      ETUDE_ASSIGN_OR_RETURN(op.barrier_blocks, Number(json, "num_threadblocks", 1, kMostBlocks));
    }
    if (op.step == PlanStep::kAcquire || op.step == PlanStep::kRelease) {
      ETUDE_ASSIGN_OR_RETURN(
          const std::vector<int64_t> ids,
          Numbers(json, "semaphore_ids", std::ssize(plan_.gpus[gpu_].semaphores) - 1));
      op.semaphores.assign(ids.begin(), ids.end());
    }
    return {};
  }
  Status CheckOp(const PlanOp& op) const {
    const bool notifies = op.step == PlanStep::kSignal || op.step == PlanStep::kWait;
    if (notifies && op.channels.empty()) return Wrong("found no channels");
    const auto has_twins = [](std::vector<uint32_t> numbers) {
      std::ranges::sort(numbers);
      return std::ranges::adjacent_find(numbers) != numbers.end();
    };
    if (has_twins(op.channels) || has_twins(op.semaphores)) {
      return Wrong("found a channel or a semaphore twice");
    }
    const bool switches = op.step == PlanStep::kSwitch || op.step == PlanStep::kMulticast;
    if (switches && (op.group.size() < 2 || op.writes.empty())) {
      return Wrong("found no switch channel of two or more GPUs, or no 'dst_buff'");
    }
    if (op.step == PlanStep::kMove && (op.reads.empty() || op.writes.empty())) {
      return Wrong("missing 'src_buff' or 'dst_buff'");
    }
    return CheckSizes(op);
  }
  // Checks that an operation writes as much as it reads: all operands of an addition have one size,
  // and the chunks of other operations are pairs.
  Status CheckSizes(const PlanOp& op) const {
    if (op.reads.empty() || op.writes.empty()) return {};
    const bool adds = op.works && op.name != "copy";
    if (!adds && op.reads.size() != op.writes.size()) {
      return Wrong(
          fmt::format("found {} entries of 'src_buff' and {} of 'dst_buff', expected the "
                      "same number",
                      op.reads.size(), op.writes.size()));
    }
    const auto differ = [&](const PlanChunks& from, const PlanChunks& to) {
      return Wrong(
          fmt::format("found size {} in 'src_buff' and {} in 'dst_buff', expected the "
                      "same size",
                      from.count, to.count));
    };
    for (size_t i = 0; i < op.writes.size(); ++i) {
      const PlanChunks& from = op.reads[adds ? 0 : i];
      if (from.count != op.writes[i].count) return differ(from, op.writes[i]);
    }
    for (const PlanChunks& from : op.reads) {
      if (adds && from.count != op.writes[0].count) return differ(from, op.writes[0]);
    }
    return {};
  }

  Result<std::vector<PlanChunks>> Chunks(const PlanFileJson& json, const char* key,
                                         const std::string& type) {
    ETUDE_ASSIGN_OR_RETURN(const PlanFileJson* list, ListIfAny(json, key));
    std::vector<PlanChunks> all;
    for (const PlanFileJson& one : *list) {
      PlanChunks& chunks = all.emplace_back();
      ETUDE_ASSIGN_OR_RETURN(chunks.index, Number(one, "index", 0, kMostChunks));
      ETUDE_ASSIGN_OR_RETURN(chunks.count, Number(one, "size", 0, kMostChunks));
      if (one.contains("switch_channel_id")) {
        ETUDE_RETURN_IF_ERROR(CheckSwitchRange(one, key, chunks));
        continue;
      }
      if (!one.contains("buffer_id")) {
        ETUDE_ASSIGN_OR_RETURN(const char buffer, BufferType(one, "type"));
        ETUDE_RETURN_IF_ERROR(CheckRange(key, chunks, {static_cast<int64_t>(gpu_), buffer}));
        continue;
      }
      const std::vector<Buffer>& buffers = block_buffers_[type];
      ETUDE_ASSIGN_OR_RETURN(const int64_t id, Number(one, "buffer_id", 0, INT32_MAX));
      if (id >= std::ssize(buffers)) {
        return Wrong(
            fmt::format("{}: buffer_id: found {}, the thread block has {} remote buffers "
                        "for {} channels",
                        key, id, buffers.size(), type));
      }
      const Buffer& buffer = buffers[static_cast<size_t>(id)];
      ETUDE_RETURN_IF_ERROR(CheckRange(key, chunks, buffer));
      chunks.gpu = buffer.gpu;
    }
    return all;
  }
  // Checks that chunks lie in a buffer.
  Status CheckRange(const char* key, const PlanChunks& chunks, const Buffer& buffer) const {
    const int64_t count = counts_[static_cast<size_t>(buffer.gpu)].at(buffer.type);
    if (chunks.index + chunks.count <= count) return {};
    const char* const name = buffer.type == 'i'   ? "input"
                             : buffer.type == 'o' ? "output"
                                                  : "scratch";
    return Wrong(fmt::format("{}: found index {} and size {}, the {} of GPU {} has {} chunks", key,
                             chunks.index, chunks.count, name, buffer.gpu, count));
  }
  // Checks that chunks of a switch channel lie in the buffers of all its GPUs.
  Status CheckSwitchRange(const PlanFileJson& json, const char* key, const PlanChunks& chunks) {
    const std::vector<int64_t>& channels = block_channels_["switch"];
    ETUDE_ASSIGN_OR_RETURN(const int64_t id, Number(json, "switch_channel_id", 0, INT32_MAX));
    if (id >= std::ssize(channels)) {
      return Wrong(
          fmt::format("{}: switch_channel_id: found {}, the thread block has {} switch "
                      "channels",
                      key, id, channels.size()));
    }
    const SwitchChannel& channel =
        groups_[gpu_][static_cast<size_t>(channels[static_cast<size_t>(id)])];
    if (!channel.buffer) return {};
    for (const int64_t rank : channel.ranks) {
      ETUDE_RETURN_IF_ERROR(CheckRange(key, chunks, {rank, *channel.buffer}));
    }
    return {};
  }

  const PlanFileJson& root_;
  CollectivePlan plan_;
  std::string where_;
  size_t gpu_ = 0;
  size_t block_ = 0;
  // Channels of a GPU by type, and those between two GPUs.
  std::map<std::pair<size_t, std::string>, std::vector<uint32_t>> numbers_;
  std::map<std::tuple<size_t, int64_t, std::string>, std::vector<uint32_t>> between_;
  std::map<size_t, std::vector<SwitchChannel>> groups_;  // by GPU
  std::vector<std::map<char, int64_t>> counts_;          // chunks by GPU and type of buffer
  std::vector<Buffer> remote_;                           // buffers of the GPU
  // Numbers of the thread block's channels on its GPU, and its remote buffers, by type of channel.
  std::map<std::string, std::vector<int64_t>> block_channels_;
  std::map<std::string, std::vector<Buffer>> block_buffers_;
};

}  // namespace

int64_t CollectivePlan::DividedBytes(int64_t bytes) const {
  const bool is_output_larger = is_of_output && type == CollectiveType::kAllGather;
  const bool is_output_smaller = is_of_output && type == CollectiveType::kReduceScatter;
  if (is_output_larger) return bytes * std::ssize(gpus);
  if (is_output_smaller) return bytes / std::ssize(gpus);
  return bytes;
}

const CollectivePlan* FittingPlan(const SystemModel& system, CollectiveType type, int64_t members,
                                  int64_t bytes) {
  const auto found = system.plans.find(type);
  if (found == system.plans.end()) return nullptr;
  const CollectivePlan& plan = *found->second;
  const double size = static_cast<double>(bytes) *
                      (type == CollectiveType::kAllGather ? static_cast<double>(members) : 1);
  const bool fits = std::ssize(plan.gpus) == members &&
                    size >= static_cast<double>(plan.least_bytes) &&
                    size <= static_cast<double>(plan.most_bytes);
  return fits ? &plan : nullptr;
}

std::string TextOf(const CollectivePlan& plan, const PlanOp& op) {
  const PlanOpPlace& place = op.place;
  const std::string inner = place.inner < 0 ? "" : fmt::format(" of pipeline {}", place.op);
  return fmt::format("{}: GPU {}, thread block {}, operation {}{} ({})", plan.path, place.gpu,
                     place.block, place.inner < 0 ? place.op : place.inner, inner, op.name);
}

Result<CollectivePlan> ParseCollectivePlan(const std::string& text, const std::string& path) {
  PlanWatch watch(Limits{}.depth);
  PlanFileJson::sax_parse(text, &watch);
  if (watch.too_deep()) return BadInput(fmt::format("{}: nested too deeply", path));
  PlanFileJson json;
  try {
    json = PlanFileJson::parse(text);
  } catch (const PlanFileJson::exception& error) {
    std::string_view reason = error.what();
    if (const size_t at = reason.find("parse error at "); at != reason.npos) {
      reason.remove_prefix(at);
    }
    return BadInput(
        fmt::format("{}: found invalid JSON, expected an execution plan: {}", path, reason));
  }
  return PlanParser(json, path).Run();
}

}  // namespace etude
