package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// These are the limits of a type. A larger type has more than one job.
const (
	maxMethods          = 60
	maxInterfaceMethods = 20
)

// TestSizes checks the number of methods of all types and interfaces outside tests. An embedded
// interface counts as one method.
func TestSizes(t *testing.T) {
	methods := map[string]int{}
	for _, file := range sources(t) {
		dir := path.Dir(file)
		syntax, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name := receiver(n); name != "" {
					methods[dir+"."+strings.TrimSuffix(name, ".")]++
				}
			case *ast.TypeSpec:
				checkInterface(t, dir, n)
			}
			return true
		})
	}

	for name, count := range methods {
		if count > maxMethods {
			t.Errorf("%s has %d methods, want at most %d", name, count, maxMethods)
		}
	}
}

// checkInterface checks the number of methods of a type, if it is an interface.
func checkInterface(t *testing.T, dir string, spec *ast.TypeSpec) {
	t.Helper()
	declared, ok := spec.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	if count := declared.Methods.NumFields(); count > maxInterfaceMethods {
		t.Errorf("interface %s.%s has %d methods, want at most %d", dir, spec.Name, count, maxInterfaceMethods)
	}
}

// sources lists the Go files of the module, except for tests.
func sources(t *testing.T) (files []string) {
	t.Helper()
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Fatal("the module has no Go files")
	}
	return files
}
