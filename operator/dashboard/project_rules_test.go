package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// TestRules shows that viewers see the rules of a project. Admins can change the rules if they have
// recently confirmed their identity, and the audit trail records each change.
func TestRules(t *testing.T) {
	w := newWorld(t)
	admin, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	_, viewer := w.operator("vic@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})

	at := "/dashboard/projects/" + w.one.ID + "/rules"
	edit := at + "/edit"
	shown := viewer.get(at)
	shown.wantStatus(t, http.StatusOK)
	shown.wantText(t, "Invitation only")
	shown.wantNoText(t, "rules-edit")

	// An admin changes the rules. The rest of the project stays unchanged.
	b.post(edit, edit, url.Values{
		"registration":      {"open"},
		"require_factor":    {"yes"},
		"media_auth":        {"basic"},
		"record_calls":      {"on"},
		"outbound_calls":    {"on"},
		"outbound_prefixes": {"+49  +43"},
	}).leadsTo(t, at+"?done=changed")
	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	for _, tt := range []struct{ rule, got, want string }{
		{"registration", string(p.Registration), string(fabric.RegistrationOpen)},
		{"access to media", p.MediaAuth, "basic"},
		{"recording of calls", string(p.RecordCalls), string(fabric.RecordOn)},
		{"outbound calls", string(p.OutboundCalls), string(fabric.OutboundOn)},
		{"outbound prefixes", strings.Join(p.OutboundPrefixes.List(), " "), "+49 +43"},
		{"name", p.Name, w.one.Name},
	} {
		if tt.got != tt.want {
			t.Errorf("after the change, the %s is %q, want %q", tt.rule, tt.got, tt.want)
		}
	}
	if !p.RequireFactor {
		t.Error("after the change, a second factor is optional, want it required")
	}

	changed := b.get(at)
	changed.wantText(t, "Open registration", "Required for everyone", "rules-edit")
	if rule := between(changed.body, `id="record-calls"`, "</dd>"); !strings.Contains(rule, "must consent") {
		t.Errorf("the rule for recording is shown as %q, want a hint about consent", rule)
	}

	// Unknown values are refused.
	unknown := url.Values{"registration": {"sometimes"}, "media_auth": {"nobody"}}
	b.post(edit, edit, unknown).wantRefused(t)
	b.post(edit, edit, url.Values{"require_factor": {"perhaps"}}).wantRefused(t)
	for name, value := range map[string]string{
		"record_calls":      "inherit",
		"outbound_calls":    "maybe",
		"outbound_prefixes": "49",
	} {
		b.post(edit, edit, url.Values{name: {value}}).wantRefused(t, `id="f-`+name+`-fault"`)
	}

	// A session that is not fresh must be confirmed first.
	w.pass(operator.Freshness)
	b.get(edit).leadsTo(t, "/dashboard/confirm?next="+url.QueryEscape(edit))
	b.post(at, edit, url.Values{"form": {b.token("/dashboard/account")}, "require_factor": {"no"}}).asksToConfirm(t, at)
	p, err = w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	if !p.RequireFactor {
		t.Error("a session that is not fresh changed the rule for second factors")
	}
	if p.Registration != fabric.RegistrationOpen {
		t.Errorf("a session that is not fresh changed the rule for registration to %q", p.Registration)
	}

	filter := audit.Filter{Action: "project.updated", ProjectID: w.one.ID}
	found, err := w.rows.ListAudit(t.Context(), filter, page.Query{Size: 10})
	must(t, err)
	if len(found.Items) != 1 {
		t.Fatalf("the audit trail has %d changes of the project, want 1", len(found.Items))
	}
	event := found.Items[0]
	if event.Actor.ID != admin.ID {
		t.Errorf("the recorded actor of the change is %s, want the admin %s", event.Actor.ID, admin.ID)
	}
	for rule, want := range map[string]string{"registration": "open", "require_factor": "true", "record_calls": "on"} {
		if got := event.Detail[rule]; got != want {
			t.Errorf("the change was recorded with the %s %q, want %q", rule, got, want)
		}
	}
}

// TestRulesWithUnits shows that the quota may have a unit, and that the form reports all wrong fields
// together.
func TestRulesWithUnits(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	at := "/dashboard/projects/" + w.one.ID + "/rules"
	edit := at + "/edit"
	b.post(edit, edit, url.Values{"recording_quota": {"1.5 GB"}}).leadsTo(t, at+"?done=changed")
	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	if p.RecordingQuota != 1_500_000_000 {
		t.Errorf("a quota of 1.5 GB is stored as %d, want 1500000000", p.RecordingQuota)
	}

	wrong := b.post(edit, edit, url.Values{
		"recording_quota":   {"10 parsecs"},
		"upload_rate":       {"many"},
		"outbound_prefixes": {"abc"},
	})
	for _, name := range []string{"recording_quota", "upload_rate", "outbound_prefixes"} {
		wrong.wantText(t, `id="f-`+name+`-fault"`)
	}
}
