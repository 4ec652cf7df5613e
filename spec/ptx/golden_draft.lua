local core = require "cute.core"
local cute = require "cute"
local json = require "cute.json"
local ptx = require "cute.ptx"
local W = {pred = 32}
local function width(t) return t == "pred" and 32 or math.max(tonumber(t:match "%d+$" or t:match "^%a+(%d+)"), 8) end
local function regbits(t) local n = tonumber(t:match "^%a+(%d+)") or 32 if t:match "x2$" then n = n * 2 end if n == 8 then n = 32 end return n end
local only = arg[2]
local stat = {ok = 0, cases = 0, reject = {}, differ = {}, nrej = 0, ndif = 0}
local function text_of(v)
  local t = {".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pmem)\n{\n"}
  local function p(...) t[#t+1] = string.format(...) .. "\n" end
  p ".shared .align 16 .b8 smem[4096];"
  for i, ty in ipairs(v["in"]) do p(ty == "pred" and ".reg .pred a%d;" or ".reg .b%d a%d;", ty == "pred" and i-1 or regbits(ty), i-1) end
  for i, ty in ipairs(v.out) do p(ty == "pred" and ".reg .pred d%d;" or ".reg .b%d d%d;", ty == "pred" and i-1 or regbits(ty), i-1) end
  return t, p
end
local function module(v, ncases)
  local t, p = text_of(v)
  local nin, nout = #v["in"], #v.out
  p ".reg .b64 qi, qo, qm, m, qx; .reg .b32 tt, cc, ww, sm, s0; .reg .pred pp, there;"
  p "ld.param.u64 qi, [pin]; ld.param.u64 qo, [pout]; ld.param.u64 qm, [pmem];"
  p "mov.u32 tt, %%tid.x; mov.u32 cc, %%ctaid.x; mov.u32 ww, %%ntid.x; mad.lo.u32 cc, cc, ww, tt;"
  p("mul.wide.u32 m, cc, %d; add.s64 qi, qi, m;", (nin + 1) * 8)
  p("mul.wide.u32 m, cc, %d; add.s64 qo, qo, m;", nout * 8)
  p "mul.wide.u32 m, cc, 256; add.s64 qm, qm, m;"
  local body = v.text
  local shared = body:find "shared"
  local mem = v.memory
  local first = 0
  if mem then
    first = mem[1]
    if v.kind == "memory" and not (v.warp) then end
  end
  for i, ty in ipairs(v["in"]) do
    if ty == "pred" then p("ld.global.b32 s0, [qi+%d]; setp.ne.b32 a%d, s0, 0;", (i-1)*8, i-1)
    else p("ld.global.b%d a%d, [qi+%d];", regbits(ty), i-1, (i-1)*8) end
  end
  p("ld.global.b32 s0, [qi+%d]; setp.ne.b32 there, s0, 0;", nin * 8)
  if mem then
    if mem[2] == 0 then p "mov.b64 m, qi;" p "mov.b64 qx, qi;"
      body = body:gsub("%[m", "[qx"):gsub("%[a([%]%+])", "[qx%1")
    elseif shared then
      p "mul.lo.u32 sm, tt, 64; mov.u32 s0, smem; add.u32 sm, sm, s0;"
      local off = 0
      for i = 1, mem[1] do local b = regbits(v["in"][i]); local ty = v["in"][i]:match "8$" and 8 or b; p("st.shared.b%d [sm+%d], a%d;", ty, off, i-1); off = off + ty//8 end
      body = body:gsub("%[m", "[sm")
    else
      local off = 0
      for i = 1, mem[1] do local b = regbits(v["in"][i]); local ty = v["in"][i]:match "8$" and 8 or b; p("st.global.b%d [qm+%d], a%d;", ty, off, i-1); off = off + ty//8 end
      body = body:gsub("%[m", "[qm")
    end
  end
  if v.kind == "warp" then p "@!there bra OUT;" end
  p("{ %s }", (body:gsub("%%", "%%%%")))
  if mem and mem[2] > 0 then
    local off = 0
    for i = nout - mem[2] + 1, nout do local ty = v.out[i]; local b = ty:match "8$" and 8 or regbits(ty)
      p("ld.%s.b%d d%d, [%s+%d];", shared and "shared" or "global", b, i-1, shared and "sm" or "qm", off); off = off + b//8 end
  end
  for i, ty in ipairs(v.out) do
    if ty == "pred" then p("selp.b32 s0, 1, 0, d%d; st.global.b32 [qo+%d], s0;", i-1, (i-1)*8)
    else p("st.global.b%d [qo+%d], d%d;", regbits(ty), (i-1)*8, i-1) end
  end
  p "OUT: ret;\n}"
  return table.concat(t)
end
local function run(v)
  local n = #v.cases
  local nin, nout = #v["in"], #v.out
  local lanes = v.kind == "warp" and 32 or 1
  local total = n * lanes
  local I = cute.zeros({total * (nin + 1)}, cute.u64)
  local O = cute.zeros({total * nout}, cute.u64)
  local M = cute.zeros({total * 32}, cute.u64)
  local function word(x) return math.tointeger(tonumber(x, 16)) or 0 end
  local function hex(x) local v = 0 for c in x:gmatch "." do v = v << 4 | tonumber(c, 16) end return v end
  for c, case in ipairs(v.cases) do
    for l = 0, lanes - 1 do
      local at = ((c - 1) * lanes + l)
      for k = 1, nin do
        local x = case[k]; if type(x) == "table" then x = x[l + 1] end
        if type(x) == "number" then x = tostring(x) end
        I[at * (nin + 1) + k - 1] = type(x) == "string" and hex(x) or 0
      end
      local there = 1
      for k = 1, nout do local r = v.results[c][k]; if type(r) == "table" and (r[l+1] == nil or r[l+1] == json.null) then there = 0 end end
      I[at * (nin + 1) + nin] = there
    end
  end
  local text = module(v, n)
  if arg[3] == "text" then print(text) end
  local k = ptx.ptx(text):kernel "k"
  local block = v.kind == "warp" and 32 or math.min(n, v.text:find "shared" and 32 or 128)
  local grid = v.kind == "warp" and n or (n + block - 1) // block
  if v.kind ~= "warp" then while n % block ~= 0 do block = block - 1 end grid = n // block end
  k(I, O, M):launch {grid = grid, block = block, device = "sim:sm_90a"}
  local wrong
  for c = 1, n do
    for l = 0, lanes - 1 do
      for kk = 1, nout do
        local r = v.results[c][kk]; if type(r) == "table" then r = r[l + 1] end
        if r ~= nil and r ~= json.null then
          local want = hex(tostring(r))
          local got = O[((c - 1) * lanes + l) * nout + kk - 1]
          stat.cases = stat.cases + 1
          if got ~= want and not wrong then wrong = ("case %d lane %d out %d: in %s want %x got %x"):format(c, l, kk, type(v.cases[c][1]) == "table" and "..." or table.concat(v.cases[c], " "), want, got) end
        end
      end
    end
  end
  return wrong
end
for line in io.lines(arg[1]) do
  local v = json.decode(line)
  if not only or only == "" or v.op == only then
    local ok, e = pcall(run, v)
    if not ok then stat.nrej = stat.nrej + 1 local m = tostring(e):match "[^\n]*" m = m:gsub("^.-line %d+: ", "") stat.reject[#stat.reject+1] = v.op .. "   " .. v.text:sub(1, 60) .. "   " .. m:sub(1, 100)
    elseif e then stat.ndif = stat.ndif + 1 stat.differ[#stat.differ+1] = v.op .. "   " .. e
    else stat.ok = stat.ok + 1 end
  end
end
print(arg[1]:match "[^/]*$", "ok", stat.ok, "differ", stat.ndif, "rejected", stat.nrej, "cases", stat.cases)
if arg[3] ~= "quiet" then
for _, s in ipairs(stat.differ) do print("DIFF", s) end
for i, s in ipairs(stat.reject) do print("REJ", s) end
end
