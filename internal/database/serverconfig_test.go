package database

import (
	"strings"
	"testing"
)

// TestCutPasswords shows that a password with unencoded special characters appears neither in
// errors nor in the address that is connected to.
func TestCutPasswords(t *testing.T) {
	for _, raw := range []string{
		"postgres://u:p@hush/hush@h:5432/db", "postgres://u:12/hush@h/db", "postgres://u:12#hush@h/db",
		"postgres://u:12?hush@h/db", "postgres://u:hush?hush@h/db", "postgres://u:hush#hush@h/db",
		"postgres://u:12/hush?hush@h/db", "postgres://u:12/hush?hush=1@h/db", "postgres://u:p@hush/hush?hush@h/db",
		"postgres://u:12/hush#hush@h/db", "postgres://u:p@hush?a=b&hush@h/db",
	} {
		config, err := parseServer(raw)
		if err == nil {
			t.Errorf("parseServer(%q) connects to %q, want an error", raw, shown(config))
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("parseServer(%q) = %v, which contains the password", raw, err)
		}
	}

	for _, raw := range []string{"postgres://u:p%40h%2Fush@h:5432/db", "postgres://h/db?user=u&password=hu@sh"} {
		if _, err := parseServer(raw); err != nil {
			t.Errorf("parseServer(%q) = %v, want nil", raw, err)
		}
	}
}
