-- oracle.lua ARCH SCRIPT args...: each launch of the script runs directly, then through its own PTX.
local arch, script = arg[1], arg[2]
local core = require "cute.core"
local cute = require "cute"
local kernel = require "cute.lang.kernel"
local ptx = require "cute.ptx"
local Call = kernel.Call
local seen, n, bad = {}, 0, {}
local function buffers(call)
  local list = {}
  for i = 1, call.n do
    local t = call[i]
    if type(t) == "userdata" then
      local ok, b = pcall(function() return t.buffer or t.iterator.buffer end)
      if ok and b then list[#list+1] = b end
    end
  end
  return list
end
local compile, launch = Call.compile, Call.launch
local function values(call)
  return core.launch_values(call)
end
local function snap(vals)
  local out = {}
  for i, v in ipairs(vals) do
    if type(v[1]) == "userdata" and v[3] then
      local b = v[1]
      local c = core.buffer(b.dtype, #b)
      c:copy(b, 0, 0, #b)
      out[i] = c
    end
  end
  return out
end
local function restore(vals, s) for i, c in pairs(s) do vals[i][1]:copy(c, 0, 0, #c) end end
local function differ(vals, s)
  local d = 0
  for i, c in pairs(s) do
    local b = vals[i][1]
    for k = 0, #c - 1 do
      local x, y = b[k], c[k]
      if x ~= y and not (x ~= x and y ~= y) then d = d + 1 end
    end
  end
  return d
end
local function ptx_of(call, opts)
  local p = call:trace({block = opts.block, arch = arch, cluster = opts.cluster})
  local text, _, cname, options = p:cuda(arch)
  local out, why = core.jit_compile(text, (arch:gsub("^sm", "compute")), options)
  local ptext = out and (out.ptx or out.cubin)
  if not ptext or not ptext:find "%.version" then return nil, why end
  return ptext, p
end
local function twice(call, opts, first)
  local name = call.kernel.name
  local ptext, p = ptx_of(call, opts)
  local vals = values(call)
  local before = snap(vals)
  local r = table.pack(first())
  local keep = snap(vals)
  restore(vals, before)
  local t0 = os.clock()
  first()
  local t1 = os.clock()
  restore(vals, keep)
  if not ptext then print("NOPTX", name, p) return table.unpack(r, 1, r.n) end
  local direct = snap(vals)
  restore(vals, before)
  local good, err = pcall(function()
    local mod = ptx.ptx(ptext)
    local k = mod:kernel(core.ptx_entries(mod.module)[1], {smem = p.info.smem})
    k.is_ptx = true
    local given = {}
    for q, v in ipairs(vals) do
      if v.tma then given[q] = v.tma
      elseif type(v[1]) == "userdata" and v[3] then
        local orig = call[v.argument]
        local b = v[1]
        given[q] = cute.make_tensor(b, cute.make_layout(#b))
        if v[2] ~= 0 then given[q] = cute.make_tensor(b, cute.make_layout(#b)) io.write("OFFSET! ") end
      else
        given[q] = v[2]
      end
    end
    local c = k(table.unpack(given, 1, #given))
    local o = {}
    for key, v in pairs(opts) do o[key] = v end
    o.device = "sim:" .. arch; o.arch = nil
    assert(launch(c, o))
    local d = differ(vals, direct)
    restore(vals, before)
    local t2 = os.clock()
    assert(launch(c, o))
    local t3 = os.clock()
    local pi = c:trace({block = opts.block, cluster = opts.cluster})
    print(("%s %s differ %d  time %.3f vs %.3f ins %d vs %d"):format(d == 0 and "OK  " or "DIFF", name, d, t3 - t2, t1 - t0, pi.info.instructions, p.info.instructions))
    if d > 0 then restore(vals, direct) end
  end)
  if not good then print("FAIL", name, (tostring(err):gsub("\n.*", ""))) restore(vals, direct) end
  return table.unpack(r, 1, r.n)
end
function Call.launch(call, opts)
  if rawget(call.kernel, "is_ptx") then return launch(call, opts) end
  return twice(call, opts, function() return launch(call, opts) end)
end
function Call.compile(call, opts)
  local r, why = compile(call, opts)
  if not r or rawget(call.kernel, "is_ptx") then return r, why end
  local run = r.launch
  rawset(r, "launch", function(self, o)
    local all = {}
    for k, v in pairs(opts or {}) do all[k] = v end
    return twice(call, all, function() return run(self, o) end)
  end)
  return r, why
end
arg = table.move(arg, 3, #arg, 1, {[0] = script})
local f = assert(loadfile(script))
f(table.unpack(arg))
