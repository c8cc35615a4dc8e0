# Which files belong to which target follows from their names: what lies in src/<module> or below is of the module;
# x.cc is library code, x_test.cc a test, x_fuzz.cc a fuzz target, x_bench.cc a benchmark. Files in folders named
# assets are what commands write out, not code of Etude's.

# Sets `out` to the .cc files of the modules that follow.
function(etude_module_files out)
  set(files)
  foreach(module ${ARGN})
    file(GLOB_RECURSE found RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/src/${module}/*.cc)
    list(APPEND files ${found})
  endforeach()
  list(FILTER files EXCLUDE REGEX "/assets/")
  list(REMOVE_DUPLICATES files)
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# Sets `out` to the library sources of the modules that follow.
function(etude_sources out)
  etude_module_files(files ${ARGN})
  list(FILTER files EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# Sets `out` to the files named *_`kind`.cc of the modules that follow.
function(etude_files_of_kind out kind)
  etude_module_files(files ${ARGN})
  list(FILTER files INCLUDE REGEX "_${kind}\\.cc$")
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  set(${out} ${files} PARENT_SCOPE)
endfunction()

function(etude_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast
    -Wnon-virtual-dtor -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 warns falsely of std::string operator+
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>  # it collects no garbage below 512 MB: a tenth of its time
    $<$<BOOL:${ETUDE_WERROR}>:-Werror>)
  if(ETUDE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ETUDE_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # GCC warns falsely of code with sanitizers
    target_link_options(${target} PUBLIC -fsanitize=${ETUDE_SANITIZE})
  endif()
endfunction()

# For code that is not worth the time of optimising it: half of a compiler's. What runs at the start lies together
# (-freorder-functions, as by -O2), so that little of the rest is loaded with it.
function(etude_optimise_less target)
  if(ETUDE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>
      $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-freorder-functions>)
  endif()
endfunction()

include(CheckLinkerFlag)

# A program that starts quickly: a release build has the libraries that follow in itself, where the system has
# their archives, and nothing that it never calls. Each shared library costs a start a tenth of a millisecond
# and some 100 kB.
function(etude_start_quickly tool)
  if(NOT CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  endif()
  set(archives)
  foreach(name ${ARGN})
    find_library(ETUDE_ARCHIVE_${name} lib${name}.a)
    mark_as_advanced(ETUDE_ARCHIVE_${name})
    if(ETUDE_ARCHIVE_${name})
      list(APPEND archives ${ETUDE_ARCHIVE_${name}})
    endif()
  endforeach()
  target_link_libraries(${tool} PRIVATE etude ${archives})
  target_link_options(${tool} PRIVATE -Wl,--as-needed -Wl,--gc-sections)
  # Some 4,000 addresses of its own are a list of 100 kB, which a start reads, or 1 kB.
  check_linker_flag(CXX -Wl,-z,pack-relative-relocs ETUDE_LINKER_PACKS_RELOCATIONS)
  if(ETUDE_LINKER_PACKS_RELOCATIONS)
    target_link_options(${tool} PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
endfunction()

# In a release build, functions that the quick commands run lie together in `tool`: tools/function_order.py says why.
# The targets that follow are those it is made of.
function(etude_order_functions tool)
  set(order ${PROJECT_SOURCE_DIR}/cmake/function_order.ld)
  check_linker_flag(CXX "-Wl,-T,${order}" ETUDE_LINKER_ORDERS_FUNCTIONS)
  if(NOT ETUDE_LINKER_ORDERS_FUNCTIONS)
    return()
  endif()
  foreach(target ${tool} ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-ffunction-sections>)
  endforeach()
  target_link_options(${tool} PRIVATE $<$<CONFIG:Release>:-Wl,-T,${order}>)
  set_property(TARGET ${tool} APPEND PROPERTY LINK_DEPENDS ${order})
endfunction()

# Files of one module are compiled together, up to forty at once, in up to 2 GB: what they include is read once, which
# takes less than half of the time. Names that a file keeps to itself must differ from those of the others.
function(etude_unity_build target)
  if(NOT ETUDE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes the joined file for a header, whose types should not use an anonymous namespace.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  set(together 40)
  get_target_property(files ${target} SOURCES)
  foreach(file ${files})
    if(NOT file MATCHES "\\.cc$")
      continue()
    endif()
    if(file MATCHES "src/(torch|suite)/([a-z_]+)/")
      set(module ${CMAKE_MATCH_1}_${CMAKE_MATCH_2})  # with libtorch: fewer at once
    elseif(file MATCHES "src/([a-z]+)/")
      set(module ${CMAKE_MATCH_1})
    else()
      get_filename_component(module ${file} DIRECTORY)
      get_filename_component(module "${module}" NAME)
    endif()
    list(APPEND seen_${module} ${file})
    list(LENGTH seen_${module} count)
    math(EXPR group "(${count} - 1) / ${together}")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${module}_${group})
  endforeach()
endfunction()

# By clang, what most files include is read once for all files of `target`, with the headers that follow: a sixth of the
# time. (GCC gains nothing by that, and warns falsely.) A file that forgets one of these includes is found by other builds.
function(etude_precompile_headers target)
  if(NOT ETUDE_UNITY OR NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <charconv> <cmath> <cstdint> <deque> <filesystem> <fstream>
    <functional> <limits> <map> <memory> <numeric> <optional> <random> <ranges> <set> <span> <sstream> <string> <string_view>
    <tuple> <unordered_map> <unordered_set> <utility> <vector> <fmt/format.h> <tl/expected.hpp> ${ARGN})
  # ccache knows such files.
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endfunction()
