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

	var err error
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		err = ts.Exec("selvage", args[end+1:]...)
		printed := ts.ReadFile("stdout")
		if (err != nil) == neg && !slices.ContainsFunc(wants,
			func(re *regexp.Regexp) bool { return !re.MatchString(printed) }) {
			return
		}
	}

	ts.Fatalf("selvage %s still ends with %v and prints\n%s%s\nwant %q", strings.Join(args[end+1:], " "), err,
		ts.ReadFile("stdout"), ts.ReadFile("stderr"), wants)
}

// cmdSilent runs a command of selvage until it prints nothing.
func cmdSilent(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		ts.Check(ts.Exec("selvage", args...))
		if ts.ReadFile("stdout") == "" {
			return
		}
	}
	ts.Fatalf("selvage %s still prints %s", strings.Join(args, " "), ts.ReadFile("stdout"))
}
