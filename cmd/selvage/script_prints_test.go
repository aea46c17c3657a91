package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdPrints runs a command of selvage until it succeeds (with !, fails) and its output matches each
// REGEXP before --. Scripts use it for state that takes some time to become visible. Afterwards,
// stdout and stderr contain the output of the last run.
func cmdPrints(ts *testscript.TestScript, neg bool, args []string) {
	end := slices.Index(args, "--")
	if end < 1 {
		ts.Fatalf("usage: prints REGEXP... -- ARGS...")
	}

	wants := make([]*regexp.Regexp, end)
	for i, text := range args[:end] {
		re, err := regexp.Compile("(?m)" + text)
		ts.Check(err)
		wants[i] = re
	}

	command := args[end+1:]
	var err error
	pause := 50 * time.Millisecond
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(pause) {
		err = ts.Exec("selvage", command...)
		failed := err != nil
		if failed == neg && matchesAll(ts.ReadFile("stdout"), wants) {
			return
		}
		pause = min(2*pause, 400*time.Millisecond) // each run takes a core for a while
	}

	wantFailure := ""
	if neg {
		wantFailure = "a failure and "
	}
	ts.Fatalf("selvage %s still ends with %v and prints\n%s%s\nwant %s%q", strings.Join(command, " "), err,
		ts.ReadFile("stdout"), ts.ReadFile("stderr"), wantFailure, wants)
}

// matchesAll reports whether every expression matches a text.
func matchesAll(text string, expressions []*regexp.Regexp) bool {
	for _, re := range expressions {
		if !re.MatchString(text) {
			return false
		}
	}
	return true
}

// cmdSilent runs a command of selvage until it prints nothing.
func cmdSilent(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec("selvage", args...))
		if ts.ReadFile("stdout") == "" {
			return
		}
	}
	ts.Fatalf("selvage %s still prints %s", strings.Join(args, " "), ts.ReadFile("stdout"))
}
