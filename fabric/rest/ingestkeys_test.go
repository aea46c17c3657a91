package rest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

const ingestKeyPath = "/api/project/ingest_keys"

type ingestKeyBody struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Token      string  `json:"token"`
	Prefix     string  `json:"prefix"`
	ExpiresAt  *string `json:"expires_at"`
	RevokedAt  *string `json:"revoked_at"`
	LastUsedAt *string `json:"last_used_at"`
}

// TestIngestKeys shows that an ingest key can be created, used, listed without its secret, and
// revoked.
func TestIngestKeys(t *testing.T) {
	w := newWorld(t)
	boss := w.administrator()
	r := w.call(boss, "POST", ingestKeyPath, `{"name":"fs1"}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	created := as[ingestKeyBody](t, r)
	if !strings.HasPrefix(created.Token, "ik_") {
		t.Fatalf("POST: the secret is %q, want ik_…", created.Token)
	}
	if !strings.HasPrefix(created.Token, created.Prefix) {
		t.Fatalf("POST: the secret is %q, want it to begin with %q", created.Token, created.Prefix)
	}
	want := ingestKeyBody{ID: created.ID, Name: "fs1", Token: created.Token, Prefix: created.Prefix}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Fatalf("POST (-want +got):\n%s", diff)
	}

	key, err := w.fabric.IngestKeys.Authenticate(t.Context(), created.Token)
	if err != nil {
		t.Fatal(err)
	}
	if key.ID != created.ID {
		t.Errorf("Authenticate returns the key %s, want %s", key.ID, created.ID)
	}
	if key.ProjectID != w.project.ID {
		t.Errorf("Authenticate returns a key of the project %s, want %s", key.ProjectID, w.project.ID)
	}

	r = w.call(boss, "GET", ingestKeyPath, "")
	r.wantNoText(t, "GET", created.Token)
	found := as[listed[ingestKeyBody]](t, r).Data
	if len(found) != 1 {
		t.Fatalf("GET: got %s, want one key", r.text)
	}
	if found[0].LastUsedAt == nil {
		t.Error("GET: a key that was used has no last_used_at")
	}

	r = w.call(boss, "DELETE", ingestKeyPath+"/"+created.ID, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	long := strings.Repeat("ik_", 99)
	for _, secret := range []string{created.Token, created.Token + "0", "ik_", "", "PT" + created.Token, long} {
		if _, err := w.fabric.IngestKeys.Authenticate(t.Context(), secret); !errors.Is(err, problem.NotFound) {
			t.Errorf("Authenticate(%.20q) = %v, want not found", secret, err)
		}
	}

	r = w.call(boss, "DELETE", ingestKeyPath+"/x", "")
	r.wantStatus(t, "DELETE of an unknown key", http.StatusNotFound)
	r = w.call(boss, "POST", ingestKeyPath, `{"name":"`+strings.Repeat("x", 300)+`"}`)
	r.wantStatus(t, "POST with a long name", http.StatusUnprocessableEntity)
}

// TestIngestKeyRights shows that only an API key with Management and Voice can create ingest keys. If
// the API key expires, so does the ingest key.
func TestIngestKeyRights(t *testing.T) {
	w := newWorld(t)
	_, voice := w.newKey(time.Time{}, fabric.Voice)
	r := w.call(voice, "POST", ingestKeyPath, `{}`)
	r.wantStatus(t, "POST with Voice", http.StatusUnauthorized)
	r = w.call(w.manager(), "POST", ingestKeyPath, `{}`)
	r.wantStatus(t, "POST with Management", http.StatusUnauthorized)
	r = w.call(voice, "GET", ingestKeyPath, "")
	r.wantStatus(t, "GET with Voice", http.StatusUnauthorized)

	_, brief := w.newKey(time.Now().Add(time.Hour), fabric.Management, fabric.Voice)
	r = w.call(brief, "POST", ingestKeyPath, `{}`)
	if as[ingestKeyBody](t, r).ExpiresAt == nil {
		t.Errorf("the ingest key of an API key that expires is %s, want an expires_at", r.text)
	}
}
