package certs

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/crypto/acme/autocert"

	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// TestCacheOfMalformedName shows that challenges with malformed names are reported as missing and
// are not logged, because anyone can send such names.
func TestCacheOfMalformedName(t *testing.T) {
	rows, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rows.Close() })

	log := new(notes)
	c := cache{rows: rows, log: slog.New(slog.NewTextHandler(log, nil))}
	for _, name := range []string{"x+http-01", "a\x00b+http-01", "\xff+http-01", strings.Repeat("x", 500)} {
		if _, err := c.Get(t.Context(), name); !errors.Is(err, autocert.ErrCacheMiss) {
			t.Errorf("Get(%.20q) = %v, want a cache miss", name, err)
		}
	}

	if logged := log.take(); logged != "" {
		t.Errorf("the log contains %s, want nothing", logged)
	}
}
