--- Compiles the emitted CUDA C of many kernels to one host program, in one C++
-- compilation. Calls of functions in spec/cudablocks.h replace inline PTX.
local support = require "spec.support"

local cudahost = {}

local compiler  -- the compiler's name, or false

--- Returns the name of a C++ compiler, or nil if there is none.
function cudahost.compiler()
  if compiler == nil then
    compiler = false
    for _, name in ipairs {os.getenv "CXX" or "c++", "g++", "clang++"} do
      compiler = compiler or
        select(3, support.exec {name, "--version"}) == 0 and name
    end
  end
  return compiler or nil
end

---------------------------------------------------------------------------
-- Inline PTX
---------------------------------------------------------------------------

-- Returns an operand of an asm statement as C. %1 is the statement's second
-- operand, [%1 + %2] an address, %%laneid a special register. Any other word is
-- a number.
local function operand(word, values)
  local n, k = word:match "^%[%%(%d+) %+ %%(%d+)%]$"
  if n then
    return ("ptx_at(%s, %s)"):format(values[tonumber(n) + 1],
                                     values[tonumber(k) + 1])
  end
  n = word:match "^%[?%%(%d+)%]?$"
  if n then return values[tonumber(n) + 1] end
  local special = word:match "^%%%%([%w_]+)$"
  return special and ("ptx_%s()"):format(special) or word
end

-- Returns a C call that replaces an asm statement with the text `args` in its
-- parentheses. For example, asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x))
-- becomes r = ptx_cvt_f32_f16(x). For cp.async, and for instructions whose
-- first operand is a list in braces, all operands become arguments of the call.
local function call(args)
  local ptx, rest = "", args
  while true do
    local text, more = rest:match '^%s*"([^"]*)"(.*)$'
    if not text then break end
    ptx, rest = ptx .. text, more
  end
  local values = {}
  for value in rest:gmatch '"[=+]?%l"(%b())' do values[#values + 1] = value end
  local name, list = ptx:match "^%s*([%w%._]+)%s*([^;]*);%s*$"
  assert(name and not list:find("[{}]", list:match "^{[^{}]*}()"),
         "no function for this PTX: " .. ptx)
  local words = {}
  for word in list:gsub("[{}]", ""):gmatch "%s*([^,]+)" do
    words[#words + 1] = operand(word, values)
  end
  if name == "mov.u32" then return ("%s = %s"):format(words[1], words[2]) end
  local f = "ptx_" .. name:gsub("[%.:]+", "_")
  if name:find "^cp%.async" or list:find "^{" then
    return ("%s(%s)"):format(f, table.concat(words, ", "))
  end
  return ("%s = %s(%s)"):format(words[1], f, table.concat(words, ", ", 2))
end

-- Returns the text of a kernel as C++ for the host, in its own namespace.
local function translate(text, space)
  text = text:gsub("asm%s*v?o?l?a?t?i?l?e?%s*(%b())",
                   function(args) return call(args:sub(2, -2)) end)
  text = text:gsub("extern __shared__ [^\n]*smem%[%];",
                   "unsigned char *const smem = host_smem;")
  text = text:gsub('extern "C" __global__', "static")
  return ("namespace %s {\n%s}\n"):format(space, text)
end

---------------------------------------------------------------------------
-- Running
---------------------------------------------------------------------------

---@class HostRun
---@field text string the text; the kernel is called k
---@field grid integer
---@field block integer
---@field args string[] bytes of each argument

local function main_of(runs)
  local out = {"int main() {\n"}
  for i, run in ipairs(runs) do
    local takes, leaves = {}, {}
    for k, bytes in ipairs(run.args) do
      takes[k] = ("take(%d)"):format(#bytes)
      leaves[k] = ("  leave(a[%d], %d);\n"):format(k - 1, #bytes)
    end
    out[#out + 1] = ("  {\n  void *a[] = {%s};\n  launch([](void **p) { "
      .. "call(n%d::k, p, std::make_index_sequence<%d>()); }, a, %d, %d);\n"
      .. "%s  }\n"):format(table.concat(takes, ", "), i, #run.args, run.grid,
      run.block, table.concat(leaves))
  end
  out[#out + 1] = "}\n"
  return table.concat(out)
end

--- Runs kernels. Returns the final bytes of each argument, and their output.
---@param runs HostRun[]
---@return string[][] bytes of each argument of each kernel
---@return string printed
function cudahost.run(runs)
  local text, input = {'#include "cudablocks.h"\n'}, {}
  for i, run in ipairs(runs) do
    text[#text + 1] = translate(run.text, "n" .. i)
    table.move(run.args, 1, #run.args, #input + 1, input)
  end
  text[#text + 1] = main_of(runs)
  local dir <close> = setmetatable({path = support.folder()}, {
    __close = function(d) support.remove(d.path) end})
  support.write(dir.path .. "/k.cc", table.concat(text))
  local out, err, code = support.exec {cudahost.compiler(), "-std=c++17",
    "-O0", "-w", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-Ispec", dir.path .. "/k.cc", "-o", dir.path .. "/k", "-lm"}
  assert(code == 0, err .. out)
  out, err, code = support.exec({dir.path .. "/k"},
                                {stdin = table.concat(input)})
  assert(code == 0, ("the program ended with %s %s"):format(code, err))
  local results, at = {}, 1
  for i, run in ipairs(runs) do
    results[i] = {}
    for k, bytes in ipairs(run.args) do
      results[i][k] = out:sub(at, at + #bytes - 1)
      at = at + #bytes
    end
  end
  return results, err
end

return cudahost
-- SPDX-License-Identifier: MIT
