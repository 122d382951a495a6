# Two commands do everything: make run, make test. The rest is for those who work on it.
GO       ?= go
BIN      := bin/passepartout
TOOL      = $(GO) tool -modfile=tools/go.mod
SHARED   ?= ../shared
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
FUZZTIME ?= 60s
SOAK     ?= 20m
SOAKFAULTS ?= 500
SOAKSEED ?=
PACKAGES := gcc libc6-dev emacs-nox sbcl cl-ppcre tmux bubblewrap git python3

.DEFAULT_GOAL := help
.PHONY: help run build test check lint bench bench-compare bench-all report fuzz soak soak-tests eval cover release reproduce deps tools clean

help: ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

run: build ## build, start on a demo memex unless one is configured, and open a prompt
	@$(BIN) --demo

build:
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN) ./cmd/passepartout

test: deps build ## install what the tests need and run them all
	$(GO) vet ./...
	GORACE=atexit_sleep_ms=0 $(GO) test -race -timeout 30m ./...

check: ## the fast loop: format, vet, lint, shape, unit tests
	@unformatted=$$($(TOOL) gofumpt -l cmd internal) && [ -z "$$unformatted" ] || { echo "not gofumpt-clean:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(TOOL) golangci-lint run ./...
	$(GO) test -short ./...

bench: build ## measure what docs/benchmarks.md shows and write it, 15 minutes (BENCH_QUICK=1: two, nothing is written)
	$(GO) run ./cmd/measure bench $(if $(BENCH_QUICK),-quick)

bench-compare: build ## measure again and fail where it became worse than noise explains
	$(GO) run ./cmd/measure compare $(if $(BENCH_QUICK),-quick)

bench-all: ## run every benchmark there is (BENCH=pattern: some)
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem ./internal/... ./cmd/passepartout

report: build ## show every promise of the issues with its figure, 40 minutes (REPORT_QUICK=1: a few)
	@$(GO) run ./cmd/measure report $(if $(REPORT_QUICK),-quick) $(REPORT)

fuzz: ## run every fuzz target for FUZZTIME (60s)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  dir=$$($(GO) list -f '{{.Dir}}' $$pkg); \
	  for target in $$(grep -hoE '^func (Fuzz[A-Za-z0-9_]+)' $$dir/*_test.go 2>/dev/null | awk '{print $$2}'); do \
	    echo "== $$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

soak: deps ## everybody at once while things break, for SOAK (20m), with at least SOAKFAULTS (500) faults
	SOAK=$(SOAK) SOAKFAULTS=$(SOAKFAULTS) SOAKSEED=$(SOAKSEED) $(GO) test -count=1 -timeout 3h -run '^TestSoak$$' -v ./internal/soak

soak-tests: build ## the long forms of tests: crash points, model-based tests, many clients
	PASSEPARTOUT_SOAK=1 $(GO) test -timeout 60m -run 'Soak|Crash|Model' -v ./... | grep -vE '^(=== RUN|\?|ok .*no tests)'

eval: build ## score the binary on the shared data sets
	@if [ ! -d $(SHARED)/tools ]; then echo "eval: $(SHARED) is not here, nothing to score"; exit 0; fi; \
	status=0; \
	echo "== gates"; python3 $(SHARED)/tools/eval_gates.py --bin $(CURDIR)/$(BIN) || status=1; \
	echo "== org"; python3 $(SHARED)/tools/eval_org.py --bin $(CURDIR)/$(BIN) || status=1; \
	echo "== recall"; for mode in hashing lexical vector fused; do python3 $(SHARED)/tools/eval_recall.py --bin $(CURDIR)/$(BIN) --mode $$mode || status=1; done; \
	exit $$status

cover: ## report test coverage by package
	$(GO) test -short -cover ./... | awk '/coverage:/ {print $$5, $$2}' | sort -rn

release: build ## static, reproducible binaries for four systems, with checksums, SBOMs and manual pages
	@rm -rf dist && mkdir -p dist/man && for platform in $(PLATFORMS); do \
	  os=$${platform%/*} arch=$${platform#*/}; out=dist/passepartout-$$os-$$arch; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch GOFLAGS= $(GO) build -trimpath -buildvcs=true -ldflags '-s -w -buildid=' -o $$out ./cmd/passepartout || exit 1; \
	  $(BIN) sbom $$out > $$out.spdx.json || exit 1; \
	done; $(BIN) man dist/man && cd dist && sha256sum passepartout-* man/* > SHA256SUMS && grep ' passepartout-' SHA256SUMS

reproduce: ## build the release of this commit in two clones that share no path, cache or environment, and compare
	@GO="$(GO)" .ci/reproduce "$(PLATFORMS)"

deps: ## install the system programs the tests use
	@missing=; for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "installing$$missing"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	elif [ -n "$$missing" ]; then echo "deps: not installed:$$missing (tests that need them will skip and say so)"; fi
	@$(GO) mod download

clean:
	rm -rf bin dist
