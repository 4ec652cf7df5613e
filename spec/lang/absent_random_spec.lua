-- Tests random loops, branches and helpers that assign Lua values, such as
-- strings or tables, to variables, fields and lists. Each program runs as a
-- kernel of 8 threads on the simulator, and in plain Lua, thread by thread. The
-- kernel may raise an error, but must not give another result. CUTELUA_SEEDS is
-- the number of programs.
local absent = require "spec.absent"
local support = require "spec.support"

describe("values that random loops and branches give to nil variables",
  function()
    local most = tonumber(os.getenv "CUTELUA_SEEDS") or 400
    local STEP = math.max(50, most // 10)
    for first = 1, most, STEP do
      it(("are each thread's own, or an error, seeds from %d"):format(first)
         .. support.long(first),
        function()
          local counts = {same = 0, error = 0, skipped = 0}
          local last = math.min(first + STEP - 1, most)
          for seed = first, last do
            local verdict, a, b = absent.compare(seed)
            if verdict == "different" then
              assert.same(a, b, ("seed %d\n%s"):format(seed,
                absent.kernel(absent.program(seed))))
            end
            counts[verdict] = counts[verdict] + 1
            -- The error must have a kind and must not be one of Lua's own.
            if verdict == "error" then
              assert.matches("%[%l[%l%-]+%]", a)
              assert.is_nil(a:find("attempt to", 1, true), a)
            end
          end
          -- If many programs fail to trace, the test compares too little.
          assert.is_true(counts.same * 3 >= last - first + 1)
          assert.is_true(counts.skipped * 20 <= last - first + 1)
        end)
    end
  end)
-- SPDX-License-Identifier: MIT
