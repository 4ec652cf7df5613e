-- Tests drawings of layouts. The cells of every output format must be the same,
-- and must have the layout's values.
local cute = require "cute"
local page = require "cutelua.draw.html"
local pictures = require "cutelua.draw"
local support = require "spec.support"
local raises = support.raises
local L = cute.layout

-- Readers of drawings: read.FORMAT(x, opts) draws x in that format. It returns
-- for each panel a table of labels by "row,column".
local read = {}

-- Draws x as text without colours, and reads the labels from the text. Each
-- line of the text begins with the name of its row.
function read.text(x, opts)
  local panels, names, now = {}, nil, nil
  local text = cute.draw(x, opts)
  for line in text:gmatch "[^\n]+" do
    if line:find "^    +[%d ]+ $" then  -- the line of column numbers
      local again = now and not line:find "^ +0 "
      names = {}
      for name in line:gmatch "%d+" do names[#names + 1] = name end
      if not again then
        now = {}
        panels[#panels + 1] = now
      end
    elseif names and line:find "^ *%d+  " then
      local row, rest = line:match "^ *(%d+)  (.*)$"
      if not rest:find "|" then rest = rest:gsub("  +", "|") end
      local n = 0
      for cell in rest:gmatch "[^|]+" do
        local label = cell:match "^%s*(.-)%s*$"
        if label ~= "" and label ~= "." then
          now[row .. "," .. names[n + 1]] = label
        end
        n = n + 1
      end
    end
  end
  return panels
end

function read.svg(x, opts)
  local panels = {}
  local text = cute.draw(x, opts)
  for body in text:gmatch '<g class="cells">(.-)<rect class="frame' do
    local now = {}
    panels[#panels + 1] = now
    for title, rest in body:gmatch "<g><title>(.-)</title>(.-)</g>" do
      local words = {}
      for word in rest:gmatch "<text[^>]*>(.-)</text>" do
        words[#words + 1] = word
      end
      now[title:match "%((%d+,%d+)%)"] = table.concat(words, " ")
    end
  end
  return panels
end

-- Reads a LaTeX drawing. A panel's grid is drawn after its cells, and the
-- positions of the cells are relative to the grid's corner.
function read.latex(x, opts)
  local panels, cells = {}, {}
  for line in cute.draw(x, opts):gmatch "[^\n]+" do
    local m, n, label = line:match "^\\node%S* at %((.-),(.-)%) {(.*)};"
    if label and label:find "^\\Large" then m = nil end
    local m0, n0 = line:match "\\draw.- %((%-?%d+),(%-?%d+)%) grid"
    if m then
      cells[#cells + 1] = {m, n, (label:gsub("\\shortstack{(.*)}", "%1")
        :gsub(" \\\\ ", " "))}
    elseif m0 then
      local now = {}
      for _, c in ipairs(cells) do
        now[("%d,%d"):format(c[1] - m0, c[2] - n0)] = c[3]
      end
      panels[#panels + 1], cells = now, {}
    end
  end
  return panels
end

function read.html(x, opts)
  local panels = {}
  for i, p in ipairs(page.data(pictures.picture(x, opts)).panels) do
    panels[i] = {}
    for k, label in ipairs(p.label) do
      local at = ("%d,%d"):format((k - 1) // p.columns, (k - 1) % p.columns)
      panels[i][at] = label or nil
    end
  end
  return panels
end

-- Checks that drawings of x in all four formats have the expected labels:
-- want[panel]["m,n"] is the label of the cell in row m and column n.
local function all_forms(want, x, opts)
  for _, form in ipairs {"text", "svg", "latex", "html"} do
    local own = {as = form}
    for k, v in pairs(opts or {}) do own[k] = v end
    assert.same(want, read[form](x, own), form .. " of " .. tostring(x))
  end
end

local function grid(rows, columns, f)
  local want = {}
  for m = 0, rows - 1 do
    for n = 0, columns - 1 do
      local v = f(m, n)
      want[("%d,%d"):format(m, n)] = v and tostring(v)
    end
  end
  return want
end

describe("a picture of a layout", function()
  it("has the offset of each coordinate, in all forms", function()
    for _, text in ipairs {"(4,8):(8,1)", "((2,4),(3,2)):((1,6),(2,24))",
        "(5,3):(-1,7)", "Sw<2,1,3> o 0 o (8,8):(8,1)",
        "Sw<3,3,3> o 64 o (4,(8,2)):(64,(1,8))", "(24,16):(1,24)"} do
      local l = L(text)
      all_forms({grid(cute.size(l, 0), cute.size(l, 1), l)}, l)
    end
    all_forms({grid(1, 6, function(_, n) return 3 * n end)}, L "6:3")
    all_forms({grid(2, 3, function(m, n) return m + 2 * n end),
               grid(2, 3, function(m, n) return 6 + m + 2 * n end)},
              L "(2,3,2):(1,2,6)")
    all_forms({grid(2, 2, L "(2,2):(1@0,1@1)")}, L "(2,2):(1@0,1@1)")
  end)

  it("has other labels, and none", function()
    local l = L "(4,16):(16,1)"
    all_forms({grid(4, 16, function(m, n)
      return l(m, n) * 16 // 32 % 32
    end)}, l, {labels = "bank", dtype = "f16"})
    all_forms({grid(4, 16, function(m, n) return ("(%d,%d)"):format(m, n) end)},
      l, {labels = "coord"})
    all_forms({grid(4, 16, function(m, n)
      return ("%d B%d"):format(l(m, n), l(m, n) % 32)
    end)}, l, {labels = {"offset", "bank"}, dtype = cute.f32})
    local svg = cute.draw(l, {as = "svg", labels = false})
    assert.is_nil(svg:match('class="cells">.*'):find "<text x=")
  end)

  it("has a colour by offset, or by bank", function()
    local l = L "Sw<2,0,3> o 0 o (8,16):(16,1)"
    for by, f in pairs {offset = function(v) return v % 8 end,
                        bank = function(v) return v * 64 // 32 % 32 end} do
      local p = pictures.picture(l, {by = by, dtype = "f64"}).panels[1]
      for i = 0, 127 do
        assert.equal(f(l(i // 16, i % 16)), p.class[i + 1])
      end
    end
    assert.same({}, pictures.picture(l, {by = "none"}).panels[1].class)
  end)

  it("of a swizzle shows how chunks move", function()
    for _, s in ipairs {{3, 3, 3}, {2, 0, 4}, {1, 4, -2}} do
      local sw = cute.make_swizzle(table.unpack(s))
      local columns = 1 << math.abs(s[3])
      all_forms({grid(1 << s[1], columns, function(m, n)
        return sw((m * columns + n) << s[2])
      end)}, sw)
    end
  end)

  it("as text is CuTe's table if it is small", function()
    assert.equal(table.concat({
      "Sw<1,0,1> o 0 o (2,2):(2,1)",
      "colours: offset modulo 8",
      "      0   1 ",
      "    +---+---+",
      " 0  | 0 | 1 |",
      "    +---+---+",
      " 1  | 3 | 2 |",
      "    +---+---+", ""}, "\n"),
      cute.draw("Sw<1,0,1> o 0 o (2,2):(2,1)", {as = "text"}))
    assert.equal("(2,1):(1,0)\ncolours: offset modulo 8\n     0 \n"
      .. " 0  \27[30;48;5;153m 0 \27[0m\n 1  \27[30;48;5;223m 1 \27[0m\n",
      cute.draw("(2,1)", {as = "text", colour = true}))
  end)

  it("as SVG is this", function()
    local svg = cute.draw("(1,2):(0,9)", {as = "svg", title = "a<b"})
    assert.equal('<text class="t" x="20" y="34">a&lt;b</text>\n'
      .. '<text class="n" x="20" y="54">colours: offset modulo 8</text>\n'
      .. '<text class="s" x="54" y="88">0</text>\n'
      .. '<text class="s" x="80" y="88">1</text>\n'
      .. '<text class="e" x="35" y="111">0</text>\n<g class="cells">\n'
      .. '<g><title>(0,0) offset 0</title><rect class="k0" x="41" y="94" '
      .. 'width="26" height="26"/><text x="54" y="111">0</text></g>\n'
      .. '<g><title>(0,1) offset 9</title><rect class="k1" x="67" y="94" '
      .. 'width="26" height="26"/><text x="80" y="111">9</text></g>\n</g>\n'
      .. '<rect class="frame" x="41" y="94" width="52" height="26" rx="2"/>',
      svg:match '<text class="t".*class="frame"[^>]*>')
    local depth = 0
    for close, _, single in svg:gmatch "<(/?)(%l+)[^<>]-(/?)>" do
      if close == "/" then depth = depth - 1
      elseif single ~= "/" then depth = depth + 1 end
    end
    assert.equal(0, depth)
    svg = cute.draw("(1,1)", {as = "svg", title = "a\1'<\xff"})
    assert.is_truthy(svg:find("a\u{FFFD}&#39;&lt;\u{FFFD}</text>", 1, true))
  end)
end)

describe("a picture of threads and values", function()
  -- Returns, for each element, the thread that holds it and the index of its
  -- value in that thread. part(t) is thread t's partition of a tensor of
  -- coordinates.
  local function holders(threads, rows, columns, part)
    local want = {}
    for t = 0, threads - 1 do
      local mine = part(t)
      for v = 0, cute.size(mine) - 1 do
        local at = ("%d,%d"):format(mine(v)[rows], mine(v)[columns])
        want[at] = want[at] or ("T%d V%d"):format(t, v)
      end
    end
    return want
  end

  it("has the first holder of each element of a tile", function()
    for text, tile in pairs {["(4,2):(2,1)"] = {2, 4},
        ["((4,8),(2,2)):((32,1),(16,8))"] = {16, 8},
        ["(8,4):(0,1)"] = {2, 4}, ["(2,2):(1,2)"] = {4, 4}} do
      local tv, want = L(text), {}
      -- descending order: the label of the lowest thread of a cell remains
      for i = cute.size(tv) - 1, 0, -1 do
        local t, v = i // cute.size(tv, 1), i % cute.size(tv, 1)
        local e = tv(t, v)
        want[("%d,%d"):format(e % tile[1], e // tile[1])]
          = ("T%d V%d"):format(t, v)
      end
      all_forms({want}, tv, {tile = tile})
      all_forms({want}, tv, {tile = cute.make_layout(tile)})
    end
  end)

  it("of an MMA has cells of one size, rows and columns aligned", function()
    local text = cute.draw(cute.make_tiled_mma(
      "SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1}, {32, 32, 16}), {as = "svg"})
    local panels = {}
    for body in text:gmatch '<g class="cells">(.-)<rect class="frame' do
      local xs, ys, size = {}, {}, nil
      for x, y, w, h in body:gmatch('<rect class="k%d+" x="([%d.]+)" '
        .. 'y="([%d.]+)" width="(%d+)" height="(%d+)"') do
        xs[x], ys[y], size = true, true, size or w .. "x" .. h
        assert.equal(size, w .. "x" .. h)
      end
      panels[#panels + 1] = {xs, ys, size}
    end
    local C, A, B = table.unpack(panels)
    assert.same(C[1], B[1])
    assert.same(C[2], A[2])
    assert.same({C[3], C[3]}, {A[3], B[3]})
  end)

  it("of a TiledMMA has C, A and B as they are partitioned", function()
    local mma = cute.make_tiled_mma(
      cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN",
      cute.make_layout({2, 1, 1}), {32, 8, 16})
    local function by(name, m, n, a, b)
      local id = cute.make_identity_tensor {m, n}
      return holders(64, a, b, function(t)
        local slice = mma:get_slice(t)
        return slice["partition_" .. name](slice, id)
      end)
    end
    all_forms({by("C", 32, 8, 1, 2), by("A", 32, 16, 1, 2),
               by("B", 8, 16, 2, 1)}, mma)
  end)

  it("of a TiledCopy has source and destination as partitioned", function()
    local copy = cute.make_tiled_copy(
      cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16),
      L "(32,1):(1,0)", L "(1,8):(0,1)")
    local id = cute.make_identity_tensor {32, 8}
    local function by(way)
      return holders(32, 1, 2, function(t)
        local slice = copy:get_slice(t)
        return slice["partition_" .. way](slice, id)
      end)
    end
    all_forms({by "S", by "D"}, copy)
  end)

  it("of atoms has the cells of their layouts", function()
    local atom = cute.make_mma_atom "SM80_16x8x8_F32F16F16F32_TN"
    local function by(tv, rows, turned)
      local want = {}
      for t = 0, 31 do
        for v = 0, cute.size(tv, 1) - 1 do
          local a, b = tv(t, v) % rows, tv(t, v) // rows
          if turned then a, b = b, a end
          want[("%d,%d"):format(a, b)] = ("T%d V%d"):format(t, v)
        end
      end
      return want
    end
    all_forms({by(atom.tv_layout_C, 16), by(atom.tv_layout_A, 16),
               by(atom.tv_layout_B, 8, true)}, atom)
    local ldsm = cute.make_copy_atom("SM75_U32x2_LDSM_N", cute.f16)
    local source = read.text(ldsm, {as = "text"})[1]
    local n = 0
    for t = 0, 31 do
      for v = 0, 7 do
        local e = ldsm.layout_src_tv(t, v)
        local at = ("%d,%d"):format(e // 8, e % 8)
        if e == t * 8 + v then
          assert.equal(("T%d V%d"):format(t, v), source[at])
          n = n + 1
        end
      end
    end
    assert.is_true(n >= 128)
  end)

  it("shows which other threads have an element", function()
    local svg = cute.draw(L "(3,2):(0,1)", {as = "svg", tile = {1, 2}})
    assert.is_truthy(svg:find(
      "<title>(0,1) T0 V1, T1 V1, T2 V1 offset 1</title>", 1, true))
    assert.is_truthy(svg:find("an element is held by up to 3, the first is "
      .. "written", 1, true))
  end)
end)

describe("a picture of threads and values", function()
  it("shows some of many that have the same element", function()
    local p = pictures.picture(L "(40,2):(0,1)", {tile = {1, 2}}).panels[1]
    assert.equal("an element is held by up to 40, the first is written, 16 "
      .. "more are known", p.note)
    for i = 1, 2 do
      local want = {}
      for t = 1, 16 do table.move({t, i - 1}, 1, 2, #want + 1, want) end
      assert.same(want, p.more[i])
    end
    -- An offset of a swizzled layout is no sum of a row's offset and a column's
    -- offset, so every cell is evaluated.
    local sw = L "Sw<1,0,1> o 0 o (2,2):(2,1)"
    p = pictures.picture(sw, {tile = {4, 1}}).panels[1]
    assert.same({"T0 V0", "T0 V1", "T1 V1", "T1 V0"}, p.label)
    p = pictures.picture(cute.make_mma_atom "SM90_64x8x16_F32F16F16_SS<K,K>",
                         {})
    assert.is_truthy(p.panels[2].note:find("up to 128", 1, true))
  end)
end)

describe("a picture of a tensor", function()
  it("has its elements, warm and cold", function()
    local t = cute.tensor({{0, -1.5, 2}, {3, 1 / 0, 0 / 0}}, cute.f32)
    all_forms({{["0,0"] = "0", ["0,1"] = "-1.5", ["0,2"] = "2", ["1,0"] = "3",
                ["1,1"] = "inf", ["1,2"] = "nan"}}, t)
    local p = pictures.picture(t, {})
    assert.same({8, 4, 14, 16, 16}, p.panels[1].class)
    assert.equal("colours: negative, zero, positive, up to 3", p.captions[1])
    local i = cute.tensor({{1, 2}, {3, 4}}, cute.i32)
    all_forms({grid(2, 2, function(m, n) return 2 * m + n + 1 end)}, i)
    all_forms({grid(2, 2, function(m, n) return i.layout(m, n) end)}, i,
              {labels = "offset"})
  end)
end)

describe("draw", function()
  local function said(x, opts) return function() cute.draw(x, opts) end end

  it("rejects what is too large, with a clear message", function()
    raises({"draw: 1000 x 1000 = 1000000 cells are too many; the limit is "
      .. "32768 [limit]", "(1000,1000):(1,1000)", "slice it, or draw a tile of "
      .. "it, or pass limit = N, up to 1048576"}, said "(1000,1000)")
    raises("draw: 2 x 2 x 16 = 64 cells are too many; the limit is 63",
           said("(2,2,(2,8))", {limit = 63}))
    assert.is_string(cute.draw("(2,2,(2,8))", {limit = 64, as = "text"}))
    raises("4611686018427387904 cells are too many",
           said(("(%d,%d)"):format(1 << 31, 1 << 31)))
    raises("limit = 0; 1 to 1048576 cells", said("8:1", {limit = 0}))
    raises("draw: 16 x 16384 = 262144 cells are too many",
           said("(32,32)", {tile = {16, 16384}}))
  end)

  it("offers the nearest of names that are unknown", function()
    raises("no form 'sgv' (did you mean svg?): there are html latex svg text",
           said("8:1", {as = "sgv"}))
    raises("no option 'tilde'", said("8:1", {tilde = {2, 4}}))
    raises("(did you mean tile?)", said("8:1", {tilde = {2, 4}}))
    raises("by = \"ofset\"; possible are none offset (did you mean offset?)",
           said("8:1", {by = "ofset"}))
    raises("labels = \"thread\"; possible are coord offset",
           said("8:1", {labels = "thread"}))
    raises("pass dtype = cute.f16", said("8:1", {by = "bank"}))
    raises("the name must end in .svg .tex .html", said("8:1",
                                                            {file = "x.bmp"}))
    raises("width = 0", said("8:1", {width = 0}))
    raises("tile = \"x\"; {M, N}, or a layout of it, is needed",
           said("(4,2)", {tile = "x"}))
    raises("tile = -9223372036854775808; {M, N}, or a layout of it, is needed",
           said("(0,2):(2,1)", {tile = math.mininteger}))
    raises("thread 1, value 0 is element 2, outside the tile of 1 x 2 = 2",
           said("(2,2):(2,1)", {tile = {1, 2}}))
    raises("a layout of rank 2, (thread, value)", said("4:1", {tile = {2, 2}}))
    for _, x in ipairs {5, {}, print, "8:"} do
      assert.is_false(pcall(cute.draw, x))
    end
    raises("got 5", said(5))
  end)

  it("folds lines wider than the terminal, and loses nothing", function()
    for _, l in ipairs {L "(3,40):(40,1)", L "(20,30):(30,1)"} do
      local want = {grid(cute.size(l, 0), cute.size(l, 1), l)}
      for _, width in ipairs {12, 20, 33, 80} do
        for _, colour in ipairs {false, true} do
          local text = cute.draw(l, {as = "text", width = width,
                                     colour = colour})
          for line in text:gsub("\27%[[%d;]*m", ""):gmatch "[^\n]+" do
            assert.is_truthy(#line <= width or line:find ":"
              or line:find "^columns", line)
          end
        end
        assert.same(want, read.text(l, {as = "text", width = width}))
      end
    end
    assert.is_truthy(cute.draw("(1,9):(9,1)", {as = "text", width = 20}):find(
      "columns 0 to 2 of 9\n", 1, true))
  end)

  it("writes files whole, by their names", function()
    local dir = support.folder()
    for name, form in pairs {["a.svg"] = "svg", ["a.tex"] = "latex",
                             ["a.HTML"] = "html", ["a.txt"] = "text"} do
      assert.is_nil(cute.draw("(2,2)", {file = dir .. "/" .. name}))
      assert.equal(cute.draw("(2,2)", {as = form}),
                   support.read(dir .. "/" .. name))
    end
    cute.draw("(2,2)", {file = dir .. "/b", as = "svg"})
    assert.equal(cute.draw("(2,2)", {as = "svg"}), support.read(dir .. "/b"))
    raises("No such file or directory [io]", said("8:1",
      {file = dir .. "/no/x.svg"}))
    assert.is_false(pcall(cute.draw, "(999,999)", {file = dir .. "/a.svg"}))
    assert.equal(cute.draw("(2,2)", {as = "svg"}),
                 support.read(dir .. "/a.svg"))
    support.remove(dir)
  end)

  it("prints, in colour and as wide as the terminal if there is one",
     function()
    local code = [[require('cute').draw('(2,40):(40,1)')]]
    local out = support.run({"-e", code})
    assert.is_nil(out:find "\27")
    assert.is_nil(out:find "columns 0")
    if not os.execute "command -v script >/dev/null 2>&1" then return end
    local function terminal(env)
      env.TERM = "xterm"
      return (support.exec({"script", "-qec", ("stty cols 40; %s -e \"%s\"")
        :format(support.program, code), "/dev/null"}, {env = env}))
    end
    out = terminal {NO_COLOR = "", COLORTERM = "", COLUMNS = ""}
    assert.is_truthy(out:find("\27[30;48;5;", 1, true))
    assert.is_truthy(out:find("columns 0 to", 1, true))
    out = terminal {NO_COLOR = "1", COLORTERM = "truecolor", COLUMNS = "60"}
    assert.is_nil(out:find "\27%[30")
    assert.is_truthy(out:find("columns 0 to 10 of 40", 1, true))
    out = terminal {NO_COLOR = "", COLORTERM = "truecolor", COLUMNS = ""}
    assert.is_truthy(out:find("\27[30;48;2;166;202;240m", 1, true))
  end)

  it("draws objects that define their own drawing", function()
    local class = {__draw = function(x, opts)
      return {title = x.name .. opts.limit, captions = {}, panels = {},
              palette = "hues"}
    end}
    assert.equal("it7\n", cute.draw(setmetatable({name = "it"}, class),
                                    {as = "text", limit = 7}))
  end)
end)

describe("draw", function()
  it("as LaTeX is one standalone picture, with TeX's characters escaped",
     function()
    local tex = cute.draw("Sw<1,0,1> o 0 o (2,2):(2,1)", {as = "latex"})
    assert.is_truthy(tex:find "^%% Sw<1,0,1>[^\n]*\n%% colours[^\n]*\n.-"
      and tex:find("\\documentclass[border=4pt]{standalone}\n\\usepackage{tikz}"
        .. "\n\n\\begin{document}\n\\begin{tikzpicture}", 1, true))
    assert.is_truthy(tex:find "\\end{tikzpicture}\n\\end{document}\n$")
    assert.is_truthy(tex:find("at (-3.6,-1) {\\texttt{Sw\\textless{}1,0,1"
      .. "\\textgreater{} o 0 o (2,2):(2,1)}};", 1, true), tex)
    local odd = setmetatable({}, {__draw = function()
      local panel = {name = "a_b", rows = 1, columns = 1, label = {"50%&#"},
                     class = {0}, ids = {}}
      return {title = "x", captions = {}, palette = "hues", panels = {panel}}
    end})
    tex = cute.draw(odd, {as = "latex"})
    assert.is_truthy(tex:find("{50\\%\\&\\#}", 1, true))
    assert.is_truthy(tex:find("{a\\_b}", 1, true))
  end)
end)
-- SPDX-License-Identifier: MIT
