# cutelua: `make demo` and `make test` do all the set-up; see README.md.
CC      ?= cc
BUILD   ?= build
# Add -g for C debuggers; the build then takes 50 % longer.
CFLAGS  ?= -O2
PREFIX  ?= /usr/local
VERSION := $(shell cat VERSION)
JOBS    ?= $(shell getconf _NPROCESSORS_ONLN)
LUA     ?= lua5.4
LUA_INC ?= /usr/include/lua5.4
LUA_LIB ?= -l:liblua5.4.a
EDIT_LIB ?= -l:libedit.a -l:libbsd.a -l:libmd.a -l:libtinfo.a
Z_LIB   ?= -l:libz.a
STRIP   ?= -Wl,-s
# --code: the program contains bytecode of its modules, too (tools/embed.lua)
BYTECODE ?= --code
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes \
           -Wswitch-enum
WARN    += $(if $(WERROR),-Werror)
# Only debuggers unwind stacks, and they use .debug_frame. Unwind tables in the
# program would be a tenth of its size.
CSTD    := -std=c11 -fvisibility=hidden -fPIC -fno-asynchronous-unwind-tables \
             -Icore -I$(BUILD) -I$(LUA_INC) $(DEFS) \
             -DCUTE_VERSION='"$(VERSION)"'
LIBS    := -lm -ldl -lpthread

# core/program/ is only in the program (weblib.c: only in WebAssembly), and
# core/library/ only in libcutelua, and core/capture/ only in libcutecapture;
# everything else is also in the Lua module.
PROGRAM := $(filter-out %/weblib.c,$(sort $(wildcard core/program/*.c)))
LIBRARY := $(sort $(wildcard core/library/*.c))
CAPTURE := $(sort $(wildcard core/capture/*.c))
CORE    := $(filter-out core/program/% core/library/% core/capture/%, \
             $(sort $(wildcard core/*/*.c)))
OBJ     := $(CORE:core/%.c=$(BUILD)/%.o)
POBJ    := $(PROGRAM:core/%.c=$(BUILD)/%.o) $(BUILD)/embed.o
LOBJ    := $(LIBRARY:core/%.c=$(BUILD)/%.o)
COBJ    := $(CAPTURE:core/%.c=$(BUILD)/%.o)
# The files of lua/ and kernels/, which the program embeds.
LUA_SRC := $(sort $(wildcard lua/*/*.lua lua/*/*/*.lua lua/*/*/*/*.lua \
             kernels/*.lua kernels/*/*.lua))
# Documents for users, which `?word` searches too.
DOCS := $(filter-out $(addprefix docs/,README.md architecture.md hacking.md \
          ir.md performance.md), $(sort $(wildcard docs/*.md)))

# The log names the file that each command makes; V=1 shows whole commands.
ifeq ($(V),)
.SILENT:
endif

all: $(BUILD)/cute/core.so $(BUILD)/cutelua $(BUILD)/spec/hardware.so library

# A simulated GEMM spends most of its time in the loops of these files. Their
# alignment changes that time by up to 5 %.
TILE_OBJ := $(addprefix $(BUILD)/hardware/,tile.o tile8.o tile16.o)
$(TILE_OBJ) $(BUILD)/sim/matrix.o: \
  ALIGN := -falign-functions=64 -falign-loops=64
$(TILE_OBJ): ALIGN += $(TILES)
$(BUILD)/%.o: core/%.c Makefile VERSION
	@mkdir -p $(@D)
	@echo 'CC $<'
	$(CC) $(CSTD) $(CFLAGS) $(ALIGN) $(WARN) -MMD -MP -c $< -o $@

# The helper functions of emitted text, cut from the CUDA files.
PRELUDE := core/emit/prelude.cu core/emit/preludemem.cu
$(BUILD)/emit/prelude.inc: $(PRELUDE) tools/embed.lua
	@mkdir -p $(@D)
	@echo 'LUA $@'
	$(LUA) tools/embed.lua $@ $(PRELUDE)
$(filter $(BUILD)/emit/%,$(OBJ)): $(BUILD)/emit/prelude.inc

# A list of all files. It changes when a file is added or removed.
$(BUILD)/files: FORCE
	@mkdir -p $(BUILD)
	@echo '$(CORE) $(LUA_SRC) $(DOCS)' | cmp -s - $@ || \
	  echo '$(CORE) $(LUA_SRC) $(DOCS)' >$@

$(BUILD)/embed.c: tools/embed.lua $(LUA_SRC) $(DOCS) $(BUILD)/files
	@echo 'LUA $@'
	$(LUA) tools/embed.lua $@ $(BYTECODE) $(LUA_SRC) $(DOCS)

$(BUILD)/embed.o: $(BUILD)/embed.c core/program/program.h
	@echo 'CC $<'
	$(CC) $(CSTD) $(CFLAGS) $(WARN) -c $< -o $@

$(BUILD)/cute/core.so: $(OBJ) $(BUILD)/files
	@mkdir -p $(BUILD)/cute
	@echo 'LD $@'
	$(CC) -shared $(CFLAGS) -Wl,--exclude-libs,libz.a -o $@ $(OBJ) $(Z_LIB) \
	  $(LIBS)

# Lua is linked completely and its API exported, so that C modules of Lua can be
# loaded; libedit and zlib export nothing. The Lua files in the program are
# compressed to a third by zlib; without that, they were 1.2 of its 2.9 MB.
$(BUILD)/cutelua: $(OBJ) $(POBJ) $(BUILD)/files
	@echo 'LD $@'
	$(CC) $(CFLAGS) $(STRIP) -Wl,-E -Wl,--exclude-libs,libedit.a:libbsd.a \
	  -Wl,--exclude-libs,libmd.a:libtinfo.a:libz.a -o $@ $(OBJ) $(POBJ) \
	  -Wl,--whole-archive $(LUA_LIB) -Wl,--no-whole-archive \
	  $(EDIT_LIB) $(Z_LIB) $(LIBS)

# libcutelua contains Lua, zlib and the Lua files, and exports only the functions
# of cutelua.h. Its version of base/heap.c counts the memory of each state.
LIB_OBJ := $(filter-out $(BUILD)/base/heap.o,$(OBJ)) $(LOBJ) \
             $(BUILD)/program/embedded.o $(BUILD)/library/embed.o
SOVERSION := 1
SONAME  := libcutelua.so.$(SOVERSION)
$(BUILD)/library/embed.c: tools/embed.lua $(LUA_SRC) $(BUILD)/files
	@mkdir -p $(@D)
	@echo 'LUA $@'
	$(LUA) tools/embed.lua $@ $(LUA_SRC)

$(BUILD)/library/embed.o: $(BUILD)/library/embed.c core/program/program.h
	@echo 'CC $<'
	$(CC) $(CSTD) $(CFLAGS) $(WARN) -c $< -o $@

# Debian's liblua5.4.a is compiled for programs: it reads stdin, stdout and
# stderr in a way that a shared library cannot. core/library/streams.c has
# variables of its own for them.
LUA_ARCHIVE := $(if $(filter -l%,$(LUA_LIB)),$(shell $(CC) \
  -print-file-name=$(patsubst -l%,lib%.a,$(LUA_LIB:-l:%=%))),$(LUA_LIB))
$(BUILD)/library/liblua.a: $(wildcard $(LUA_ARCHIVE)) Makefile
	@mkdir -p $(@D)
	@echo 'AR $@'
	objcopy --redefine-sym stdin=library_stdin \
	  --redefine-sym stdout=library_stdout \
	  --redefine-sym stderr=library_stderr $(LUA_ARCHIVE) $@

$(BUILD)/libcutelua.so: $(LIB_OBJ) $(BUILD)/library/liblua.a \
  core/library/cutelua.map
	@echo 'LD $@'
	$(CC) -shared $(CFLAGS) $(STRIP) -Wl,-soname,$(SONAME) -Wl,-z,defs \
	  -Wl,--version-script=core/library/cutelua.map -o $@ $(LIB_OBJ) \
	  $(BUILD)/library/liblua.a $(Z_LIB) $(LIBS)
	ln -sf libcutelua.so $(BUILD)/$(SONAME)

# One object, in which all symbols but those of cutelua.h are local: an
# application may contain another Lua or zlib.
$(BUILD)/libcutelua.a: $(LIB_OBJ) $(BUILD)/library/liblua.a
	@echo 'LD $@'
	$(CC) -r -nostdlib -o $(BUILD)/library/all.o $(LIB_OBJ) \
	  $(BUILD)/library/liblua.a $(Z_LIB)
	objcopy --wildcard --keep-global-symbol='cutelua_*' $(BUILD)/library/all.o
	rm -f $@
	ar rcs $@ $(BUILD)/library/all.o

# The library of core/capture/ is preloaded into other programs. Its dlsym must
# end in a jump to the C library's dlsym.
$(BUILD)/capture/hooks.o: ALIGN := -foptimize-sibling-calls
$(BUILD)/libcutecapture.so: $(COBJ)
	@echo 'LD $@'
	$(CC) -shared $(CFLAGS) $(STRIP) -Wl,-soname,libcutecapture.so \
	  -Wl,-z,defs -o $@ $(COBJ) $(LIBS)

library: $(BUILD)/libcutelua.so $(BUILD)/libcutelua.a \
  $(BUILD)/libcutecapture.so

# The functions of core/hardware/, for specs and golden data only.
UNITS := $(BUILD)/spec/hardware.o $(filter $(BUILD)/hardware/%,$(OBJ)) \
           $(BUILD)/base/dtype.o
$(BUILD)/spec/hardware.o: spec/hardware/units.c Makefile
	@mkdir -p $(@D)
	@echo 'CC $<'
	$(CC) $(CSTD) $(CFLAGS) $(WARN) -MMD -MP -c $< -o $@
$(BUILD)/spec/hardware.so: $(UNITS)
	@echo 'LD $@'
	$(CC) -shared $(CFLAGS) -o $@ $(UNITS) -lm

-include $(OBJ:.o=.d) $(POBJ:.o=.d) $(LOBJ:.o=.d) $(COBJ:.o=.d) \
  $(BUILD)/spec/hardware.d

# ---- what a user runs ----

demo: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	$(BUILD)/cutelua scripts/gemm3stage.lua

# Tests what differs between machines: compiler, libc, CPU, driver, NVRTC. Leaves
# out the rooms of tools in Lua alone, documents, and tests of the tag #long;
# specs of the program run inside the program.
test: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/suite.sh $(BUILD) test program

# Runs the spec files of `make test` that take at most 0.5 s of CPU.
quick: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/suite.sh $(BUILD) quick

# Runs all tests that need no GPU, as CI does.
test-all:
	@sh .ci/run

# Runs the same specs on the GPU, the specs that need a GPU, and four scripts
# under the toolkit's compute-sanitizer if that is installed.
gpu: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/gpu.sh $(BUILD)

# Prepares specs for a machine without busted or Lua: copy this folder there
# with $(BUILD), and run `sh tools/gpu.sh $(BUILD)`.
gpu-kit: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/kit.sh $(BUILD)

# Compares with the data in CUTELUA_GOLDEN_DIR (default ../shared/golden) and in
# the folders golden-approx, golden-hopper, golden-ptx and golden-blackwell
# beside it.
golden: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@CUTE_BUILD=$(BUILD) $(BUILD)/cutelua -e 'require("spec.golden").main()'

# Prints how many of the Python DSL's names exist; reads CUTELUA_NAMES_FILE.
names: setup-test
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(BUILD)/cutelua -e 'require("spec.program.names").main()'

# Runs the part of `make check` that needs no build: it takes seconds. `make
# hooks` makes it git's pre-commit hook; another hook checks commit messages.
rules: setup-rules
	@sh tools/suite.sh $(BUILD) rules

hooks:
	@d=$$(git rev-parse --git-path hooks); mkdir -p "$$d"; \
	ln -sf "$(CURDIR)/tools/pre-commit" "$(CURDIR)/tools/commit-msg" "$$d"

check: setup-check
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/suite.sh $(BUILD) check

# Runs specs under the address, leak and undefined-behaviour sanitizers, with a
# Lua that checks the use of its C API (built from Debian's source package).
asan: setup-asan
	@sh tools/suite.sh $(BUILD) asan

# Runs a script repeatedly. In run n, memory allocation n fails, which must
# cause an error, never a crash.
memerr: setup-test
	@sh tools/suite.sh $(BUILD) memerr

bench: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@set -e; for b in spec/bench/*.lua; do $(BUILD)/cutelua $$b; done

# Writes docs/measured/growth.tsv and its charts: how time and memory grow.
growth: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(BUILD)/cutelua tools/growth.lua

# Writes docs/ladders.md and its charts from the records in docs/measured/,
# which it measures again if there is a GPU.
ladders: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@set -e; x=$(BUILD)/cutelua; m=docs/measured; \
	$$x scripts/ladder.lua --device sim --record $$m/gemm_sim.tsv; \
	$$x scripts/copy_ladder.lua --device sim --m 512 --n 512 \
	  --record $$m/copy_sim.tsv; \
	$$x scripts/transpose.lua --device sim --m 512 --n 512 \
	  --record $$m/transpose_sim.tsv; \
	if $$x -e 'os.exit(require("cute.gpu").available())' >/dev/null; then \
	  $$x scripts/copy_ladder.lua --record $$m/copy.tsv; \
	  $$x scripts/transpose.lua --record $$m/transpose.tsv; \
	  $$x scripts/ladder.lua gemm_base gemm2stage gemm_l2swizzle gemm3stage \
	    gemm_sm80_best --sizes 2048,4096,8192,16384 \
	    --record $$m/gemm_bf16.tsv; \
	  $$x scripts/ladder.lua gemm_sm80_best gemm_wgmma gemm_tma gemm_ws \
	    gemm_hopper --sizes 2048,4096,8192 --record $$m/gemm_hopper.tsv; \
	  $$x scripts/ladder.lua gemm_simt sgemm gemm_tf32 gemm_f64 gemm_int8 \
	    gemm_fp8_sm89 gemm_sm70 --sizes 4096 --record $$m/gemm_other.tsv; \
	fi; $$x tools/ladders.lua

# Updates generated parts of documents. Writes pages to build/docs: the
# reference of all public names, the tutorial and the documents.
docs: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(LUA) tools/irdoc.lua
	@$(LUA) tools/ptxdoc.lua
	@$(LUA) tools/examples.lua $(BUILD)/cutelua README.md docs/architecture.md
	@$(LUA) tools/figures.lua $(BUILD)/cutelua
	@$(BUILD)/cutelua tools/programs.lua $(BUILD)/cutelua
	@$(BUILD)/cutelua tools/reference.lua $(BUILD)/docs $(BUILD)/cutelua
	@$(BUILD)/cutelua tools/tutorial.lua $(BUILD)/docs
	@$(BUILD)/cutelua tools/pages.lua $(BUILD)/docs README.md \
	  docs/*.md docs/measured/*.md

# Tests with random input for FUZZ_SECONDS, by each file spec/fuzz/*.lua.
fuzz: setup-fuzz
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@set -e; for f in spec/fuzz/*.lua; do \
	  if [ -f $$f ]; then CUTE_BUILD=$(BUILD) $(BUILD)/cutelua $$f \
	    $(or $(FUZZ_SECONDS),60); \
	  else echo "no fuzz targets in spec/fuzz"; fi; done

# Fuzzes the PTX reader for SECONDS.
fuzz-ptx: setup-fuzz
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@CUTE_BUILD=$(BUILD) $(BUILD)/cutelua spec/fuzz/ptx.lua $(or $(SECONDS),60)

# Compiles kernels by Triton (pinned, in a virtual environment of 1 GB), runs them
# in the simulator, and compares them with NumPy. TRITON="--seeds 20 matmul".
triton: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/ptx/compare.sh $(BUILD) triton $(TRITON)

# Does the same for kernels of the CuTe DSL. DSL="--seeds 20 gemm90".
dsl: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/ptx/compare.sh $(BUILD) dsl $(DSL)

# Does the same for nvcc, NVRTC, clang, Numba, tilelang and CUTLASS's templates,
# in a virtual environment of 6 GB. COMPILERS="--seeds 20 numba".
compilers: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/ptx/compare.sh $(BUILD) compilers $(COMPILERS)

# Only plants the faults of triton, dsl and compilers, and prints a table.
planted: setup-build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/ptx/planted.sh $(BUILD)

# Installs the program, its man page and completion; scripts, documents with
# their examples, the program's Lua files for editors, and the workshop if `make
# web` built it.
SHARE := $(DESTDIR)$(PREFIX)/share
WEB_FILES ?= $(wildcard $(BUILD)/web/*)
install: all install-library $(BUILD)/cutelua.1
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1 \
	  $(SHARE)/bash-completion/completions $(SHARE)/doc/cutelua
	install -s -m 755 $(BUILD)/cutelua $(DESTDIR)$(PREFIX)/bin/cutelua
	install -m 644 $(BUILD)/cutelua.1 $(SHARE)/man/man1
	install -m 644 tools/completion.bash \
	  $(SHARE)/bash-completion/completions/cutelua
	install -m 644 README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE \
	  $(SHARE)/doc/cutelua
	set -e; for f in docs/*.md docs/*.svg docs/*.json docs/measured/*.md; do \
	  install -D -m 644 $$f $(SHARE)/doc/cutelua/$$f; done
	set -e; for f in scripts/*.lua $(LUA_SRC) ci/* editors/vscode/*; do \
	  install -D -m 644 $$f $(SHARE)/cutelua/$$f; done
	set -e; for f in $$(find examples -type f); do \
	  install -D -m 644 $$f $(SHARE)/doc/cutelua/$$f; done
	set -e; for f in $(WEB_FILES); do \
	  install -D -m 644 $$f $(SHARE)/cutelua/web/$${f##*/}; done

# Installs libcutelua, its header, the files by which pkg-config and CMake's
# find_package find them, and libcutecapture. LIBDIR is the folder of libraries
# below PREFIX.
LIBDIR ?= lib
install-library: library
	install -d $(DESTDIR)$(PREFIX)/include \
	  $(DESTDIR)$(PREFIX)/$(LIBDIR)/pkgconfig \
	  $(DESTDIR)$(PREFIX)/$(LIBDIR)/cmake/cutelua
	install -m 644 core/library/cutelua.h $(DESTDIR)$(PREFIX)/include
	install -m 755 $(BUILD)/libcutelua.so \
	  $(DESTDIR)$(PREFIX)/$(LIBDIR)/libcutelua.so.$(SOVERSION)
	ln -sf libcutelua.so.$(SOVERSION) \
	  $(DESTDIR)$(PREFIX)/$(LIBDIR)/libcutelua.so
	install -m 755 $(BUILD)/libcutecapture.so \
	  $(DESTDIR)$(PREFIX)/$(LIBDIR)/libcutecapture.so
	objcopy --strip-debug $(BUILD)/libcutelua.a \
	  $(DESTDIR)$(PREFIX)/$(LIBDIR)/libcutelua.a
	chmod 644 $(DESTDIR)$(PREFIX)/$(LIBDIR)/libcutelua.a
	set -e; for f in cutelua.pc:pkgconfig cutelua-config.cmake:cmake/cutelua \
	  cutelua-config-version.cmake:cmake/cutelua; do \
	  sed -e 's|@PREFIX@|$(PREFIX)|g; s|@LIBDIR@|$(LIBDIR)|g' \
	    -e 's|@VERSION@|$(VERSION)|g; s|@SOVERSION@|$(SOVERSION)|g' \
	    tools/library/$${f%%:*}.in \
	    >$(DESTDIR)$(PREFIX)/$(LIBDIR)/$${f#*:}/$${f%%:*}; done

$(BUILD)/cutelua.1: $(BUILD)/cutelua tools/manpage.lua
	$(BUILD)/cutelua tools/manpage.lua >$@.tmp
	mv $@.tmp $@

# Builds $(BUILD)/cutelua_VERSION_ARCH.deb.
deb: setup-deb
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/deb.sh $(BUILD)

# Builds $(BUILD)/cutelua-VERSION-1.ARCH.rock, for `luarocks install`.
rock: setup-check
	@sh tools/rock.sh $(BUILD)/rock $(BUILD)

# Builds $(BUILD)/wheel/cutelua-VERSION-py3-none-manylinux_*.whl, for pip.
wheel: setup-wheel
	@$(MAKE) --no-print-directory -j$(JOBS) library
	@python3 tools/wheel.py $(BUILD) $(VERSION)

# Writes the files of a release to $(BUILD)/dist: the source archive, the Debian
# package, the source rock and the wheel, with their SHA-256 sums. The working
# tree must equal the last commit.
dist:
	@sh tools/dist.sh $(BUILD)

# Installs and tries both packages in a root of their own. Needs root, and the
# network for debootstrap; the tests do not include it.
packages: setup-deb deb rock
	@sh tools/packages.sh $(BUILD)

# Builds $(BUILD)/web: the workshop's page, the program for browsers and
# node.
web: setup-web
	@$(MAKE) --no-print-directory -f tools/web.mk BUILD=$(BUILD) web-source
	@$(MAKE) --no-print-directory -j$(JOBS) web-one web-threads
	@$(MAKE) --no-print-directory -f tools/web.mk BUILD=$(BUILD) web-files
web-one web-threads:
	@$(MAKE) --no-print-directory -f tools/web.mk BUILD=$(BUILD) \
	  THREADS=$(filter -threads,$(@:web%=%)) web-program

# Compares the web build with the native program, under node and in Chromium.
web-test: setup-webtest
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh tools/suite.sh $(BUILD) web

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-memerr $(BUILD)-gcc $(BUILD)-clang

setup-build:
	@sh tools/setup.sh build
setup-wheel:
	@sh tools/setup.sh build wheel
setup-test:
	@sh tools/setup.sh build test
setup-fuzz:
	@sh tools/setup.sh build fuzz
setup-asan:
	@sh tools/setup.sh build test asan
setup-rules:
	@sh tools/setup.sh rules
setup-check:
	@sh tools/setup.sh build test check
setup-web:
	@sh tools/setup.sh build web
setup-webtest:
	@sh tools/setup.sh build test webtest
setup-deb:
	@sh tools/setup.sh build deb

FORCE:

.PHONY: all library install-library demo quick test test-all gpu gpu-kit golden names docs rules hooks check asan memerr \
  bench growth ladders fuzz fuzz-ptx triton dsl compilers planted install deb rock wheel dist packages web web-one web-threads web-test clean setup-build setup-test setup-fuzz \
  setup-asan setup-rules setup-check setup-wheel setup-web setup-webtest setup-deb
# SPDX-License-Identifier: MIT
