--- PTX of our own kernels as text, and random changes of it.
local core = require "cute.core"
local graphs = require "spec.ptx.graphs"
local kernels = require "spec.ptx.kernels"

local texts = {}

-- Adds the texts in the files of spec/ptx/.
local function of_specs(add)
  local p <close> = io.popen "ls spec/ptx/*.lua"
  for path in p:lines() do
    local f <close> = assert(io.open(path, "rb"))
    local n = 0
    for text in f:read "a":gmatch "%.version.-\n}\n" do
      n = n + 1
      add(("%s.%d"):format(path:gsub("/", "-"), n), text)
    end
  end
  for i = 1, 20 do
    math.randomseed(i)
    add("graph" .. i, graphs.ptx(graphs.random(function(n)
      return math.random(0, n - 1)
    end, 6)))
  end
end

-- Adds the kernels of spec/ptx/kernels.lua, if there is NVRTC.
local function of_kernels(add)
  for _, k in ipairs(kernels) do
    local source = ("%s\nextern \"C\" __global__ void %s(%s) {\n%s\n}\n")
      :format(k.structure or "", k.name, k.params, k.text)
    local made = core.jit_compile(source, "compute_90a",
                                  {"-lineinfo", "-default-device"})
    if not made then return end
    add(k.name, made.ptx or made.cubin)
  end
end

--- Calls add(name, text) for each text.
---@param add fun(name: string, text: string)
function texts.each(add)
  of_specs(add)
  of_kernels(add)
end

local function words_of(text)
  local list = {}
  for at, word in text:gmatch "()([%w_%%$.]+)" do
    list[#list + 1] = {at, at + #word - 1}
  end
  return list
end

-- Replaces a random span of the text by the contents of another random span.
local function exchange(text, spans)
  if #spans == 0 then return text end
  local to, from = spans[math.random(#spans)], spans[math.random(#spans)]
  local new = text:sub(from[1], from[2])
  local how = math.random(5)
  if how == 1 then new = "" end
  if how == 2 then new = text:sub(to[1], to[2]) .. " " .. new end
  return text:sub(1, to[1] - 1) .. new .. text:sub(to[2] + 1)
end

--- Returns a text with one random change: it is cut off, or tokens or lines of
-- it are exchanged, removed or repeated.
---@param text string
---@return string
function texts.changed(text)
  local how = math.random(10)
  if how == 1 then return text:sub(1, math.random(#text)) end
  if how <= 7 then return exchange(text, words_of(text)) end
  local lines = {}
  for from, to in text:gmatch "()[^\n]*\n()" do
    lines[#lines + 1] = {from, to - 1}
  end
  return exchange(text, lines)
end

return texts
-- SPDX-License-Identifier: MIT
