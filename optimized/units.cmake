# The kernel units of attnproof itself: one source, compiled once for each target it can run on.
#
#   target         compiler   macro                                      flags
#   warp           g++        ATTN_ENGINE_WARP                           attn_engine_flags
#   thread         g++        ATTN_ENGINE_THREAD                         attn_engine_flags
#   warp_planted   g++        ATTN_ENGINE_WARP and ATTN_PLANT_FAULTS     attn_engine_flags
#   cuda           nvcc       ATTN_ENGINE_CUDA                           sm_80, sm_90a; compile only
#
# Every file optimized/**/*_unit.cc is a kernel unit and is compiled for all four. A unit that is
# too heavy to compile in one piece is compiled in several: it instantiates what the macro
# ATTN_INSTANCE names, and optimized/instances.cmake lists the values, once for g++ and nvcc:
#
#   attn_kernel_units(attn_kernels SOURCE optimized/flash_forward_unit.cc
#                     INSTANCES "half, 64, small" "half, 128, large" "bfloat16, 64, small")
#
# gives a translation unit per instance and target in which `#define ATTN_INSTANCE half, 64, small`
# stands before the first line of the source. The first instance should be the cheapest: a build
# with sanitizers compiles that one alone, and defines ATTN_FIRST_INSTANCE_ONLY everywhere above.

# attn_kernel_units(<library> SOURCE <file> [INSTANCES <text>...])
# compiles one unit of attnproof itself for every target, in one piece or one piece an instance.
function(attn_kernel_units library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE" "INSTANCES")
  string(REGEX REPLACE "^optimized/|\\.cc$" "" stem ${arg_SOURCE})
  set(define "")
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND arg_INSTANCES)
    list(GET arg_INSTANCES 0 arg_INSTANCES)
    set(define "#define ATTN_FIRST_INSTANCE_ONLY 1\n#define ATTN_LARGEST_HEAD 64\n")
    target_compile_definitions(${library} PUBLIC ATTN_FIRST_INSTANCE_ONLY)
  endif()
  if(NOT arg_INSTANCES)
    set(arg_INSTANCES whole)  # its one piece
  endif()
  foreach(instance IN LISTS arg_INSTANCES)
    string(REGEX REPLACE "[^A-Za-z0-9]+" "_" name ${stem}_${instance})
    set(text "#include \"${arg_SOURCE}\"\n")
    if(NOT instance STREQUAL "whole")
      string(PREPEND text "${define}#define ATTN_INSTANCE ${instance}\n")
    endif()
    foreach(language cc cu)
      file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/units/${name}.${language} CONTENT "${text}" @ONLY)
      set_property(TARGET ${library} APPEND PROPERTY ATTN_UNITS_${language}
                   ${PROJECT_BINARY_DIR}/units/${name}.${language})
    endforeach()
  endforeach()
  set_property(TARGET ${library} APPEND PROPERTY ATTN_UNIT_SOURCES ${arg_SOURCE})
endfunction()

# attn_library_kernels(): the units of attn_kernels, and the target cuda_compile.
function(attn_library_kernels)
  include(${PROJECT_SOURCE_DIR}/optimized/instances.cmake OPTIONAL)
  get_target_property(listed attn_kernels ATTN_UNIT_SOURCES)
  set(units ${sources})
  list(FILTER units INCLUDE REGEX "^optimized/.*_unit\\.cc$")
  list(REMOVE_ITEM units ${listed})
  foreach(unit IN LISTS units)
    attn_kernel_units(attn_kernels SOURCE ${unit})
  endforeach()

  get_target_property(units attn_kernels ATTN_UNITS_cc)
  if(units)
    attn_add_kernels(attn_kernels ENGINE warp SOURCES ${units})
    attn_add_kernels(attn_kernels ENGINE thread SOURCES ${units})
    attn_add_kernels(attn_kernels ENGINE warp PLANT_FAULTS SOURCES ${units})
  endif()

  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/optimized/*.cu)
  list(FILTER cuda_sources EXCLUDE REGEX "/timed_[a-z]+\\.cu$")  # of attnproof_gpu alone
  get_target_property(units attn_kernels ATTN_UNITS_cu)
  if(units)
    list(APPEND cuda_sources ${units})
  endif()
  if(ATTN_HAS_CUDA AND cuda_sources)
    # The interpreter of expressions in its second storage type shows nothing that typed_*.cu do not:
    # left out of the tests, for their time.
    set(second ${cuda_sources})
    list(FILTER second INCLUDE REGEX "_bfloat16\\.cu$")
    list(REMOVE_ITEM cuda_sources ${second})
    attn_cuda_objects(cuda_compile ${cuda_sources})
    attn_cuda_objects(cuda_bfloat16 ${second})
    # The logs of ptxas_log.sh lie beside these; optimized/cuda_report.sh makes a table of them.
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/cuda_objects.txt
         CONTENT "$<JOIN:$<TARGET_OBJECTS:cuda_compile>,\n>\n")
  endif()
endfunction()

# attn_cuda_objects(<target> <source>...): an object library that nvcc compiles, not part of `all`.
# What ptxas says about registers and spills goes to a log beside each object.
function(attn_cuda_objects target)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${target} PRIVATE attn_core)
  target_compile_definitions(${target} PRIVATE ATTN_ENGINE_CUDA)
  target_compile_options(${target} PRIVATE -std=c++20 --expt-relaxed-constexpr
                         # 20012: Eigen's __host__ on defaulted functions. 20011, 20014: mods are
                         # templates for host and device, and host number types use them too. 554:
                         # a conversion to const that its own constraint rules out. 550: a parameter
                         # that is there for its type.
                         -diag-suppress=20011,20012,20014,554,550 -Xptxas=-v)
  set_target_properties(${target} PROPERTIES
                        CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/optimized/ptxas_log.sh)
endfunction()

# attn_gpu_tool(): the target attnproof_gpu, which is attnproof with the kernels for GPUs in it. One
# file that runs where there is a driver and a C library and nothing else: what else it needs is
# linked statically, or, as Debian has no static fmt, compiled in from headers.
function(attn_gpu_tool)
  if(NOT TARGET cuda_compile OR NOT TARGET attn_fuzz)
    return()
  endif()
  find_package(CUDAToolkit REQUIRED)
  file(GLOB timed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/optimized/timed_*.cu)
  attn_cuda_objects(cuda_timed ${timed})
  get_target_property(fuzz attn_fuzz SOURCES)
  add_executable(attnproof_gpu EXCLUDE_FROM_ALL fuzz/attnproof.cc ${fuzz}
                 $<TARGET_OBJECTS:cuda_compile> $<TARGET_OBJECTS:cuda_bfloat16>
                 $<TARGET_OBJECTS:cuda_timed>)
  target_link_libraries(attnproof_gpu PRIVATE attn_kernels rapidcheck fmt::fmt-header-only
                        nlohmann_json::nlohmann_json CLI11::CLI11 CUDA::cudart_static)
  # Debian's CMake files name the shared Boost.Context; it is left out where nothing needs it.
  target_link_options(attnproof_gpu PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed
                      -Wl,--whole-archive -l:libboost_context.a -Wl,--no-whole-archive)
endfunction()

# attn_find_cuda(): sets ATTN_HAS_CUDA. A macro: enable_language must run in the caller's scope.
# The architectures are named, as `native` fails where there is a compiler and no GPU.
macro(attn_find_cuda)
  set(ATTN_HAS_CUDA FALSE)
  if(ATTN_CUDA)
    include(CheckLanguage)
    if(NOT CMAKE_CUDA_COMPILER)  # look again: it may have been installed since
      unset(CMAKE_CUDA_COMPILER CACHE)
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real)
      enable_language(CUDA)
      set(ATTN_HAS_CUDA TRUE)
    elseif(ATTN_CUDA STREQUAL "ON")
      message(FATAL_ERROR "attnproof: ATTN_CUDA is ON and no CUDA compiler was found")
    else()
      message(STATUS "attnproof: no CUDA compiler, so no kernel is compiled for a GPU")
    endif()
  endif()
endmacro()
