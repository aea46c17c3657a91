package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A result is the outcome of a part.
type result struct {
	name string
	wall time.Duration
	cpu  time.Duration // user and system time of the part's processes
	err  error
}

// compile builds the suites of the chosen parts, each once for all its backends.
func compile(chosen []part) error {
	var sources []string
	for _, p := range chosen {
		if p.dir != "" && !slices.Contains(sources, "./"+p.dir) {
			sources = append(sources, "./"+p.dir)
		}
	}
	if len(sources) == 0 {
		return nil
	}
	if err := os.MkdirAll(built(""), 0o755); err != nil {
		return err
	}

	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", built("") + "/"}, sources...)
	cmd := exec.Command("go", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compiling the suites: %w", err)
	}
	return nil
}

// run first runs the parts that may run concurrently, in order, at most jobs at a time. It then
// runs the other parts one by one. A part starts only when its prerequisite has ended. If the
// prerequisite failed, the part fails without running.
func run(chosen []part, jobs int) (results []result) {
	ended := map[string]error{}
	isAlone := func(p part) bool { return p.alone }
	results = runConcurrent(slices.DeleteFunc(slices.Clone(chosen), isAlone), jobs, ended)
	for _, p := range chosen {
		if p.alone {
			results = append(results, p.run(ended[p.after]))
		}
	}
	return results
}

// runConcurrent runs the parts concurrently, at most jobs at a time. It stores the error of each
// part in ended.
func runConcurrent(waiting []part, jobs int, ended map[string]error) (results []result) {
	done := make(chan result)
	running := 0
	for len(waiting) > 0 || running > 0 {
		i := slices.IndexFunc(waiting, func(p part) bool { return isReady(p, ended) })
		if i >= 0 && running < jobs {
			p := waiting[i]
			waiting = slices.Delete(slices.Clone(waiting), i, i+1)
			running++
			go func() { done <- p.run(ended[p.after]) }()
			continue
		}

		r := <-done
		running--
		ended[r.name] = r.err
		results = append(results, r)
	}
	return results
}

// isReady reports whether p has no prerequisite, or its prerequisite has ended.
func isReady(p part, ended map[string]error) bool {
	if p.after == "" {
		return true
	}
	_, ok := ended[p.after]
	return ok
}

// run runs all steps of a part, even if a step fails, and then prints the output of all steps.
func (p part) run(prerequisite error) result {
	started := time.Now()
	r := result{name: p.name}
	var out bytes.Buffer
	if prerequisite != nil {
		r.err = fmt.Errorf("not run because %s failed", p.after)
	} else {
		for _, step := range p.steps {
			cmd := exec.Command(step[0], step[1:]...)
			cmd.Dir = p.dir
			cmd.Env = append(os.Environ(), p.env...)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				r.err = fmt.Errorf("%s: %w", filepath.Base(step[0]), err)
			}
			if s := cmd.ProcessState; s != nil {
				r.cpu += s.UserTime() + s.SystemTime()
			}
		}
	}

	r.wall = time.Since(started)
	fmt.Printf("%s:\n%s", p.name, out.Bytes())
	return r
}

// report prints how long each part took and which parts failed. It returns the number of failed
// parts.
func report(results []result) (failed int) {
	slices.SortFunc(results, func(a, b result) int { return int(b.wall - a.wall) })
	fmt.Printf("\n%-24s %8s %8s\n", "part", "wall s", "cpu s")
	for _, r := range results {
		fmt.Printf("%-24s %8.0f %8.0f", r.name, r.wall.Seconds(), r.cpu.Seconds())
		if r.err != nil {
			failed++
			fmt.Printf("  FAILED: %v", r.err)
		}
		fmt.Println()
	}
	fmt.Printf("%d passed, %d failed\n", len(results)-failed, failed)
	return failed
}

// built returns the absolute path of a file that is built for tests.
func built(name string) string {
	path, err := filepath.Abs(filepath.Join("build/tests", name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}

// listPackages lists the import paths that patterns match.
func listPackages(patterns ...string) []string {
	out, err := exec.Command("go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		panic(fmt.Sprintf("go list %s: %v", strings.Join(patterns, " "), err)) // the module does not build
	}
	return strings.Fields(string(out))
}
