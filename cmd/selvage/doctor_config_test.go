package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that everybody may read is told of where it holds a secret: a URL with a
// password is one.
func TestReadableSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "selvage.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(string) string { return file }
	for _, tt := range []struct {
		config Config
		from   origins
		mode   os.FileMode
		want   string // that is set by the file
	}{
		{Config{Database: "postgres://ann:hush@h/x"}, origins{"database": file + ":1:1"}, 0o644, "database"},
		{Config{Sessions: "redis://h?password=hush"}, origins{"sessions": "SELVAGE_SESSIONS_FILE"}, 0o644, "sessions"},
		{Config{MasterKey: "hush"}, origins{"master_key": file + ":3:1"}, 0o644, "master_key"},
		{Config{Database: "postgres://ann:hush@h/x"}, origins{"database": file + ":1:1"}, 0o600, ""},
		{Config{Database: "postgres://ann:hush@h/x"}, origins{"database": "SELVAGE_DATABASE"}, 0o644, ""},
		{Config{Database: "postgres://ann@h/x"}, origins{"database": file + ":1:1"}, 0o644, ""},
	} {
		if err := os.Chmod(file, tt.mode); err != nil {
			t.Fatal(err)
		}
		found := tt.config.readableSecrets(getenv, tt.from)
		if got := len(found) == 1; got != (tt.want != "") || got && !strings.HasSuffix(found[0].Found, "may read "+file+", which sets "+tt.want) {
			t.Errorf("%v, mode %o: %+v, want it told that it sets %q", tt.from, tt.mode, found, tt.want)
		}
	}
}
