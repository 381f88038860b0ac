include(CMakeFindDependencyMacro)
find_dependency(prometheus-cpp COMPONENTS core)
include(${CMAKE_CURRENT_LIST_DIR}/lockbench-targets.cmake)
