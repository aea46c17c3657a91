# Two commands are all one needs: `make run` and `make test`.

BINARY := bin/selvage
# Whatever is compiled, but for the race detector, is compiled in one way, and so once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath
# What compiles and what tests lives briefly, as do the commands that tests start: garbage is collected less often, as
# servers do by themselves.
export GOGC := 400
# The race detector needs a C compiler. It watches our code and that of libraries, but for what only computes and would
# take ten times as long: SQLite, which is translated from C, hashes of passwords, and the arithmetic of keys.
UNWATCHED := modernc.org/... golang.org/x/crypto/... crypto/internal/fips140/...
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race $(UNWATCHED:%=-gcflags=%=-race=false))
# Under it each process takes a second longer to end, and tests start many.
export GORACE := atexit_sleep_ms=0
# Packages whose tests need no built binary; those that need a server are skipped without one.
PACKAGES := $(shell go list ./... | grep -v -e /test/ -e /bench)
# Packages that compute a lot and share hardly anything: the race detector would only make them slow.
ALONE := $(shell go list ./recordings/wav ./recordings/mp3 ./recordings/levels ./recordings/audio ./openapi/... ./cmd/selvage/internal/apidoc ./internal/logo ./internal/words ./internal/palette)
# So would it with tests that fill a database with rows, to ask it one by one how it finds them, and with one that
# starts a process again and again to kill it.
FILLED := ^Test(Plans|GoneWebhooksPlan|RecordingPlans|RecordingPages|KilledMigrations)$$
# Suites that run the built binary, and what each backend is for beside the scripts: attacks where rows are, nodes
# where sessions are, clients on one of either, faults on each database and on Redis, media and conformance on one, since
# no row is of their kind. What takes long in a browser runs once, on redis, or where that is left out on sqlite, and what
# breaks rows alone not on redis beside postgres: for this the tests know the BACKENDS. Of the attacks, redis and cluster
# have those on what sessions keep: live logins, requests, and counts of guesses. The cluster is shared by all tests, each
# with a prefix of its own, so that what comes from their one network is counted for each by itself.
ATTACKS_redis := ^Test(P0[2-7]|Limits|S0)
ATTACKS_cluster := $(ATTACKS_redis)
BACKENDS := sqlite postgres redis cluster
SUITES_sqlite := scripts attack clients conformance contract faults media
SUITES_postgres := scripts attack faults
SUITES_redis := scripts attack clients contract faults nodes
SUITES_cluster := scripts attack nodes
# Each suite is compiled once for all its backends, and all that needs no C compiler at once.
TESTS := $(CURDIR)/build/tests
SUITES := attack clients conformance contract faults media nodes outages
IN = $(if $(filter scripts,$1),cmd/selvage,test/$1)
COMPILED = $(TESTS)/$(notdir $(call IN,$1)).test
# Where pictures of pages go.
SCREENSHOTS ?= build/screenshots
FORMATTED := bench cmd docs fabric idp internal keys openapi operator recordings release sdk static store templates test
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := build
.PHONY: run build sdk check test race suites compiled beside alone raced screenshots lint bench release firstrun

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
	@SELVAGE_TEST_SERVERS=none go test -vet=off -skip '^TestScripts$$|$(FILLED)' $(PACKAGES)

test: build ## everything; installs what the tests need on Debian when it is missing
	test/setup.sh
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_ALL=1 SELVAGE_TEST_BACKENDS="$(BACKENDS)" go run ./test/servers/run -- $(MAKE) --no-print-directory suites BACKENDS="$(BACKENDS)"

# What `make test` runs once PostgreSQL and Redis are there. All of it waits now and then, for databases, for browsers, for
# time to pass: four go together, what takes longest first, so that neither of two cores is idle before the end. All is
# compiled before, once, but for what runs under the race detector: that is compiled beside those that wait most. Tests
# are vetted by lint, which .ci/run has go beside them, too: BESIDE names what else does.
ON := $(foreach backend,$(BACKENDS),$(SUITES_$(backend):%=%-on-$(backend)))
LONGEST := clients-on-redis raced $(BESIDE) clients-on-sqlite attack-on-sqlite beside attack-on-postgres scripts-on-redis nodes-on-redis outages-on-sqlite
EVERY := $(ON) raced beside alone outages-on-sqlite $(BESIDE)
suites: compiled
	@$(MAKE) --no-print-directory -j4 --output-sync=target $(filter $(EVERY),$(LONGEST)) $(filter-out $(LONGEST),$(EVERY))

compiled:
	@rm -rf $(TESTS) && mkdir -p $(TESTS)
	@go test -c -vet=off -ldflags='-s -w' -o $(TESTS)/ ./cmd/selvage $(SUITES:%=./test/%)

# The tests beside the packages, where things happen at once: much of what they are made of is compiled for raced.
beside: raced
	@CGO_ENABLED=1 go test $(RACE) -timeout 30m -count=1 -vet=off -skip '^TestScripts$$|$(FILLED)' $(filter-out $(ALONE),$(PACKAGES)) ./test/harness ./test/servers/...

alone:
	@go test -timeout 30m -count=1 -vet=off -run '$(FILLED)' ./store
	@go test -timeout 30m -count=1 -vet=off $(ALONE)

# A suite on a backend, such as attack-on-sqlite. On redis, where most happens at once, the servers of scripts run under
# the race detector; `make race` has their commands under it, too.
define RUN
$1-on-$2: $(if $(filter scripts-redis,$1-$2),raced)
	@echo "$1 on $2:"; cd $(call IN,$1) && SELVAGE_TEST_BACKEND=$2 $(if $(filter scripts-redis,$1-$2),SELVAGE_TEST_RACED=$(if $(RACE),$(TESTS)/selvage-raced)) \
		$(call COMPILED,$1) -test.timeout 30m -test.parallel 4 $(if $(filter scripts,$1),-test.run '^TestScripts$$$$')$(if $(filter attack,$1),$(if $(ATTACKS_$2),-test.run '$(ATTACKS_$2)'))
endef
$(foreach backend,sqlite postgres redis cluster,$(foreach suite,scripts $(SUITES),$(eval $(call RUN,$(suite),$(backend)))))

raced:
	@mkdir -p $(TESTS)
	@$(if $(RACE),CGO_ENABLED=1 go build $(RACE) -ldflags='-s -w' -o $(TESTS)/selvage-raced ./cmd/selvage)

race: build ## every script under the race detector, of which `make test` has the servers on redis
	test/setup.sh
	@SELVAGE_TEST_ALL=1 SELVAGE_TEST_BACKEND=redis CGO_ENABLED=1 go run ./test/servers/run -- go test $(RACE) -timeout 30m -count=1 -vet=off -parallel 4 -run '^TestScripts$$' ./cmd/selvage

screenshots: build ## every page in light, dark and on a phone, into SCREENSHOTS, with an index.html; and the picture of README.md
	test/setup.sh
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_ALL=1 SELVAGE_TEST_SCREENSHOTS=$(abspath $(SCREENSHOTS)) SELVAGE_TEST_MAILS=$(CURDIR)/docs/images go test -count=1 -vet=off -run '^TestScreens' ./test/clients
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_PICTURE=$(CURDIR)/docs/images/pages.png go test -tags picture -count=1 -vet=off -run '^TestPicture$$' ./test/clients

lint: export GOGC := 100
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
