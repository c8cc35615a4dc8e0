#include "src/transform/astra_sim/astra_sim.h"

#include <string>

#include "src/formats/chakra/chakra_attr.h"

namespace etude {

void AddAstraAttr(TraceBuilder& builder, NodeId node, std::string_view name, chakra::ValueType type,
                  uint64_t value) {
  std::string field;
  chakra::AddUintAttr(field, static_cast<uint32_t>(chakra::NodeField::kAttr), name, type, value);
  builder.AddExtra(
      node,
      {.key = builder.Intern(name), .text = builder.Intern(field), .form = Extra::Form::kProtobuf});
}

}  // namespace etude
