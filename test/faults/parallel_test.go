package faults

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestAtOnce sends the same request to one server many times concurrently.
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
