package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/dashboard"
)

// installation returns an installation whose next ES256 key is too young to rotate. It records key
// rotations in w.rotated.
func (w *world) installation() dashboard.Installation {
	return dashboard.Installation{
		Policies: func() []dashboard.Policy {
			return []dashboard.Policy{
				{Group: "limits", Key: "limits.login_per_account", Value: "7", Default: "10", Means: "Passwords."},
				{Group: "session", Key: "session.idle", Value: "12h0m0s", Default: "12h", Means: "Unused."},
				{Group: "tokens", Key: "tokens.guest", Value: "1h", Default: "2h", Means: "Guests."},
			}
		},

		Keys: func(context.Context) ([]dashboard.RingKey, error) {
			return []dashboard.RingKey{
				{Kid: "a-key", Use: "RS256", State: "current"},
				{Kid: "b-key", Use: "ES256", State: "next"},
			}, nil
		},
		Rotate: func(_ context.Context, use string) error {
			if use != "RS256" {
				return problem.New(problem.Conflict, "conflict", "the next key is too young")
			}
			w.rotated = append(w.rotated, use)
			return nil
		},

		Mailing: w.mailing(),
		Backups: w.backups,

		Findings: func() []dashboard.Finding {
			return []dashboard.Finding{
				{Group: "Data", Name: "backups", Found: "none yet", Status: "warning"},
				{Group: "Data", Name: "space", Found: "1 MB free", Status: "failed"},
			}
		},
		Examine: func(context.Context) []dashboard.Finding {
			return []dashboard.Finding{
				{Group: "Data", Name: "space", Found: "1 MB free", Remedy: "buy a disk", Status: "failed"},
				{Group: "Process", Name: "account", Found: "the server runs as root, which it does not need",
					Remedy: "check the files", Status: "warning"},
				{Group: "Data", Name: "space", Found: words.Textf("%s of %s free", "12 MB", "40 GB"),
					Remedy: words.Textf("set %s", "--listen"), Status: "warning"},
				{Group: "Data", Name: "space", Found: "12 widgets", Status: "ok"},
			}
		},
	}
}

// TestSettings shows that owners of all projects can see the settings and, after they confirm their
// identity, rotate keys. Owners of one project cannot see the settings.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, owner := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Owner})

	const at = "/dashboard/settings"
	owner.get(at).wantStatus(t, http.StatusForbidden)
	owner.get("/dashboard/account").wantNoText(t, at)

	// The page shows each part of the settings. A duration that equals the default does not count
	// as changed, even if it is written differently.
	page := b.get(at)
	page.wantStatus(t, http.StatusOK)
	page.wantText(t, "a-key", "tokens.guest", at+"/doctor")
	page.wantNoText(t, "12h0m0s", "limits.login_per_account")
	changed, usual, _ := strings.Cut(page.body, `id="defaults"`)
	if !strings.Contains(changed, "tokens.guest") {
		t.Errorf("the changed settings lack tokens.guest: %s", changed)
	}
	if n := strings.Count(usual, ">12h<"); n != 2 {
		t.Errorf("the settings with default values contain 12h %d times, want 2: %s", n, usual)
	}

	limits := b.get("/dashboard/limits")
	limits.wantText(t, "limits.login_per_account")
	limits.wantNoText(t, "session.idle")
	b.get("/dashboard/kinds").wantText(t, "/api/fabric/resources/conference_rooms")
	b.get(at+"/doctor").wantText(t, "Buy a disk.", `status bad">Failed`)

	// A key can be rotated once the next one is old enough.
	b.post(at, at+"/keys", url.Values{"use": {"RS256"}}).leadsTo(t, at+"?done=rotated")
	b.post(at, at+"/keys", url.Values{"use": {"ES256"}}).wantRefused(t, "The next key is too young.")

	// A session that is not fresh must be confirmed first.
	w.pass(operator.Freshness)
	b.post(at, at+"/keys", url.Values{"use": {"RS256"}}).asksToConfirm(t, at)
	if !slices.Equal(w.rotated, []string{"RS256"}) {
		t.Errorf("rotated keys: %v, want RS256 once", w.rotated)
	}
}
