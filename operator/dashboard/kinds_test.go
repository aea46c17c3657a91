package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/operator"
)

// TestKindForm shows that the form for a kind of resource begins with the kind's main fields, and
// expands the others if one of them has an error.
func TestKindForm(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	page := "/dashboard/projects/" + w.one.ID + "/kinds/conference_rooms"
	first, more, _ := strings.Cut(b.get(page).body, `<details class="more">`)
	for _, want := range []string{"Maximum members", `name="name"`} {
		if !strings.Contains(first, want) {
			t.Errorf("the form does not begin with %s: %s", want, first)
		}
	}
	if strings.Contains(first, "Frames per second") {
		t.Errorf("the form begins with the frames per second: %s", first)
	}
	if !strings.Contains(more, "Frames per second") {
		t.Errorf("the rest of the form lacks the frames per second: %s", more)
	}

	wrong := url.Values{"name": {"den"}, "display_name": {"Den"}, "remove_after_seconds_elapsed": {"-1"}}
	b.post(page, page, wrong).wantRefused(t, `<details class="more" open>`, `value="Den"`,
		`id="f-remove_after_seconds_elapsed-fault"`)

	// An error in one line of a list names the list.
	page = "/dashboard/projects/" + w.one.ID + "/kinds/sip_gateways"
	wrong = url.Values{"name": {"Carrier"}, "uri": {"trunk@sip.example.org"}, "prefixes": {"+43\n49"}}
	b.post(page, page, wrong).wantRefused(t, "Prefixes must be the beginning of a phone number with its country code")

	// An example is not filled in as a value.
	agent := b.get("/dashboard/projects/" + w.one.ID + "/kinds/ai_agents")
	agent.wantText(t, "placeholder=\"{")
	agent.wantNoText(t, "bicycle shop.&#34;\n}</textarea>")
}
