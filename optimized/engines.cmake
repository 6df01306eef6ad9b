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
set(ATTN_FUNCTOR_TEMPLATES ${CMAKE_CURRENT_LIST_DIR})

# attn_add_kernels(<target> ENGINE warp|thread SOURCES <file>... [NAME <name>] [PLANT_FAULTS])
# compiles the sources for one engine, with the libraries, include directories and definitions of
# <target>, into <target>. A second call for the same engine needs a name.
function(attn_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PLANT_FAULTS" "ENGINE;NAME" "SOURCES")
  if(NOT arg_ENGINE MATCHES "^(warp|thread)$")
    message(FATAL_ERROR "attn_add_kernels: ENGINE is '${arg_ENGINE}', expected warp or thread")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "attn_add_kernels: SOURCES is empty, expected kernel units")
  endif()
  set(unit ${target}_${arg_ENGINE})
  if(arg_NAME)
    string(APPEND unit _${arg_NAME})
  endif()
  if(arg_PLANT_FAULTS)
    string(APPEND unit _planted)
  endif()
  add_library(${unit} OBJECT ${arg_SOURCES})
  target_link_libraries(${unit} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  target_include_directories(${unit} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${unit} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_compile_features(${unit} PRIVATE cxx_std_20)
  set_target_properties(${unit} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  attn_engine_flags(${unit} ${arg_ENGINE})
  if(arg_PLANT_FAULTS)
    target_compile_definitions(${unit} PRIVATE ATTN_PLANT_FAULTS)
    target_compile_options(${unit} PRIVATE -O1)  # half the time to compile; they run for seconds
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

# attn_add_functor(<target> NAME <name> HEADERS <file>... MOD <type> MASK <type>
#                  [ENGINES warp thread cuda] [PASSES forward backward] [STORAGE half bfloat16]
#                  [LARGEST_HEAD 64|128|256])
# compiles the shipped kernels for a mod and a mask of one's own into <target>, for each engine
# (cuda needs the CUDA language). MOD and MASK are types that the headers declare; they are found
# in the target's include directories. Any unit of the target may then
#
#   #include "<name>.h"
#   <name>::warp::run(attn::forward_arguments<attn::half>(q, k, v, o, lse),
#                     attn::forward_row<attn::half>(), mod, mask);
#
# and likewise for decode and backward. Every engine, pass, type and head size left out is compile
# time saved: 64, 128 and 256 are the sizes that D and Dv are padded to.
function(attn_add_functor target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;MOD;MASK;LARGEST_HEAD"
                        "HEADERS;ENGINES;PASSES;STORAGE")
  foreach(needed NAME MOD MASK HEADERS)
    if(NOT arg_${needed})
      message(FATAL_ERROR "attn_add_functor: ${needed} is missing")
    endif()
  endforeach()
  foreach(choice "ENGINES;warp;thread" "PASSES;forward;backward" "STORAGE;half;bfloat16"
                 "LARGEST_HEAD;256")
    list(POP_FRONT choice part)
    if(NOT arg_${part})
      set(arg_${part} ${choice})
    endif()
  endforeach()
  foreach(check "ENGINES;^(warp|thread|cuda)$" "PASSES;^(forward|backward)$"
                "STORAGE;^(half|bfloat16)$" "LARGEST_HEAD;^(64|128|256)$")
    list(POP_FRONT check part)
    foreach(value IN LISTS arg_${part})
      if(NOT value MATCHES "${check}")
        message(FATAL_ERROR "attn_add_functor: ${part} has '${value}', expected ${check}")
      endif()
    endforeach()
  endforeach()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/attn_functors/${target})
  set(NAME ${arg_NAME})
  set(MOD ${arg_MOD})
  set(MASK ${arg_MASK})
  list(TRANSFORM arg_HEADERS REPLACE "(.+)" "#include \"\\1\"")
  list(JOIN arg_HEADERS "\n" INCLUDES)
  list(TRANSFORM arg_STORAGE PREPEND "attn::")
  list(JOIN arg_STORAGE ", " STORAGE)
  foreach(pass forward backward)
    string(TOUPPER ${pass} variable)
    set(${variable} false)
    if(pass IN_LIST arg_PASSES)
      set(${variable} true)
    endif()
  endforeach()
  set(DECLARATIONS "")
  foreach(engine IN LISTS arg_ENGINES)
    string(APPEND DECLARATIONS "namespace ${engine} {\nstd::string_view run(const "
           "attn::AttentionArguments& call, const attn::Implementation& row,\n"
           "                     const Mod& mod, const Mask& mask);\n}\n")
  endforeach()
  configure_file(${ATTN_FUNCTOR_TEMPLATES}/functor.h.in ${folder}/${NAME}.h @ONLY)
  target_include_directories(${target} PRIVATE ${folder})

  foreach(engine IN LISTS arg_ENGINES)
    if(engine STREQUAL "cuda")
      set(unit ${folder}/${NAME}_cuda.cu)
    else()
      set(unit ${folder}/${NAME}_${engine}.cc)
    endif()
    configure_file(${ATTN_FUNCTOR_TEMPLATES}/functor_unit.cc.in ${unit} @ONLY)
    set_source_files_properties(${unit} PROPERTIES
                                COMPILE_DEFINITIONS ATTN_LARGEST_HEAD=${arg_LARGEST_HEAD})
    set(units_${engine} ${unit})
  endforeach()
  foreach(engine warp thread)
    if(units_${engine})
      attn_add_kernels(${target} NAME ${NAME} ENGINE ${engine} SOURCES ${units_${engine}})
    endif()
  endforeach()
  if(units_cuda)
    target_sources(${target} PRIVATE ${units_cuda})
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:ATTN_ENGINE_CUDA>)
    target_compile_options(${target} PRIVATE
                           $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr
                           -diag-suppress=20011,20012,20014,554>)
  endif()
endfunction()
