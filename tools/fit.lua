-- fit.lua [FILE] [--write] [--pack SET JOURNAL...]: fits the rule by which
-- ops.gemm chooses a configuration to measurements of `cutelua tune`
-- (docs/measured/gemm_choices.tsv).
--
--     cutelua tools/fit.lua            prints the rule's regret: how much
--                                      longer its choice takes than the best
--     cutelua tools/fit.lua --write    writes the constants with the least
--                                      regret, prints that of unseen products
--     cutelua tools/fit.lua --pack SET JOURNAL
--                                      adds the measurements of journals of the
--                                      tuner to FILE; their new products form a
--                                      set, whose regret is printed separately
--
-- fit.lua fits the constants of three models to all sets but "fresh". The
-- models are in kernels/gemm_sm90/constants.lua, kernels/gemm_skinny/model.lua
-- and lua/cute/ops/blocks.lua. --write puts the constants into these files. The
-- regret is the measured time of the rule's choice divided by the best measured
-- time. If the rule's choice was not measured, the configuration with the least
-- estimate among the measured ones takes its place.
local blocks = require "cute.ops.blocks"
local choose = require "cute.ops.choose"
local constants = require "kernels.gemm_sm90.constants"
local gemm = require "cute.ops.gemm"
local gemm_skinny = require "kernels.gemm_skinny"
local model = require "kernels.gemm_sm90.model"
local operands = require "cutelua.tune.operands"
local options = require "kernels.gemm_sm90.options"
local records = require "cutelua.tune.records"
local skinny = require "kernels.gemm_skinny.model"
local worker = require "cutelua.tune.worker"

local ROUNDS, FOLDS = 6, 5
local UNSEEN = "fresh"  -- set of products that is left out of the fit

-- Microseconds that the host and the GPU need between two launches. Differences
-- between shorter times mean nothing.
local FLOOR = 2.8

---------------------------------------------------------------------------
-- Measurements
---------------------------------------------------------------------------

-- Returns the time in microseconds of each configuration for a journal's
-- problem. The best configurations have long measurements. The other
-- configurations have only short measurements, which are multiplied by the
-- median ratio of long to short measurements.
local function times_of(known)
  local ratios, times = {}, {}
  for name, t in pairs(known.final) do
    local look = known.look[name]
    if look then ratios[#ratios + 1] = t[1] / look[1] end
  end
  table.sort(ratios)
  local ratio = ratios[(#ratios + 1) // 2] or 1
  for name, t in pairs(known.look) do times[name] = t[1] * ratio end
  for name, t in pairs(known.final) do times[name] = t[1] end
  for name in pairs(known.failed) do times[name] = nil end
  return times
end

local function sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local unpack_times

-- configurations slower than this multiple of the best time are dropped
local KEPT = 3

-- Returns the times of a problem's configurations that are kept in the file: at
-- most KEPT times the best time.
local function kept(times)
  local least, list = math.huge, {}
  for _, t in pairs(times) do least = math.min(least, t) end
  for name, t in pairs(times) do
    if t <= KEPT * least then list[name] = t end
  end
  return list
end

-- Merges new times of a problem into its earlier times. The new times are
-- scaled by the median ratio of the configurations that both lists contain. If
-- the lists share fewer than three configurations, returns only the new times.
local function joined(old, new)
  local ratios = {}
  for name, t in pairs(new) do
    local was = old and old[name]
    if was then ratios[#ratios + 1] = was / t end
  end
  if #ratios < 3 then return new end
  table.sort(ratios)
  local ratio = ratios[(#ratios + 1) // 2]
  for name, t in pairs(new) do old[name] = old[name] or t * ratio end
  return old
end

-- Writes a line for each problem: the problem, its set, and its times as
-- "NUMBER=MICROSECONDS". The head of the file lists the configuration of each
-- number. Problems of the file that are in no journal are kept.
local function pack(set, paths, file)
  local numbers, names = {}, {}
  local problems, sets, _, _, head = unpack_times(file)
  for _, path in ipairs(paths) do
    local r = assert(records.read(path))
    assert(not head or head == r.head, "journals of two cards")
    head = r.head
    for problem, known in pairs(r.known) do
      problems[problem] = joined(problems[problem], times_of(known))
      sets[problem] = sets[problem] or set
    end
  end
  for problem, times in pairs(problems) do
    problems[problem] = kept(times)
    for name in pairs(problems[problem]) do numbers[name] = true end
  end
  for i, name in ipairs(sorted(numbers)) do numbers[name], names[i] = i, name
  end
  local f <close> = assert(io.open(file, "wb"))
  f:write("# ", head, "\n# Microseconds of each choice, hot, by its number.\n")
  for i, name in ipairs(names) do f:write(("%d\t%s\n"):format(i, name)) end
  for _, problem in ipairs(sorted(problems)) do
    local words = {problem, sets[problem]}
    for _, name in ipairs(sorted(problems[problem])) do
      words[#words + 1] = ("%d=%.4g"):format(numbers[name],
                                             problems[problem][name])
    end
    f:write(table.concat(words, "\t"), "\n")
  end
end

-- Returns times[problem][configuration]; sets[problem]; the GPU's architecture
-- and number of SMs; and the file's head. All are empty if the file does not
-- exist.
function unpack_times(file)
  local names, times, sets, arch, sms, head = {}, {}, {}, nil, nil, nil
  local f <close> = io.open(file, "rb")
  for line in f and f:lines() or function() end do
    local number, name = line:match "^(%d+)\t(.+)$"
    head = head or line:match "^# (.-\tsm_%w+\t%d+)$"
    arch, sms = (head or ""):match "(sm_%w+)\t(%d+)$"
    if number then
      names[number] = name
    elseif line:sub(1, 1) ~= "#" then
      local problem, set, rest = line:match "^([^\t]+)\t(%w+)(.*)$"
      times[problem], sets[problem] = {}, set
      for n, t in rest:gmatch "(%d+)=(%S+)" do
        times[problem][names[n]] = tonumber(t)
      end
    end
  end
  return times, sets, arch, math.tointeger(tonumber(sms)), head
end

---------------------------------------------------------------------------
-- Predictions of the rule
---------------------------------------------------------------------------

-- Returns a function that returns the time of candidate c for problem p, in ns,
-- as the current rule predicts it.
local function predictor(p, c, sms)
  if c.family == "gemm_sm90" then
    local m, n, o = p.m, p.n, options.complete(c.options, true)
    if c.swap then m, n = n, m end
    local more = c.moved and c.moved.ns or 0
    return function() return model.time(o, m, n, p.k, sms) * 1e9 + more end
  elseif c.rate then
    return function()
      return blocks.time(p, c.tile, c.stages, c.rate, c.split)
    end
  elseif c.base == "gemm_skinny" then
    local plan = gemm_skinny(c.options).plan
    return function() return skinny.time(plan, 1, sms) * 1e9 end
  end
  local ns = c.ns
  return function() return ns end
end

-- Returns problems with their measured candidates: {problem, set, best, known =
-- the measured time of the rule's choice, or nil, {t = the measured time, ns =
-- a function that predicts the time, w = the candidate's weight}...}.
local function problems_of(times, sets, arch, sms)
  local device, list = worker.device(arch, sms), {}
  for _, problem in ipairs(sorted(times)) do
    local o = operands.without_memory(problem)
    local p, candidates = gemm.offers(o.A, o.B, {out = o.D, device = device,
                                                 tf32 = o.tf32})
    local x = {problem = problem, set = sets[problem], best = math.huge,
      known = times[problem][choose.name(candidates[1])]}
    for _, c in ipairs(candidates) do
      local t = times[problem][choose.name(c)]
      t = t and math.max(t, FLOOR)
      if t then
        x[#x + 1] = {t = t, ns = predictor(p, c, sms), name = choose.name(c)}
        x.best = math.min(x.best, t)
      end
    end
    for _, c in ipairs(x) do
      c.w = math.exp(-(c.t / x.best - 1) / 0.15) + 0.02
    end
    if #x > 1 then list[#list + 1] = x end
  end
  return list
end

-- Returns the measured time of the configuration with the least estimate,
-- divided by the best measured time. Also returns that configuration.
local function regret(x)
  local least, chosen = math.huge, nil
  for _, c in ipairs(x) do
    local ns = c.ns()
    if ns < least then least, chosen = ns, c end
  end
  return chosen.t / x.best, chosen
end

-- times that differ by less than this fraction count as equal
local CLOSE = 0.02

local WORST = 8  -- loss: weight of the errors of predicted times
-- loss: weight of the errors of predicted ratios between times
local TIMES = 0.3

-- loss: weight of how far a problem's mean ratio of predicted to measured time
-- is from 1
local ANCHOR = 0.1

-- Returns the loss that the fit minimizes. It is the sum of the smoothed
-- regret, of how much the ratio of predicted to measured time varies within a
-- problem (weight TIMES), and of how far a problem's mean ratio is from 1
-- (weight ANCHOR).
local function loss(list)
  local sum, off = 0, 0
  for _, x in ipairs(list) do
    local mean, weight, low = 0, 0, math.huge
    for _, c in ipairs(x) do
      c.log = math.log(c.ns() / 1000)
      mean, weight = mean + c.w * (c.log - math.log(c.t)), weight + c.w
      low = math.min(low, c.log)
    end
    mean = mean / weight
    local square, lost, all = 0, 0, 0
    for _, c in ipairs(x) do
      c.off = c.log - math.log(c.t) - mean
      square = square + c.w * c.off ^ 2
      local q = math.exp(-(c.log - low) / CLOSE)
      lost, all = lost + q * math.log(c.t / x.best), all + q
    end
    lost = lost / all
    sum = sum + lost + WORST * lost ^ 2
    off = off + square / weight + ANCHOR * mean ^ 2
  end
  return sum / #list + TIMES * math.sqrt(off / #list)
end

---------------------------------------------------------------------------
-- The fit
---------------------------------------------------------------------------

-- The constants that are fitted: {table, field, file, pattern of the text
-- before the number}.
local SM90, BLOCKS, SKINNY = "kernels/gemm_sm90/constants.lua",
  "lua/cute/ops/blocks.lua", "kernels/gemm_skinny/model.lua"
local fitted = {}
for name in ("fill missing crowd sent wait cut_fill latency hit uneven memory "
    .. "far l2 group steady launch first cluster second exchange dsmem leave "
    .. "part drain round alone"):gmatch "%S+" do
  fitted[#fitted + 1] = {constants, name, SM90, "  " .. name .. " = "}
end
for name in ("memory l2 near latency close share meet passed drain ask single "
    .. "far"):gmatch "%S+" do
  fitted[#fitted + 1] = {blocks.constants, name, BLOCKS, "  " .. name .. " = "}
end
for name in ("cluster latency hit ask run join each memory l2 beside")
  :gmatch "%S+" do
  fitted[#fitted + 1] = {skinny.constants, name, SKINNY, "  " .. name .. " = "}
end
for _, name in ipairs(sorted(blocks.constants.good)) do
  fitted[#fitted + 1] = {blocks.constants.good, name, BLOCKS,
                         ('%%["%s"%%] = '):format(name)}
end
for i = 1, 3 do
  fitted[#fitted + 1] = {constants.energy[16], i, SM90,
    "%[16%] = {" .. ("[^,}]+, "):rep(i - 1)}
end

for _, name in ipairs(sorted(constants.good)) do
  fitted[#fitted + 1] = {constants.good, name, SM90,
                         ('%%["%s"%%] = '):format(name)}
end

local function values()
  local list = {}
  for i, f in ipairs(fitted) do list[i] = f[1][f[2]] end
  return list
end

local function set(list)
  for i, f in ipairs(fitted) do f[1][f[2]] = list[i] end
end

-- loss: weight of the difference of a constant from its start value
local FAR = 0.0006

-- Returns a number in [0, 1) that depends on a text alone.
local function number_of(text)
  local x = 1
  for _, byte in ipairs {text:byte(1, -1)} do
    x = (x ~ byte) * 6364136223846793005 + 1442695040888963407
    x = x ~ x >> 29
  end
  return (x >> 11) / 2.0 ^ 53
end

-- Fits the constants to a list of problems, beginning with the values `start`.
-- Changes one constant after another by a step up or down, with smaller steps
-- in each round. The result is reproducible, and a new constant that no problem
-- needs does not change it.
local function fit(list, start)
  set(start)
  local far = 0
  local best, step = loss(list), 0.35
  for round = 1, ROUNDS do
    for i = 1, #fitted do
      local f = fitted[i]
      local was = f[1][f[2]]
      local was_far = math.log(was / start[i]) ^ 2
      for _, way in ipairs {1, -1} do
        local part = number_of(("%s %s %d %d"):format(f[3], f[2], round, way))
        local v = was * math.exp(way * step * (0.3 + part))
        f[1][f[2]] = v
        local now_far = far - was_far + math.log(v / start[i]) ^ 2
        local l = loss(list) + FAR * now_far
        if l < best then
          best, far = l, now_far
          break
        end
        f[1][f[2]] = was
      end
    end
    step = math.max(0.02, step * 0.8)
  end
  return values()
end

---------------------------------------------------------------------------

local function say(label, regrets)
  table.sort(regrets, function(a, b) return a[1] < b[1] end)
  local sum, n = 0, #regrets
  for _, r in ipairs(regrets) do sum = sum + math.log(r[1]) end
  local worst = regrets[n]
  print(("%-10s %d products: mean %.3f, median %.3f, 9 of 10 within %.3f, "
    .. "worst %.3f (%s, %s)"):format(label, n, math.exp(sum / n),
    regrets[(n + 1) // 2][1], regrets[math.ceil(0.9 * n)][1], worst[1],
    worst[2]:match "%d+ %d+ %d+$", worst[3]))
end

local function regrets_of(list, into)
  into = into or {}
  for _, x in ipairs(list) do
    local r, c = regret(x)
    into[#into + 1] = {r, x.problem, c.name}
  end
  return into
end

-- Cross-validates: returns the regret of each fifth of the problems for
-- constants that were fitted to the other four fifths.
local function held_out(list, start)
  local out = {}
  for fold = 0, FOLDS - 1 do
    local learn, ask = {}, {}
    for i, x in ipairs(list) do
      table.insert(i * 7 // 3 % FOLDS == fold and ask or learn, x)
    end
    fit(learn, start)
    regrets_of(ask, out)
  end
  return out
end

-- Returns a number as text, in the format of the files of constants.
local function text_of(v)
  if v >= 100 and v < 1e5 then return ("%.0f"):format(v) end
  return (("%.3g"):format(v):gsub("e%+", "e"):gsub("e(%-?)0", "e%1"))
end

local function write()
  for _, path in ipairs {SM90, BLOCKS, SKINNY} do
    local f = assert(io.open(path, "rb"))
    local text = f:read "a"
    f:close()
    for _, x in ipairs(fitted) do
      if x[3] == path then
        local number = text_of(x[1][x[2]])
        local n
        text, n = text:gsub("(" .. x[4] .. ")([%d.e-]+)(,?)( *)(%-?%-?)",
          function(before, was, comma, blanks, comment)
            -- keep a comment after the number in its column
            if comment ~= "" then
              blanks = (" "):rep(math.max(1, #was + #blanks - #number))
            end
            return before .. number .. comma .. blanks .. comment
          end, 1)
        assert(n == 1, path .. ": no " .. x[4])
      end
    end
    f = assert(io.open(path, "wb"))
    f:write(text)
    f:close()
  end
end

-- Prints the regret of the problems of each set.
local function say_sets(list)
  local sets = {}
  for _, x in ipairs(list) do
    sets[x.set] = sets[x.set] or {}
    table.insert(sets[x.set], x)
  end
  for _, name in ipairs(sorted(sets)) do
    say(name, regrets_of(sets[name]))
  end
end

local file, writes, journals = "docs/measured/gemm_choices.tsv", false, nil
for _, word in ipairs(arg) do
  if word == "--write" then writes = true
  elseif word == "--pack" then journals = {}
  elseif journals then journals[#journals + 1] = word
  else file = word end
end
if journals then
  return pack(table.remove(journals, 1), journals, file)
end
local list = problems_of(unpack_times(file))
say("the rule", regrets_of(list))
local unknown = 0
for _, x in ipairs(list) do unknown = unknown + (x.known and 0 or 1) end
print(("%-10s %d products, whose first choice was not measured"):format("",
  unknown))
say_sets(list)
if writes then
  local start = values()
  for i = #list, 1, -1 do
    if list[i].set == UNSEEN then table.remove(list, i) end
  end
  say("held out", held_out(list, start))
  set(fit(list, start))
  say("fitted", regrets_of(list))
  write()
end
-- SPDX-License-Identifier: MIT
