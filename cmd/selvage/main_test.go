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

// TestMain lets scripts run the command as `exec selvage`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"selvage": selvage})
}

// raced is the variable that names a binary under the race detector, which serves in the
// place of this one. What happens at once happens there: commands do one thing after the
// other, and would only take ten times as long under it.
const raced = "SELVAGE_TEST_RACED"

func selvage() {
	if binary := os.Getenv(raced); binary != "" && slices.Contains(os.Args, "serve") {
		fmt.Fprintln(os.Stderr, syscall.Exec(binary, os.Args, os.Environ()))
		os.Exit(1)
	}
	main()
}

// racing returns the settings of the race detector for a test: each command would take a
// second more to end, and what it finds fails the test, wherever its server writes to.
func racing(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		found, err := filepath.Glob(filepath.Join(dir, "race.*"))
		if err != nil {
			t.Error(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			t.Errorf("the race detector found (%v)\n%s", err, text)
		}
	})
	return "atexit_sleep_ms=0 log_path=" + filepath.Join(dir, "race")
}

// TestScripts runs the journeys of testdata. Each drives the real command, with
// servers of its own on free ports:
//
//	http [flags] METHOD URL STATUS   asks, and prints the body to stdout and the head to stderr
//	ready DIR                        waits for DIR/run.json and sets PID, HTTP, HTTPS, OPS and BASE
//	sigterm                          tells the server of the last ready to stop
//	sighup                           tells it to reload
//	let NAME REGEXP                  sets NAME to the first group found in stdout, then stderr
//	until [flags] METHOD URL STATUS  asks until the answer has the status, and with -m a match; prints it as http does
//	drain USER:KEY URL FILE [force]  stops the server, once or twice, in the middle of an upload
//	await FILE REGEXP                waits until a file has a match
//	pkce                             sets VERIFIER and CHALLENGE
//	certify NAME HOST...             makes NAME.pem and NAME-key.pem
//	shows URL HOST                   waits until the certificate there has that name first
//	begun                            makes selvage-data as a first command leaves it, which is cheaper than that
//	aged DAYS N                      makes selvage-data as it was so many days ago, with N sign-ins in its audit trail
//	silent ARGS...                   runs selvage until it prints nothing
//	prints REGEXP... -- ARGS...      runs selvage until it ends well, or with ! does not, and stdout has a match of each
//	fresh                            gives the commands that follow rows and sessions of their own
//	redis VERB                       does something to a Redis of the script; see cmdRedis
//	sql FILE|URL STATEMENTS          runs SQL in an SQLite file, or in PostgreSQL
//	hold FILE                        locks an SQLite file for writing, until
//	release                          which lets go of it
//	proxy                            starts a proxy and sets PROXY
//	behind HOW URL                   puts it in front of a server
//	port NAME...                     sets each NAME to a port where nobody listens, nor will another test
//	receive FILE                     starts a receiver of webhooks, HOOK, that writes them there, a line each
//
// [namespaces] holds where a script may mount what only it sees, with unshare -rm, and
// [modules] where npm has installed the clients of test/clients.
//
// What a server tells of itself or of others may be late on a machine that has much to do: ask
// for it by until, await or prints, which wait a minute.
//
// They run on the backend that SELVAGE_TEST_BACKEND chooses, in a database of
// their own; a line that holds for one of them begins with [sqlite] or the like.
func TestScripts(t *testing.T) {
	race := racing(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"http": cmdHTTP, "ready": cmdReady, "sigterm": cmdSigterm, "sighup": cmdSighup, "let": cmdLet,
			"until": cmdUntil, "pkce": cmdPKCE, "await": cmdAwait,
			"drain": cmdDrain, "begun": cmdBegun(newBeginning(t)), "fresh": cmdFresh, "port": cmdPort,
			"aged": cmdAged, "silent": cmdSilent, "prints": cmdPrints, "redis": cmdRedis, "sql": cmdSQL,
			"hold": cmdHold, "release": cmdRelease, "proxy": cmdProxy, "behind": cmdBehind,
			"certify": cmdCertify, "shows": cmdShows, "receive": cmdReceive,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[clientKey{}] = newScriptClient()
			e.Values[holdKey{}], e.Values[proxyKey{}] = new(hold), new(*proxy)
			setBackend(e)
			e.Setenv("GORACE", race)
			e.Setenv(raced, os.Getenv(raced))
			root, err := filepath.Abs("../..")
			e.Setenv("DEMO", filepath.Join(root, "cmd/selvage/internal/demo"))
			e.Setenv("GUIDE", filepath.Join(root, "docs/guide.md"))
			e.Setenv("PASTE", filepath.Join(root, "cmd/selvage/testdata/paste.sh"))
			if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
				e.Setenv("GOCACHE", filepath.Join(cache, "go-build")) // for a script that has Go build something
			}
			bin, _, _ := strings.Cut(e.Getenv("PATH"), ":")
			e.Setenv("BIN", bin) // selvage, and nothing else
			e.Setenv("SERVE", "--listen=127.0.0.1:0")
			e.Setenv("TLS", "--listen-tls=127.0.0.1:0")
			e.Setenv("OPS_", "--listen-ops=127.0.0.1:0")
			return err
		},
		Condition:     orNamespaces(onBackend(servers.BackendName(t))),
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}
