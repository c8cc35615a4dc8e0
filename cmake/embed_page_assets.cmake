# Run by the build (EtudePageAssets.cmake): writes OUTPUT, a source file with the text of STYLE, of
# SCRIPTS (joined by "|", concatenated), LIBRARY (may be "") and LICENCE, and their checksums.

# Sets `out` to base64 of `hex`, the 64 digits of a SHA-256.
function(base64_of_hex hex out)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  string(APPEND hex "00")  # 32 bytes are two thirds of a group short: the last digit becomes "="
  foreach(at RANGE 0 60 6)
    string(SUBSTRING ${hex} ${at} 6 group)
    math(EXPR number "0x${group}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${number} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING ${text} 0 43 text)
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

# Appends the definition of an Asset.
function(put_asset name text)
  string(REGEX MATCH "</[sS][cC][rR][iI][pP][tT]|<!--|</[sS][tT][yY][lL][eE]" ends "${text}")
  if(ends)
    message(FATAL_ERROR "${name} contains '${ends}', which would end its element")
  endif()
  string(SHA256 hex "${text}")
  base64_of_hex(${hex} base64)
  file(APPEND ${OUTPUT} "const Asset ${name}{R\"etude(${text})etude\", \"${base64}\"};\n")
endfunction()

file(READ ${STYLE} style)
set(script "\"use strict\";\n")
string(REPLACE "|" ";" SCRIPTS "${SCRIPTS}")
foreach(path ${SCRIPTS})
  file(READ ${path} text)
  string(APPEND script "${text}\n")
endforeach()
set(library "")
set(name "")
set(licence "")
if(LIBRARY)
  file(READ ${LIBRARY} library)
  file(READ ${LICENCE} licence)
  set(name "Apache ECharts ${VERSION}")
endif()

file(WRITE ${OUTPUT} "// Made by cmake/embed_page_assets.cmake.\n"
  "#include \"src/report/page/page_assets.h\"\n\nnamespace etude::page_assets {\n")
put_asset(kStyle "${style}")
put_asset(kScript "${script}")
if(LIBRARY)
  put_asset(kChartLibrary "${library}")
else()
  file(APPEND ${OUTPUT} "const Asset kChartLibrary{};\n")
endif()
file(APPEND ${OUTPUT} "const std::string_view kChartName = \"${name}\";\n"
  "const std::string_view kChartLicence = R\"etude(${licence})etude\";\n"
  "}  // namespace etude::page_assets\n")
