# Two commands are all one needs: `make run` and `make test`.

BINARY := bin/selvage
# The race detector needs a C compiler.
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)
# Under it each process takes a second longer to end, and tests start many.
export GORACE := atexit_sleep_ms=0
# Packages whose tests need no built binary; those that need a server are skipped without one.
PACKAGES := $(shell go list ./... | grep -v -e /test/ -e /bench)
# Suites that run the built binary, and what each backend is for beside the scripts: attacks where rows are, nodes
# where sessions are, browsers and media on one of either.
BACKENDS := sqlite postgres redis cluster
SUITES_sqlite := ./test/attack ./test/clients ./test/faults ./test/media
SUITES_postgres := ./test/attack ./test/faults
SUITES_redis := ./test/clients ./test/faults ./test/media ./test/nodes
SUITES_cluster := ./test/faults ./test/nodes
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := build
.PHONY: run build check test suites outages lint bench

run: build ## build and serve on embedded defaults; flags go into ARGS
	$(BINARY) serve $(ARGS)

build: ## build bin/selvage
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.build=$$(git describe --always --dirty 2>/dev/null)" -o $(BINARY) ./cmd/selvage

check: ## what needs no servers and no browsers
	@test -z "$$(gofmt -l cmd idp fabric recordings templates static keys internal test bench)" || { gofmt -l cmd idp fabric recordings templates static keys internal test bench; echo "run gofmt -w on these files" >&2; exit 1; }
	@go vet ./...
	@go test $(PACKAGES)

test: build ## everything; installs what the tests need on Debian when it is missing
	test/setup.sh
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_ALL=1 go run ./test/servers/run -- $(MAKE) --no-print-directory suites BACKENDS="$(BACKENDS)"

# What `make test` runs once PostgreSQL and Redis are there. The suites mostly wait,
# for browsers and for time to pass: three of them go together.
suites:
	@go test $(RACE) -count=1 -skip '^TestScripts$$' $(PACKAGES) ./test/harness ./test/servers/...
	@$(MAKE) --no-print-directory -j3 --output-sync=target $(BACKENDS:%=suites-%) outages

outages:
	@go test -count=1 -vet=off ./test/outages

# The scripts run under the race detector where most happens at once.
suites-%:
	@echo "on $*:"
	@SELVAGE_TEST_BACKEND=$* go test $(if $(filter redis,$*),$(RACE)) -count=1 -vet=off -parallel 4 -run '^TestScripts$$' ./cmd/selvage
	@SELVAGE_TEST_BACKEND=$* go test -count=1 -vet=off -parallel 4 $(SUITES_$*)

lint: ## vet and staticcheck
	go vet ./...
	go run $(STATICCHECK) ./...

bench: build ## the operations of docs/performance.md
	SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./bench
