# Compiling kernels for an engine. Installed with the package.
#
# A kernel is written once, against optimized/simt/. What a translation unit is compiled for is set
# here, for the whole unit, never inside it. Users of the package compile their own kernels with
#
#   attn_add_kernels(my_program ENGINE warp SOURCES my_kernel.cc)      # or ENGINE thread
#
# after which my_program contains the unit, compiled as the library's own are: the macro
# ATTN_ENGINE_WARP or ATTN_ENGINE_THREAD and the flags of attn_engine_flags below.
include_guard()

# attn_add_kernels(<target> ENGINE warp|thread SOURCES <file>... [PLANT_FAULTS])
# compiles the sources for one engine, with the libraries that <target> links, into <target>.
function(attn_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PLANT_FAULTS" "ENGINE" "SOURCES")
  if(NOT arg_ENGINE MATCHES "^(warp|thread)$")
    message(FATAL_ERROR "attn_add_kernels: ENGINE is '${arg_ENGINE}', expected warp or thread")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "attn_add_kernels: SOURCES is empty, expected kernel units")
  endif()
  set(unit ${target}_${arg_ENGINE})
  if(arg_PLANT_FAULTS)
    string(APPEND unit _planted)
  endif()
  add_library(${unit} OBJECT ${arg_SOURCES})
  target_link_libraries(${unit} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  target_include_directories(${unit} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_compile_features(${unit} PRIVATE cxx_std_20)
  set_target_properties(${unit} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  attn_engine_flags(${unit} ${arg_ENGINE})
  if(arg_PLANT_FAULTS)
    target_compile_definitions(${unit} PRIVATE ATTN_PLANT_FAULTS)
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${unit}>)
endfunction()

# attn_engine_flags(<target> warp|thread): what every unit that runs emulated code is compiled with.
# No contraction: a*b + c is two roundings unless the source says fma, as on the GPU.
function(attn_engine_flags target engine)
  string(TOUPPER ${engine} macro)
  target_compile_definitions(${target} PRIVATE ATTN_ENGINE_${macro})
  target_compile_options(${target} PRIVATE -ffp-contract=off -Wno-psabi)
  if(ATTN_X86_64_V3 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(${target} PRIVATE -march=x86-64-v3)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O3)
  endif()
endfunction()
