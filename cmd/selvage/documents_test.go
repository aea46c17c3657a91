package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// fileServers matches commands that serve a directory.
var fileServers = regexp.MustCompile(`-m http\.server|npx (serve|http-server)|php -S|ruby -run|httpd -f|file-server`)

// TestServedDirectories checks that nothing in the repository tells people to serve the current
// directory, or any directory on all addresses. The directory in which they try selvage holds
// selvage-data, and with it the master key.
func TestServedDirectories(t *testing.T) {
	const root = "../.."
	cmd := exec.Command("git", "ls-files", "-z", "--", ":!cmd/selvage/documents_test.go")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err) // the sources are not a git repository
	}

	found := 0
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(root + "/" + name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			continue // removed, a link to a directory, or binary
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !fileServers.MatchString(line) {
				continue
			}
			found++
			if !strings.Contains(line, "--bind 127.0.0.1") || !strings.Contains(line, "--directory ") {
				t.Errorf("%s:%d serves a directory without --bind 127.0.0.1 and --directory: %s", name, i+1, line)
			}
		}
	}
	if found == 0 {
		t.Error("no document serves a directory: the expression in this test is out of date")
	}
}
