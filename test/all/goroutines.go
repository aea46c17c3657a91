package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A selection determines which tests run under the race detector.
//
// If a package starts goroutines, all its tests run under the race detector, including tests in a
// package of their own, such as keys/keystest. In other packages, only the tests that start
// goroutines do.
//
// The remaining tests use a single goroutine. The race detector would find nothing in them, even if
// they send requests to a server: it assumes that everything before a write to a connection happens
// before the matching read. The test scripts that run on Redis send concurrent requests to servers
// that are built with the race detector.
type selection struct {
	whole  []string // packages with all their tests under the race detector
	partly []string // packages with some of their tests under the race detector
	tests  []string // names of the tests that run in these packages
	others []string // packages with none of their tests under the race detector
}

// selectRaced makes a selection from packages of this module.
func selectRaced(packages []string) (s selection) {
	for _, p := range packages {
		files := parse(p)
		tests := startingTests(files)
		switch {
		case startsGoroutines(files) || startsGoroutines(parse(testedBy(p))):
			s.whole = append(s.whole, p)
		case len(tests) > 0:
			s.partly = append(s.partly, p)
			s.tests = append(s.tests, tests...)
		default:
			s.others = append(s.others, p)
		}
	}
	slices.Sort(s.tests)
	s.tests = slices.Compact(s.tests)
	return s
}

// pattern returns a regular expression that matches the names in s.tests.
func (s selection) pattern() string { return "^(" + strings.Join(s.tests, "|") + ")$" }

// testedBy returns the package that the tests in p test. This is p, unless p contains only tests of
// the package above it, as keys/keystest does.
func testedBy(p string) string {
	above := path.Dir(p)
	if path.Base(p) == path.Base(above)+"test" {
		return above
	}
	return p
}

// A source is a file of a package.
type source struct {
	*ast.File
	isTest bool
}

// parse reads the files of a package of this module.
func parse(p string) (files []source) {
	names, err := filepath.Glob(filepath.Join(strings.TrimPrefix(p, module), "*.go"))
	if err != nil {
		panic(err) // the pattern is malformed
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			panic(fmt.Sprintf("parsing %s: %v", name, err)) // the module does not build
		}
		files = append(files, source{f, strings.HasSuffix(name, "_test.go")})
	}
	return files
}

// startsGoroutines reports whether files that are not tests start goroutines.
func startsGoroutines(files []source) bool {
	return slices.ContainsFunc(files, func(f source) bool { return !f.isTest && starts(f.File, nil) })
}

// startingTests returns the names of the tests in files that start goroutines. The goroutines may
// be started in helper functions and methods of these tests. Functions whose names begin with "new"
// do not count, because all tests of the package use them to set up their surroundings.
func startingTests(files []source) (names []string) {
	functions := testFunctions(files)
	starting := make(map[string]bool)
	for grown := true; grown; {
		grown = false
		for name, function := range functions {
			if !starting[name] && starts(function, starting) {
				starting[name], grown = true, true
			}
		}
	}

	for name := range starting {
		if strings.HasPrefix(name, "Test") {
			names = append(names, name)
		}
	}
	return names
}

// testFunctions returns the functions and methods in tests by their names. The names of methods
// begin with a dot.
func testFunctions(files []source) map[string]*ast.FuncDecl {
	functions := make(map[string]*ast.FuncDecl)
	for _, f := range files {
		for _, d := range f.Decls {
			function, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || !f.isTest || strings.HasPrefix(function.Name.Name, "new"):
			case function.Recv != nil:
				functions["."+function.Name.Name] = function
			default:
				functions[function.Name.Name] = function
			}
		}
	}
	return functions
}

// starts reports whether n starts a goroutine, runs in a bubble of testing/synctest, or uses one of
// the functions in starting. In tests (starting is not nil), a method named follow counts, too: it
// reads a stream of events that the server writes while the test changes data.
func starts(n ast.Node, starting map[string]bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			inBubble := of != nil && of.Name == "synctest" && n.Sel.Name == "Test"
			atOnce := n.Sel.Name == "Go" || starting != nil && n.Sel.Name == "follow"
			found = found || inBubble || atOnce || starting["."+n.Sel.Name] || starts(n.X, starting)
			return false // otherwise the selected name would count as a function of the package
		case *ast.Ident:
			found = found || starting[n.Name]
		}
		return !found
	})
	return found
}
