# Which files belong to which target follows from their names: src/<module>/x.cc is library code,
# x_test.cc a test, x_fuzz.cc a fuzz target, x_bench.cc a benchmark.

# Sets `out` to the library sources of the modules that follow.
function(etude_sources out)
  set(files)
  foreach(module ${ARGN})
    file(GLOB found RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/${module}/*.cc)
    list(APPEND files ${found})
  endforeach()
  list(FILTER files EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# Sets `out` to the files named *_`kind`.cc of the modules that follow.
function(etude_files_of_kind out kind)
  set(files)
  foreach(module ${ARGN})
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${module}/*_${kind}.cc)
    list(APPEND files ${found})
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

function(etude_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast
    -Wnon-virtual-dtor -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 warns falsely of std::string operator+
    $<$<BOOL:${ETUDE_WERROR}>:-Werror>)
  if(ETUDE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ETUDE_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${ETUDE_SANITIZE})
  endif()
endfunction()
