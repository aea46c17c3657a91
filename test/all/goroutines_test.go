package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStartingTests shows that the tests that start goroutines are found, however they do so.
func TestStartingTests(t *testing.T) {
	const code = `package p
func TestStatement(t *testing.T) { go serve() }
func TestGroup(t *testing.T)     { wait.Go(func() {}) }
func TestBubble(t *testing.T)    { synctest.Test(t, func(t *testing.T) {}) }
func TestFunction(t *testing.T)  { each(t, atOnce) }
func TestMethod(t *testing.T)    { newWorld(t).visit() }
func TestStream(t *testing.T)    { b.follow("/live") }
func TestAlone(t *testing.T)     { newWorld(t).atOnce() }
func atOnce()                    { go serve() }
func each(t *testing.T, f func()) { f() }
func newWorld(t *testing.T) world { go poll(); return world{} }
func (w world) visit()           { atOnce() }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p_test.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}

	got := startingTests([]source{{f, true}})
	slices.Sort(got)
	want := []string{"TestBubble", "TestFunction", "TestGroup", "TestMethod", "TestStatement", "TestStream"}
	if !slices.Equal(got, want) {
		t.Errorf("tests that start goroutines: %q, want %q", got, want)
	}
}

// TestSelection shows that a package runs under the race detector as a whole, in part, or not at
// all.
func TestSelection(t *testing.T) {
	t.Chdir("../..")
	s := selectRaced([]string{
		module + "internal/bus", module + "keys/keystest", module + "store", module + "recordings/opus"})
	if want := []string{module + "internal/bus", module + "keys/keystest"}; !slices.Equal(s.whole, want) {
		t.Errorf("as a whole: %q, want %q", s.whole, want)
	}
	if want := []string{module + "store"}; !slices.Equal(s.partly, want) ||
		!slices.Contains(s.tests, "TestMarkUsed") || slices.Contains(s.tests, "TestPlans") {
		t.Errorf("in part: %q, with %q, want store with TestMarkUsed, without TestPlans", s.partly, s.tests)
	}
	if want := []string{module + "recordings/opus"}; !slices.Equal(s.others, want) {
		t.Errorf("not at all: %q, want %q", s.others, want)
	}
}

// TestPackageParts shows that a test runs once, with or without the race detector, even if a
// package of another group has a test of the same name.
func TestPackageParts(t *testing.T) {
	t.Chdir("../..")
	all, runs := packages(), make(map[string]int)
	for _, p := range packageParts(true) {
		for _, step := range p.steps {
			only, skipped := regexpOf(t, step, "-run", "."), regexpOf(t, step, "-skip", "^$")
			for _, arg := range step {
				if !slices.Contains(all, arg) {
					continue
				}
				for name := range testFunctions(parse(arg)) {
					if strings.HasPrefix(name, "Test") && only.MatchString(name) && !skipped.MatchString(name) {
						runs[arg+" "+name]++
					}
				}
			}
		}
	}

	for _, p := range all {
		for name := range testFunctions(parse(p)) {
			test := p + " " + name
			if strings.HasPrefix(name, "Test") && runs[test] != 1 {
				t.Errorf("%s runs %d times, want once", test, runs[test])
			}
		}
	}
}

// regexpOf returns the regular expression after a flag in args or, without the flag, the one in
// byDefault.
func regexpOf(t *testing.T, args []string, flag, byDefault string) *regexp.Regexp {
	t.Helper()
	if i := slices.Index(args, flag); i >= 0 {
		byDefault = args[i+1]
	}
	return regexp.MustCompile(byDefault)
}
