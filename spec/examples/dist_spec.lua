-- Tests `make dist` in a copy of the committed and changed files, in a
-- repository of its own. The release must have the right contents and SHA-256
-- sums. The unpacked source must build the same bytes without git.
local support = require "spec.support"

local VERSION = support.read "VERSION":match "%S+"
local NAME = "cutelua-" .. VERSION

-- Sets what tools/cached.sh needs: the inputs of all objects.
local INPUTS = [[
  export CUTE_INPUTS="$(cat core/*/*.h core/*/*.cu 2>/dev/null | sha256sum)"
]]

local dir, tree, dist

-- Runs a shell script in a folder. Returns output, errors and exit code. Flags
-- of the compiler make the build six times as fast as a release's, and the
-- second build takes objects of equal sources from the first. Packages are not
-- compressed, which would take dpkg-deb 8 seconds each.
local function sh(folder, script, env)
  local all = {GIT_CONFIG_GLOBAL = "/dev/null", MAKEFLAGS = "",
    CFLAGS = "-O0", CC = "sh tools/cached.sh cc", XDG_CACHE_HOME = dir,
    DPKG_DEB_COMPRESSOR_TYPE = "none",
    GIT_AUTHOR_NAME = "a", GIT_AUTHOR_EMAIL = "a", GIT_COMMITTER_NAME = "a",
    GIT_COMMITTER_EMAIL = "a", GIT_COMMITTER_DATE = "1700000000 +0000"}
  for name, value in pairs(env or {}) do all[name] = value end
  return support.exec({"sh", "-c", INPUTS .. script}, {cwd = folder, env = all})
end

local function must(folder, script, env)
  local out, err, code = sh(folder, script, env)
  assert(code == 0, script .. ": " .. err .. out)
  return out
end

-- Returns the set of words of a text; removes a prefix from each word.
local function set(text, prefix)
  local names = {}
  for name in text:gmatch "[^\n]+" do
    if name:sub(1, #prefix) == prefix then names[name:sub(#prefix + 1)] = true
    end
  end
  return names
end

local function lacking()
  for _, tool in ipairs {"git", "dpkg-shlibdeps", "luarocks", "python3",
                         "objdump"} do
    if select(3, sh(".", "command -v " .. tool)) ~= 0 then
      return "needs " .. tool
    end
  end
  if select(3, sh(".", "git rev-parse HEAD")) ~= 0 then
    return "needs a git checkout"
  end
end

describe("make dist #long #noasan", function()
  local why = lacking()
  if why then
    pending(why)
    return
  end
  setup(function()
    dir = support.folder()
    tree = dir .. "/tree"
    dist = tree .. "/build/dist"
    must(".", ([[
      mkdir -p %s
      git ls-files -z --cached --others --exclude-standard |
        xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%%s\0" "$f"; done' \
        sh | xargs -0 cp -p --parents -t %s]]):format(tree, tree))
    must(tree, "git init -q && git add -A && git commit -qm x && make dist")
  end)
  teardown(function() support.remove(dir) end)

  it("writes five files with their sums", function()
    local names = must(dist, "ls")
    assert.truthy(names:find(("^SHA256SUMS\n%s%%-1.src.rock\n"
      .. "%s%%-py3%%-none%%-manylinux_2_%%d+_x86_64.whl\n%s.tar.gz\n"
      .. "cutelua_%s_%%w+.deb\n$"):format(NAME:gsub("%-", "%%-"),
      NAME:gsub("%-", "%%-"), NAME:gsub("%-", "%%-"), VERSION)), names)
    local out = must(dist, "sha256sum -c SHA256SUMS")
    assert.equal(4, select(2, out:gsub(": OK\n", "")))
  end)

  it("archives the files of the commit, with its time", function()
    local archive = must(dist, "tar -tzf " .. NAME .. ".tar.gz")
    assert.same(set(must(tree, "git ls-files"), ""), set(archive, NAME .. "/"))
    local times = must(dist, "TZ=UTC tar -tvzf " .. NAME .. ".tar.gz | "
      .. "awk '{print $2, $4, $5}' | sort -u")
    assert.equal("0/0 2023-11-14 22:13\n", times)
  end)

  it("packs the program, libcutelua and the documents for Debian", function()
    local list = must(dist, "dpkg-deb -c cutelua_*.deb | awk '{print $6}'")
    local names = set(list, "./usr/")
    for name in ([[bin/cutelua include/cutelua.h lib/libcutelua.a
        lib/libcutelua.so.1 lib/libcutecapture.so lib/pkgconfig/cutelua.pc
        lib/cmake/cutelua/cutelua-config.cmake share/man/man1/cutelua.1.gz
        share/doc/cutelua/copyright share/doc/cutelua/docs/deploy.md
        share/doc/cutelua/examples/library/scale.c
        share/cutelua/scripts/gemm3stage.lua
        share/bash-completion/completions/cutelua]]):gmatch "%S+" do
      assert.is_true(names[name], name)
    end
    assert.equal(VERSION .. "\n", must(dist, "dpkg-deb -f *.deb Version"))
    local out = must(dist, "dpkg-deb -x *.deb ../x && ../x/usr/bin/cutelua "
      .. "--version && file -b --mime-type ../x/usr/bin/cutelua")
    assert.truthy(out:find("cutelua " .. VERSION, 1, true), out)
  end)

  it("builds the same package and wheel from the archive without git",
     function()
    must(dir, "tar -xzf " .. dist .. "/" .. NAME .. ".tar.gz")
    must(dir .. "/" .. NAME, [[make -s -j "$(nproc)" all &&
      WEB_FILES= sh tools/deb.sh build && python3 tools/wheel.py build ]]
      .. VERSION, {SOURCE_DATE_EPOCH = "1700000000"})
    must(dir .. "/" .. NAME, ([[cmp build/*.deb %s/*.deb &&
      cmp build/wheel/*.whl %s/*.whl]]):format(dist, dist))
    local _, err, code = sh(dir .. "/" .. NAME, "make dist")
    assert.equal(2, code)
    assert.truthy(err:find("dist: a release is made from a commit, and this "
      .. "folder is no git checkout\n", 1, true), err)
    -- A second `make dist` must give the same bytes of all files, including the
    -- archive and the rock.
    local sums = support.read(dist .. "/SHA256SUMS")
    must(tree, "touch LICENSE README.md && make dist")
    assert.equal(sums, support.read(dist .. "/SHA256SUMS"))
  end)

  -- `make check` builds and installs a rock of the same files (tools/rock.sh).
  it("makes a rock that luarocks unpacks, with the archive's files", function()
    must(dir, ("luarocks --lua-version=5.4 unpack %s/%s-1.src.rock"):format(
      dist, NAME))
    local rock = dir .. "/" .. NAME .. "-1/" .. NAME
    local files = must(rock, "find . -type f | sed 's,^[.]/,,' | sort")
    local want = must(tree, "git ls-files | sort")
    assert.same(set(want, ""), set(files, ""))
  end)

  it("names changed files and missing tools", function()
    support.write(tree .. "/new.lua", "")
    support.write(tree .. "/LICENSE", "none")
    local _, err, code = sh(tree, "make dist")
    assert.equal(2, code)
    assert.truthy(err:find("dist: a release contains only committed files; "
      .. "commit or remove: LICENSE, new.lua\n", 1, true), err)
    must(dir, [[mkdir some && for tool in sh cat git tar gzip sha256sum \
      objdump strip python3; do ln -s "$(command -v $tool)" some/; done]])
    _, err, code = sh(tree, "exec sh tools/dist.sh build",
                      {PATH = dir .. "/some"})
    assert.equal(1, code)
    assert.equal("dist: dpkg-deb, dpkg-shlibdeps, luarocks must be installed "
      .. "to make a release\n", err)
  end)
end)
-- SPDX-License-Identifier: MIT
