package database

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A first connection is waited for as long as it may take to be made, and no longer
// than for one in use where it is known that none can be made.
func TestPoolBegins(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		name  string
		takes time.Duration
		err   error
		want  time.Duration
	}{
		{"soon", 2 * waitFor, nil, 2 * waitFor},
		{"at the last moment", connectFor - time.Millisecond, nil, connectFor - time.Millisecond},
		{"refused", 2 * waitFor, gone, 2 * waitFor},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(1, waitFor, func(context.Context) (*conn, error) {
				time.Sleep(tt.takes)
				return &conn{}, tt.err
			})
			began := time.Now()
			_, err := p.get(t.Context())
			if took := time.Since(began); !errors.Is(err, tt.err) || took != tt.want {
				t.Errorf("%s: get = %v after %s, want %v after %s", tt.name, err, took, tt.err, tt.want)
			}
			began = time.Now()
			_, err = p.get(t.Context()) // the one in use, or one that is refused again
			if took := time.Since(began); !errors.Is(err, problem.Unavailable) || took > waitFor {
				t.Errorf("%s: another get = %v after %s, want unavailable in %s", tt.name, err, took, waitFor)
			}
			time.Sleep(time.Minute)
		})
	}
}
