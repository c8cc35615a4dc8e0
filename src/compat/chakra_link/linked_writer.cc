#include "src/compat/chakra_link/linked_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "src/base/text/json_text.h"
#include "src/compat/python/py_json.h"

namespace etude::compat {
namespace {

constexpr size_t kNodeLevel = 2;  // containers around a node: the document and the list

// Keys set by linking, in the order in which new ones are appended.
constexpr auto kHostKeys = std::to_array<NodeKey>(
    {NodeKey::kInclusiveDur, NodeKey::kExclusiveDur, NodeKey::kTs, NodeKey::kInterThreadDep});
constexpr auto kGpuKeys = std::to_array<NodeKey>({
    NodeKey::kId,
    NodeKey::kCtrlDeps,
    NodeKey::kInputs,
    NodeKey::kOutputs,
    NodeKey::kCat,
    NodeKey::kName,
    NodeKey::kPh,
    NodeKey::kInclusiveDur,
    NodeKey::kExclusiveDur,
    NodeKey::kTs,
    NodeKey::kStream,
    NodeKey::kPgName,
    NodeKey::kSyncDep,
});

void AppendWhole(uint64_t value, ByteBuffer& out) {
  out.Ensure(20);
  out.set_end(std::to_chars(out.end(), out.end() + 20, value).ptr);
}

void AppendNumber(const PyNumber& value, ByteBuffer& out) {
  if (value.is_float) {
    AppendJsonFloat(value.real, out);
    return;
  }
  out.Ensure(24);
  out.set_end(std::to_chars(out.end(), out.end() + 24, value.whole).ptr);
}

class NodeWriter {
 public:
  NodeWriter(const HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
             const Sink& sink)
      : host_(host), device_(device), linked_(linked), sink_(sink) {}

  Status Run() {
    out_.Append('{');
    bool first = true;
    for (const TopMember& member : host_.top) {
      if (!first) out_.Append(',');
      first = false;
      AppendPyIndent(1, out_);
      AppendPyDumpString(member.key, out_);
      out_.Append(": ");
      if (member.value.empty()) {
        ETUDE_RETURN_IF_ERROR(Nodes());
      } else {
        AppendPyDump(member.value, 1, out_);
      }
    }
    AppendPyIndent(0, out_);
    out_.Append('}');
    return sink_(out_.view());
  }

 private:
  // A member in out_, key and value.
  struct Piece {
    NodeKey kind = NodeKey::kOther;
    size_t begin = 0;
    size_t end = 0;
  };

  Status Nodes() {
    if (linked_.nodes.empty()) {
      out_.Append("[]");
      return {};
    }
    out_.Append('[');
    for (size_t i = 0; i < linked_.nodes.size(); ++i) {
      const LinkedNode& node = linked_.nodes[i];
      // Device operations copy from the preceding host node, so both stay in out_.
      if (node.gpu_op == LinkedNode::kNoGpuOp && out_.size() >= kFlushBytes) {
        ETUDE_RETURN_IF_ERROR(sink_(out_.view()));
        out_.Clear();
      }
      if (i != 0) out_.Append(',');
      AppendPyIndent(kNodeLevel, out_);
      out_.Append('{');
      if (node.gpu_op == LinkedNode::kNoGpuOp) {
        HostNodeMembers(node);
      } else {
        GpuNodeMembers(node);
      }
      AppendPyIndent(kNodeLevel, out_);
      out_.Append('}');
    }
    AppendPyIndent(1, out_);
    out_.Append(']');
    return {};
  }

  void BeginMember(bool& first) {
    if (!first) out_.Append(',');
    first = false;
    AppendPyIndent(kNodeLevel + 1, out_);
  }

  bool SyncDep(const LinkedNode& node) {
    if (node.sync_dep == LinkedNode::kNoSync) return false;
    out_.Append('[');
    bool first = true;
    for (const uint64_t id : linked_.sync_deps[node.sync_dep]) {
      if (!first) out_.Append(',');
      first = false;
      AppendPyIndent(kNodeLevel + 2, out_);
      AppendWhole(id, out_);
    }
    AppendPyIndent(kNodeLevel + 1, out_);
    out_.Append(']');
    return true;
  }

  // Writes the value that linking sets for this key of a host node; returns false if it keeps the
  // key.
  bool HostValue(const LinkedNode& node, NodeKey key) {
    const bool timed = node.times != LinkedNode::kNoTimes;
    switch (key) {
      case NodeKey::kId: AppendWhole(node.id, out_); return true;
      case NodeKey::kCtrlDeps:
        if (node.has_parent) AppendWhole(node.parent, out_);
        return node.has_parent;
      case NodeKey::kInclusiveDur:
        if (timed) AppendNumber(linked_.times[node.times].inclusive, out_);
        return timed;
      case NodeKey::kExclusiveDur:
        if (timed) AppendNumber(linked_.times[node.times].exclusive, out_);
        return timed;
      case NodeKey::kTs:
        if (timed) AppendNumber(linked_.times[node.times].ts, out_);
        return timed;
      case NodeKey::kInterThreadDep:
        if (!timed) return false;
        if (linked_.times[node.times].inter_thread_dep) {
          AppendWhole(*linked_.times[node.times].inter_thread_dep, out_);
        } else {
          out_.Append("null");
        }
        return true;
      case NodeKey::kSyncDep: return SyncDep(node);
      default: return false;
    }
  }

  void HostNodeMembers(const LinkedNode& node) {
    pieces_.clear();
    bool first = true;
    uint32_t seen = 0;
    for (const NodeMember& member : host_.members_of(host_.nodes[node.host])) {
      BeginMember(first);
      const size_t begin = out_.size();
      if (member.kind == NodeKey::kOther) {
        AppendPyDumpString(member.key, out_);
        out_.Append(": ");
      } else {
        out_.Append(TextOf(member.kind));
        seen |= 1U << static_cast<uint32_t>(member.kind);
      }
      if (!HostValue(node, member.kind)) AppendPyDump(member.value, kNodeLevel + 1, out_);
      pieces_.push_back({member.kind, begin, out_.size()});
    }
    const auto append = [&](NodeKey key) {
      if ((seen >> static_cast<uint32_t>(key) & 1U) != 0) return;
      BeginMember(first);
      const size_t begin = out_.size();
      out_.Append(TextOf(key));
      HostValue(node, key);
      pieces_.push_back({key, begin, out_.size()});
    };
    if (node.times != LinkedNode::kNoTimes) {
      for (const NodeKey key : kHostKeys) append(key);
    }
    if (node.sync_dep == LinkedNode::kNoSync) return;
    const bool is_new = (seen >> static_cast<uint32_t>(NodeKey::kSyncDep) & 1U) == 0;
    append(NodeKey::kSyncDep);
    // Linking adds it after the device operations were copied.
    if (is_new) pieces_.pop_back();
  }

  void StringOr(std::string_view json, std::string_view other) {
    if (json.empty()) {
      out_.Append(other);
    } else {
      AppendPyDump(json, kNodeLevel + 1, out_);
    }
  }

  // Same for a device operation.
  bool GpuValue(const LinkedNode& node, NodeKey key) {
    const DeviceEvent& op = device_.events[node.gpu_op];
    switch (key) {
      case NodeKey::kId: AppendWhole(node.id, out_); return true;
      case NodeKey::kCtrlDeps: AppendWhole(node.parent, out_); return true;
      case NodeKey::kName: StringOr(op.name, "\"\""); return true;
      case NodeKey::kCat: StringOr(op.cat, "\"\""); return true;
      case NodeKey::kPh: StringOr(op.ph, "null"); return true;
      case NodeKey::kStream: StringOr(op.stream, "null"); return true;
      case NodeKey::kInclusiveDur:
      case NodeKey::kExclusiveDur: AppendNumber(op.dur, out_); return true;
      case NodeKey::kTs: AppendNumber(op.ts, out_); return true;
      case NodeKey::kPgName:
        if (!HasPgName(op)) return false;
        AppendPyDump(op.pg_name, kNodeLevel + 1, out_);
        return true;
      case NodeKey::kSyncDep: return SyncDep(node);
      default: return false;
    }
  }

  void GpuNodeMembers(const LinkedNode& node) {
    bool first = true;
    uint32_t seen = 0;
    for (const Piece& piece : pieces_) {
      BeginMember(first);
      seen |= 1U << static_cast<uint32_t>(piece.kind);
      const size_t begin = out_.size();
      out_.Append(TextOf(piece.kind));
      if (piece.kind != NodeKey::kOther && GpuValue(node, piece.kind)) continue;
      out_.set_end(out_.view().data() + begin);
      out_.AppendCopy(piece.begin, piece.end - piece.begin);
    }
    for (const NodeKey key : kGpuKeys) {
      if ((seen >> static_cast<uint32_t>(key) & 1U) != 0) continue;
      if (key == NodeKey::kPgName && !HasPgName(device_.events[node.gpu_op])) continue;
      if (key == NodeKey::kSyncDep && node.sync_dep == LinkedNode::kNoSync) continue;
      BeginMember(first);
      out_.Append(TextOf(key));
      GpuValue(node, key);
    }
  }

  const HostTrace& host_;
  const DeviceTrace& device_;
  const LinkedTrace& linked_;
  const Sink& sink_;
  ByteBuffer out_;
  std::vector<Piece> pieces_;  // of the host node written last
};

}  // namespace

Status WriteLinkedJson(const HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
                       const Sink& sink) {
  return NodeWriter(host, device, linked, sink).Run();
}

}  // namespace etude::compat
