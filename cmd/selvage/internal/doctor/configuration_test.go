package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// TestReadableSecrets shows that a file that every user can read is reported if it contains a
// secret. A URL with a password counts as a secret.
func TestReadableSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "selvage.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	getenv := func(string) string { return file }
	for _, tt := range []struct {
		config config.Config
		from   config.Origins
		mode   os.FileMode
		want   string // secret that the file sets; "" for no finding
	}{
		{config.Config{Database: "postgres://ann:hush@h/x"}, config.Origins{"database": file + ":1:1"}, 0o644,
			"database"},
		{config.Config{Sessions: "redis://h?password=hush"},
			config.Origins{"sessions": "SELVAGE_SESSIONS_FILE"}, 0o644, "sessions"},
		{config.Config{MasterKey: "hush"}, config.Origins{"master_key": file + ":3:1"}, 0o644, "master_key"},
		{config.Config{Database: "postgres://ann:hush@h/x"}, config.Origins{"database": file + ":1:1"}, 0o600, ""},
		{config.Config{Database: "postgres://ann:hush@h/x"}, config.Origins{"database": "SELVAGE_DATABASE"},
			0o644, ""},
		{config.Config{Database: "postgres://ann@h/x"}, config.Origins{"database": file + ":1:1"}, 0o644, ""},
	} {
		if err := os.Chmod(file, tt.mode); err != nil {
			t.Fatal(err)
		}
		found := readableSecrets(tt.config, getenv, tt.from)
		if got := len(found) == 1; got != (tt.want != "") || got &&
			!strings.HasSuffix(found[0].Found.String(), "can read "+file+", which sets "+tt.want) {
			t.Errorf("%v, mode %o: %+v, want a finding that names %q (none if empty)", tt.from, tt.mode, found, tt.want)
		}
	}
}
