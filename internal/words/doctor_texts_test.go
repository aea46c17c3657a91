package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// doctorTexts returns the texts that a page shows for the checks of `selvage doctor`: their names,
// findings and remedies.
func doctorTexts(t *testing.T) (found []string) {
	t.Helper()
	files, err := filepath.Glob("../../cmd/selvage/internal/doctor/*.go")
	if err != nil || len(files) < 15 {
		t.Fatalf("package doctor has %d files, %v, want at least 15", len(files), err)
	}
	add := func(literals ...ast.Expr) {
		for _, e := range literals {
			if text, ok := constant(e); ok && sayable.MatchString(verb.ReplaceAllString(text, "")) {
				found = append(found, text)
			}
		}
	}

	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if texts, ok := findingArgs[nameOf(n.Fun)]; ok && !n.Ellipsis.IsValid() {
					wantFormat(t, name, n, texts)
					add(n.Args[:texts]...)
				}
			case *ast.ValueSpec: // constants of several words are remedies
				for _, e := range n.Values {
					if text, _ := constant(e); strings.Contains(text, " ") {
						add(e)
					}
				}
			case *ast.CompositeLit:
				add(checkTexts(n)...)
			}
			return true
		})
	}
	return slices.Compact(found)
}

var (
	// findingArgs maps each function of package doctor to the number of its leading arguments that
	// are texts.
	findingArgs = map[string]int{
		"finef":      1,
		"skippedf":   1,
		"textf":      1,
		"warnedf":    1,
		"brokenf":    1,
		"withRemedy": 1,
		"of":         1,
		"and":        1,
	}

	verb    = regexp.MustCompile(`%(?:\[\d\])?s`)
	sayable = regexp.MustCompile(`[A-Za-z]{2}`) // not only values and punctuation
)

// wantFormat checks that a call of a function such as textf has a constant format, with one verb for
// each value.
func wantFormat(t *testing.T, file string, call *ast.CallExpr, texts int) {
	t.Helper()
	name := nameOf(call.Fun)
	takesFormat := strings.HasSuffix(name, "f") && name != "of"
	if !takesFormat {
		return
	}
	format, isConstant := constant(call.Args[texts-1])
	if !isConstant {
		t.Errorf("%s: a format of %s is not a constant", file, name)
	}
	values := len(call.Args) - texts
	if n := len(verb.FindAllString(format, -1)); values != n {
		t.Errorf("%s: %s gets %d values for %q, want %d, one for each %%s", file, name, values, format, n)
	}
	if rest := verb.ReplaceAllString(format, ""); strings.Contains(rest, "%") {
		t.Errorf("%s: %s has the format %q, want no verbs other than %%s", file, name, format)
	}
}

// checkTexts returns the group and the name in the literal of a check, whose third field is a
// function. The literal may name these fields.
func checkTexts(n *ast.CompositeLit) []ast.Expr {
	if len(n.Elts) != 3 {
		return nil
	}
	var texts []ast.Expr
	for i, value := range n.Elts {
		isText := i < 2
		if pair, ok := value.(*ast.KeyValueExpr); ok {
			field, _ := pair.Key.(*ast.Ident)
			isText = field != nil && (field.Name == "group" || field.Name == "name")
			value = pair.Value
		}
		if !isText {
			continue
		}
		if _, ok := constant(value); !ok {
			return nil
		}
		texts = append(texts, value)
	}
	return texts
}

// nameOf returns the name of a called function or method.
func nameOf(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// settingRow matches the row of the configuration reference for a setting that a page shows. The row
// has the setting's name, default and meaning.
var settingRow = regexp.MustCompile(
	"(?m)^\\| `((?:limits|password|session|operators|tokens|keys|audit|recordings|mail)\\.\\w+)`" +
		"[^|]* \\| .* \\| (.*) \\|$")

// settingTexts returns the descriptions of the settings, from the generated reference.
func settingTexts(t *testing.T) (found []string) {
	t.Helper()
	reference, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range settingRow.FindAllStringSubmatch(string(reference), -1) {
		setting, meaning := m[1], m[2]
		if setting != "mail.password" { // secret
			found = append(found, meaning)
		}
	}
	if len(found) < 40 {
		t.Fatalf("the reference describes %d settings, want at least 40", len(found))
	}
	return found
}
