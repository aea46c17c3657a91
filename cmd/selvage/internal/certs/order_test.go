package certs

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// TestObtainWithoutDatabase shows that the waits do not grow while the database is unavailable.
// Otherwise, the server would have no certificate for up to an hour after the database is available
// again.
func TestObtainWithoutDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		log := new(notes)
		a, err := OpenACME(ACMEConfig{
			Hosts: []string{"id.example.org"},
			Store: rows,
			Log:   slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if a.obtain(ctx, "id.example.org") {
			t.Error("obtain without a database = true, want false")
		}
		failures := strings.Count(log.take(), "requesting a certificate")
		if want := int(time.Hour/minRetryDelay) + 1; failures != want {
			t.Errorf("%d attempts in an hour, want %d", failures, want)
		}
	})
}
