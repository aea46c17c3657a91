package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	whereRow = regexp.MustCompile("^\\| [^|`]+ \\| `([^`]+\\.go)` \\| (`[^|]+`) \\|$")
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// TestWhere checks the table "Where it happens" of docs/architecture.md: each file exists and
// declares the functions, methods and types that its row names.
func TestWhere(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Where it happens\n")
	section, _, _ = strings.Cut(section, "\n## ")

	rows := 0
	for _, line := range strings.Split(section, "\n") {
		isHeading := strings.HasPrefix(line, "| behavior") || strings.HasPrefix(line, "|-")
		if isHeading || !strings.HasPrefix(line, "|") {
			continue
		}
		rows++
		row := whereRow.FindStringSubmatch(line)
		if row == nil {
			t.Errorf("this row does not consist of a behavior, a file and names: %s", line)
			continue
		}

		file, names := row[1], row[2]
		declared := declaredNames(t, "../../"+file)
		for _, span := range codeSpan.FindAllStringSubmatch(names, -1) {
			if name := span[1]; !declared[name] {
				t.Errorf("%s does not declare %s: update \"Where it happens\" in docs/architecture.md", file, name)
			}
		}
	}

	if rows < 20 {
		t.Errorf("the table has %d rows, want at least 20", rows)
	}
}

// declaredNames returns the functions, types and methods (as Type.Method) that a file declares,
// or nil if it cannot be read.
func declaredNames(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("docs/architecture.md: %v", err)
		return nil
	}

	names := make(map[string]bool)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					names[s.Name.Name] = true
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method and a dot, or "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
