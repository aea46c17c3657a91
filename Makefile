# Two commands are all you need: `make run` and `make test`.

BINARY := bin/selvage
# The same settings for every build, so that packages are compiled once. Only the race detector uses cgo.
export CGO_ENABLED := 0
# The tag omits a page of gRPC for debugging, which nothing serves. It would need 13 MB, because it looks
# up methods by name.
export GOFLAGS := -trimpath -tags=grpcnotrace
# Compilers, tests and the commands they start are short-lived: collect garbage less often.
export GOGC := 400
# test/setup.sh makes this link if the Node.js of the system is too old for the tests.
export PATH := $(CURDIR)/bin/node/bin:$(PATH)
# By default the race detector delays the exit of each process by a second.
export GORACE := atexit_sleep_ms=0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
VERSION_FLAGS = -X main.build=$$(git describe --tags --always --dirty 2>/dev/null) \
	-X main.buildCommit=$$(git rev-parse HEAD 2>/dev/null) \
	-X main.buildDate=$$(git show --no-patch --format=%cI HEAD 2>/dev/null)
# The tests run the built binary, and skip nothing.
TESTS := SELVAGE_BINARY=$(CURDIR)/$(BINARY) SELVAGE_TEST_ALL=1
# Where `make screenshots` puts its pictures.
SCREENSHOTS ?= build/screenshots
SBOM ?= build/selvage.cdx.json

.DEFAULT_GOAL := build
.PHONY: run build sdk check test cluster attack faults race screenshots lint fuzz sbom vuln bench bench-peers scale release firstrun

run: build ## build and serve on embedded defaults; ARGS holds more flags
	$(BINARY) serve $(ARGS)

build: ## build bin/selvage
	go build -ldflags "$(VERSION_FLAGS)" -o $(BINARY) ./cmd/selvage

sdk: ## build the browser SDK, and its types where TypeScript is installed
	go generate ./sdk
	@if test -x sdk/node_modules/.bin/tsc; then \
		cd sdk && rm -rf dist/types && npm run --silent types; \
	else \
		echo "The types are unchanged: npm ci --prefix sdk installs TypeScript."; \
	fi

check: ## gofmt, vet, and the tests that need no servers and no browsers
	@go run ./test/all -check

test: build ## every test; installs missing packages on Debian
	test/setup.sh
	@$(TESTS) go run ./test/servers/run -- go run ./test/all $(PARTS)

cluster: build ## three nodes, PostgreSQL with a replica, a Redis Cluster and S3, until Ctrl-C; ARGS=-once stops after a proof
	test/setup.sh
	@SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./test/cluster/run $(ARGS)

attack: ## the attacks, on SQLite and PostgreSQL, and two nodes on PostgreSQL and Redis
	@SELVAGE_TEST_BYSTANDER=1 $(MAKE) --no-print-directory test PARTS="-jobs 1 attack-on-sqlite \
		attack-on-postgres attack-on-redis times-on-sqlite times-on-postgres nodes-on-redis"

faults: ## kills, races, and lost databases and nodes; LONG=1 takes as long as a release requires
	@$(MAKE) --no-print-directory test PARTS="faults-on-sqlite faults-on-postgres faults-on-redis \
		outages-on-sqlite cluster-on-cluster nodes-on-redis nodes-on-cluster"

race: ## every script under the race detector, commands included
	@$(MAKE) --no-print-directory test PARTS=race

screenshots: build ## pictures of every page, in SCREENSHOTS, and those of README.md and docs
	test/setup.sh
	@$(TESTS) SELVAGE_TEST_SCREENSHOTS=$(abspath $(SCREENSHOTS)) SELVAGE_TEST_MAILS=$(CURDIR)/docs/images \
		go test -count=1 -vet=off -run '^TestScreens' ./test/clients
	@$(TESTS) SELVAGE_TEST_PICTURE=$(CURDIR)/docs/images/pages.png \
		go test -tags picture -count=1 -vet=off -run '^TestPicture$$' ./test/clients

# staticcheck keeps all packages in memory, so it collects garbage as often as usual.
lint: ## vet, staticcheck, the style of code and prose, and the files in deploy
	go vet ./...
	GOGC=100 go run $(STATICCHECK) ./...
	go run ./test/style
	go -C deploy/lint vet ./...
	go -C deploy/lint test ./...

fuzz: ## every fuzz target in turn, FUZZTIME each; FUZZ is a regular expression of their names
	@go run ./test/fuzz -time $(or $(FUZZTIME),60s) -targets '$(FUZZ)'

sbom: ## the bill of materials of the binary, in CycloneDX: SBOM names the file
	go -C release run . -root $(CURDIR) -sbom $(abspath $(SBOM))

vuln: export GOGC := 100
vuln: ## known vulnerabilities in reachable code; VULNDB=file:///PATH is a copy of the database
	@if test -z "$(VULNDB)"; then \
		echo "make vuln: nothing was checked, because no vulnerability database is given." >&2; \
		echo "Set VULNDB to a copy of https://vuln.go.dev (file:///PATH), or to that URL." >&2; \
		exit 1; \
	fi
	go run $(GOVULNCHECK) -db "$(VULNDB)" ./...

release: ## binaries, packages, image, bill of materials and checksums, in dist/; TWICE=-twice compares two builds
	rm -rf dist
	go -C release run . -root $(CURDIR) -out $(CURDIR)/dist $(if $(VERSION),-version $(VERSION)) $(TWICE)

firstrun: ## the five minutes of docs/start.md on a fresh clone with empty caches, timed
	test/first/run.sh

bench: build ## the operations of docs/performance.md
	SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./bench

bench-peers: build ## other OpenID providers, nginx and lame beside selvage, by turns; installs them
	test/setup.sh
	npm ci --silent --prefix bench/peers
	go -C bench/peers build -o $(CURDIR)/bin/bench-peers .
	SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./bench -peers -repeat 5
	SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./bench -only 'nginx|recording|lame|MP3' -json bin/bench-media.json

scale: build ## costs on PostgreSQL and Redis, a simulation of queues, and what large installations need
	test/setup.sh
	SELVAGE_BINARY=$(CURDIR)/$(BINARY) go run ./bench -scale -length 10s
