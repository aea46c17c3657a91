package database

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// TestNewcomersWait shows who gets the next connection of a busy pool: background tasks and requests
// that had one, in the order of arrival, and then new requests.
func TestNewcomersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1, statementFor, func(context.Context) (*conn, error) { return &conn{}, nil })
		begun := Newcomer(t.Context())
		c, err := p.get(begun) // its first connection
		if err != nil {
			t.Fatal(err)
		}

		put := func(c *conn) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.give(c)
		}
		var order []string
		for _, caller := range []struct {
			name string
			ctx  context.Context
		}{
			{"new", Newcomer(t.Context())}, {"newer", Newcomer(t.Context())}, {"task", t.Context()}, {"begun", begun},
		} {
			go func() {
				c, err := p.get(caller.ctx)
				if err != nil {
					t.Errorf("%s: %v", caller.name, err)
				}
				order = append(order, caller.name) // only one caller has the connection
				put(c)
			}()
			synctest.Wait()
		}

		put(c)
		synctest.Wait()
		if want := []string{"task", "begun", "new", "newer"}; !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
	})
}
