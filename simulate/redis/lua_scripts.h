#pragma once

#include <string>
#include <string_view>

#include "simulate/redis/model.h"

struct lua_State;

namespace lockbench::simulate {

/// Runs Lua scripts on a model as Redis does, with the same interpreter (Lua 5.1). Only libraries
/// that neither read files nor clocks are open to them.
class LuaScripts {
 public:
  LuaScripts();
  LuaScripts(const LuaScripts&) = delete;
  LuaScripts& operator=(const LuaScripts&) = delete;
  ~LuaScripts();

  bool knows(std::string_view sha1) const { return functions_.contains(sha1); }
  /// Compiles it unless it is known; returns its SHA-1, or an error reply.
  Reply load(std::string_view source);
  /// A script that it knows.
  Reply run(RedisModel& model, std::string_view sha1, Words keys, Words args);

 private:
  static int call(lua_State* lua);
  static int pcall(lua_State* lua);
  static int execute(lua_State* lua, bool raises);

  lua_State* lua_;
  ByText<int> functions_;  ///< by SHA-1: their references in Lua
};

}  // namespace lockbench::simulate
