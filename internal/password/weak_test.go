package password

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWeakIsForTests shows that only tests call Weak.
func TestWeakIsForTests(t *testing.T) {
	var callers, tests int
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "password"+".Weak") {
			return err
		}
		if callers++; strings.HasSuffix(path, "_test.go") {
			tests++
		} else {
			t.Errorf("%s makes weak hashes, but is not a test", path)
		}
		return nil
	})
	if err != nil || tests == 0 {
		t.Errorf("%d tests among %d callers make weak hashes, %v", tests, callers, err)
	}
}
