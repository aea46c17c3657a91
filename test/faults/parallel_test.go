package faults

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestAtOnce asks one server for the same thing many times at once.
func TestAtOnce(t *testing.T) {
	for name, ask := range map[string]func(harness.T, *harness.Project){
		"redemption":     harness.RedeemAtOnce,
		"refresh":        harness.RefreshAtOnce,
		"fabric refresh": harness.RefreshFabricAtOnce,
		"reference":      harness.ReferAtOnce,
	} {
		t.Run(name, func(t *testing.T) { ask(t, harness.Shared(t).NewProject(t)) })
	}
}
