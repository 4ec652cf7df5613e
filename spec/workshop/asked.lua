-- Sends requests to the workshop: natively through asks.lua, or under node
-- through spec/web/page.js, which uses web/engine.js and a Worker of node.
local dkjson = require "dkjson"
local support = require "spec.support"

local workshop = {}

--- Returns the native workshop's responses to requests.
---@param requests table[]
---@param env? table<string, string>
---@return table[] {answer =, out = what was printed}
function workshop.asked(requests, env)
  local text, err, code = support.exec({support.program,
    "spec/workshop/asks.lua"}, {stdin = dkjson.encode(requests), env = env})
  assert(code == 0, err)
  local list = {}
  for out, answer in text:gmatch "(.-)\nanswer ([^\n]*)\n" do
    list[#list + 1] = {answer = assert(dkjson.decode(answer)), out = out}
  end
  assert(#requests == #list, text)
  return list
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  .. "+/"

--- Encodes bytes for spec/web/page.js.
---@param bytes string
---@return string
function workshop.base64(bytes)
  return (bytes:gsub("..?.?", function(three)
    local a, b, c = three:byte(1, 3)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    local out = ""
    for i = 0, 3 do
      local d = n >> 18 - 6 * i & 63
      out = out .. (i <= #three and DIGITS:sub(d + 1, d + 1) or "=")
    end
    return out
  end))
end

--- Returns a request that stores a file in the workshop.
---@param name string
---@param bytes string
---@return table request
function workshop.put(name, bytes)
  return {ask = "put", name = name, bytes = workshop.base64(bytes)}
end

--- Returns the responses to requests under node: see spec/web/page.js.
---@param requests table[]
---@return table[] {answer =, out =, seconds =, stopped =, during =}
function workshop.under_node(requests)
  local web = (os.getenv "CUTE_BUILD" or "build") .. "/web"
  local dir = support.folder()
  support.write(dir .. "/asks.json", dkjson.encode(requests))
  local text, err = support.exec {"node", "spec/web/page.js", web,
                                  dir .. "/asks.json"}
  support.remove(dir)
  local answers = dkjson.decode(text)
  return assert(answers, err .. text:sub(1, 200))
end

return workshop
-- SPDX-License-Identifier: MIT
