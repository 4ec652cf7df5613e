-- Tests kernels of CUDA C that call device functions, or that use cooperative
-- groups, libcu++ and CUB. NVRTC compiles them, and the simulator runs them.
local core = require "cute.core"
local cute = require "cute"
local list = require "spec.ptx.language"

local TOOLKIT = "/usr/local/cuda/include"

local function has_headers()
  local f = io.open(TOOLKIT .. "/cccl/cuda/barrier")
  return f and f:close()
end

-- Returns one text with the kernels of all entries of a kind, because
-- compiling their headers takes long. Each entry has its own namespace, and
-- its kernel has the entry's name. The text for sm_80 also has the kernels of
-- list.faults.
local function text_of(kind, arch)
  local includes, seen, parts = {}, {}, {}
  local all = table.move(list, 1, #list, 1, {})
  if arch == "sm_80" then
    table.move(list.faults, 1, #list.faults, #all + 1, all)
  end
  for _, k in ipairs(all) do
    if k.toolkit == kind and (not k.arch or k.arch == arch) then
      local text = k.text:gsub("#include [^\n]*\n", function(line)
        if not seen[line] then includes[#includes + 1] = line end
        seen[line] = true
        return ""
      end)
      parts[#parts + 1] = ("namespace %s {\n%s\n}\n"):format(k.name,
        text:gsub("void k%(", "void " .. k.name .. "_k("))
    end
  end
  return (kind == "cub" and list.cub or "") .. table.concat(includes)
    .. table.concat(parts)
end

local modules = {}

-- Returns the kernel of entry k, and the text of its module.
local function compile(k, arch)
  local key = ("%s %s"):format(k.toolkit, arch)
  local m = modules[key]
  if not m then
    local text = text_of(k.toolkit, arch)
    m = {text = text, module = cute.cuda(text, {arch = arch,
      options = {"--std=c++17"},
      include = k.toolkit and {TOOLKIT, TOOLKIT .. "/cccl"} or nil})}
    modules[key] = m
  end
  return m.module:kernel(k.name .. "_k"), m.text
end

-- Runs entry k on a problem of size n. Returns the call and its launch.
local function launch(k, kernel, n, seed)
  local args, wrong = k.make(n)
  local options = {grid = k.one and 1 or (n + 63) // 64, block = 64,
    cooperative = k.cooperative, device = "sim:sm_90a", seed = seed}
  local call = kernel(table.unpack(args))
  call:launch(options)
  assert.is_nil(wrong())
  return call, options
end

describe("a fault in CUDA C that uses the toolkit's headers", function()
  for _, k in ipairs(list.faults) do
    it(("is reported with its line: %s #long"):format(k.name), function()
      if not core.jit_compile("", "compute_80") or not has_headers() then
        pending "needs NVRTC and the CUDA toolkit's headers"
        return
      end
      local kernel, text = compile(k, "sm_80")
      local call = kernel(table.unpack((k.make(130))))
      local ok, why = pcall(call.launch, call, {grid = k.one and 1 or 3,
        block = 64, cooperative = k.cooperative, device = "sim:sm_90a"})
      assert.is_false(ok)
      local lines = {}
      for line in text:gmatch "([^\n]*)\n" do
        lines[#lines + 1] = line
      end
      for at in tostring(why):gmatch "k%.cu:(%d+):" do
        if lines[tonumber(at)]:find(k.line, 1, true) then return end
      end
      error(why)
    end)
  end
end)

describe("a grid of cooperative groups", function()
  it("cannot synchronise without a cooperative launch #long", function()
    local module = core.jit_compile("", "compute_80")
    if not module or not has_headers() then
      pending "needs NVRTC and the CUDA toolkit's headers"
      return
    end
    for _, k in ipairs(list) do
      if k.cooperative then
        local kernel = compile(k, "sm_90a")
        for _, cooperative in ipairs {true, false, true} do
          local call = kernel(table.unpack((k.make(130))))
          local ok, why = pcall(call.launch, call, {grid = 3, block = 64,
            cooperative = cooperative, device = "sim:sm_90a"})
          assert.equal(cooperative, ok)
          if not ok then assert.matches("k.cu:%d+: .*trap", tostring(why)) end
        end
        -- Blocks of this kernel poll an address that they compute; the check
        -- must still end.
        local verdict = kernel(table.unpack((k.make(65)))):check {grid = 2,
          block = 64, cooperative = true, device = "sim:sm_90a"}
        assert.equal("ok", verdict.verdict, tostring(verdict))
      end
    end
  end)
end)

describe("the language of CUDA C", function()
  local module, why = core.jit_compile("", "compute_80")
  if not module and tostring(why):find "no%-nvrtc" then
    pending "needs NVRTC"
    return
  end
  for _, k in ipairs(list) do
    for _, arch in ipairs(k.arch and {k.arch} or {"sm_80", "sm_90a"}) do
      it(("computes %s for %s%s"):format(k.name, arch,
         -- NVRTC takes seconds for the headers of the toolkit.
         arch == "sm_80" and not k.toolkit and "" or " #long"),
         function()
        if k.toolkit and not has_headers() then
          pending "needs the CUDA toolkit's headers"
          return
        end
        local kernel = compile(k, arch)
        for _, n in ipairs {1, 65, 200} do launch(k, kernel, n, n) end
      end)
    end

    it(("finds nothing wrong in schedules of %s #long"):format(k.name),
      function()
        if k.toolkit and not has_headers() then
          pending "needs the CUDA toolkit's headers"
          return
        end
        local kernel = compile(k, "sm_90a")
        for seed = 1, 4 do launch(k, kernel, 130, seed) end
        local _, options = launch(k, kernel, 130)
        options.orders, options.seconds = 25, 2
        local verdict = kernel(table.unpack((k.make(130)))):check(options)
        assert.is_true(verdict.verdict == "ok"
          or verdict.verdict == "incomplete", tostring(verdict))
      end)
  end
end)
-- SPDX-License-Identifier: MIT
