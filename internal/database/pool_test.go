package database

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// TestPoolWaits shows that a caller waits for a new or free connection for at most Patience, and
// then gets an error.
func TestPoolWaits(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		name  string
		takes time.Duration
		err   error
	}{
		{"soon", time.Millisecond, nil},
		{"at the last moment", statementFor - time.Millisecond, nil},
		{"refused", 2 * time.Second, gone},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(1, statementFor, func(context.Context) (*conn, error) {
				time.Sleep(tt.takes)
				return &conn{}, tt.err
			})

			began := time.Now()
			_, err := p.get(t.Context())
			if took := time.Since(began); !errors.Is(err, tt.err) || took != tt.takes {
				t.Errorf("%s: get = %v after %s, want %v after %s", tt.name, err, took, tt.err, tt.takes)
			}

			began = time.Now()
			_, err = p.get(t.Context()) // the connection is in use, or connecting fails again
			if took := time.Since(began); !errors.Is(err, problem.Unavailable) || took > statementFor {
				t.Errorf("%s: another get = %v after %s, want unavailable in %s", tt.name, err, took, statementFor)
			}
			time.Sleep(time.Minute)
		})
	}
}
