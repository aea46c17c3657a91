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
	withPassword := config.Config{Database: "postgres://ann:hush@h/x"}
	fromFile := config.Origins{"database": file + ":1:1"}
	tests := []struct {
		name   string
		config config.Config
		from   config.Origins
		mode   os.FileMode
		want   string // secret that the file sets; "" for no finding
	}{
		{name: "a password", config: withPassword, from: fromFile, mode: 0o644, want: "database"},
		{
			name:   "a file with a password",
			config: config.Config{Sessions: "redis://h?password=hush"},
			from:   config.Origins{"sessions": "SELVAGE_SESSIONS_FILE"},
			mode:   0o644,
			want:   "sessions",
		},
		{
			name:   "a master key",
			config: config.Config{MasterKey: "hush"},
			from:   config.Origins{"master_key": file + ":3:1"},
			mode:   0o644,
			want:   "master_key",
		},
		{name: "a private file", config: withPassword, from: fromFile, mode: 0o600},
		{
			name:   "a variable",
			config: withPassword,
			from:   config.Origins{"database": "SELVAGE_DATABASE"},
			mode:   0o644,
		},
		{
			name:   "no password",
			config: config.Config{Database: "postgres://ann@h/x"},
			from:   fromFile,
			mode:   0o644,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.Chmod(file, tt.mode); err != nil {
				t.Fatal(err)
			}
			found := readableSecrets(tt.config, getenv, tt.from)
			if tt.want == "" {
				if len(found) == 1 {
					t.Errorf("doctor found %+v, want nothing", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("doctor found %+v, want one finding", found)
			}
			want := "can read " + file + ", which sets " + tt.want
			if got := found[0].Found.String(); !strings.HasSuffix(got, want) {
				t.Errorf("doctor found %q, want %q at the end", got, want)
			}
		})
	}
}
