# generated/version.h: version from project(), commit from git when the build runs.
add_custom_target(lockbench_version
  COMMAND ${CMAKE_COMMAND} -DVERSION=${PROJECT_VERSION} -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
          -DSANITIZE=${LOCKBENCH_SANITIZE} -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
          -DOUTPUT=${CMAKE_BINARY_DIR}/generated/version.h -P ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/version.h
  VERBATIM)
