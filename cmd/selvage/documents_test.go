package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fileServers are commands that serve a directory.
var fileServers = []string{
	"-m http.server",
	"npx serve",
	"npx http-server",
	"php -S",
	"ruby -run",
	"httpd -f",
	"file-server",
}

// servesFiles reports whether text contains a command that serves a directory.
func servesFiles(text string) bool {
	return slices.ContainsFunc(fileServers, func(command string) bool { return strings.Contains(text, command) })
}

// TestServedDirectories checks that no file in the repository tells people to serve the current
// directory, or to serve any directory on all addresses. The directory in which people try selvage
// contains selvage-data, which holds the master key.
func TestServedDirectories(t *testing.T) {
	const root = "../.."
	found := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && notOurs.MatchString(path) {
			return filepath.SkipDir
		}
		if e.Type().IsRegular() && e.Name() != "documents_test.go" {
			found += checkServers(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no file contains a command that serves a directory, so the list of commands is out of date")
	}
}

// notOurs matches directories without our sources: git's directory, build results, installed
// modules and the data of a server.
var notOurs = regexp.MustCompile(`^\.\./\.\./(\.git|bin|build|dist)$|/(node_modules|selvage-data)$`)

// checkServers checks each command in a file that serves a directory. It returns the number of
// these commands.
func checkServers(t *testing.T, path string) (found int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(text, 0) >= 0 || !servesFiles(string(text)) {
		return 0 // a binary file, or one without such a command
	}

	for i, line := range strings.Split(string(text), "\n") {
		if !servesFiles(line) {
			continue
		}
		found++
		for _, option := range []string{"--bind 127.0.0.1", "--directory "} {
			if !strings.Contains(line, option) {
				t.Errorf("%s:%d serves a directory without %q: %s", path, i+1, option, line)
			}
		}
	}
	return found
}
