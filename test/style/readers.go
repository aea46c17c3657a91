package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readers maps each kind of file to the function that checks it.
var readers = map[string]func(path string, src []byte) ([]finding, error){
	".go":   checkGo,
	".html": checkText,
	".js":   checkText,
	".json": checkMessages,
	".md":   checkText,
	".mjs":  checkText,
	".sh":   checkText,
	".sql":  checkText,
	".ts":   checkText,
	".txt":  checkText,
	".yaml": checkText,
}

const (
	maxColumns    = 120 // maximum width of a line of Go
	maxAssigned   = 3   // maximum number of values assigned in one statement
	maxUnbroken   = 25  // maximum number of lines in a function without a blank line
	tabWidth      = 4
	generatedMark = "DO NOT EDIT"
)

//go:embed forms.txt
var formsFile string

// forms lists the expressions that prose must avoid, each with a better one.
var forms = parseForms(formsFile)

type form struct {
	expression *regexp.Regexp
	instead    string
}

func parseForms(text string) (all []form) {
	for line := range strings.Lines(text) {
		expression, instead, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if ok && !strings.HasPrefix(line, "#") {
			all = append(all, form{regexp.MustCompile(expression), instead})
		}
	}
	return all
}

// checkLine returns a finding for each rejected form in a line of prose.
func checkLine(path string, line int, text string) (found []finding) {
	for _, f := range forms {
		if hit := f.expression.FindString(text); hit != "" {
			found = append(found, finding{
				path:    path,
				line:    line,
				message: fmt.Sprintf("%q: write %s", strings.TrimSpace(hit), f.instead),
			})
		}
	}
	return found
}

// checkText checks every line of a file as prose, unless the file is generated.
func checkText(path string, src []byte) (found []finding, err error) {
	if bytes.Contains(src[:min(len(src), 200)], []byte(generatedMark)) {
		return nil, nil
	}
	for i, line := range strings.Split(string(src), "\n") {
		found = append(found, checkLine(path, i+1, line)...)
	}
	return found, nil
}

// checkMessages checks the English messages of pages and emails.
func checkMessages(path string, src []byte) ([]finding, error) {
	if !strings.HasSuffix(path, "/en.json") {
		return nil, nil
	}
	if !json.Valid(src) {
		return nil, fmt.Errorf("%s is not JSON", path)
	}
	return checkText(path, src)
}

// checkGo checks the comments, strings and layout of a Go file.
func checkGo(path string, src []byte) ([]finding, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}

	found := checkWidth(path, src)
	for _, group := range file.Comments {
		for _, c := range group.List {
			found = append(found, checkLine(path, files.Position(c.Pos()).Line, c.Text)...)
		}
	}

	ast.Inspect(file, func(n ast.Node) bool {
		line := 0
		if n != nil {
			line = files.Position(n.Pos()).Line
		}

		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				found = append(found, checkLine(path, line, text)...)
			}
		case *ast.AssignStmt:
			if len(n.Rhs) > maxAssigned {
				found = append(found, finding{
					path:    path,
					line:    line,
					message: fmt.Sprintf("%d values assigned at once: at most %d", len(n.Rhs), maxAssigned),
				})
			}
		case *ast.FuncDecl:
			found = append(found, checkParagraphs(path, src, files, n)...)
		}
		return true
	})
	return found, nil
}

// checkWidth finds lines that are too wide. A tab counts as four columns.
func checkWidth(path string, src []byte) (found []finding) {
	for i, line := range bytes.Split(src, []byte("\n")) {
		tabs := bytes.Count(line, []byte("\t"))
		if columns := utf8.RuneCount(line) + tabs*(tabWidth-1); columns > maxColumns {
			found = append(found, finding{
				path:    path,
				line:    i + 1,
				message: fmt.Sprintf("%d columns: at most %d", columns, maxColumns),
			})
		}
	}
	return found
}

// checkParagraphs finds a long function whose body has no blank line.
func checkParagraphs(path string, src []byte, files *token.FileSet, f *ast.FuncDecl) []finding {
	if f.Body == nil {
		return nil
	}
	first, last := files.Position(f.Body.Lbrace), files.Position(f.Body.Rbrace)
	if last.Line-first.Line <= maxUnbroken || bytes.Contains(src[first.Offset:last.Offset], []byte("\n\n")) {
		return nil
	}
	return []finding{{path, first.Line,
		fmt.Sprintf("%s has %d lines without a blank line: split it into paragraphs",
			f.Name.Name, last.Line-first.Line)}}
}
