package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

const shownToken = `id="made"><span class="copy"><code>([^<]+)<`

// tokenPages is a browser for the pages with a project's tokens. Each of the two projects has a
// subscriber.
type tokenPages struct {
	browser
	w               *world
	base            string // the path of the project's pages
	address, theirs string // ids of the subscribers' addresses, in this project and in the other one
}

const adaMail = "ada@example.com"

func newTokenPages(t *testing.T) tokenPages {
	t.Helper()
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	addressIn := func(projectID string) string {
		mail := adaMail
		s, err := w.fabric.Subscribers.Create(t.Context(), projectID, fabric.SubscriberInput{Email: &mail})
		must(t, err)
		all, err := w.fabric.Subscribers.ListAddresses(t.Context(), projectID, s.ID, firstPage)
		must(t, err)
		return all.Items[0].ID
	}
	return tokenPages{browser: b, w: w, base: "/dashboard/projects/" + w.one.ID + "/tokens",
		address: addressIn(w.one.ID), theirs: addressIn(w.two.ID)}
}

// mint submits the form that creates a token of the given kind, and returns the answer.
func (p tokenPages) mint(kind string, form url.Values) answer {
	return p.post(p.base+"/make/"+kind, p.base+"/make/"+kind, form)
}

func (p tokenPages) inspect(token string) answer {
	return p.post(p.base, p.base+"/inspect", url.Values{"token": {token}})
}

// TestTokenFaults shows that errors, such as an address of the other project, are shown next to
// their fields.
func TestTokenFaults(t *testing.T) {
	p := newTokenPages(t)
	for kind, wrong := range map[string]url.Values{
		"subscriber": {"reference": {" "}},
		"guest":      {"allowed_addresses": {p.address + "\n" + p.theirs}},
		"invite":     {"address_id": {p.theirs}},
		"embed":      {"address_id": {p.theirs}},
	} {
		if a := p.mint(kind, wrong); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, `aria-invalid="true"`) || strings.Contains(a.body, `id="made"`) {
			t.Errorf("creating a %s token with invalid values: %s, want 422 with an error", kind, a.Status)
		}
	}
}

// TestTokens shows that each kind of token can be created manually. The token is shown once, and
// can be inspected and revoked only in its project. The audit trail records each creation.
func TestTokens(t *testing.T) {
	p := newTokenPages(t)
	other := "/dashboard/projects/" + p.w.two.ID + "/tokens"
	for kind, right := range map[string]url.Values{
		"subscriber": {"reference": {adaMail}, "expires": {"15m"}}, "guest": {"allowed_addresses": {p.address}},
		"invite": {"address_id": {p.address}, "expires": {"24h"}},
		"embed":  {"address_id": {p.address}, "name": {"page"}},
	} {
		secret := p.mint(kind, right).find(t, shownToken)
		if strings.Contains(p.get(p.base).body, secret) {
			t.Errorf("the list shows the %s token again", kind)
		}

		seen := p.inspect("Bearer " + secret)
		if !strings.Contains(seen.body, `status good">Active`) || !strings.Contains(seen.body, `id="found-revoke"`) {
			t.Errorf("inspecting a %s token returned %s %s",
				kind, seen.Status, between(seen.body, `id="found"`, "</form>"))
		}
		for _, action := range []string{"/inspect", "/revoke"} {
			a := p.post(other, other+action, url.Values{"token": {secret}})
			if a.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("the form %s for a %s token in another project returned %s, want 422",
					action, kind, a.Status)
			}
		}

		p.post(p.base, p.base+"/revoke", url.Values{"token": {secret}}).leadsTo(t, p.base+"?done=tokenrevoked")
		if seen := p.inspect(secret); !strings.Contains(seen.body, `status bad">Revoked`) {
			t.Errorf("inspecting a revoked %s token shows %s", kind, between(seen.body, `id="found"`, "</dl>"))
		}
	}

	trail := p.get("/dashboard/projects/" + p.w.one.ID + "/audit?action=token.issued")
	for _, kind := range []string{"kind: sat", "kind: guest", "kind: invite"} {
		if !strings.Contains(trail.body, kind) {
			t.Errorf("the audit trail lacks %s", kind)
		}
	}

	embed := "01a20292-11ce-79c1-8010-9ab89446cd8f"
	a := p.post(p.base, p.base+"/revoke", url.Values{"embed": {embed}})
	if a.StatusCode != http.StatusNotFound {
		t.Errorf("revoking an unknown embed key returned %s, want 404", a.Status)
	}
}

// TestTokenSuggestions shows that the forms suggest existing subscribers and addresses.
func TestTokenSuggestions(t *testing.T) {
	p := newTokenPages(t)
	page := p.get(p.base + "/make/subscriber").body
	if !strings.Contains(page, `<option value="ada@example.com">`) {
		t.Error("subscribers are not offered")
	}

	found := p.post(p.base+"/make/subscriber", "/dashboard/projects/"+p.w.one.ID+"/subscribers/find",
		url.Values{"text": {"ADA"}})
	if strings.TrimSuffix(found.body, "\n") != `[["ada@example.com",""]]` {
		t.Errorf("searching for ADA returned %s: %q", found.Status, found.body)
	}

	if page := p.get(p.base + "/make/invite").body; !strings.Contains(page, `<option value="/private/ada">`) {
		t.Error("addresses are not offered")
	}
}

// TestTokenForNewSubscriber shows that an unknown reference creates a subscriber only after the
// operator confirms it.
func TestTokenForNewSubscriber(t *testing.T) {
	p := newTokenPages(t)
	slip := url.Values{"reference": {"adda@example.com"}}
	asked := p.mint("subscriber", slip)
	if asked.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(asked.body, "adda@example.com</bdi></strong> yet, so a new one will be created") ||
		strings.Contains(asked.body, `id="made"`) {
		t.Errorf("creating a token for a reference with a typing error returned %s, want a request to confirm",
			asked.Status)
	}
	found, err := p.w.fabric.Subscribers.List(t.Context(), p.w.one.ID, firstPage)
	if err != nil || len(found.Items) != 1 {
		t.Errorf("before the confirmation there are %d subscribers, want 1: %v", len(found.Items), err)
	}

	// The confirmation must be for the reference that is typed now.
	slip.Set("new", "another@example.com")
	if a := p.mint("subscriber", slip); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("confirming another reference returned %s, want 422", a.Status)
	}

	slip.Set("new", "adda@example.com")
	look := p.inspect(p.mint("subscriber", slip).find(t, `name="token" value="([^"]+)"`)).body
	if !strings.Contains(look, "<bdi>adda@example.com</bdi>") || !strings.Contains(look, "ann@example.com") {
		t.Errorf("inspecting the new token shows %s", between(look, `id="found"`, "</dl>"))
	}

	// The new subscriber has an address, for which a guest token can be created.
	guest := p.mint("guest", url.Values{"allowed_addresses": {"/private/ada\r\n/private/adda"}})
	if look := p.inspect(guest.find(t, shownToken)).body; !strings.Contains(look, "<bdi>/private/adda</bdi>") {
		t.Errorf("inspecting a guest token shows %s", between(look, `id="found"`, "</dl>"))
	}
}

// TestGuestTokenAddresses shows that a guest token has a limited number of addresses, which must
// exist.
func TestGuestTokenAddresses(t *testing.T) {
	p := newTokenPages(t)
	a := p.mint("guest", url.Values{"allowed_addresses": {"/private/nobody"}})
	if a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "/private/nobody\u2069” is not an address of this project") {
		t.Errorf("creating a token for an unknown address returned %s, want 422 that names it", a.Status)
	}

	// The server looks up at most as many addresses as a token may have.
	many := strings.Repeat("/private/ada\n", fabric.MaxAllowed) + "/private/nobody"
	a = p.mint("guest", url.Values{"allowed_addresses": {many}})
	if a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "maximum is 10") || strings.Contains(a.body, "is not an address") {
		t.Errorf("creating a token with too many addresses returned %s, want 422 with the maximum", a.Status)
	}
}

// TestLeakedKey shows that a pasted key is recognized, with a link to the page that revokes the
// key. Inspecting a key does not count as use of the key.
func TestLeakedKey(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	ctx, base, name := context.Background(), "/dashboard/projects/"+w.one.ID, "backend"

	k, secret, err := w.fabric.APIKeys.Create(
		ctx, w.one.ID, fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	_, theirs, err := w.fabric.APIKeys.Create(
		ctx, w.two.ID, fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	a := b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {` "` + secret + `" `}})
	if !strings.Contains(a.body, "This is an API key") || !strings.Contains(a.body, base+"/keys/"+k.ID) ||
		strings.Contains(a.body, secret) || !strings.Contains(a.body, "<bdi>Never<") {
		t.Errorf("inspecting a leaked key returned %s: %s", a.Status, between(a.body, `id="found"`, "</div>"))
	}

	if a := b.post(base+"/tokens", base+"/tokens/inspect",
		url.Values{"token": {theirs}}); a.StatusCode != http.StatusUnprocessableEntity ||
		strings.Contains(a.body, "This is an API key") {
		t.Errorf("inspecting another project's key returned %s, want 422", a.Status)
	}

	// For a revoked key, the inspection shows that it was revoked.
	page := base + "/keys/" + k.ID
	b.post(page, page+"/revoke", url.Values{"confirm": {name}}).leadsTo(t, base+"/keys?done=revoked")
	if a := b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {secret}}); !strings.Contains(a.body,
		`status bad">Revoked`) {
		t.Errorf("inspecting a revoked key returned %s, want a page that says so", a.Status)
	}

	if list := b.get(base + "/keys").body; !strings.Contains(list, `Revoked</span> <time class="quiet"`) ||
		!strings.Contains(list, base+"/tokens#look") {
		t.Error("the list of keys does not show when the key was revoked, or has no link to the inspection")
	}

	again, err := w.fabric.APIKeys.Find(ctx, w.one.ID, k.ID)
	if err != nil || !again.LastUsed.IsZero() {
		t.Errorf("inspecting a key counts as a use: %v, %v", again.LastUsed, err)
	}
}

// TestNamesForIDs shows that forms and filters accept the names of clients, addresses and
// subscribers instead of their ids, and refuse ambiguous names.
func TestNamesForIDs(t *testing.T) {
	p := newTokenPages(t)
	shop := p.w.client(p.w.one.ID, "Corner shop", idp.SPA)
	p.w.client(p.w.two.ID, "Foreign shop", idp.SPA)
	p.w.client(p.w.one.ID, "Twin", idp.SPA)
	p.w.client(p.w.one.ID, "twin", idp.SPA)
	p.w.room("hall")

	page := p.get(p.base + "/make/subscriber").body
	if !strings.Contains(page, `<option value="Corner shop">`+shop.ID) ||
		strings.Contains(page, `<option value="Twin">`) {
		t.Error("clients are not offered by name, or clients with ambiguous names are")
	}

	for name, want := range map[string]string{
		"corner SHOP": "", shop.ID: "", "Foreign shop": "is not an OAuth client of this project",
		"Corner": "is not an OAuth client of this project", "Twin": "names more than one OAuth client",
	} {
		a := p.mint("subscriber", url.Values{"reference": {adaMail}, "application_id": {name}})
		made := strings.Contains(a.body, `id="made"`)
		if made != (want == "") || !strings.Contains(a.body, want) {
			t.Errorf("a token for the client %q: %s, want %q", name, a.Status, want)
		}
	}

	for name, want := range map[string]string{"HALL": "",
		"board room": "“\u2068board room\u2069” is not an address of this project."} {
		a := p.mint("guest", url.Values{"allowed_addresses": {"/private/ada\n" + name}})
		if strings.Contains(a.body, `id="made"`) != (want == "") || !strings.Contains(a.body, want) {
			t.Errorf("a guest token for the address %q: %s, want %q", name, a.Status, want)
		}
	}

	base := "/dashboard/projects/" + p.w.one.ID
	ada, err := p.w.fabric.Subscribers.FindReferred(t.Context(), p.w.one.ID, adaMail)
	must(t, err)
	call := p.w.addCall(func(r *calls.Record) { r.To = calls.Party{Address: "/private/ada", SubscriberID: ada.ID} })
	for who, found := range map[string]bool{adaMail: true, ada.ID: true, "nobody@example.com": false} {
		a := p.get(base + "/calls?" + url.Values{"subscriber": {who}}.Encode())
		if strings.Contains(a.body, base+"/calls/"+call.ID+`"`) != found {
			t.Errorf("calls of the subscriber %q: want found = %v", who, found)
		}
	}

	// Some backends refer to subscribers by UUIDs. Calls of deleted subscribers are found by their ids.
	reference, deleted := "0193B2C4-0000-4000-8000-0123456789AB", "0193b2c4-0000-4000-8000-0123456789ac"
	pair, err := p.w.fabric.Tokens.IssueSubscriber(t.Context(), fabric.Issuer{ProjectID: p.w.one.ID},
		fabric.SubscriberTokenInput{Reference: reference})
	must(t, err)
	for who, id := range map[string]string{reference: pair.SubscriberID, strings.ToUpper(deleted): deleted} {
		call := p.w.addCall(func(r *calls.Record) { r.From.SubscriberID = id })
		a := p.get(base + "/calls?" + url.Values{"subscriber": {who}}.Encode())
		if !strings.Contains(a.body, base+"/calls/"+call.ID+`"`) {
			t.Errorf("the calls of the subscriber %q are not found", who)
		}
	}

	must(t, p.w.rows.Record(t.Context(), audit.Of("recording.deleted", p.w.one.ID, "recording", "").
		By(audit.CLI, "nobody")))
	for who, found := range map[string]bool{"ann@example.com": true, "nobody@example.com": false, "nobody": true} {
		a := p.get(base + "/audit?" + url.Values{"actor": {who}}.Encode())
		if strings.Contains(a.body, `<table class="table`) != found {
			t.Errorf("events of the actor %q: want found = %v", who, found)
		}
	}
	form := p.get(base + "/kinds/sip_endpoints").body
	if !strings.Contains(form, `<select id="f-calling_handler_resource_id"`) || !strings.Contains(form, ">hall (") {
		t.Error("the form of a SIP endpoint does not offer resources by name")
	}
}

// TestTooManyNames shows that a name is refused if it occurs in the names of more clients than the
// dashboard reads. One of the unread clients may have the same name.
func TestTooManyNames(t *testing.T) {
	p := newTokenPages(t)
	p.w.client(p.w.one.ID, "shop", idp.SPA)
	var all sync.WaitGroup
	for range page.MaxSize {
		all.Go(func() {
			_, _, err := p.w.idp.Clients.Create(t.Context(), idp.Client{ProjectID: p.w.one.ID, Name: "another shop",
				Type: idp.SPA, RedirectURIs: []string{"https://app.example.com/callback"}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()

	a := p.mint("subscriber", url.Values{"reference": {adaMail}, "application_id": {"shop"}})
	if strings.Contains(a.body, `id="made"`) ||
		!strings.Contains(a.body, "Too many names contain “\u2068shop\u2069”.") {
		t.Errorf("creating a token for a client whose name may not be unique: %s, want an error", a.Status)
	}
}
