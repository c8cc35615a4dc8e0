# Embeds what a page of `etude report` is made of into a source file: the style sheet and scripts of
# src/report/assets, and the charts' library.
#
#   ETUDE_CHARTS         OFF: pages have tables only
#   ETUDE_CHART_LIBRARY  the library's file; default: obtained below
#
# The library is Apache ECharts, the file dist/echarts.min.js of its release, pinned by version and
# SHA-256. pip gets it inside a wheel that ships it unchanged (Panel, by HoloViz), npm as the package
# itself; the checksum makes both the same. What cannot be had is said once, and pages say it too.

option(ETUDE_CHARTS "Charts in the pages of etude report" ON)
set(ETUDE_CHART_LIBRARY "" CACHE FILEPATH "echarts.min.js of the pinned version, if it is at hand")

set(ETUDE_CHART_VERSION 6.0.0)
set(ETUDE_CHART_SHA256 baa8dfe7e1d9336b98e8986ba7e20ea15e7cdbea1ef42a59d59478632fa45a1d)
set(ETUDE_CHART_WHEEL panel==1.9.4)
set(ETUDE_CHART_WHEEL_FILE panel/dist/bundled/echarts/echarts@6.0.0/dist/echarts.min.js)

# Takes `file` as the library if it is the one that is meant.
function(etude_take_chart_library file)
  if(NOT EXISTS ${file})
    return()
  endif()
  file(SHA256 ${file} found)
  if(found STREQUAL ETUDE_CHART_SHA256)
    set(chart_library ${file} PARENT_SCOPE)
  else()
    message(WARNING "${file} has SHA-256 ${found}, expected ${ETUDE_CHART_SHA256}: not used")
  endif()
endfunction()

# Downloads with pip, else with npm, into `folder`.
function(etude_download_chart_library folder)
  file(MAKE_DIRECTORY ${folder})
  set(python python3)
  if(ETUDE_TORCH_PYTHON)
    set(python ${ETUDE_TORCH_PYTHON})
  elseif(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  execute_process(
    COMMAND ${python} -m pip download -q --disable-pip-version-check --no-deps --retries 1
      --timeout 20 --only-binary :all: --ignore-requires-python -d ${folder} ${ETUDE_CHART_WHEEL}
    TIMEOUT 180 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  file(GLOB wheels ${folder}/*.whl)
  if(NOT failed AND wheels)
    file(ARCHIVE_EXTRACT INPUT ${wheels} DESTINATION ${folder}
      PATTERNS "${ETUDE_CHART_WHEEL_FILE}")
    file(REMOVE ${wheels})
    file(RENAME ${folder}/${ETUDE_CHART_WHEEL_FILE} ${folder}/echarts.min.js RESULT ignored)
    return()
  endif()
  execute_process(COMMAND npm pack -s echarts@${ETUDE_CHART_VERSION} WORKING_DIRECTORY ${folder}
    TIMEOUT 180 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  file(GLOB archives ${folder}/*.tgz)
  if(NOT failed AND archives)
    file(ARCHIVE_EXTRACT INPUT ${archives} DESTINATION ${folder}
      PATTERNS "package/dist/echarts.min.js")
    file(REMOVE ${archives})
    file(RENAME ${folder}/package/dist/echarts.min.js ${folder}/echarts.min.js RESULT ignored)
  endif()
endfunction()

set(chart_library)
if(ETUDE_CHARTS)
  set(chart_folder ${PROJECT_BINARY_DIR}/chart-library)
  if(ETUDE_CHART_LIBRARY)
    etude_take_chart_library(${ETUDE_CHART_LIBRARY})
  else()
    if(NOT EXISTS ${chart_folder}/echarts.min.js)
      etude_download_chart_library(${chart_folder})
    endif()
    etude_take_chart_library(${chart_folder}/echarts.min.js)
  endif()
endif()
if(chart_library)
  message(STATUS "Charts: Apache ECharts ${ETUDE_CHART_VERSION} (${chart_library})")
elseif(ETUDE_CHARTS)
  message(STATUS "Charts: none. Apache ECharts ${ETUDE_CHART_VERSION} could not be had with pip or npm: "
    "pages of `etude report` have tables only. -DETUDE_CHART_LIBRARY=FILE gives the file, "
    "-DETUDE_CHARTS=OFF does without")
else()
  message(STATUS "Charts: none (ETUDE_CHARTS=OFF), pages of `etude report` have tables only")
endif()

set(page_assets_dir ${PROJECT_SOURCE_DIR}/src/report/assets)
set(page_scripts ${page_assets_dir}/text.js ${page_assets_dir}/tables.js ${page_assets_dir}/charts.js
  ${page_assets_dir}/timeline.js ${page_assets_dir}/page.js)
set(page_style ${page_assets_dir}/page.css)
set(page_licence ${page_assets_dir}/echarts_licence.txt)
set(ETUDE_PAGE_ASSETS ${PROJECT_BINARY_DIR}/page_assets.cc)
# Paths with blanks and semicolons survive: one list, one argument.
string(JOIN "|" page_scripts_joined ${page_scripts})
add_custom_command(OUTPUT ${ETUDE_PAGE_ASSETS}
  COMMAND ${CMAKE_COMMAND} -D "OUTPUT=${ETUDE_PAGE_ASSETS}" -D "STYLE=${page_style}"
    -D "SCRIPTS=${page_scripts_joined}" -D "LIBRARY=${chart_library}" -D "LICENCE=${page_licence}"
    -D "VERSION=${ETUDE_CHART_VERSION}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_page_assets.cmake
  DEPENDS ${page_style} ${page_scripts} ${page_licence} ${chart_library}
    ${PROJECT_SOURCE_DIR}/cmake/embed_page_assets.cmake
  COMMENT "Embedding the assets of pages" VERBATIM)
