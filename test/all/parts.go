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
// clients on two of the four backends. Media, conformance and the appearance of pages do not depend
// on the backend, so each of them runs on one backend.
type placement struct {
	suite, backend string

	// seconds is roughly how long the part takes when four parts run at a time on two cores. The
	// longest parts start first, so that no core is idle at the end.
	seconds int

	// only is a regular expression for the tests to run; "" runs them all.
	only string

	// skip is a regular expression for tests that run only on another backend; "" skips none.
	skip string
}

// sessionAttacks matches the attacks on data in the session store: current logins, authorization
// requests, and counts of guesses. All other attacks have the same results on Redis as on
// PostgreSQL.
const sessionAttacks = `^Test(P0[2-7]|Limits|S0)`

// measured matches the attacks that compare times or measure the cost of requests. They form the
// separate suite times, whose parts run one at a time after all other parts have ended.
const measured = `^Test(P01Timing|P12ImportedHashes|P09ParallelLogins|P11CostlyPasswords|` +
	`K08KeyTiming|I17HostileRequests)$`

// inFirefox matches the test of the suite clients that uses a Firefox in its own network. This test
// is the suite firefox.
const inFirefox = `^TestFirefoxCalls$`

// looks matches the tests of the suite clients that do not depend on the backend. They check
// certificates, the appearance of pages, and the playback of media.
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

// module is how the import paths of this module begin.
const module = "github.com/selvage/selvage/"

// filling matches the slow tests that `make check` skips. They fill a database with rows to check
// which indexes queries use, or repeatedly start a process and kill it.
const filling = `^Test(Plans|GoneWebhooksPlan|RecordingPlans|RecordingPages|KilledMigrations)$`

// computed matches tests that run without the race detector, although the other tests in their
// packages run with it. They compute for a long time in a single goroutine, for example to encode
// sound, to check signatures or to migrate databases.
const computed = `^Test(RenderCodecs|Interruptions|Drift|Pause|Timeline|HostileTimeline|TornTail|Flood|` +
	`RotationUnderLoad|RestoreOlderSchema)$`

// computedIn lists the packages of the tests in computed.
var computedIn = []string{
	module + "calls/record", module + "keys/keystest", module + "cmd/selvage/internal/backups",
}

// scripts matches the test that the suite scripts runs on every backend. Its other tests run only
// on SQLite.
const scripts = `^TestScripts$`

// unwatched lists packages that the race detector skips, because they only compute and would take
// ten times as long: cryptography, Opus, and SQLite, which is translated from C. A package that
// uses sync.Map or atomic values must not be listed here, because the linker keeps only one copy of
// their generic code. If that copy is not instrumented, the race detector does not see its
// synchronization and reports races in other packages.
var unwatched = []string{
	"modernc.org/...", "golang.org/x/crypto/...", "crypto/internal/fips140/...", "github.com/pion/opus/...",
}

// A part is a sequence of commands in a test run. Unless alone is set, other parts run at the same
// time.
type part struct {
	name    string
	seconds int      // approximate time that the part takes; see [placement]
	after   string   // part that must end before this one starts; may be ""
	alone   bool     // runs alone, after all others have ended
	dir     string   // directory in which it runs; "" is the top of the repository
	env     []string // additional environment variables
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

// packageParts returns the parts that run the tests of packages. If race is set, one of them uses
// the race detector for the tests that [selectRaced] selects, except those that match [computed].
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

// split returns the packages that are in the list, and those that are not.
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

// part returns the part that runs a suite on a backend. If race is set, the servers that scripts
// start on Redis use the race detector, because Redis is the backend with the most concurrency.
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

// packages lists the packages whose tests need no built binary. It omits cmd/selvage, whose tests
// are part of the suite scripts.
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

// raceFlags returns the flags that turn on the race detector, or nil if there is no C compiler.
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

// goTest returns the command that tests packages. It turns vet off, because lint runs vet.
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
