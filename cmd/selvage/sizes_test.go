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
				i, ok := n.Type.(*ast.InterfaceType)
				if ok && i.Methods.NumFields() > maxInterfaceMethods {
					t.Errorf("interface %s.%s has %d methods, want at most %d", dir, n.Name, i.Methods.NumFields(),
						maxInterfaceMethods)
				}
			}
			return true
		})
	}

	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, want at most %d", name, n, maxMethods)
		}
	}
}

// sources lists the Go files of the module, except for tests.
func sources(t *testing.T) (files []string) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(string(out)) {
		if file = strings.TrimSpace(file); !strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Fatal("the module has no Go files")
	}
	return files
}
