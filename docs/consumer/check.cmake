# Installs the build into a prefix of its own, then configures, builds and runs this folder's
# project against it, as a user of find_package(attnproof) would.
cmake_minimum_required(VERSION 3.25)
set(prefix ${BUILD}/consumer/prefix)
file(REMOVE_RECURSE ${BUILD}/consumer)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${BUILD}/consumer/build -G Ninja
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${BUILD}/consumer/build)
run(${BUILD}/consumer/build/consumer)
