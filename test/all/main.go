// Command all runs every test of the project. These are the tests next to the packages, and the
// suites that run the built binary. Each suite runs on the backends where it can fail differently.
//
//	go run ./test/all [-backends LIST] [-jobs N] [-lint] [-race] [PART ...]
//	go run ./test/all -check
//
// `make test` starts all servers and runs this command. A part is named after its suite and
// backend, such as attack-on-postgres. [parts] lists all parts, and -list prints them. Four parts
// run at a time, and the longest start first. A part that fails does not stop the others. The
// output of a part is printed when the part ends, and the failed parts are listed again at the end.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	backends := flag.String("backends", strings.Join(allBackends, ","), "the `list` of backends to run suites on")
	jobs := flag.Int("jobs", 4, "`parts` that run at the same time")
	lint := flag.Bool("lint", false, "run make lint as a part as well")
	race := flag.Bool("race", false,
		"use the race detector for the packages, and for the servers of the scripts on Redis")
	check := flag.Bool("check", false,
		"run only what needs no servers and no browsers: gofmt, vet, tests of packages")
	list := flag.Bool("list", false, "print the names of the parts without running them")
	flag.Parse()
	if *check {
		if failed := report(run(quickParts(), *jobs)); failed > 0 {
			os.Exit(1)
		}
		return
	}

	chosen, err := choose(parts(*backends, *lint, *race), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "all:", err)
		os.Exit(2)
	}
	if *list {
		for _, p := range chosen {
			fmt.Println(p.name)
		}
		return
	}

	if err := compile(chosen); err != nil {
		fmt.Fprintln(os.Stderr, "all:", err)
		os.Exit(1)
	}
	if failed := report(run(chosen, *jobs)); failed > 0 {
		os.Exit(1)
	}
}

// choose returns the named parts together with their prerequisites. If no name is given, it returns
// all parts except those that run only on request.
func choose(all []part, names []string) ([]part, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(p part) bool { return p.onRequest }), nil
	}

	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no part is named %s; -list prints all names", name)
		}
		chosen = append(chosen, all[i])
	}
	return withPrerequisites(all, chosen), nil
}

// withPrerequisites returns chosen together with the prerequisites of its parts.
func withPrerequisites(all, chosen []part) []part {
	has := func(name string) bool {
		return slices.ContainsFunc(chosen, func(p part) bool { return p.name == name })
	}
	for _, p := range all {
		needed := slices.ContainsFunc(chosen, func(c part) bool { return c.after == p.name })
		if needed && !has(p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}
