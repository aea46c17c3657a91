package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/audit"
)

// makers are the functions that create an event. Their first argument is the name of the action.
var makers = map[string]bool{
	"Of":            true,
	"operatorEvent": true,
	"clientEvent":   true,
	"webhookEvent":  true,
	"linkEvent":     true,
	"factorEvent":   true,
}

// TestEachActionHasWords shows that each action in the code has a display text, and that each call that
// creates an event names its action with a literal. A function that gets the name from its caller must be
// listed in makers.
func TestEachActionHasWords(t *testing.T) {
	known := make(map[string]bool)
	for _, action := range audit.Actions() {
		known[action] = true
	}

	found := 0
	check := func(call *ast.CallExpr, fn *ast.FuncDecl, position token.Position) {
		actions := texts(call.Args[0], fn)
		for _, action := range actions {
			found++
			if !known[action] {
				t.Errorf("%s: the action %q has no display text", position, action)
			}
		}
		isMaker := fn != nil && makers[fn.Name.Name]
		if len(actions) == 0 && !isMaker {
			t.Errorf("%s: the name of the action is not a literal here", position)
		}
	}
	walk := func(file *ast.File, fset *token.FileSet) {
		for _, d := range file.Decls {
			fn, _ := d.(*ast.FuncDecl)
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok && len(call.Args) > 0 && makers[calledOf(call)] {
					check(call, fn, fset.Position(call.Pos()))
				}
				return true
			})
		}
	}

	for _, dir := range []string{"cmd", "fabric", "idp", "internal", "keys", "operator", "recordings", "store"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}

			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			if file.Name.Name == "store" || imports(file, "internal/audit") {
				walk(file, fset)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	const minFound = 80 // fewer mean that the test no longer finds the calls
	if found < minFound {
		t.Errorf("only %d events were found in the code, want at least %d", found, minFound)
	}
}

func imports(file *ast.File, suffix string) bool {
	for _, i := range file.Imports {
		if strings.HasSuffix(strings.Trim(i.Path.Value, `"`), suffix) {
			return true
		}
	}
	return false
}

// calledOf returns the name of the called function if it may be a maker. For functions of other packages
// than audit, and for an Of without a package, it returns "".
func calledOf(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name != "Of" {
			return f.Name
		}
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "audit" {
			return f.Sel.Name
		}
	}
	return ""
}

// texts returns the possible values of arg, which is a string literal or a variable that fn sets
// only to literals.
func texts(arg ast.Expr, fn *ast.FuncDecl) (all []string) {
	if lit, ok := arg.(*ast.BasicLit); ok {
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return nil
		}
		return []string{text}
	}

	name, ok := arg.(*ast.Ident)
	if !ok || fn == nil {
		return nil
	}

	ast.Inspect(fn, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != len(set.Rhs) {
			return true
		}
		for i, l := range set.Lhs {
			if id, ok := l.(*ast.Ident); ok && id.Name == name.Name {
				if lit, ok := set.Rhs[i].(*ast.BasicLit); ok {
					all = append(all, texts(lit, nil)...)
				}
			}
		}
		return true
	})
	return all
}

func TestSay(t *testing.T) {
	for _, tt := range []struct {
		action  string
		outcome audit.Outcome
		want    string
	}{
		{"login", audit.Done, "Signed in"},
		{"login", audit.Refused, "Sign-in refused"},
		{"api_key.revoked", audit.Done, "API key revoked"},
		{"client.created", audit.Refused, "OAuth client created, refused"},
		{"thing.of_before", audit.Done, "thing.of_before"},
	} {
		if got := audit.Say(tt.action, tt.outcome); got != tt.want {
			t.Errorf("Say(%q, %q) = %q, want %q", tt.action, tt.outcome, got, tt.want)
		}
	}
}
