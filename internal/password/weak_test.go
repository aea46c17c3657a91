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
	var tests int
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}

		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.Contains(string(code), "password"+".Weak") {
			return nil
		}
		if strings.HasSuffix(path, "_test.go") {
			tests++
			return nil
		}
		t.Errorf("%s makes weak hashes, but is not a test", path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tests == 0 {
		t.Error("no test makes weak hashes, so this test no longer finds the callers")
	}
}
