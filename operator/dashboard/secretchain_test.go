package dashboard

import (
	"slices"
	"strconv"
	"testing"

	"github.com/selvage/selvage/internal/audit"
)

// TestSecretChain shows that secretChain finds every key in a chain in which each key was created
// with the previous one. The chain is too long to search all events for each key.
func TestSecretChain(t *testing.T) {
	const long = 100_000
	var events []audit.Event
	for i := range long {
		e := audit.Of("api_key.created", "p", "api_key", strconv.Itoa(i+1)).With("name", "key "+strconv.Itoa(i+1))
		e.Actor.ID = strconv.Itoa(i)
		events = append(events, e)
	}
	slices.Reverse(events) // newest first, as in the audit trail

	chain := secretChain("0", events)
	if len(chain) != long {
		t.Fatalf("for a chain of %d keys, secretChain returned %d", long, len(chain))
	}
	if got := chain[0].through; got != "" {
		t.Errorf("the first key was created with %q, want no key", got)
	}
	last := chain[long-1]
	if want := strconv.Itoa(long); last.Target.ID != want {
		t.Errorf("the last key is %s, want %s", last.Target.ID, want)
	}
	if want := "key " + strconv.Itoa(long-1); last.through != want {
		t.Errorf("the last key was created with %q, want %q", last.through, want)
	}
	if others := secretChain("nobody", events); len(others) != 0 {
		t.Errorf("secretChain returned %d keys for another operator, want none", len(others))
	}
}
