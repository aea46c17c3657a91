package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// allBackends names the combinations of a database and a session store: SQLite for both, PostgreSQL
// for both, PostgreSQL with Redis, and PostgreSQL with a Redis Cluster.
var allBackends = []string{"sqlite", "postgres", "redis", "cluster"}

// A placement runs a suite on a backend. Scripts run on every backend. The other suites run where
// they can fail differently: attacks on each database, nodes on Redis and on a Redis Cluster, and
// clients on two of the four backends if they depend on storage. Media, conformance and the
// appearance of pages do not depend on the backend, so they run on one.
type placement struct {
	suite, backend string

	// seconds is roughly how long the part takes when four parts run at a time on two cores. The
	// longest parts start first, so that no core is idle at the end.
	seconds int

	// only is a regular expression of the tests to run; "" runs them all.
	only string

	// skip is a regular expression of tests that run only on another backend; "" skips none.
	skip string
}

// sessionAttacks matches the attacks on data in the session store: live logins, requests, and
// counts of guesses. All other attacks have the same results on Redis as on PostgreSQL.
const sessionAttacks = `^Test(P0[2-7]|Limits|S0)`

// measured matches the attacks that compare times or measure the cost of requests. They form a
// separate suite, times. Its parts run one at a time after all other parts have ended.
const measured = `^Test(P01Timing|P12ImportedHashes|P09ParallelLogins|P11CostlyPasswords|` +
	`K08KeyTiming|I17HostileRequests)$`

// inFirefox matches the test of clients that uses a Firefox in its own network. It forms the suite
// firefox.
const inFirefox = `^TestFirefoxCalls$`

// looks matches the tests of clients that do not depend on the backend. They check the appearance
// of pages, how a browser plays media, and certificates.
const looks = `^Test(Screens.*|Keyboard|DashboardFits|MailsInChromium|WeightOfSignIn|RecordTone|Types|Package|` +
	`ChromiumSeeksInTenHours|CallsByNetwork|ACME.*|(Chromium|Firefox|System|Sudo)Trust)$`

var placements = []placement{
	{suite: "clients", backend: "redis", seconds: 340, skip: looks},
	{suite: "clients", backend: "sqlite", seconds: 260},
	{suite: "attack", backend: "sqlite", seconds: 150},
	{suite: "attack", backend: "postgres", seconds: 130},
	{suite: "times", backend: "sqlite", seconds: 10},
	{suite: "times", backend: "postgres", seconds: 10},
	{suite: "scripts", backend: "redis", seconds: 75},
	{suite: "scripts", backend: "sqlite", seconds: 45},
	{suite: "scripts", backend: "postgres", seconds: 20},
	{suite: "scripts", backend: "cluster", seconds: 15},
	{suite: "nodes", backend: "redis", seconds: 120},
	{suite: "nodes", backend: "cluster", seconds: 105},
	{suite: "outages", backend: "sqlite", seconds: 40},
	{suite: "cluster", backend: "cluster", seconds: 35},
	{suite: "media", backend: "sqlite", seconds: 30},
	{suite: "firefox", backend: "sqlite", seconds: 30},
	{suite: "contract", backend: "sqlite", seconds: 25},
	{suite: "contract", backend: "redis", seconds: 30},
	{suite: "faults", backend: "sqlite", seconds: 85},
	{suite: "faults", backend: "postgres", seconds: 40},
	{suite: "faults", backend: "redis", seconds: 10},
	{suite: "attack", backend: "redis", seconds: 12, only: sessionAttacks},
	{suite: "attack", backend: "cluster", seconds: 10, only: sessionAttacks},
	{suite: "canaries", backend: "sqlite", seconds: 5},
	{suite: "canaries", backend: "redis", seconds: 5},
	{suite: "conformance", backend: "sqlite", seconds: 40},
}

// module begins the import paths of this module.
const module = "github.com/selvage/selvage/"

// filling matches tests that fill a database with rows to check which indexes queries use. It also
// matches a test that repeatedly starts a process to kill it. `make check` skips them.
const filling = `^Test(Plans|GoneWebhooksPlan|RecordingPlans|RecordingPages|KilledMigrations)$`

// computed matches tests that run without the race detector, although the other tests of their
// packages, which are in computedIn, run with it. They compute for a long time in a single
// goroutine: they decode and encode sound, check signatures, or migrate databases.
const computed = `^Test(RenderCodecs|Interruptions|Drift|Pause|Timeline|HostileTimeline|TornTail|Flood|` +
	`RotationUnderLoad|RestoreOlderSchema)$`

// computedIn lists the packages of the tests in computed.
var computedIn = []string{
	module + "calls/record", module + "keys/keystest", module + "cmd/selvage/internal/backups",
}

// scripts matches the only test of the suite scripts that runs on backends other than SQLite.
const scripts = `^TestScripts$`

// unwatched lists packages that the race detector skips, because they only compute and would take
// ten times as long: cryptography, Opus, and SQLite, which is translated from C. A package that
// uses sync.Map or atomic values must not be listed here. The linker keeps one copy of generic
// code. If that copy is not instrumented, the race detector misses the synchronization in it and
// reports races elsewhere.
var unwatched = []string{
	"modernc.org/...", "golang.org/x/crypto/...", "crypto/internal/fips140/...", "github.com/pion/opus/...",
}

// A part is a sequence of commands in a test run, with its requirements. Unless alone is set, it
// runs at the same time as other parts.
type part struct {
	name    string
	seconds int      // approximate time that the part takes; see [placement]
	after   string   // part that must end before this one starts; may be ""
	alone   bool     // whether it runs alone after all others have ended
	dir     string   // directory in which it runs; "" is the top of the repository
	env     []string // variables in addition to the environment
	steps   [][]string

	// onRequest marks a part that runs only if it is named on the command line.
	onRequest bool
}

// parts returns all parts on the given backends, longest first.
func parts(backends string, lint, race bool) []part {
	raced := append([]string{"go", "build"}, raceFlags()...)
	raced = append(raced, "-ldflags=-s -w", "-o", built("selvage-raced"), "./cmd/selvage")

	// This part starts first, because other parts need the binary that it builds.
	all := []part{{name: "raced", seconds: 400, env: withCgo, onRequest: !race, steps: [][]string{raced}}}
	all = append(all, packageParts(race && hasRaceDetector())...)
	all = append(all, part{
		name:      "race",
		seconds:   1000,
		onRequest: true,
		env:       append(withCgo, "SELVAGE_TEST_BACKEND=redis"),
		steps: [][]string{
			goTest(append(raceFlags(), "-parallel", "4", "-run", scripts), []string{"./cmd/selvage"}),
		},
	})

	if lint {
		all = append(all, part{name: "lint", seconds: 90, steps: [][]string{{"make", "--no-print-directory", "lint"}}})
	}
	for _, p := range placements {
		if slices.Contains(strings.Split(backends, ","), p.backend) {
			all = append(all, p.part(backends, race))
		}
	}
	slices.SortStableFunc(all, func(a, b part) int { return b.seconds - a.seconds })
	return all
}

// packageParts returns the parts that run the tests next to the packages' code. With race, one of
// them runs the tests that [selectRaced] selects, except those in [computed], under the race
// detector.
func packageParts(race bool) []part {
	if !race {
		return []part{{name: "packages", seconds: 200, steps: [][]string{goTest(nil, packages())}}}
	}

	s := selectRaced(packages())
	computing, whole := split(s.whole, computedIn)
	return []part{
		{
			name:    "packages-raced",
			seconds: 290,
			after:   "raced",
			env:     withCgo,
			steps: [][]string{
				goTest(raceFlags(), whole),
				goTest(append(raceFlags(), "-skip", computed), computing),
				goTest(append(raceFlags(), "-run", s.pattern()), s.partly),
			},
		},
		{
			name:    "packages",
			seconds: 180,
			steps: [][]string{
				goTest(nil, s.others),
				goTest([]string{"-skip", s.pattern()}, s.partly),
				goTest([]string{"-run", computed}, computing),
			},
		},
	}
}

// split returns the packages that are in the list, and the others.
func split(packages, list []string) (in, out []string) {
	for _, p := range packages {
		if slices.Contains(list, p) {
			in = append(in, p)
		} else {
			out = append(out, p)
		}
	}
	return in, out
}

// quickParts returns the parts that `make check` runs. They need no servers, no browsers and no
// built binary.
func quickParts() []part {
	tests := goTest([]string{"-skip", scripts + "|" + filling}, append(packages(), "./cmd/selvage"))
	tests = slices.DeleteFunc(tests, func(arg string) bool { return arg == "-count=1" }) // results may be cached
	return []part{
		{name: "tests", seconds: 60, env: []string{"SELVAGE_TEST_SERVERS=none"}, steps: [][]string{tests}},
		{name: "vet", seconds: 30, steps: [][]string{{"go", "vet", "./..."}}},
		{name: "format", seconds: 1, steps: [][]string{{"test/unformatted.sh"}}},
	}
}

// part returns the part that runs a suite on a backend. With race, the servers of scripts run under
// the race detector on Redis, because Redis is the backend with the most concurrency.
func (p placement) part(backends string, race bool) part {
	source := p.source()
	args := []string{built(filepath.Base(source) + ".test"), "-test.timeout", timeout(), "-test.parallel", "4"}
	made := part{
		name:    p.suite + "-on-" + p.backend,
		seconds: p.seconds,
		dir:     source,
		alone:   p.suite == "times",
		env: []string{"SELVAGE_TEST_BACKEND=" + p.backend,
			"SELVAGE_TEST_BACKENDS=" + strings.ReplaceAll(backends, ",", " ")},
	}

	if race && p.suite == "scripts" && p.backend == "redis" && hasRaceDetector() {
		made.after = "raced"
		made.env = append(made.env, "SELVAGE_TEST_RACED="+built("selvage-raced"))
	}
	made.steps = [][]string{append(args, p.selection()...)}
	return made
}

// selection returns the flags that select the tests of a suite.
func (p placement) selection() []string {
	switch {
	case p.only != "":
		return []string{"-test.run", p.only}
	case p.suite == "times":
		return []string{"-test.run", measured}
	case p.suite == "attack":
		return []string{"-test.skip", measured}
	case p.suite == "firefox":
		return []string{"-test.run", inFirefox}
	case p.suite == "clients" && p.skip != "":
		return []string{"-test.skip", inFirefox + "|" + p.skip}
	case p.suite == "clients":
		return []string{"-test.skip", inFirefox}
	case p.suite == "scripts" && p.backend != "sqlite": // on SQLite, the other tests of the command run as well
		return []string{"-test.run", scripts}
	}
	return nil
}

// source returns the directory of a suite's tests.
func (p placement) source() string {
	switch p.suite {
	case "scripts":
		return "cmd/selvage"
	case "times":
		return "test/attack"
	case "firefox":
		return "test/clients"
	}
	return "test/" + p.suite
}

// packages lists the packages whose tests need no built binary. The command is not one of them,
// because its tests run with its scripts.
func packages() []string {
	excluded := listPackages("./cmd/selvage", "./test/...", "./bench/...")
	included := slices.DeleteFunc(listPackages("./..."), func(p string) bool { return slices.Contains(excluded, p) })
	return append(included, listPackages("./test/all", "./test/harness", "./test/history",
		"./test/servers/...", "./test/style")...)
}

// hasRaceDetector reports whether there is a C compiler, which the race detector needs.
func hasRaceDetector() bool {
	compiler, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return false
	}
	_, err = exec.LookPath(strings.TrimSpace(string(compiler)))
	return err == nil
}

// withCgo is the environment for compiling with the race detector.
var withCgo = []string{"CGO_ENABLED=1"}

// raceFlags returns the flags that turn the race detector on, or nil without a C compiler.
func raceFlags() []string {
	if !hasRaceDetector() {
		return nil
	}
	flags := []string{"-race"}
	for _, p := range unwatched {
		flags = append(flags, "-gcflags="+p+"=-race=false")
	}
	return flags
}

// goTest returns the command that tests packages. It skips vet, which lint runs.
func goTest(flags, packages []string) []string {
	args := append([]string{"go", "test", "-timeout", timeout(), "-count=1", "-vet=off"}, flags...)
	return append(args, packages...)
}

// timeout returns how long the tests of a package may take together. With LONG=1 in the
// environment, tests repeat their work as often as a release requires, so the limit is higher.
func timeout() string {
	if os.Getenv("LONG") == "1" {
		return "3h"
	}
	return "30m"
}
