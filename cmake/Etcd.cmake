# Compiles strategies/etcd/client/rpc.proto into the library lockbench_etcd_api, whose code is not ours and so has
# none of our warnings. Switches the backend off where its tools are missing.
# Not by pkg-config, which takes ten seconds for the hundred libraries behind gRPC.
find_library(GRPCPP grpc++)
find_library(GRPC grpc)
find_library(GPR gpr)
find_library(ABSL_SYNCHRONIZATION absl_synchronization)
find_path(GRPCPP_INCLUDE grpcpp/grpcpp.h)
pkg_check_modules(protobuf QUIET IMPORTED_TARGET protobuf)
find_program(PROTOC protoc)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
set(etcd_found OFF)
if(GRPCPP AND GRPC AND GPR AND ABSL_SYNCHRONIZATION AND GRPCPP_INCLUDE AND protobuf_FOUND AND PROTOC AND GRPC_CPP_PLUGIN)
  set(etcd_found ON)
endif()
lockbench_switch(ETCD ${etcd_found} "gRPC or protoc"
                 "install the packages libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc"
                 "The strategies of LOCKBENCH_ETCD are")
if(LOCKBENCH_ETCD)
  set(proto ${CMAKE_SOURCE_DIR}/strategies/etcd/client/rpc.proto)
  set(folder ${CMAKE_BINARY_DIR}/proto)
  set(outputs)
  foreach(suffix pb.h pb.cc grpc.pb.h grpc.pb.cc)
    list(APPEND outputs ${folder}/strategies/etcd/client/rpc.${suffix})
  endforeach()
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${PROTOC} --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${folder} --grpc_out=${folder}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
    DEPENDS ${proto}
    VERBATIM)
  add_custom_target(lockbench_etcd_messages DEPENDS ${outputs})
  add_library(lockbench_etcd_api STATIC ${outputs})
  add_dependencies(lockbench_etcd_api lockbench_etcd_messages)
  set_target_properties(lockbench_etcd_api PROPERTIES UNITY_BUILD OFF)
  # Most of it is for servers, which we are not.
  set_source_files_properties(${folder}/strategies/etcd/client/rpc.grpc.pb.cc PROPERTIES COMPILE_OPTIONS
                              $<$<CONFIG:Release>:-O1>)
  target_include_directories(lockbench_etcd_api SYSTEM PUBLIC ${folder} ${GRPCPP_INCLUDE})
  target_link_libraries(lockbench_etcd_api PUBLIC ${GRPCPP} ${GRPC} ${GPR} ${ABSL_SYNCHRONIZATION} PkgConfig::protobuf)
  if(LOCKBENCH_SANITIZE)
    # Generated code is checked for memory errors and races, as ours is, but not for undefined behaviour.
    target_compile_options(lockbench_etcd_api PRIVATE -fsanitize=${LOCKBENCH_SANITIZE} -fno-sanitize=undefined)
  endif()
endif()
