package dashboard

import (
	"slices"
	"strconv"
	"testing"

	"github.com/selvage/selvage/internal/audit"
)

// TestSecretChain shows that secretChain finds every key in a chain in which each key was created
// with the previous one. It visits each event once.
func TestSecretChain(t *testing.T) {
	const long = 100_000
	var all []audit.Event
	for i := range long {
		e := audit.Of("api_key.created", "p", "api_key", strconv.Itoa(i+1)).With("name", "key "+strconv.Itoa(i+1))
		e.Actor.ID = strconv.Itoa(i)
		all = append(all, e)
	}
	slices.Reverse(all) // newest first, as in the audit trail

	chain := secretChain("0", all)
	if len(chain) != long || chain[0].through != "" || chain[long-1].Target.ID != strconv.Itoa(long) ||
		chain[long-1].through != "key "+strconv.Itoa(long-1) {
		t.Errorf("for a chain of %d keys, secretChain returned %d, want these in order", long, len(chain))
	}
	if chain := secretChain("nobody", all); len(chain) != 0 {
		t.Errorf("secretChain returned %d keys for another operator, want none", len(chain))
	}
}
