#pragma once

#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/compat/chakra/generator.h"
#include "src/compat/chakra/text_converter.h"
#include "src/formats/io/atomic_file.h"

// The tools of MLCommons Chakra 1.0.0 from file to file: the same bytes out of the same input.
// kBadInput where the tool would stop with an exception, and then no file is written.
namespace etude::compat {

// chakra_trace_link: host trace and device trace to a linked trace. With `et`, what the converter
// makes of that too, without going through its text.
struct LinkRequest {
  std::string host;
  std::string device;
  std::string linked;                     // file to write; "": none
  std::string et;                         // likewise
  Existing existing = Existing::kFollow;  // of `et`
};
Status TraceLink(const LinkRequest& request, const RunContext& context);

// chakra_converter PyTorch: a linked or host trace to a Chakra trace.
Status ConvertPyTorch(const std::string& input, const std::string& output,
                      const RunContext& context, Existing existing = Existing::kFollow);

// chakra_converter Text: a model in ASTRA-sim's first format to OUTPUT.NPU.et.
Status ConvertTextFile(const TextRequest& request, const RunContext& context);

// chakra_jsonizer: a Chakra trace to its JSON documents.
Status Jsonize(const std::string& input, const std::string& output, const RunContext& context);

// chakra_generator: its files, in the current folder.
Status Generate(const GeneratorRequest& request);

}  // namespace etude::compat
