package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

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

// TestIngestKeys shows that an ingest key is created, used, listed without its secret, and revoked.
func TestIngestKeys(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	r := w.call(boss, "POST", ingestKeyPath, `{"name":"fs1"}`)
	created := as[ingestKeyBody](t, r)
	if r.status != http.StatusCreated || created.Name != "fs1" || !strings.HasPrefix(created.Token, "ik_") ||
		!strings.HasPrefix(created.Token, created.Prefix) || created.ExpiresAt != nil || created.LastUsedAt != nil {
		t.Fatalf("creating = %d %s, want 201 and the fields given", r.status, r.text)
	}

	k, err := w.fabric.IngestKeys.Authenticate(context.Background(), created.Token)
	if err != nil || k.ProjectID != w.project.ID || k.ID != created.ID {
		t.Errorf("Authenticate = %+v, %v, want the key created", k, err)
	}

	r = w.call(boss, "GET", ingestKeyPath, "")
	if listed := as[struct{ Data []ingestKeyBody }](t, r).Data; len(listed) != 1 || listed[0].LastUsedAt == nil ||
		strings.Contains(r.text, created.Token) {
		t.Errorf("listing = %d %s, want the used key without its secret", r.status, r.text)
	}

	if r := w.call(boss, "DELETE", ingestKeyPath+"/"+created.ID, ""); r.status != http.StatusNoContent {
		t.Errorf("revoking = %d %s, want 204", r.status, r.text)
	}
	long := strings.Repeat("ik_", 99)
	for _, secret := range []string{created.Token, created.Token + "0", "ik_", "", "PT" + created.Token, long} {
		if _, err := w.fabric.IngestKeys.Authenticate(context.Background(), secret); !errors.Is(err, problem.NotFound) {
			t.Errorf("Authenticate(%.20q) = %v, want not found", secret, err)
		}
	}

	if r := w.call(boss, "DELETE", ingestKeyPath+"/x", ""); r.status != http.StatusNotFound {
		t.Errorf("revoking an unknown key = %d, want 404", r.status)
	}
	if r := w.call(boss, "POST", ingestKeyPath, `{"name":"`+strings.Repeat("x", 300)+`"}`); r.status != 422 {
		t.Errorf("a long name = %d, want 422", r.status)
	}
}

// TestIngestKeyRights shows that only a key with Management and Voice can create ingest keys. An
// ingest key does not outlive the key that created it.
func TestIngestKeyRights(t *testing.T) {
	w := newWorld(t)
	_, voice := w.newKey(time.Time{}, fabric.Voice)
	_, management := w.newKey(time.Time{}, fabric.Management)
	for _, auth := range []authorization{voice, management} {
		if r := w.call(auth, "POST", ingestKeyPath, `{}`); r.status != http.StatusUnauthorized {
			t.Errorf("creating with one scope = %d, want 401", r.status)
		}
	}
	if r := w.call(voice, "GET", ingestKeyPath, ""); r.status != http.StatusUnauthorized {
		t.Errorf("listing with Voice = %d, want 401", r.status)
	}

	_, brief := w.newKey(time.Now().Add(time.Hour), fabric.Management, fabric.Voice)
	if r := w.call(brief, "POST", ingestKeyPath, `{}`); as[ingestKeyBody](t, r).ExpiresAt == nil {
		t.Errorf("the ingest key of a key that expires = %s, want one that expires", r.text)
	}
}
