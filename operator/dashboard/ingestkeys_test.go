package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// TestIngestKeyPage shows that an operator can create an ingest key, see its URL once, and revoke
// the key.
func TestIngestKeyPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	path := "/dashboard/projects/" + w.one.ID + "/ingest-keys"
	empty := b.get(path)
	empty.wantStatus(t, http.StatusOK)
	empty.wantText(t, "There are no ingest keys yet")

	created := b.post(path, path, url.Values{"name": {"fs1"}})
	created.wantStatus(t, http.StatusOK)
	secret := created.find(t, `/ingest/(ik_[0-9a-f]{48})/`)

	key, err := w.fabric.IngestKeys.Authenticate(t.Context(), secret)
	must(t, err)
	if key.ProjectID != w.one.ID {
		t.Errorf("the new key belongs to project %s, want %s", key.ProjectID, w.one.ID)
	}
	if key.Name != "fs1" {
		t.Errorf("the new key is named %q, want fs1", key.Name)
	}

	list := b.get(path)
	list.wantText(t, "fs1")
	list.wantNoText(t, secret)

	longName := b.post(path, path, url.Values{"name": {strings.Repeat("x", 300)}})
	longName.wantStatus(t, http.StatusUnprocessableEntity)

	b.post(path, path+"/"+key.ID+"/revoke", nil).leadsTo(t, path+"?done=ingestrevoked")
	b.get(path+"?done=ingestrevoked").wantText(t, "Ingest key revoked.")
	_, err = w.fabric.IngestKeys.Authenticate(t.Context(), secret)
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("Authenticate with a revoked key = %v, want not found", err)
	}
	keys, err := w.fabric.IngestKeys.List(t.Context(), w.one.ID, page.Query{Size: 10})
	must(t, err)
	if len(keys.Items) != 1 {
		t.Fatalf("List returned %d keys, want 1", len(keys.Items))
	}
	if keys.Items[0].Revoked.IsZero() {
		t.Error("List returned the key as valid, want it revoked")
	}
}
