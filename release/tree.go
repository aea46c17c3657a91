package main

import (
	"io/fs"
	"os"
	"strings"
)

// tracked returns the tree without what is not of it: git's own directory, what was built,
// and what npm has installed.
func tracked(root string) fs.FS { return tree{os.DirFS(root)} }

type tree struct{ fs.FS }

var left = map[string]bool{".git": true, "bin": true, "dist": true, "node_modules": true, "selvage-data": true}

func (t tree) ReadDir(name string) (kept []fs.DirEntry, err error) {
	all, err := fs.ReadDir(t.FS, name)
	for _, e := range all {
		if (!left[e.Name()] || strings.HasPrefix(name, "sdk") && e.Name() == "dist") && e.Type()&fs.ModeSymlink == 0 {
			kept = append(kept, e)
		}
	}
	return kept, err
}
