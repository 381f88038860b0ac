#include "simulate/redis/lua_scripts.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <lua.hpp>
#include <new>

#include "simulate/redis/replies.h"

namespace lockbench::simulate {
namespace {

// Redis's own: protects against endless nesting of what a script returns.
constexpr int kDeepest = 32;

std::string sha1_of(std::string_view source) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(source.data()), source.size(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string_view text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

void push(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

void push_field(lua_State* lua, const char* name, std::string_view value) {
  push(lua, value);
  lua_setfield(lua, -2, name);
}

void push(lua_State* lua, const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      return lua_pushboolean(lua, 0);
    case Reply::Type::integer:
      return lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
    case Reply::Type::string:
      return push(lua, reply.text);
    case Reply::Type::status:
    case Reply::Type::error:
      lua_createtable(lua, 0, 3);
      return push_field(lua, reply.type == Reply::Type::status ? "ok" : "err", reply.text);
    case Reply::Type::array:
      break;
  }
  lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
  int number = 0;
  for (const Reply& element : reply.elements) {
    push(lua, element);
    lua_rawseti(lua, -2, ++number);
  }
}

/// The value on top of the stack, which it pops.
Reply pop_reply(lua_State* lua, std::string_view sha1, int depth = 0);

/// Of a table's `ok` or `err`; nothing if it has neither.
std::optional<Reply> pop_message(lua_State* lua, std::string_view sha1) {
  lua_getfield(lua, -1, "err");
  if (lua_isstring(lua, -1) != 0) {
    std::string text(text_at(lua, -1));
    lua_getfield(lua, -2, "line");
    if (lua_isstring(lua, -1) != 0) {
      text += fmt::format(" script: {}, on @user_script:{}.", sha1, text_at(lua, -1));
    }
    lua_pop(lua, 3);
    return error(std::move(text));
  }
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "ok");
  if (lua_isstring(lua, -1) == 0) {
    lua_pop(lua, 1);
    return std::nullopt;
  }
  Reply status{.type = Reply::Type::status, .text = std::string(text_at(lua, -1))};
  lua_pop(lua, 2);
  return status;
}

Reply pop_reply(lua_State* lua, std::string_view sha1, int depth) {
  Reply reply;
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      reply = {.type = Reply::Type::string, .text = std::string(text_at(lua, -1))};
      break;
    case LUA_TNUMBER:
      reply = {.type = Reply::Type::integer,
               .integer = static_cast<std::int64_t>(lua_tonumber(lua, -1))};
      break;
    case LUA_TBOOLEAN:
      if (lua_toboolean(lua, -1) != 0) reply = {.type = Reply::Type::integer, .integer = 1};
      break;
    case LUA_TTABLE:
      if (auto message = pop_message(lua, sha1)) return *std::move(message);
      reply.type = Reply::Type::array;
      for (int number = 1; depth < kDeepest; ++number) {
        lua_rawgeti(lua, -1, number);
        if (lua_isnil(lua, -1)) {
          lua_pop(lua, 1);
          break;
        }
        reply.elements.push_back(pop_reply(lua, sha1, depth + 1));
      }
      break;
    default:
      break;
  }
  lua_pop(lua, 1);
  return reply;
}

void set_list(lua_State* lua, const char* name, Words words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  int number = 0;
  for (const std::string_view word : words) {
    push(lua, word);
    lua_rawseti(lua, -2, ++number);
  }
  lua_setglobal(lua, name);
}

const char kModel = 0;  // its address names the model in Lua's registry

}  // namespace

LuaScripts::LuaScripts() : lua_(luaL_newstate()) {
  if (lua_ == nullptr) throw std::bad_alloc();
  for (const lua_CFunction open : {luaopen_base, luaopen_table, luaopen_string, luaopen_math}) {
    lua_pushcfunction(lua_, open);
    lua_call(lua_, 0, 0);
  }
  for (const char* const name : {"dofile", "loadfile", "print"}) {
    lua_pushnil(lua_);
    lua_setglobal(lua_, name);
  }
  lua_createtable(lua_, 0, 2);
  lua_pushcfunction(lua_, call);
  lua_setfield(lua_, -2, "call");
  lua_pushcfunction(lua_, pcall);
  lua_setfield(lua_, -2, "pcall");
  lua_setglobal(lua_, "redis");
}

LuaScripts::~LuaScripts() { lua_close(lua_); }

Reply LuaScripts::load(std::string_view source) {
  std::string sha1 = sha1_of(source);
  if (!knows(sha1)) {
    if (luaL_loadbuffer(lua_, source.data(), source.size(), "@user_script") != 0) {
      const std::string why(text_at(lua_, -1));
      lua_pop(lua_, 1);
      return error(fmt::format("ERR Error compiling script (new function): {}", why));
    }
    functions_[sha1] = luaL_ref(lua_, LUA_REGISTRYINDEX);
  }
  return {.type = Reply::Type::string, .text = std::move(sha1)};
}

Reply LuaScripts::run(RedisModel& model, std::string_view sha1, Words keys, Words args) {
  lua_pushlightuserdata(lua_, const_cast<char*>(&kModel));
  lua_pushlightuserdata(lua_, &model);
  lua_rawset(lua_, LUA_REGISTRYINDEX);
  set_list(lua_, "KEYS", keys);
  set_list(lua_, "ARGV", args);
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, functions_.find(sha1)->second);
  const int failed = lua_pcall(lua_, 0, 1, 0);
  if (failed == 0 || lua_istable(lua_, -1)) return pop_reply(lua_, sha1);
  // "user_script:3: attempt to ..."
  std::string why(text_at(lua_, -1));
  lua_pop(lua_, 1);
  const std::size_t line = why.find(':'), end = why.find(':', line + 1);
  const std::string at = end == std::string::npos ? "0" : why.substr(line + 1, end - line - 1);
  return error(fmt::format("ERR {} script: {}, on @user_script:{}.", why, sha1, at));
}

int LuaScripts::call(lua_State* lua) { return execute(lua, true); }
int LuaScripts::pcall(lua_State* lua) { return execute(lua, false); }

// lua_error() jumps: nothing with a destructor may be alive then.
int LuaScripts::execute(lua_State* lua, bool raises) {
  bool failed = false;
  {
    constexpr std::size_t kMostWords = 64;
    std::array<std::string_view, kMostWords> words;
    const auto count = static_cast<std::size_t>(lua_gettop(lua));
    Reply reply;
    bool texts = count > 0 && count <= kMostWords;
    for (std::size_t i = 0; texts && i < count; ++i) {
      const int place = static_cast<int>(i) + 1;
      texts = lua_isstring(lua, place) != 0;
      if (texts && lua_type(lua, place) == LUA_TNUMBER) {
        // As Redis writes them: not 1.7e+15, which Lua makes of it.
        push(lua, fmt::format("{:.17g}", lua_tonumber(lua, place)));
        lua_replace(lua, place);
      }
      words[i] = text_at(lua, place);
    }
    if (texts) {
      lua_pushlightuserdata(lua, const_cast<char*>(&kModel));
      lua_rawget(lua, LUA_REGISTRYINDEX);
      auto& model = *static_cast<RedisModel*>(lua_touserdata(lua, -1));
      reply = model.run({words.data(), count});
    } else {
      reply = error(count == 0 ? "ERR Please specify at least one argument for this redis lib call"
                               : "ERR Lua redis lib command arguments must be strings or integers");
    }
    failed = raises && reply.type == Reply::Type::error;
    push(lua, reply);
  }
  if (!failed) return 1;
  lua_Debug caller{};
  if (lua_getstack(lua, 1, &caller) != 0 && lua_getinfo(lua, "l", &caller) != 0) {
    lua_pushinteger(lua, caller.currentline);
    lua_setfield(lua, -2, "line");
  }
  return lua_error(lua);
}

}  // namespace lockbench::simulate
