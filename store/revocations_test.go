package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/selvage/selvage/internal/revocation"
)

// TestRevocationsInOrder shows that revocations become visible in the order of their numbers. A
// reader that continues after the last number it has read misses none.
func TestRevocationsInOrder(t *testing.T) { EachDatabase(t, testRevocationsInOrder) }

func testRevocationsInOrder(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	const writers, each = 10, 20
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				expect(t, "AddRevocation", s.AddRevocation(ctx, end(revocation.Token, fmt.Sprint(w, ".", i))))
			}
		})
	}

	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	seen := map[string]bool{}
	var seq int64
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}

		found, next, err := s.RevocationsSince(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			seen[r.ID] = true
		}
		seq = next
	}

	if len(seen) != writers*each {
		t.Errorf("%d revocations were seen, want %d", len(seen), writers*each)
	}
	if seq != writers*each {
		t.Errorf("the number of the last revocation is %d, want %d", seq, writers*each)
	}
}
