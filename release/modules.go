package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// A module is a linked module and the location of its files.
type module struct {
	Path, Version, Sum, Dir string
}

// modules returns the modules linked into the binaries. Go records them in each binary.
func (r release) modules() ([]module, error) {
	linked := make(map[string]debug.Module)
	for _, arch := range architectures {
		info, err := buildinfo.ReadFile(r.binary(arch))
		if err != nil {
			return nil, err
		}
		for _, d := range info.Deps {
			if d.Replace != nil {
				return nil, fmt.Errorf("%s is replaced, which a release does not permit", d.Path)
			}
			linked[d.Path] = *d
		}
	}

	var all []module
	for _, d := range linked {
		all = append(all, module{Path: d.Path, Version: d.Version, Sum: d.Sum})
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, r.locate(all)
}

// locate finds the files of modules in the module cache.
func (r release) locate(all []module) error {
	args := []string{"mod", "download", "-json"}
	for _, m := range all {
		args = append(args, m.Path+"@"+m.Version)
	}

	cmd := exec.Command("go", args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("finding the modules: %w", err)
	}

	dirs := make(map[string]string)
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var m module
		if err := dec.Decode(&m); err != nil {
			return err
		}
		dirs[m.Path] = m.Dir
	}

	for i := range all {
		if all[i].Dir = dirs[all[i].Path]; all[i].Dir == "" {
			return fmt.Errorf("%s is not in the module cache", all[i].Path)
		}
	}
	return nil
}
