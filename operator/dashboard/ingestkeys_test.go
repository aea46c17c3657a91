package dashboard_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
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
	if empty.StatusCode != http.StatusOK || !strings.Contains(empty.body, "There are no ingest keys yet") {
		t.Errorf("the page without keys = %d %s, want 200 with a sentence that says so", empty.StatusCode, empty.body)
	}

	created := b.post(path, path, url.Values{"name": {"fs1"}})
	secret := regexp.MustCompile(`/ingest/(ik_[0-9a-f]{48})/`).FindStringSubmatch(created.body)
	if created.StatusCode != http.StatusOK || secret == nil {
		t.Fatalf("creating = %d %s, want 200 with a URL", created.StatusCode, created.body)
	}

	k, err := w.fabric.IngestKeys.Authenticate(context.Background(), secret[1])
	if err != nil || k.ProjectID != w.one.ID || k.Name != "fs1" {
		t.Errorf("Authenticate = %+v, %v, want the key", k, err)
	}

	if listed := b.get(path); strings.Contains(listed.body, secret[1]) || !strings.Contains(listed.body, "fs1") {
		t.Error("the list shows the secret, or lacks the name")
	}
	if long := b.post(path, path, url.Values{"name": {strings.Repeat("x", 300)}}); long.StatusCode != 422 {
		t.Errorf("a long name = %d, want 422", long.StatusCode)
	}

	b.post(path, path+"/"+k.ID+"/revoke", nil).leadsTo(t, path+"?done=revoked")
	if _, err := w.fabric.IngestKeys.Authenticate(context.Background(), secret[1]); !errors.Is(err, problem.NotFound) {
		t.Errorf("Authenticate after the key was revoked = %v, want not found", err)
	}
	all, err := w.fabric.IngestKeys.List(context.Background(), w.one.ID, page.Query{Size: 10})
	if err != nil || len(all.Items) != 1 || all.Items[0].Revoked.IsZero() {
		t.Errorf("List = %+v, %v, want the revoked key", all.Items, err)
	}
}
