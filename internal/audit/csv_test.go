package audit

import (
	"testing"
	"time"
)

// TestCSVHasNoFormula shows that no cell begins like a formula, even if an attacker chose its text
// (OWASP, CSV Injection).
func TestCSVHasNoFormula(t *testing.T) {
	for _, evil := range []string{"=cmd|'/C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"} {
		e := Event{
			ID:        evil,
			At:        time.Unix(0, 0),
			ProjectID: evil,
			Action:    evil,
			Outcome:   Outcome(evil),
			Actor:     Actor{ActorKind(evil), evil},
			Target:    Target{evil, evil},
			Address:   evil,
			RequestID: evil,
			Detail:    map[string]string{evil: evil},
			Hash:      evil,
		}

		row := e.CSV()
		if len(row) != len(CSVHeader) {
			t.Fatalf("a row has %d cells, want %d", len(row), len(CSVHeader))
		}

		for i, cell := range row {
			if cell == evil {
				t.Errorf("the cell of %s is %q, which is a formula", CSVHeader[i], cell)
			}
		}
	}

	row := Event{ID: "a=b", Action: "login"}.CSV()
	if row[0] != "a=b" {
		t.Errorf("the id a=b, which is not a formula, is written as %q, want it unchanged", row[0])
	}
	if row[3] != "login" {
		t.Errorf("the action login is written as %q, want it unchanged", row[3])
	}
}
