#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/formats/native/capture_format.h"
#include "src/formats/native/capture_reader.h"

namespace {

// Packs each block of the input, which has a kind and a length of two bytes before it, as a writer
// would: the fuzzer should attack the records, not their checksums.
std::string Packed(std::string_view input) {
  std::string file(etude::capture::kMagic);
  while (input.size() >= 3) {
    etude::capture::BlockHeader header;
    header.kind = static_cast<uint8_t>(input[0]);
    const size_t wanted =
        static_cast<uint8_t>(input[1]) + size_t{256} * static_cast<uint8_t>(input[2]);
    input.remove_prefix(3);
    const std::string_view records = input.substr(0, std::min(wanted, input.size()));
    input.remove_prefix(records.size());
    std::string frame(ZSTD_compressBound(records.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), records.data(), records.size(), 1));
    header.raw_bytes = static_cast<uint32_t>(records.size());
    header.packed_bytes = static_cast<uint32_t>(frame.size());
    header.checksum = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(frame.data()), frame.size()));
    file.append(reinterpret_cast<const char*>(&header), sizeof header);
    file += frame;
  }
  return file;
}

}  // namespace

// Native captures: the input as a file, and as the records of one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = etude::fuzz::Bytes(data, size);
  (void)etude::fuzz::ReadWith(etude::MakeCaptureReader, input);
  (void)etude::fuzz::ReadWith(etude::MakeCaptureReader, Packed(input));
  return 0;
}
