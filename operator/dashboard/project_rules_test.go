package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// TestRules shows that viewers see the rules of a project. Owners and admins can change the rules
// after they confirm their identity, and the audit trail records each change.
func TestRules(t *testing.T) {
	w := newWorld(t)
	admin, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	_, viewer := w.operator("vic@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})

	at := "/dashboard/projects/" + w.one.ID + "/rules"
	edit := at + "/edit"
	if a := viewer.get(at); a.StatusCode != http.StatusOK ||
		!strings.Contains(a.body, "Invitation only") || strings.Contains(a.body, "rules-edit") {
		t.Errorf("what a viewer sees: %s %s, want the rules without a link to change them", a.Status, a.body)
	}

	// An admin changes the rules. The rest of the project stays unchanged.
	b.post(edit, edit, url.Values{"registration": {"open"}, "require_factor": {"yes"},
		"media_auth": {"basic"}, "record_calls": {"on"}, "outbound_calls": {"on"},
		"outbound_prefixes": {"+49  +43"}}).leadsTo(t, at+"?done=changed")
	now, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	if now.Registration != fabric.RegistrationOpen || !now.RequireFactor || now.MediaAuth != "basic" ||
		now.RecordCalls != fabric.RecordOn || now.OutboundCalls != fabric.OutboundOn ||
		!slices.Equal(now.OutboundPrefixes.List(), []string{"+49", "+43"}) || now.Name != w.one.Name {
		t.Errorf("the project is %+v, want the new rules and the same name", now)
	}

	if a := b.get(at); !strings.Contains(a.body, "Open registration") ||
		!strings.Contains(a.body, "Required for everyone") ||
		!strings.Contains(between(a.body, `id="record-calls"`, "</dd>"), "must consent") ||
		!strings.Contains(a.body, "rules-edit") {
		t.Errorf("the rules after the change: %s, want the new rules", a.body)
	}

	// Unknown values are refused.
	if a := b.post(edit, edit, url.Values{"registration": {"sometimes"},
		"media_auth": {"nobody"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("unknown rules for registration and media: %s, want 422", a.Status)
	}
	if a := b.post(edit, edit,
		url.Values{"require_factor": {"perhaps"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an unknown rule for second factors: %s, want 422", a.Status)
	}

	if a := b.post(edit, edit,
		url.Values{"record_calls": {"inherit"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-record_calls-fault"`) {
		t.Errorf("an unknown rule for recording: %s, want 422 with an error at the field", a.Status)
	}

	for name, value := range map[string]string{"outbound_calls": "maybe", "outbound_prefixes": "49"} {
		if a := b.post(edit, edit, url.Values{name: {value}}); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, `id="f-`+name+`-fault"`) {
			t.Errorf("the rule %s = %q: %s, want 422 with an error at the field", name, value, a.Status)
		}
	}

	// A session that is not fresh must be confirmed first.
	w.pass(operator.Freshness)
	b.get(edit).leadsTo(t, "/dashboard/confirm?next="+url.QueryEscape(edit))
	b.post(at, edit, url.Values{"form": {b.token("/dashboard/account")}, "require_factor": {"no"}}).asksToConfirm(t, at)
	if now, err = w.fabric.Projects.Find(t.Context(), w.one.ID); err != nil || !now.RequireFactor ||
		now.Registration != fabric.RegistrationOpen {
		t.Errorf("an old session changed the rules: %+v, %v", now, err)
	}

	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "project.updated", ProjectID: w.one.ID},
		page.Query{Size: 10})
	must(t, err)
	if len(found.Items) != 1 || found.Items[0].Actor.ID != admin.ID ||
		found.Items[0].Detail["registration"] != "open" || found.Items[0].Detail["require_factor"] != "true" ||
		found.Items[0].Detail["record_calls"] != "on" {
		t.Errorf("the audit trail has %+v, want the change of the rules by the admin", found.Items)
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
	now, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	if must(t, err); now.RecordingQuota != 1_500_000_000 {
		t.Errorf("a quota of 1.5 GB is stored as %d, want 1500000000", now.RecordingQuota)
	}
	wrong := b.post(edit, edit, url.Values{"recording_quota": {"10 parsecs"}, "upload_rate": {"many"},
		"outbound_prefixes": {"abc"}})
	for _, id := range []string{"f-recording_quota-fault", "f-upload_rate-fault", "f-outbound_prefixes-fault"} {
		if !strings.Contains(wrong.body, `id="`+id+`"`) {
			t.Errorf("the form with three wrong fields has no element %s", id)
		}
	}
}
