package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// TestMain makes the command available to scripts as `exec selvage`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"selvage": selvage})
}

// raced is the environment variable that names a binary built with the race detector. Scripts run
// `serve` with that binary, because concurrency happens in servers. Other commands are sequential,
// so the race detector would only make them ten times slower.
const raced = "SELVAGE_TEST_RACED"

// selvage runs the command in this process, or in a binary with the race detector.
func selvage() {
	if binary := os.Getenv(raced); binary != "" && slices.Contains(os.Args, "serve") {
		fmt.Fprintln(os.Stderr, syscall.Exec(binary, os.Args, os.Environ()))
		os.Exit(1)
	}
	main()
}

// racing returns the value of GORACE for a test. With this value, commands exit without the race
// detector's usual delay of a second, and a race in any server fails the test.
func racing(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		found, err := filepath.Glob(filepath.Join(dir, "race.*"))
		if err != nil {
			t.Error(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("the race detector found a race, but its report cannot be read: %v", err)
				continue
			}
			t.Errorf("the race detector found a race:\n%s", text)
		}
	})
	return "atexit_sleep_ms=0 log_path=" + filepath.Join(dir, "race")
}

// TestScripts runs the scripts in testdata. Each runs the real command, with its own servers on
// free ports:
//
//	http [flags] METHOD URL STATUS   sends a request, and prints the body to stdout and the head to stderr
//	ready DIR                        waits for DIR/run.json and sets PID, HTTP, HTTPS, OPS and BASE
//	sigterm                          asks the server of the last ready to stop
//	sighup                           asks that server to reload
//	let NAME REGEXP                  sets NAME to the first group found in stdout or else in stderr
//	until [flags] METHOD URL STATUS  repeats a request until the status and, with -m, the body match; prints like http
//	drain USER:KEY URL FILE [force]  stops the server during an upload; with force, ends it at once
//	await FILE REGEXP                waits until a file matches
//	pkce                             sets VERIFIER and CHALLENGE
//	certify NAME HOST...             creates NAME.pem and NAME-key.pem
//	shows URL HOST                   waits until HOST is the first name of the certificate at URL
//	initialized                      creates selvage-data as a first command does, but faster
//	aged DAYS N                      creates selvage-data as if DAYS days ago, with N audited sign-ins
//	silent ARGS...                   runs selvage until it prints nothing
//	prints REGEXP... -- ARGS...      runs selvage until it succeeds (with !, fails) and stdout matches each REGEXP
//	fresh                            gives the following commands a new database and new sessions
//	redis VERB                       controls the Redis of the script; see cmdRedis
//	bucket VERB                      controls the object store of the script; see cmdBucket
//	sql FILE|URL STATEMENTS          runs SQL in an SQLite file or in PostgreSQL
//	hold FILE                        locks an SQLite file for writing
//	release                          releases that lock
//	proxy                            starts a proxy and sets PROXY
//	behind HOW URL                   puts the proxy in front of a server
//	port NAME...                     sets each NAME to a free port that no other test uses
//	receive FILE                     sets HOOK to a webhook receiver that adds a line to FILE per delivery
//
// [namespaces] is true if a script may mount file systems that only it sees, with unshare -rm.
// [modules] is true if npm has installed the clients of test/clients.
//
// On a busy machine, a server may report changes late. Check for them with until, await or prints,
// which wait for up to a minute.
//
// Scripts run on the backend that SELVAGE_TEST_BACKEND selects, each with its own database. Lines
// for one backend begin with its name, such as [sqlite].
func TestScripts(t *testing.T) {
	race := racing(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"aged":        cmdAged,
			"await":       cmdAwait,
			"behind":      cmdBehind,
			"bucket":      cmdBucket,
			"certify":     cmdCertify,
			"drain":       cmdDrain,
			"fresh":       cmdFresh,
			"hold":        cmdHold,
			"http":        cmdHTTP,
			"initialized": (&dataTemplate{t: t}).cmdInitialized,
			"let":         cmdLet,
			"pkce":        cmdPKCE,
			"port":        cmdPort,
			"prints":      cmdPrints,
			"proxy":       cmdProxy,
			"ready":       cmdReady,
			"receive":     cmdReceive,
			"redis":       cmdRedis,
			"release":     cmdRelease,
			"shows":       cmdShows,
			"sighup":      cmdSighup,
			"sigterm":     cmdSigterm,
			"silent":      cmdSilent,
			"sql":         cmdSQL,
			"until":       cmdUntil,
		},

		Setup: func(e *testscript.Env) error {
			e.Values[clientKey{}] = newScriptClient()
			e.Values[holdKey{}] = new(hold)
			e.Values[proxyKey{}] = new(*proxy)
			setBackend(e)
			e.Setenv("GORACE", race)
			e.Setenv(raced, os.Getenv(raced))

			root, err := filepath.Abs("../..")
			if err != nil {
				return err
			}
			e.Setenv("DEMO", filepath.Join(root, "cmd/selvage/internal/demo"))
			e.Setenv("GUIDE", filepath.Join(root, "docs/guide.md"))
			e.Setenv("TESTDATA", filepath.Join(root, "cmd/selvage/testdata"))
			e.Setenv("PASTE", filepath.Join(root, "cmd/selvage/testdata/paste.sh"))
			if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
				e.Setenv("GOCACHE", filepath.Join(cache, "go-build")) // for scripts that run go build
			}

			bin, _, _ := strings.Cut(e.Getenv("PATH"), ":")
			e.Setenv("BIN", bin) // a directory that contains only selvage
			e.Setenv("SERVE", "--listen=127.0.0.1:0")
			e.Setenv("TLS", "--listen-tls=127.0.0.1:0")
			e.Setenv("OPS_", "--listen-ops=127.0.0.1:0")
			return nil
		},

		Condition:     orInstalled(onBackend(servers.BackendName(t))),
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}
