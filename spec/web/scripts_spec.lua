-- Every script in the workshop under node beside the program of this machine:
-- what it says, its reports, the bits that it wrote, and its page with costs.
local dkjson = require "dkjson"
local support = require "spec.support"

local web = (os.getenv "CUTE_BUILD" or "build") .. "/web"
local NO_CUDA = {CUTELUA_NO_CUDA = "1"}

local function scripts()
  local list = {}
  local p <close> = io.popen "ls scripts/*.lua"
  for path in p:lines() do list[#list + 1] = path end
  return list
end

-- Bytes as JSON has them.
local function base64(bytes)
  local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    .. "0123456789+/"
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

-- The asks for all scripts: a run, then the costs of its first launch.
local function requests(list)
  local told, all = support.read "spec/web/told.lua", {}
  for _, path in ipairs(list) do
    all[#all + 1] = {ask = "run", name = "told.lua", text = told,
                     words = {path, "--device", "sim"}}
    all[#all + 1] = {ask = "costs", kernel = 1}
  end
  return all
end

local function native(all)
  local text, err, code = support.exec({support.program,
    "spec/workshop/asks.lua"}, {stdin = dkjson.encode(all), env = NO_CUDA})
  assert.equal(0, code, err)
  local out = {}
  for printed, answer in text:gmatch "(.-)\nanswer ([^\n]*)\n" do
    out[#out + 1] = {out = printed, answer = dkjson.decode(answer)}
  end
  return out
end

-- The files are put first.
local function under_node(list, all)
  local asks = {{engine = {seconds = 60}}}
  for _, path in ipairs(list) do
    asks[#asks + 1] = {ask = "put", name = path,
                       bytes = base64(support.read(path))}
  end
  table.move(all, 1, #all, #asks + 1, asks)
  local dir = support.folder()
  support.write(dir .. "/asks.json", dkjson.encode(asks))
  local text, err = support.exec {"node", "spec/web/page.js", web,
                                  dir .. "/asks.json"}
  support.remove(dir)
  local answers = assert(dkjson.decode(text), err)
  return table.move(answers, #asks - #all + 1, #asks, 1, {})
end

-- Without the seconds that it took: in words, and in the ladder's last column.
local function timeless(text)
  return (text:gsub("[%d.]+ m?s%f[%W]", "T")
    :gsub("(%f[^\n\0][%w_]+ +%d+  ok [^\n]*) [%d.]+%f[\n]", "%1 T"))
end

describe("every script in the workshop", function()
  local list = scripts()
  local all = requests(list)
  local here, there

  it("runs", function()
    here, there = native(all), under_node(list, all)
    assert.same({#all, #all}, {#here, #there})
  end)

  for i, path in ipairs(list) do
    it(path .. " is the same as the native program's, bit for bit", function()
      local a, b = here[2 * i - 1], there[2 * i - 1]
      assert.same({true, 0}, {a.answer.ok, a.answer.code})
      assert.truthy(a.out:find "report%.instructions = %d")
      assert.truthy(a.out:find "written%.%d+ = %-?%d")
      assert.truthy(a.out:find ": ok\n" or path:find "ladder")
      assert.equal(timeless(a.out), timeless(b.out))
      a.answer.seconds, b.answer.seconds = nil, nil
      assert.truthy(#a.answer.page.kernels > 0)
      assert.same(a.answer, b.answer)
      local costs = here[2 * i].answer
      assert.truthy(costs.kernel.estimate)
      assert.same(costs, there[2 * i].answer)
    end)
  end
end)
