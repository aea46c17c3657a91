package database

import (
	"strings"
	"testing"
)

func TestIsOurs(t *testing.T) {
	tests := []struct {
		tables        string
		ours, earlier bool
	}{
		{"selvage_versions", true, false},
		{"ring selvage_versions users", true, false},
		{"selvage_sessions", true, false},
		{"session_entries", true, false},
		{"goose_db_version projects revocations ring sequences", true, true},
		{"goose_db_version revocations ring selvage_versions sequences", true, false},
		{"ring", false, false},
		{"goose_db_version", false, false},
		{"goose_db_version ring", false, false},
		{"session_entries users", false, false},
		{"revocations ring sequences", false, false},
	}
	for _, tt := range tests {
		tables := strings.Fields(tt.tables)
		if ours, earlier := IsOurs(tables), HasEarlier(tables); ours != tt.ours || earlier != tt.earlier {
			t.Errorf("of %s: IsOurs = %v, HasEarlier = %v, want %v, %v", tt.tables, ours, earlier, tt.ours,
				tt.earlier)
		}
	}
}
