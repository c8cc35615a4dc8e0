#pragma once

#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/compat/chakra/generator.h"
#include "src/compat/chakra/text_converter.h"
#include "src/formats/io/atomic_file.h"

// The tools of MLCommons Chakra 1.0.0, from file to file, with byte-identical output. kBadInput
// where the tool would raise an exception; no file is written then.
namespace etude::compat {

// chakra_trace_link: links a host trace and a device trace. With `et`, also converts the result,
// without an intermediate text.
struct LinkRequest {
  std::string host;
  std::string device;
  std::string linked;                     // output file; "": none
  std::string et;                         // output file; "": none
  Existing existing = Existing::kFollow;  // for `et`
};
Status TraceLink(const LinkRequest& request, const RunContext& context);

// chakra_converter PyTorch: converts a linked or host trace to a Chakra trace.
Status ConvertPyTorch(const std::string& input, const std::string& output,
                      const RunContext& context, Existing existing = Existing::kFollow);

// chakra_converter Text: converts a model in ASTRA-sim 1's format to OUTPUT.NPU.et.
Status ConvertTextFile(const TextRequest& request, const RunContext& context);

// chakra_jsonizer: converts a Chakra trace to JSON documents.
Status Jsonize(const std::string& input, const std::string& output, const RunContext& context);

// chakra_generator: writes its files to the current folder.
Status Generate(const GeneratorRequest& request);

}  // namespace etude::compat
