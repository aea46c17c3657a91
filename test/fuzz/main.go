// Command fuzz runs the fuzz targets of the module one after another, and prints how many inputs
// each of them tried.
//
//	go run ./test/fuzz [-time 60s] [-targets REGEXP]
//
// `make fuzz FUZZTIME=60s` runs this command. A target fails if an input causes a crash or a wrong
// result, or costs too much; see package fuzzcost. A target that fails does not stop the others. Go
// writes the failing input to testdata/fuzz in the target's package, and from then on `go test`
// tests it. Inputs that reach new code are kept in Go's build cache for the next run.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	each := flag.String("time", "60s", "how long each target runs: a duration, or a `number` of inputs such as 1000x")
	only := flag.String("targets", "",
		"a `regexp` for the names of the targets to run, such as ^FuzzForm$; runs all by default")
	flag.Parse()
	failed, err := run(*each, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// isLateStop reports whether a target failed only because its time ended while a worker was still
// busy (https://go.dev/issue/75804, fixed in Go 1.27). In this case there is no failing input.
func isLateStop(out []byte) bool {
	return bytes.Contains(out, []byte("\n    context deadline exceeded\nFAIL\n")) &&
		!bytes.Contains(out, []byte("Failing input"))
}

// A target is a fuzz target of the module.
type target struct {
	dir, name string
}

func run(each, only string) (failed int, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	all, err := list(".")
	if err != nil {
		return 0, err
	}
	all = slices.DeleteFunc(all, func(t target) bool { return !pattern.MatchString(t.name) })
	if len(all) == 0 {
		return 0, fmt.Errorf("no target matches %q", only)
	}

	began, total := time.Now(), 0
	fmt.Printf("%-34s %-20s %12s %8s %8s\n", "package", "target", "inputs", "new", "corpus")
	for _, t := range all {
		out, err := t.fuzz(each)
		c := count(out)
		total += c.inputs
		fmt.Printf("%-34s %-20s %12d %8d %8d", t.dir, t.name, c.inputs, c.fresh, c.corpus)
		if err != nil {
			failed++
			fmt.Printf("  FAILED: %v\n%s", err, out)
		}
		fmt.Println()
	}

	fmt.Printf("%d targets, %d inputs in %v, %d failed\n", len(all), total,
		time.Since(began).Round(time.Second), failed)
	return failed, nil
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// list returns the targets in a directory and below, sorted by package and name.
func list(root string) (all []target, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "release"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}

		text, err := os.ReadFile(path)
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			all = append(all, target{filepath.ToSlash(filepath.Dir(path)), string(found[1])})
		}
		return err
	})
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.dir+" "+a.name, b.dir+" "+b.name) })
	return all, err
}

// fuzz runs a target and returns the output of go test. Go makes at most 50 attempts to shorten an
// input that reaches new code. Without this limit, it could spend all its time on inputs that reach
// different code each time, for example in a database.
func (t target) fuzz(each string) ([]byte, error) {
	cmd := exec.Command("go", "test", "-vet=off", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each,
		"-fuzzminimizetime", "50x", "./"+t.dir)
	cmd.Env = append(os.Environ(), "SELVAGE_TEST_SERVERS=none")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if isLateStop(out.Bytes()) {
		err = nil
	}
	return out.Bytes(), err
}

// counts holds the figures in a progress line of go test.
type counts struct{ inputs, fresh, corpus int }

var progress = regexp.MustCompile(`execs: (\d+) .*new interesting: (\d+) \(total: (\d+)\)`)

// count returns the figures in the last progress line of an output.
func count(out []byte) (c counts) {
	lines := progress.FindAllSubmatch(out, -1)
	if len(lines) == 0 {
		return c
	}
	last := lines[len(lines)-1]
	// The parts are digits.
	_, _ = fmt.Sscan(string(bytes.Join(last[1:], []byte(" "))), &c.inputs, &c.fresh, &c.corpus)
	return c
}
