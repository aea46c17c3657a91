package main

import (
	"io/fs"
	"os"
	"strings"
)

// tracked returns the source tree without git's directory, build results, npm's modules, a server's
// data and symbolic links.
func tracked(root string) fs.FS { return tree{os.DirFS(root)} }

type tree struct{ fs.FS }

// ignored holds the names that tracked omits. Below sdk, dist is part of the tree anyway.
var ignored = map[string]bool{".git": true, "bin": true, "dist": true, "node_modules": true, "selvage-data": true}

func (t tree) ReadDir(name string) (kept []fs.DirEntry, err error) {
	all, err := fs.ReadDir(t.FS, name)
	for _, e := range all {
		isSource := !ignored[e.Name()] || strings.HasPrefix(name, "sdk") && e.Name() == "dist"
		if isSource && e.Type()&fs.ModeSymlink == 0 {
			kept = append(kept, e)
		}
	}
	return kept, err
}
