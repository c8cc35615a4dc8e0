#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/run_context.h"
#include "src/formats/chakra/chakra_feeder.h"

#if __has_include("et_def.pb.h")
#include "et_def.pb.h"
#define ETUDE_HAS_CHAKRA_PROTO 1
#else
// Chakra's enum values, for programs built without its generated code.
namespace ChakraProtoMsg {
enum NodeType : int {
  INVALID_NODE = 0,
  METADATA_NODE = 1,
  MEM_LOAD_NODE = 2,
  MEM_STORE_NODE = 3,
  COMP_NODE = 4,
  COMM_SEND_NODE = 5,
  COMM_RECV_NODE = 6,
  COMM_COLL_NODE = 7,
};
enum CollectiveCommType : int {
  ALL_REDUCE = 0,
  REDUCE = 1,
  ALL_GATHER = 2,
  GATHER = 3,
  SCATTER = 4,
  BROADCAST = 5,
  ALL_TO_ALL = 6,
  REDUCE_SCATTER = 7,
  REDUCE_SCATTER_BLOCK = 8,
  BARRIER = 9,
};
}  // namespace ChakraProtoMsg
#endif

// Names that simulators use for Chakra's feeders, both that of mlcommons/chakra and "v3" of
// ASTRA-sim's fork, implemented with etude::chakra::Feeder. docs/feeder.md lists the differences. A
// simulator includes this header instead of theirs and links etude::etude.
//
// These interfaces cannot return errors, so they throw std::runtime_error with the feeder's
// message, unlike the rest of Etude. Not thread-safe.
namespace Chakra::FeederV3 {

using NodeId = uint64_t;
#ifdef ETUDE_HAS_CHAKRA_PROTO
using ChakraNode = ChakraProtoMsg::Node;
using ChakraGlobalMetadata = ChakraProtoMsg::GlobalMetadata;
using ChakraAttr = ChakraProtoMsg::AttributeProto;
#endif

class ETFeeder;

// A copy of a node. The feeder must outlive it.
class ETFeederNode {
 public:
  ETFeederNode(ETFeeder& feeder, const etude::chakra::NodeView& view)
      : feeder_(&feeder), id_(view.id()), message_(view.message()) {}

  NodeId id() const { return id_; }
  std::string name() const { return std::string(View().name()); }
  ChakraProtoMsg::NodeType type() const {
    return static_cast<ChakraProtoMsg::NodeType>(View().type());
  }
  // Returns the duration in microseconds; 0 if the file has none.
  uint64_t runtime() const { return View().duration_micros().value_or(0); }
  // Returns the nodes read so far that depend on this one, in file order.
  std::vector<std::shared_ptr<ETFeederNode>> getChildren() const;

  bool has_attr(const std::string& name) const { return View().FindAttr(name).has_value(); }
  bool has_other_attr(const std::string& name) const { return has_attr(name); }
  // Returns the value of an attribute as a T: a number, which must fit, or a std::string.
  template <typename T>
  T get_attr(const std::string& name) const;
  template <typename T>
  T get_attr(const std::string& name, const T& otherwise) const {
    return has_attr(name) ? get_attr<T>(name) : otherwise;
  }

// Defines the accessors of an attribute. Without T and a default value, the type is that of
// mlcommons/chakra. A missing attribute yields `...` if given, otherwise an error.
#define ETUDE_FEEDER_ATTRIBUTE(attribute, type, ...)            \
  template <typename T>                                         \
  T attribute() const {                                         \
    return Attribute<T>(#attribute __VA_OPT__(, ) __VA_ARGS__); \
  }                                                             \
  template <typename T>                                         \
  T attribute(const T& otherwise) const {                       \
    return get_attr<T>(#attribute, otherwise);                  \
  }                                                             \
  type attribute() const { return attribute<type>(); }
  ETUDE_FEEDER_ATTRIBUTE(is_cpu_op, bool, false)
  ETUDE_FEEDER_ATTRIBUTE(num_ops, uint64_t)
  ETUDE_FEEDER_ATTRIBUTE(tensor_loc, uint32_t, 0)
  ETUDE_FEEDER_ATTRIBUTE(tensor_size, uint64_t)
  ETUDE_FEEDER_ATTRIBUTE(comm_type, ChakraProtoMsg::CollectiveCommType)
  ETUDE_FEEDER_ATTRIBUTE(comm_priority, uint32_t, 0)
  ETUDE_FEEDER_ATTRIBUTE(comm_size, uint64_t)
  ETUDE_FEEDER_ATTRIBUTE(comm_src, uint32_t)
  ETUDE_FEEDER_ATTRIBUTE(comm_dst, uint32_t)
  ETUDE_FEEDER_ATTRIBUTE(comm_tag, uint32_t)
  ETUDE_FEEDER_ATTRIBUTE(pg_name, std::string, "")
#undef ETUDE_FEEDER_ATTRIBUTE

  std::string get_inputs_values() const { return std::string(View().inputs().values); }
  std::string get_inputs_shapes() const { return std::string(View().inputs().shapes); }
  std::string get_inputs_types() const { return std::string(View().inputs().types); }
  std::string get_outputs_values() const { return std::string(View().outputs().values); }
  std::string get_outputs_shapes() const { return std::string(View().outputs().shapes); }
  std::string get_outputs_types() const { return std::string(View().outputs().types); }

#ifdef ETUDE_HAS_CHAKRA_PROTO
  std::shared_ptr<ChakraNode> getChakraNode() const {
    auto node = std::make_shared<ChakraNode>();
    node->ParseFromString(message_);
    return node;
  }
  ChakraAttr get_attr_msg(const std::string& name) const {
    ChakraAttr attr;
    attr.ParseFromString(std::string(Find(name).message));
    return attr;
  }
  ChakraAttr get_other_attr(const std::string& name) const { return get_attr_msg(name); }
#endif

 private:
  using Value = etude::chakra::AttrValue;

  etude::chakra::NodeView View() const { return {id_, message_}; }
  std::runtime_error Error(const std::string& name, const std::string& what) const {
    return std::runtime_error("node " + std::to_string(id_) + ": attribute '" + name + "' " + what);
  }
  etude::chakra::NodeAttr Find(const std::string& name) const {
    auto attr = View().FindAttr(name);
    if (!attr) throw Error(name, "is not there");
    return *std::move(attr);
  }

  template <typename T>
  T Attribute(const std::string& name) const {
    return get_attr<T>(name);
  }
  template <typename T, typename U>
  T Attribute(const std::string& name, const U& otherwise) const {
    return has_attr(name) ? get_attr<T>(name) : T(otherwise);
  }

  ETFeeder* feeder_;
  NodeId id_;
  std::string message_;
};

// Ids of nodes by state: `free` nodes have no open dependencies, `ongoing` ones were taken and have
// not finished.
class DependancyResolver {
 public:
  DependancyResolver(const std::string& file_name, const etude::chakra::FeederOptions& options,
                     const etude::RunContext& context)
      : window_(options.window),
        feeder_(Take(etude::chakra::Feeder::Open(file_name, options, context))) {
    Refill();
  }

  const std::set<NodeId>& get_dependancy_free_nodes() const { return free_; }
  const std::set<NodeId>& get_ongoing_nodes() const { return ongoing_; }

  // Moves free → ongoing → finished; push_back_node moves back to free.
  void take_node(NodeId id) {
    Move(id, free_, ongoing_, "free");
    Refill();
  }
  void push_back_node(NodeId id) { Move(id, ongoing_, free_, "ongoing"); }
  void finish_node(NodeId id) {
    if (ongoing_.erase(id) == 0) throw NotIn(id, "ongoing");
    Check(feeder_.Finish(id));
    Refill();
  }

  etude::chakra::Feeder& feeder() { return feeder_; }

  template <typename T>
  static T Take(etude::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return *std::move(result);
  }

 private:
  static void Check(const etude::Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
  }
  static std::runtime_error NotIn(NodeId id, const std::string& state) {
    return std::runtime_error("node " + std::to_string(id) + " is not " + state);
  }
  static void Move(NodeId id, std::set<NodeId>& from, std::set<NodeId>& to,
                   const std::string& state) {
    if (from.erase(id) == 0) throw NotIn(id, state);
    to.insert(id);
  }
  // Takes free nodes out of the feeder, up to the size of the window.
  void Refill() {
    while (free_.size() < window_ || free_.empty()) {
      const auto node = Take(feeder_.Next());
      if (!node) break;
      free_.insert(node->id());
    }
  }

  size_t window_;
  etude::chakra::Feeder feeder_;
  std::set<NodeId> free_;
  std::set<NodeId> ongoing_;
};

class ETFeeder {
 public:
  explicit ETFeeder(const std::string& file_name, const etude::chakra::FeederOptions& options = {},
                    const etude::RunContext& context = {})
      : resolver_(file_name, options, context) {
#ifdef ETUDE_HAS_CHAKRA_PROTO
    global_metadata.ParseFromString(resolver_.feeder().metadata());
#endif
  }
  ETFeeder(const ETFeeder&) = delete;
  ETFeeder& operator=(const ETFeeder&) = delete;

  // Returns whether an unfinished node is left, free or not.
  bool hasNodesToIssue() { return !resolver_.feeder().done(); }
  // Takes the free node with the smallest id; nullptr if none is free.
  std::shared_ptr<ETFeederNode> getNextIssuableNode() {
    if (resolver_.get_dependancy_free_nodes().empty()) return nullptr;
    const NodeId id = *resolver_.get_dependancy_free_nodes().begin();
    auto node = lookupNode(id);
    resolver_.take_node(id);
    return node;
  }
  void pushBackIssuableNode(NodeId id) { resolver_.push_back_node(id); }
  // Returns a node that was read and has not finished.
  std::shared_ptr<ETFeederNode> lookupNode(NodeId id) {
    const auto view = DependancyResolver::Take(resolver_.feeder().Lookup(id));
    return std::make_shared<ETFeederNode>(*this, view);
  }
  // Marks a taken node as finished.
  void freeChildrenNodes(NodeId id) { resolver_.finish_node(id); }
  // No effect: finished nodes are already removed.
  void removeNode(NodeId) {}

  DependancyResolver& getDependancyResolver() { return resolver_; }

#ifdef ETUDE_HAS_CHAKRA_PROTO
  ChakraGlobalMetadata global_metadata;
#endif

 private:
  DependancyResolver resolver_;
};

inline std::vector<std::shared_ptr<ETFeederNode>> ETFeederNode::getChildren() const {
  std::vector<std::shared_ptr<ETFeederNode>> children;
  auto& feeder = feeder_->getDependancyResolver().feeder();
  for (const NodeId id : feeder.Dependents(id_)) children.push_back(feeder_->lookupNode(id));
  return children;
}

template <typename T>
T ETFeederNode::get_attr(const std::string& name) const {
#ifdef ETUDE_HAS_CHAKRA_PROTO
  if constexpr (std::is_same_v<T, ChakraAttr>) return get_attr_msg(name);
#endif
  const Value value = Find(name).value;
  if constexpr (std::is_same_v<T, std::string>) {
    if (value.form == Value::Form::kText) return std::string(value.text);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(get_attr<std::underlying_type_t<T>>(name));
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto number = value.AsInt64();
    const auto large = value.AsUint64();
    if constexpr (std::is_floating_point_v<T>) {
      if (value.form == Value::Form::kDouble) return static_cast<T>(value.real);
      if (number) return static_cast<T>(*number);
      if (large) return static_cast<T>(*large);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (large && *large <= 1) return *large == 1;
    } else {
      if (number && std::in_range<T>(*number)) return static_cast<T>(*number);
      if (large && std::in_range<T>(*large)) return static_cast<T>(*large);
    }
  }
  throw Error(name, "has a value of another type");
}

}  // namespace Chakra::FeederV3

namespace Chakra {
using FeederV3::ETFeeder;
using FeederV3::ETFeederNode;
}  // namespace Chakra
