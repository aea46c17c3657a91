package telemetry

import (
	"log/slog"
	"net/http"
	"reflect"
	"testing"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/session"
)

// TestOff shows that disabled tracing has no cost, because the nil Tracer wraps nothing.
func TestOff(t *testing.T) {
	var off *Tracer
	handler := http.NotFoundHandler()
	if got := off.Handler(handler); reflect.ValueOf(got).Pointer() != reflect.ValueOf(handler).Pointer() {
		t.Error("a handler is wrapped")
	}
	client := new(http.Client)
	if off.Client("webhook", client) != client {
		t.Error("a client is wrapped")
	}
	log := slog.New(slog.DiscardHandler)
	if off.Log(log) != log {
		t.Error("a logger is wrapped")
	}

	var db database.DB = &tracedDB{}
	if off.Database(db, "sqlite") != db {
		t.Error("a database is wrapped")
	}
	var store session.Store = &sessions{}
	if off.Sessions(store, "sqlite") != store {
		t.Error("a session store is wrapped")
	}
	if err := off.Close(); err != nil {
		t.Error(err)
	}
}

func TestSummary(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT a, b FROM logins WHERE id = $1":                "SELECT logins",
		"\n\tselect count(*)\n\tfrom grants g JOIN logins":     "SELECT grants",
		"INSERT INTO clients (id) VALUES ($1)":                 "INSERT clients",
		"UPDATE sequences SET value = value":                   "UPDATE sequences",
		"DELETE FROM letters WHERE id IN (SELECT id FROM old)": "DELETE letters",
		"PRAGMA optimize": "SQL",
	} {
		if got := summary(query); got != want {
			t.Errorf("summary(%q) = %q, want %q", query, got, want)
		}
	}
}
