# Installs the build into a prefix of its own, then builds this folder's project against it and runs
# its tests, as a user would; and sees each bug of bugs.cmake found, with a line that shows it again
# and that the right kernel passes.
cmake_minimum_required(VERSION 3.25)
set(prefix ${BUILD}/ci_gate/prefix)
set(build ${BUILD}/ci_gate/build)
file(REMOVE_RECURSE ${BUILD}/ci_gate)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${build} -G Ninja
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${build})
run(${CMAKE_CTEST_COMMAND} --test-dir ${build} -R "^causal_attention_(warp|thread)$"
    --no-tests=error --output-on-failure)

# nvcc takes the raw kernel and the ported one
if(NVCC)
  foreach(kernel raw_attention.cu ported_attention.cc)
    run(${NVCC} -std=c++20 --expt-relaxed-constexpr -diag-suppress=20011,20012,20014,554,550
        -arch=sm_80 -D ATTN_ENGINE_CUDA -I${prefix}/include -I${prefix}/include/attn ${EIGEN} -x cu
        -cubin -o ${build}/${kernel}.cubin ${CMAKE_CURRENT_LIST_DIR}/${kernel})
  endforeach()
else()
  message(STATUS "NOT TESTED: raw_attention.cu and ported_attention.cc with nvcc: there is none here")
endif()

# A package that the tool needs and does not find is named, by find_package and by the function.
foreach(components "REQUIRED COMPONENTS fuzz" "REQUIRED")
  file(WRITE ${BUILD}/ci_gate/without/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(without LANGUAGES CXX)
find_package(attnproof 0.1 ${components})
attn_fuzz_kernel(kernel SOURCES kernel.cc)\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${BUILD}/ci_gate/without -B ${BUILD}/ci_gate/without/build
                          -G Ninja -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix}
                          -D CMAKE_DISABLE_FIND_PACKAGE_rapidcheck=TRUE
                  OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
  if(status EQUAL 0 OR NOT said MATCHES "It needs[ \n]+rapidcheck")
    message(FATAL_ERROR "find_package(attnproof ${components}) without rapidcheck:\n${said}")
  endif()
endforeach()

include(${CMAKE_CURRENT_LIST_DIR}/bugs.cmake)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../ci_gate.md page)
foreach(bug IN LISTS bugs)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${build} -R "^${bug}_warp$"
                          --output-on-failure OUTPUT_VARIABLE said ERROR_QUIET)
  string(FIND "${said}" "${${bug}_found}" at)
  if(at EQUAL -1 OR NOT said MATCHES "0% tests passed, 1 tests failed")
    message(FATAL_ERROR "${bug}: expected a failed test and '${${bug}_found}':\n${said}")
  endif()
  if(NOT said MATCHES "\nreplay +${bug} replay '([^']+)'\n")
    message(FATAL_ERROR "${bug}: no line that replays it:\n${said}")
  endif()
  set(line "${CMAKE_MATCH_1}")
  execute_process(COMMAND ${build}/${bug} replay "${line}" OUTPUT_VARIABLE said
                  RESULT_VARIABLE status)
  string(FIND "${said}" "${${bug}_found}" at)
  if(NOT status EQUAL 1 OR at EQUAL -1)
    message(FATAL_ERROR "${bug}: not seen again: status ${status}:\n${said}")
  endif()
  string(REPLACE "impl: ${bug}" "impl: causal_attention" line "${line}")
  execute_process(COMMAND ${build}/causal_attention replay "${line}" OUTPUT_VARIABLE right
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${bug}: the right kernel fails too: status ${status}:\n${right}")
  endif()
  if(page MATCHES "\nreplay +${bug} replay '([^']+)'\n")  # what the page shows is what is said
    execute_process(COMMAND ${build}/${bug} replay "${CMAKE_MATCH_1}" OUTPUT_VARIABLE said)
    string(REGEX MATCH "^[^\n]+\n" first "${said}")
    string(FIND "${page}" "${first}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${bug}: docs/ci_gate.md shows something else than\n${said}")
    endif()
    list(APPEND shown ${bug})
  endif()
  message(STATUS "${bug}: found\n${said}")
endforeach()
if(NOT shown STREQUAL "no_barrier;no_rescale;stray_load")
  message(FATAL_ERROR "docs/ci_gate.md shows '${shown}', expected no_barrier, no_rescale and stray_load")
endif()
