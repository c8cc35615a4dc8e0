#include "src/formats/chakra/chakra_notes.h"

#include <protozero/pbf_reader.hpp>

#include <algorithm>

#include "src/formats/io/protobuf.h"

namespace etude::chakra {
namespace {

constexpr protozero::pbf_tag_type kBoolList = 28;
constexpr protozero::pbf_tag_type kStringList = 30;

// Calls `take(list)` with the list in field `tag` of each attribute `name` of the node, until it
// returns true. Returns false if no call did, or if the bytes are malformed.
bool WithList(const Trace& trace, NodeId node, std::string_view name, protozero::pbf_tag_type tag,
              auto take) {
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kProtobuf || trace.text(extra.key) != name) continue;
    try {
      const std::string_view payload = protobuf::Payload(trace.text(extra.text));
      protozero::pbf_reader attr(payload.data(), payload.size());
      if (attr.next(tag) && take(attr.get_message())) return true;
    } catch (const protozero::exception&) {
      continue;
    }
  }
  return false;
}

}  // namespace

uint32_t InvolvedDims(const Trace& trace, NodeId node) {
  uint32_t dims = 0;
  const auto take = [&](protozero::pbf_reader list) {
    dims = 0;
    uint32_t bit = 1;
    const auto add = [&](bool value) {
      if (value) dims |= bit;
      bit <<= 1;
    };
    while (list.next(1)) {
      if (list.wire_type() == protozero::pbf_wire_type::varint) {
        add(list.get_bool());
      } else {
        for (const bool value : list.get_packed_bool()) add(value);
      }
    }
    return true;
  };
  return WithList(trace, node, "involved_dim", kBoolList, take) ? dims : ~uint32_t{0};
}

std::vector<NamedTensor> NamedTensors(const Trace& trace, NodeId node, TensorList list) {
  std::vector<NamedTensor> tensors;
  const auto take = [&](protozero::pbf_reader values) {
    tensors.clear();
    std::string_view name;
    for (bool is_name = true; values.next(1); is_name = !is_name) {
      const protozero::data_view bytes = values.get_view();
      const std::string_view text(bytes.data(), bytes.size());
      if (is_name) {
        name = text;
      } else {
        tensors.push_back({name, text});
      }
    }
    return true;
  };
  const std::string_view key = list == TensorList::kInputs ? "inputs" : "outputs";
  if (!WithList(trace, node, key, kStringList, take)) tensors.clear();
  return tensors;
}

bool HasTooLongDuration(const Trace& trace, NodeId node) {
  return std::ranges::any_of(trace.extras(node), [&](const Extra& extra) {
    return extra.form == Extra::Form::kProtobuf && trace.text(extra.key) == "duration_micros";
  });
}

}  // namespace etude::chakra
