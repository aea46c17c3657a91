// Command style reports prose and code that the project's style rejects.
//
//	go run ./test/style [PATH ...]
//
// It checks the files below the given paths, or all files of the repository, except those that git
// ignores. It looks for the forms listed in forms.txt in the prose of Go comments and strings,
// Markdown, HTML templates, scripts, SQL and English messages. In Go files it also reports wide
// lines, assignments of many values, and long functions without blank lines. It prints each finding
// on one line. If there is a finding, the exit status is 1.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	flag.Parse()

	findings, err := check(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "style:", err)
		os.Exit(2)
	}

	out := bufio.NewWriter(os.Stdout)
	for _, f := range findings {
		fmt.Fprintln(out, f)
	}
	out.Flush()
	if len(findings) > 0 {
		fmt.Fprintf(os.Stderr, "style: %d findings\n", len(findings))
		os.Exit(1)
	}
}

// A finding is a place that breaks a rule of style.
type finding struct {
	path    string
	line    int
	message string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.message) }

// check returns the findings in all files below paths, or in the whole repository.
func check(paths []string) ([]finding, error) {
	files, err := trackedFiles(paths)
	if err != nil {
		return nil, err
	}

	var all []finding
	for _, path := range files {
		read := readers[filepath.Ext(path)]
		if read == nil || isExempt(path) {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := read(path, src)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// exempt lists the beginnings of paths that are not checked. The two in test/style contain the
// rejected forms on purpose. The others are generated or come from elsewhere.
var exempt = []string{
	"docs/openapi.yaml", "sdk/dist/", "static/files/signalwire-", "test/style/forms.txt", "test/style/style_test.go",
}

func isExempt(path string) bool {
	return slices.ContainsFunc(exempt, func(beginning string) bool { return strings.HasPrefix(path, beginning) })
}

// trackedFiles lists the files that git tracks, and new files that it does not ignore.
func trackedFiles(paths []string) ([]string, error) {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"}, paths...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	var files []string
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files, nil
}
