package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// permissive lists the SPDX identifiers of licenses that linked modules may have.
var permissive = []string{
	"Apache-2.0",
	"BSD-2-Clause",
	"BSD-3-Clause",
	"ISC",
	"MIT",
	"MIT-0",
	"0BSD",
	"Unlicense",
	"CC0-1.0",
	"BSD-2-Clause-Views",
	"Unicode-DFS-2016",
	"Zlib",
	"PSF-2.0",
}

// licenseFile matches the names of files that contain licenses.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?$`)

// noticeFile matches files that do not state the module's own license: notices, and lists of
// third-party code. Third-party code that is linked is a module of its own, which is checked
// separately.
var noticeFile = regexp.MustCompile(`(?i)^(notice|patents)|3rd.?party|third.?party`)

// A license holds the identifiers and the texts of a module's licenses.
type license struct {
	module
	ids   []string
	texts []string // each begins with the name of its file
}

// licenses writes LICENSES.txt, which lists the licenses of all linked modules and contains their texts.
// It fails if a license is unknown or not permissive.
func (r release) licenses() error {
	all, err := r.licensed()
	if err != nil {
		return err
	}

	var b strings.Builder
	b.WriteString("selvage is under the Apache License 2.0. Linked into it are:\n\n")
	for _, l := range all {
		fmt.Fprintf(&b, "%-60s %-40s %s\n", l.Path, l.Version, strings.Join(l.ids, ", "))
	}

	for _, l := range all {
		for _, text := range l.texts {
			fmt.Fprintf(&b, "\n%s\n%s %s, %s", strings.Repeat("=", 80), l.Path, l.Version, text)
		}
	}
	return os.WriteFile(filepath.Join(r.out, "LICENSES.txt"), []byte(b.String()), 0o644)
}

// licensed returns the licenses of all linked modules, including Go's standard library.
func (r release) licensed() (all []license, err error) {
	modules, err := r.modules()
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	std := module{Path: "std", Version: runtime.Version(), Dir: strings.TrimSpace(string(root))}
	modules = append([]module{std}, modules...)

	for _, m := range modules {
		l, err := read(m)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// read reads the license files of a module.
func read(m module) (license, error) {
	l := license{module: m}
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return l, err
	}

	for _, f := range files {
		if f.IsDir() || !licenseFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return l, err
		}
		l.texts = append(l.texts, f.Name()+":\n\n"+string(text))
		if noticeFile.MatchString(f.Name()) {
			continue
		}

		for _, match := range licensecheck.Scan(text).Match {
			if !slices.Contains(l.ids, match.ID) {
				l.ids = append(l.ids, match.ID)
			}
		}
	}

	if l.ids == nil {
		return l, fmt.Errorf("%s has no known license", m.Path)
	}
	for _, id := range l.ids {
		if !slices.Contains(permissive, id) {
			return l, fmt.Errorf("%s is under %s, which is not among %s", m.Path, id, strings.Join(permissive, ", "))
		}
	}
	return l, nil
}
