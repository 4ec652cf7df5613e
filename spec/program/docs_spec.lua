-- Tests that the examples in the pages of docs/ give the results that the pages
-- show.
local core = require "cute.core"
local cute = require "cute"
local source = require "cute.lang.source"
local support = require "spec.support"

-- Returns the blocks of Lua in a page, each as {line number, lines of Lua,
-- texts}. A line `EXPR --> TEXT` becomes a call of `shown`, which records the
-- value of EXPR. texts[line number] has the lines of TEXT; further lines `-->
-- TEXT` continue it.
local function blocks(path)
  local list, number, block, text = {}, 0, nil, nil
  for line in io.lines(path) do
    number = number + 1
    if line:find "^```" then
      block = line == "```lua" and {number, {}, {}} or nil
      list[#list + 1] = block
    elseif block then
      local code, want = line:match "^(.-)%s*%-%-> ?(.*)$"
      if code == "" then
        table.insert(text, want)
        line = ""
      elseif code then
        text = {want ~= "" and want or nil}
        block[3][number] = text
        line = ("shown(%d, %s)"):format(number, code)
      end
      table.insert(block[2], line)
    end
  end
  return list
end

-- Defines one test per block. Each block runs as one chunk, "script.lua"; later
-- blocks see its globals.
local function check(path)
  local env = setmetatable({cute = cute}, {__index = _G})
  local got
  function env.shown(number, ...)
    local list = table.pack(...)
    for i = 1, list.n do list[i] = tostring(list[i]) end
    got[number] = table.concat(list, ", ")
  end
  for _, block in ipairs(blocks(path)) do
    it("line " .. block[1], function()
      got = {}
      local text = table.concat(block[2], "\n")
      source.add("=script.lua", text)
      assert(load(text, "=script.lua", "t", env))()
      for number, lines in pairs(block[3]) do
        assert.equal(table.concat(lines, "\n"), got[number],
          path .. ":" .. number)
      end
    end)
  end
end

-- Returns the code of a page's blocks, and the number of values that they show.
local function code_of(path)
  local text, count = {}, 0
  for _, block in ipairs(blocks(path)) do
    text[#text + 1] = table.concat(block[2], "\n")
    for _ in pairs(block[3]) do count = count + 1 end
  end
  return table.concat(text, "\n"), count
end

describe("docs/kernels.md", function()
  check "docs/kernels.md"

  it("has an example of every function of the language", function()
    local text, count = code_of "docs/kernels.md"
    assert.is_true(count > 20, count)
    for name in ([[kernel compile range when loop var where break_if
        return_if func
        print_tensor
        printf copy gemm make_smem_tensor make_rmem_tensor local_tile
        local_partition make_identity_tensor elem_less make_copy_atom
        make_tiled_copy make_tiled_mma arch.thread_idx arch.block_idx
        arch.sync_threads arch.shuffle_sync_down arch.vote_ballot_sync
        arch.atomic_add arch.fence_acq_rel_gpu arch.cp_async_commit_group
        arch.cp_async_wait_group arch.inline_ptx]]):gmatch "%S+" do
      assert.is_truthy(text:find("cute." .. name, 1, true), name)
    end
  end)
end)

describe("docs/data.md", function()
  check "docs/data.md"

  it("has an example or a word of every function", function()
    local page <close> = assert(io.open "docs/data.md")
    local text = page:read "a"
    for name in ([[rand randn randint manual_seed to clone copy_from fill
        stream event with_stream synchronize graph wait record done elapsed
        launch_n update memory trim pinned device]]):gmatch "%S+" do
      assert.is_truthy(text:find("%f[%w_]" .. name .. "%f[^%w_]"), name)
    end
  end)
end)

-- Runs a session at the prompt and compares its output. `…` stands for any text
-- or, alone on a line, for any lines.
local function check_session(session)
  local input, want = {}, {"^"}
  for said in session:gmatch "[^\n]+" do
    local typed = said:match "^>>? (.*)$"
    if typed then
      input[#input + 1] = typed .. "\n"
    elseif said == "…" then
      want[#want + 1] = ".-"
    else
      local plain = said:gsub("%p", "%%%0"):gsub("…", "[^\n]-")
      want[#want + 1] = plain .. "\n"
    end
  end
  local out, err = support.run({}, {stdin = table.concat(input)})
  assert.equal("", err)
  assert.is_truthy(out:find(table.concat(want) .. "$"), out)
end

describe("docs/prompt.md", function()
  for session in support.read "docs/prompt.md":gmatch "```console\n(.-)```" do
    it("session " .. session:match "[^\n]*", function()
      check_session(session)
    end)
  end
end)

describe("examples with their output", function()
  local examples = dofile "tools/examples.lua"
  for _, path in ipairs {"README.md", "docs/architecture.md"} do
    it("of " .. path .. " are current (make docs)", function()
      local text = support.read(path)
      assert.is_truthy(text:find("<!-- output: cutelua", 1, true))
      assert.equal(text, examples.filled(text, support.program))
    end)
  end

  it("of the pictures of README.md are current (make docs)", function()
    local figures = dofile "tools/figures.lua"
    local race = figures.race(support.program)
    assert.is_truthy(race:find("[race]", 1, true), race)
    assert.equal(support.read "docs/race.svg", race)
    assert.equal(support.read "docs/pipeline.svg", figures.pipeline())
  end)
end)

describe("docs/blackwell.md", function() check "docs/blackwell.md" end)
describe("docs/simulator.md", function() check "docs/simulator.md" end)

describe("docs/profile.md", function() check "docs/profile.md" end)
describe("docs/pictures.md", function() check "docs/pictures.md" end)
describe("docs/estimate.md", function() check "docs/estimate.md" end)
describe("docs/timeline.md", function() check "docs/timeline.md" end)
describe("docs/debugging.md", function() check "docs/debugging.md" end)
describe("docs/cache.md", function() check "docs/cache.md" end)

-- Returns the names between backticks in a text, with their counts.
local function names_in(text)
  local names = {}
  for name in text:gmatch "`([%l%d_]+)`" do
    names[name] = (names[name] or 0) + 1
  end
  return names
end

-- Returns the names of a set, sorted.
local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

describe("docs/ops.md", function()
  describe("examples #long", function() check "docs/ops.md" end)

  local page = support.read "docs/ops.md"
  local OPTIONS = require "cute.ops.gemm".OPTIONS

  -- Returns the first column of the table that begins with the line `head`.
  local function column(head)
    local rows = page:match(head .. "\n|[-|]+\n(.-)\n\n")
    return rows:gsub("[^\n]+", function(row) return row:match "^| (.-) | " end)
  end

  it("has a row of every option of gemm, and of no other", function()
    local told = names_in(column "| option | type | default | |")
    assert.same(sorted(OPTIONS), sorted(told))
    for name, n in pairs(told) do assert.equal(1, n, name) end
  end)

  it("lists the options that grouped_gemm lacks and adds", function()
    local less, more = page:gsub("\n", " "):match("The options are those of "
      .. "`ops.gemm` except (.-)%. The additional option (`[%l_]+`)")
    local want = names_in(more)
    for name in pairs(OPTIONS) do want[name] = 1 end
    for name in pairs(names_in(less)) do want[name] = nil end
    assert.same(sorted(require "cute.ops.grouped".OPTIONS), sorted(want))
  end)

  it("has an epilogue's coordinates, and every reduction", function()
    local told = {}
    for name in column("| function | result |"):gmatch "`at:([%l_]+)" do
      told[name] = true
    end
    local there = {}
    for name in support.read "lua/cute/ops/epilogue_function.lua":gmatch
      "\nfunction At:([%l_]+)" do
      there[name] = true
    end
    assert.same(sorted(there), sorted(told))
    told = {argmax = true, argmin = true}
    for name in pairs(require "kernels.reduce_tensor".OPS) do
      told[name] = true
    end
    there = {}
    for name in column("| op | result |"):gmatch "%l+" do there[name] = true end
    assert.same(sorted(told), sorted(there))
  end)
end)

describe("docs/tuning.md", function()
  check "docs/tuning.md"

  it("has a word of every option", function()
    local page, out = support.read "docs/tuning.md",
      support.run {"tune", "--help"}
    local count = 0
    for name in out:gmatch "%-%-[%l-]+" do
      count = count + 1
      assert.is_truthy(name == "--help" or page:find(name, 1, true), name)
    end
    assert.is_true(count > 15, out)
  end)
end)

describe("docs/library.md", function()
  check "docs/library.md"

  it("names every kernel", function()
    local page <close> = assert(io.open "docs/library.md")
    local text = page:read "a"
    local list <close> = io.popen "ls kernels/*.lua"
    local shared = {copytile = true, flash = true, groups = true, kept = true,
                    rows = true, l2_priority = true,
                    multiblock_rows = true, operand_rules = true,
                    splitk_reduce = true, splitk_skinny = true}
    for path in list:lines() do
      local name = path:match "([%w_]+)%.lua$"
      assert.is_true(shared[name]
        or text:find("`" .. name .. "`", 1, true) ~= nil, name)
    end
  end)
end)

describe("docs/layouts.md", function()
  check "docs/layouts.md"

  it("has an example of every function", function()
    local text, count = code_of "docs/layouts.md"
    assert.is_true(count > 120, count)
    for name in ([[make_layout make_ordered_layout make_layout_like
        make_fragment_like make_identity_layout make_composed_layout
        make_layout_tv make_layout_image_mask size rank depth shape stride
        cosize coshape max_alignment get_swizzle_portion is_static
        get_nonswizzle_portion get_divisibility crd2idx get_hier_coord
        get_flat_coord get_1d_coord slice_ dice slice_and_offset
        domain_offset coalesce filter right_inverse left_inverse nullspace
        complement with_shape max_common_layout max_common_vector
        domain_distribute composition logical_divide zipped_divide
        tiled_divide flat_divide logical_product zipped_product
        tiled_product flat_product tile_unzip blocked_product raked_product
        tile_to_shape ceil_div upcast downcast recast_layout get select take
        group group_modes flatten unflatten append prepend replace zip
        filter_zeros flatten_to_tuple product_each product_like wrap unwrap
        reverse make_basis_like sum min max gcd front back remove insert
        repeat_like repeat_as_tuple tuple_cat get_leaves find shape_div
        round_up elem_scale inner_product increment_coord congruent
        weakly_congruent compatible weakly_compatible evenly_divides
        has_underscore is_integer is_int_tuple lex_less colex_less elem_less
        idx2crd crd2crd compact_col_major compact_row_major compact_order
        is_major leading_dim make_swizzle E basis_value basis_get layout
        transform_leaf find_if filter_tuple pretty_str size_in_bytes assume
        make_tensor make_identity_tensor local_tile local_partition
        inner_partition outer_partition recast_tensor zeros ones_like
        zeros_like full_like ScaledBasis ArithmeticTuple]])
        :gmatch "%S+" do
      assert.is_truthy(text:find("cute." .. name .. "[ (]"), name)
    end
  end)
end)

-- Pages for users of other tools have tables with two columns: names of the
-- other tool, and the corresponding names of cutelua.
describe("docs/from-*.md", function()
  local doc = require "cutelua.doc.names"
  local atoms = {}
  for _, kind in ipairs {"mma", "copy"} do
    local i = 0
    for name in function() i = i + 1 return core.atom_name(kind, i - 1) end do
      atoms[name:match "^[^<,]*"] = true
    end
  end

  for _, from in ipairs {"cuda", "cute-cpp", "python-dsl", "triton"} do
    local path = "docs/from-" .. from .. ".md"
    check(path)

    it("of " .. from .. " name what there is", function()
      local n = 0
      for row in support.read(path):gmatch "\n(|[^\n]*)" do
        local ours = row:match "^| .- | (.*) |$" or ""
        for span in ours:gmatch "`([^`]+)`" do
          local text = span:gsub('"[^"]*"', '""')
          for name in text:gmatch "%f[%w]cute%.[%w_.]+" do
            n = n + 1
            assert.is_truthy(doc.find(name), name)
          end
          for name in text:gmatch "^%l%l[%l_]+:[%a_]+" do
            n = n + 1
            assert.is_truthy(name:find "^at:" or doc.find(name), name)
          end
          for name in span:gmatch '"(SM%d[%w_]+)"' do
            assert.is_true(atoms[name], name)
          end
        end
      end
      assert.is_true(n > 35, n)
    end)
  end

  it("of python-dsl lists what is missing, and nothing else", function()
    local names, said = require "spec.program.names", {}
    local table_ = support.read "docs/from-python-dsl.md"
      :match "\n## Missing features\n(.*)"
    for cell in table_:gmatch "\n| (`[^|]*) |" do
      for name in cell:gmatch "`([^`]+)`" do
        said[name] = true
        local space, last = name:match "^(.*)%.([^.]+)$"
        assert.is_nil(names.find(space, last), name)
      end
    end
    for name in pairs(names.LEFT_OUT) do
      assert.is_true(said[name], name .. " is not said to be missing")
    end
  end)
end)

describe("annotations", function()
  it("are of functions that exist, and of nearly all of them", function()
    local n = 0
    local own = {Layout = cute.make_layout(8),
                 Tensor = cute.zeros({8}, cute.f32)}
    cute.kernel("k", function()
      local v, methods = cute.full(8, 0, cute.f32), {}
      for _, name in ipairs {"to", "bitcast", "reduce", "broadcast_to",
                             "reshape", "eq", "ne", "lt", "le", "gt", "ge"} do
        methods[name] = v[name]
      end
      own.Vector = methods
    end)():trace {block = 1}
    for _, file in ipairs {"layout", "tile", "tuple", "tensor"} do
      for line in io.lines("lua/cute/meta/" .. file .. ".lua") do
        local name = line:match "^function cute%.([%w_]+)%("
        if name then
          n = n + 1
          assert.equal("function", type(cute[name]), name)
        end
        local class, method = line:match "^(%u%a+)%.([%w_]+) ="
        if not class then
          class, method = line:match "^function (%u%a+):([%w_]+)"
        end
        if method and own[class] then
          assert.is_truthy(own[class][method], method)
        end
      end
    end
    assert.is_true(n > 140, n)
  end)
end)
-- SPDX-License-Identifier: MIT
