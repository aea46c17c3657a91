package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runbookPages are the pages of the manual that tell operators what to do.
var runbookPages = []string{
	"audit",
	"backup",
	"databases",
	"deploy",
	"high-availability",
	"https",
	"keys",
	"monitoring",
	"moving",
	"nodes",
	"operations",
	"redis",
}

var (
	runbookRow     = regexp.MustCompile(`(?m)^\| ([^|]*\]\([^|]+\)) \| (.+) \|$`)
	runbookLink    = regexp.MustCompile(`\]\(([^)]+)\)`)
	testFunction   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	runbookCommand = regexp.MustCompile(`(?m)\bselvage ([a-z][a-z-]*)(?: ([a-z][a-z-]*)(?:\s|$))?`)
	pastedPage     = regexp.MustCompile(`\$PASTE ([a-z-]+)`)
)

// TestRunbooks checks the table "Runbooks" of docs/testing.md. Each section of runbookPages that
// has code blocks must have a row. The tests in the row must exist and must contain every selvage
// command of the section.
func TestRunbooks(t *testing.T) {
	text, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Runbooks\n")
	table, _, _ = strings.Cut(table, "\n## ")

	rows := make(map[string]string)
	for _, row := range runbookRow.FindAllStringSubmatch(table, -1) {
		for _, link := range runbookLink.FindAllStringSubmatch(row[1], -1) {
			rows[link[1]] = row[2]
		}
	}

	tests := testSources(t)
	for _, page := range runbookPages {
		for section, blocks := range sectionBlocks(t, page) {
			row := rows[section]
			delete(rows, section)
			switch {
			case row != "":
				checkRunbook(t, page, section, blocks, row, tests)
			case blocks != "":
				t.Errorf("docs/testing.md names no test that runs %s", section)
			}
		}
	}
	for section := range rows {
		t.Errorf("docs/testing.md has a row for the missing section %s", section)
	}
}

// checkRunbook checks that the tests in a row exist and run the commands in blocks.
func checkRunbook(t *testing.T, page, section, blocks, row string, tests map[string]string) {
	t.Helper()
	var source strings.Builder
	for _, name := range codeSpan.FindAllStringSubmatch(row, -1) {
		if tests[name[1]] == "" {
			t.Errorf("%s: there is no test %s", section, name[1])
		}
		source.WriteString(tests[name[1]])
	}
	for _, pasted := range pastedPage.FindAllStringSubmatch(source.String(), -1) {
		if pasted[1] == page {
			return // the script runs the page itself
		}
	}

	for _, command := range runbookCommand.FindAllStringSubmatch(blocks, -1) {
		words := slices.DeleteFunc(command[1:], func(word string) bool { return word == "" })
		inScript := "selvage " + strings.Join(words, " ")
		inGo := `"` + strings.Join(words, `", "`) + `"`
		if !strings.Contains(source.String(), inScript) && !strings.Contains(source.String(), inGo) {
			t.Errorf("%s: none of %s runs %s", section, row, inScript)
		}
	}
}

// sectionBlocks returns the code blocks of each section of a page, joined. The keys are links to
// the sections, such as "keys.md#keys".
func sectionBlocks(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page + ".md")
	if err != nil {
		t.Fatal(err)
	}

	blocks := make(map[string]string)
	section := ""
	inside := false // whether the line is in a code block
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside:
			blocks[section] += line
		case strings.HasPrefix(line, "#"):
			heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			section = page + ".md#" + strings.NewReplacer(",", "", " ", "-").Replace(heading)
			blocks[section] = ""
		}
	}
	return blocks
}

// testSources returns the source files of the tests. The keys are the names of test functions and
// of files. The value is always the whole file; files with the same key are joined.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	sources := make(map[string]string)
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && notOurs.MatchString(path) {
			return filepath.SkipDir
		}
		script := filepath.Base(filepath.Dir(path)) == "testdata" && filepath.Ext(path) == ".txt"
		if !script && !strings.HasSuffix(path, "_test.go") && e.Name() != "installed.sh" {
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sources[e.Name()] += string(text)
		for _, function := range testFunction.FindAllSubmatch(text, -1) {
			sources[string(function[1])] += string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}
