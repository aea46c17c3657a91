package main

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// TestLooksRunOnce shows that the tests that match looks run on SQLite, because other backends skip
// them. harness.NotStorage would leave them to Redis.
func TestLooksRunOnce(t *testing.T) {
	t.Chdir("../..")
	pattern, found := regexp.MustCompile(looks), 0
	for name, f := range testFunctions(parse(module + "test/clients")) {
		if !strings.HasPrefix(name, "Test") || !pattern.MatchString(name) {
			continue
		}
		found++
		if !calls(f, "OneBackend") {
			t.Errorf("%s matches looks, but does not call harness.OneBackend: it would run on no backend", name)
		}
	}
	if found < 20 {
		t.Errorf("%d tests match looks, want at least 20", found)
	}
}

// calls reports whether a function mentions the function of the harness with this name.
func calls(f *ast.FuncDecl, name string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		found = found || ok && s.Sel.Name == name
		return !found
	})
	return found
}
