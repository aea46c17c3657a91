# Two commands are all one needs: `make run` and `make test`.

BINARY := bin/selvage
# Whatever is compiled, but for the race detector, is compiled in one way, and so once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath
# The race detector needs a C compiler. It watches our code and that of libraries, but for what only computes and would
# take ten times as long: SQLite, which is translated from C, hashes of passwords, and the arithmetic of keys.
UNWATCHED := modernc.org/... golang.org/x/crypto/... crypto/internal/fips140/...
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race $(UNWATCHED:%=-gcflags=%=-race=false))
# Under it each process takes a second longer to end, and tests start many.
export GORACE := atexit_sleep_ms=0
# Packages whose tests need no built binary; those that need a server are skipped without one.
PACKAGES := $(shell go list ./... | grep -v -e /test/ -e /bench)
# Packages that compute a lot and share hardly anything: the race detector would only make them slow.
ALONE := $(shell go list ./recordings/wav ./recordings/mp3 ./recordings/levels ./recordings/audio ./internal/openapi/... ./internal/apidoc)
# So would it with tests that fill a database with rows, to ask it one by one how it finds them, and with one that
# starts a process again and again to kill it.
FILLED := ^Test(Plans|GoneWebhooksPlan|RecordingPlans|RecordingPages|KilledMigrations)$$
# Suites that run the built binary, and what each backend is for beside the scripts: attacks where rows are, nodes
# where sessions are, clients on one of either, media and conformance on one, since no row is of their kind. What takes
# long in a browser runs once: on redis, or where that is left out on sqlite, for which the tests know the BACKENDS.
BACKENDS := sqlite postgres redis cluster
SUITES_sqlite := ./test/attack ./test/clients ./test/conformance ./test/contract ./test/faults ./test/media
SUITES_postgres := ./test/attack ./test/faults
SUITES_redis := ./test/clients ./test/contract ./test/faults ./test/nodes
SUITES_cluster := ./test/faults ./test/nodes
# Where pictures of pages go.
SCREENSHOTS ?= build/screenshots
FORMATTED := cmd docs release idp fabric operator dashboard recordings templates static sdk keys internal test bench
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := build
.PHONY: run build sdk check test race suites beside alone outages screenshots lint bench release firstrun

run: build ## build and serve on embedded defaults; flags go into ARGS
	$(BINARY) serve $(ARGS)

build: ## build bin/selvage
	go build -ldflags "-X main.build=$$(git describe --tags --always --dirty 2>/dev/null) -X main.buildCommit=$$(git rev-parse HEAD 2>/dev/null) -X main.buildDate=$$(git show --no-patch --format=%cI HEAD 2>/dev/null)" -o $(BINARY) ./cmd/selvage

sdk: ## build the browser SDK; its types too where npm has installed TypeScript
	go generate ./sdk
	@if test -x sdk/node_modules/.bin/tsc; then cd sdk && rm -rf dist/types && npm run --silent types; else echo "the types are as they were: npm ci --prefix sdk installs TypeScript"; fi

check: ## what needs no servers and no browsers
	@test -z "$$(gofmt -l $(FORMATTED))" || { gofmt -l $(FORMATTED); echo "run gofmt -w on these files" >&2; exit 1; }
	@go vet ./...
	@SELVAGE_TEST_SERVERS=none go test -vet=off $(PACKAGES)

test: build ## everything; installs what the tests need on Debian when it is missing
	test/setup.sh
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_ALL=1 SELVAGE_TEST_BACKENDS="$(BACKENDS)" go run ./test/servers/run -- $(MAKE) --no-print-directory suites BACKENDS="$(BACKENDS)"

# What `make test` runs once PostgreSQL and Redis are there. All of it waits now and then, for databases, for browsers, for
# time to pass: four go together, what takes longest first, so that neither of two cores is idle before the end. Within
# each, suites go one by one. Tests are vetted by lint.
LONG := suites-sqlite suites-redis
SUITES := $(BACKENDS:%=suites-%)
suites:
	@$(MAKE) --no-print-directory -j4 --output-sync=target $(filter $(LONG),$(SUITES)) beside $(filter-out $(LONG),$(SUITES)) outages alone

# The tests beside the packages, where things happen at once.
beside:
	@CGO_ENABLED=1 go test $(RACE) -timeout 30m -count=1 -vet=off -skip '^TestScripts$$|$(FILLED)' $(filter-out $(ALONE),$(PACKAGES)) ./test/harness ./test/servers/...

alone:
	@go test -timeout 30m -count=1 -vet=off -run '$(FILLED)' ./internal/store
	@go test -timeout 30m -count=1 -vet=off $(ALONE)

outages:
	@go test -timeout 30m -count=1 -vet=off ./test/outages

# On redis, where most happens at once, the scripts whose server does several things at a time run under the race detector;
# `make race` runs all of them so.
AT_ONCE := ^TestScripts$$/^(audit|away|crash|device|drain|login|logout|recording|redis-stops|reload|ring|stop|token|webhook)$$
SCRIPT := -timeout 30m -count=1 -vet=off -parallel 4 -run
suites-%:
	@echo "on $*:"
	@$(if $(filter redis,$*),SELVAGE_TEST_BACKEND=$* CGO_ENABLED=1 go test $(RACE) $(SCRIPT) '$(AT_ONCE)' ./cmd/selvage)
	@SELVAGE_TEST_BACKEND=$* go test $(SCRIPT) '^TestScripts$$' $(if $(filter redis,$*),-skip '$(AT_ONCE)') ./cmd/selvage
	@SELVAGE_TEST_BACKEND=$* go test -p 1 -timeout 30m -count=1 -vet=off -parallel 4 $(SUITES_$*)

race: build ## every script under the race detector, of which `make test` has those that are about things at once
	test/setup.sh
	@SELVAGE_TEST_ALL=1 SELVAGE_TEST_BACKEND=redis CGO_ENABLED=1 go run ./test/servers/run -- go test $(RACE) $(SCRIPT) '^TestScripts$$' ./cmd/selvage

screenshots: build ## every page in light, dark and on a phone, into SCREENSHOTS, with an index.html
	test/setup.sh
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_ALL=1 SELVAGE_TEST_SCREENSHOTS=$(abspath $(SCREENSHOTS)) go test -count=1 -vet=off -run '^TestScreens' ./test/clients

lint: ## vet and staticcheck
	go vet ./...
	go run $(STATICCHECK) ./...

# What is given out, in dist/: static binaries, packages, an image, a bill of materials, licences and checksums. With
# TWICE=-twice all of it is made again, of a copy of the tree in another place, and has to be the same to the byte.
release: ## binaries, packages, image, bill of materials, licences, checksums
	rm -rf dist
	go -C release run . -root $(CURDIR) -out $(CURDIR)/dist $(if $(VERSION),-version $(VERSION)) $(TWICE)

firstrun: ## the five minutes of docs/start.md, of a fresh clone with empty caches; prints the seconds
	test/first/run.sh

bench: build ## the operations of docs/performance.md
	SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./bench
