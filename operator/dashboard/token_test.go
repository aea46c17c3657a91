package dashboard_test

import (
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
	base            string // the path of these pages
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
		found, err := w.fabric.Subscribers.ListAddresses(t.Context(), projectID, s.ID, firstPage)
		must(t, err)
		return found.Items[0].ID
	}
	return tokenPages{
		browser: b,
		w:       w,
		base:    "/dashboard/projects/" + w.one.ID + "/tokens",
		address: addressIn(w.one.ID),
		theirs:  addressIn(w.two.ID),
	}
}

// mint submits the form that creates a token of the given kind, and returns the answer.
func (p tokenPages) mint(kind string, form url.Values) answer {
	return p.post(p.base+"/make/"+kind, p.base+"/make/"+kind, form)
}

// inspect submits a token to the form that inspects tokens.
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
		a := p.mint(kind, wrong)
		a.wantRefused(t, `aria-invalid="true"`)
		a.wantNoText(t, `id="made"`)
	}
}

// TestTokens shows that each kind of token can be created manually. The token is shown once, and
// can be inspected and revoked only in its project. The audit trail records each creation.
func TestTokens(t *testing.T) {
	p := newTokenPages(t)
	other := "/dashboard/projects/" + p.w.two.ID + "/tokens"
	for kind, form := range map[string]url.Values{
		"subscriber": {"reference": {adaMail}, "expires": {"15m"}},
		"guest":      {"allowed_addresses": {p.address}},
		"invite":     {"address_id": {p.address}, "expires": {"24h"}},
		"embed":      {"address_id": {p.address}, "name": {"page"}},
	} {
		t.Run(kind, func(t *testing.T) {
			secret := p.mint(kind, form).find(t, shownToken)
			p.get(p.base).wantNoText(t, secret)
			p.inspect("Bearer "+secret).wantText(t, `status good">Active`, `id="found-revoke"`)
			for _, action := range []string{"/inspect", "/revoke"} {
				p.post(other, other+action, url.Values{"token": {secret}}).wantRefused(t)
			}

			revoked := p.post(p.base, p.base+"/revoke", url.Values{"token": {secret}})
			revoked.leadsTo(t, p.base+"?done=tokenrevoked")
			p.inspect(secret).wantText(t, `status bad">Revoked`)
		})
	}

	p.get("/dashboard/projects/"+p.w.one.ID+"/audit?action=token.issued").
		wantText(t, "kind: sat", "kind: guest", "kind: invite")

	unknownKey := url.Values{"embed": {"01a20292-11ce-79c1-8010-9ab89446cd8f"}}
	p.post(p.base, p.base+"/revoke", unknownKey).wantStatus(t, http.StatusNotFound)
}

// TestTokenSuggestions shows that the forms suggest existing subscribers and addresses.
func TestTokenSuggestions(t *testing.T) {
	p := newTokenPages(t)
	p.get(p.base+"/make/subscriber").wantText(t, `<option value="ada@example.com">`)
	p.get(p.base+"/make/invite").wantText(t, `<option value="/private/ada">`)

	found := p.post(p.base+"/make/subscriber", "/dashboard/projects/"+p.w.one.ID+"/subscribers/find",
		url.Values{"text": {"ADA"}})
	want := `[["ada@example.com",""]]`
	if got := strings.TrimSuffix(found.body, "\n"); got != want {
		t.Errorf("%s: searching for ADA found %s, want %s", found, got, want)
	}
}

// TestTokenForNewSubscriber shows that an unknown reference creates a subscriber only after the
// operator has confirmed the reference.
func TestTokenForNewSubscriber(t *testing.T) {
	p := newTokenPages(t)
	slip := url.Values{"reference": {"adda@example.com"}} // a typing error
	asked := p.mint("subscriber", slip)
	asked.wantRefused(t, "adda@example.com</bdi></strong> yet, so a new one will be created")
	asked.wantNoText(t, `id="made"`)
	found, err := p.w.fabric.Subscribers.List(t.Context(), p.w.one.ID, firstPage)
	must(t, err)
	if n := len(found.Items); n != 1 {
		t.Errorf("before the confirmation there are %d subscribers, want 1", n)
	}

	// The confirmation must be for the reference that is typed now.
	slip.Set("new", "another@example.com")
	p.mint("subscriber", slip).wantRefused(t)
	slip.Set("new", "adda@example.com")
	token := p.mint("subscriber", slip).find(t, `name="token" value="([^"]+)"`)
	p.inspect(token).wantText(t, "<bdi>adda@example.com</bdi>", "ann@example.com")

	// The new subscriber has an address, for which a guest token can be created.
	guest := p.mint("guest", url.Values{"allowed_addresses": {"/private/ada\r\n/private/adda"}})
	p.inspect(guest.find(t, shownToken)).wantText(t, "<bdi>/private/adda</bdi>")
}

// TestGuestTokenAddresses shows that a guest token has a limited number of addresses, which must
// exist.
func TestGuestTokenAddresses(t *testing.T) {
	p := newTokenPages(t)
	unknown := p.mint("guest", url.Values{"allowed_addresses": {"/private/nobody"}})
	unknown.wantRefused(t, "/private/nobody\u2069” is not an address of this project")

	// The server looks up at most as many addresses as a token may have.
	list := strings.Repeat("/private/ada\n", fabric.MaxAllowed) + "/private/nobody"
	tooMany := p.mint("guest", url.Values{"allowed_addresses": {list}})
	tooMany.wantRefused(t, "maximum is 10")
	tooMany.wantNoText(t, "is not an address")
}

// TestLeakedKey shows that a pasted API key is recognized, and that the answer links to the page that
// revokes the key. Inspecting a key does not count as a use of the key.
func TestLeakedKey(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	ctx, base, name := t.Context(), "/dashboard/projects/"+w.one.ID, "backend"

	in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}
	k, secret, err := w.fabric.APIKeys.Create(ctx, w.one.ID, in, nil)
	must(t, err)
	_, theirs, err := w.fabric.APIKeys.Create(ctx, w.two.ID, in, nil)
	must(t, err)
	inspect := func(text string) answer {
		t.Helper()
		return b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {text}})
	}

	leaked := inspect(` "` + secret + `" `)
	leaked.wantText(t, "This is an API key", base+"/keys/"+k.ID, "<bdi>Never<")
	leaked.wantNoText(t, secret)

	foreign := inspect(theirs)
	foreign.wantRefused(t)
	foreign.wantNoText(t, "This is an API key")

	// For a revoked key, the inspection and the list show that it was revoked.
	page := base + "/keys/" + k.ID
	b.post(page, page+"/revoke", url.Values{"confirm": {name}}).leadsTo(t, base+"/keys?done=revoked")
	inspect(secret).wantText(t, `status bad">Revoked`)
	b.get(base+"/keys").wantText(t, `Revoked</span> <time class="quiet"`, base+"/tokens#look")

	again, err := w.fabric.APIKeys.Find(ctx, w.one.ID, k.ID)
	must(t, err)
	if !again.LastUsed.IsZero() {
		t.Errorf("inspecting the key counts as a use at %v, want none", again.LastUsed)
	}
}

// TestNamesForIDs shows that forms accept the names of clients and addresses instead of their ids,
// and refuse ambiguous names.
func TestNamesForIDs(t *testing.T) {
	p := newTokenPages(t)
	shop := p.w.client(p.w.one.ID, "Corner shop", idp.SPA)
	p.w.client(p.w.two.ID, "Foreign shop", idp.SPA)
	p.w.client(p.w.one.ID, "Twin", idp.SPA)
	p.w.client(p.w.one.ID, "twin", idp.SPA)
	p.w.room("hall")

	form := p.get(p.base + "/make/subscriber")
	form.wantText(t, `<option value="Corner shop">`+shop.ID)
	form.wantNoText(t, `<option value="Twin">`)

	for _, name := range []string{"corner SHOP", shop.ID} {
		p.mint("subscriber", url.Values{"reference": {adaMail}, "application_id": {name}}).
			wantText(t, `id="made"`)
	}
	for name, reason := range map[string]string{
		"Foreign shop": "is not an OAuth client of this project",
		"Corner":       "is not an OAuth client of this project",
		"Twin":         "names more than one OAuth client",
	} {
		a := p.mint("subscriber", url.Values{"reference": {adaMail}, "application_id": {name}})
		a.wantText(t, reason)
		a.wantNoText(t, `id="made"`)
	}

	p.mint("guest", url.Values{"allowed_addresses": {"/private/ada\nHALL"}}).wantText(t, `id="made"`)
	unknown := p.mint("guest", url.Values{"allowed_addresses": {"/private/ada\nboard room"}})
	unknown.wantText(t, "“\u2068board room\u2069” is not an address of this project.")
	unknown.wantNoText(t, `id="made"`)

	p.get("/dashboard/projects/"+p.w.one.ID+"/kinds/sip_endpoints").
		wantText(t, `<select id="f-calling_handler_resource_id"`, ">hall (")
}

// TestNamesInFilters shows that filters accept the names of subscribers and operators instead of
// their ids.
func TestNamesInFilters(t *testing.T) {
	p := newTokenPages(t)
	base := "/dashboard/projects/" + p.w.one.ID
	ada, err := p.w.fabric.Subscribers.FindReferred(t.Context(), p.w.one.ID, adaMail)
	must(t, err)
	call := p.w.addCall(func(r *calls.Record) {
		r.To = calls.Party{Address: "/private/ada", SubscriberID: ada.ID}
	})
	callsOf := func(subscriber string) answer {
		return p.get(base + "/calls?" + url.Values{"subscriber": {subscriber}}.Encode())
	}
	link := func(call calls.Record) string { return base + "/calls/" + call.ID + `"` }
	callsOf(adaMail).wantText(t, link(call))
	callsOf(ada.ID).wantText(t, link(call))
	callsOf("nobody@example.com").wantNoText(t, link(call))

	// Some backends refer to subscribers by UUIDs. Calls of deleted subscribers are found by their ids.
	reference, deleted := "0193B2C4-0000-4000-8000-0123456789AB", "0193b2c4-0000-4000-8000-0123456789ac"
	pair, err := p.w.fabric.Tokens.IssueSubscriber(t.Context(), fabric.Issuer{ProjectID: p.w.one.ID},
		fabric.SubscriberTokenInput{Reference: reference})
	must(t, err)
	for typed, id := range map[string]string{reference: pair.SubscriberID, strings.ToUpper(deleted): deleted} {
		call := p.w.addCall(func(r *calls.Record) { r.From.SubscriberID = id })
		callsOf(typed).wantText(t, link(call))
	}

	p.mint("subscriber", url.Values{"reference": {adaMail}}).wantText(t, `id="made"`)
	event := audit.Of("recording.deleted", p.w.one.ID, "recording", "")
	must(t, p.w.rows.Record(t.Context(), event.By(audit.CLI, "nobody")))
	for actor, found := range map[string]bool{"ann@example.com": true, "nobody@example.com": false, "nobody": true} {
		a := p.get(base + "/audit?" + url.Values{"actor": {actor}}.Encode())
		if got := strings.Contains(a.body, `<table class="table`); got != found {
			t.Errorf("the actor %q has events: %t, want %t", actor, got, found)
		}
	}
}

// TestTooManyNames shows that a name is refused if it occurs in the names of more clients than the
// dashboard reads. One of the unread clients may have the same name.
func TestTooManyNames(t *testing.T) {
	p := newTokenPages(t)
	p.w.client(p.w.one.ID, "shop", idp.SPA)
	var creating sync.WaitGroup
	for range page.MaxSize {
		creating.Go(func() {
			_, _, err := p.w.idp.Clients.Create(t.Context(), idp.Client{
				ProjectID:    p.w.one.ID,
				Name:         "another shop",
				Type:         idp.SPA,
				RedirectURIs: []string{"https://app.example.com/callback"},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	creating.Wait()

	a := p.mint("subscriber", url.Values{"reference": {adaMail}, "application_id": {"shop"}})
	a.wantText(t, "Too many names contain “\u2068shop\u2069”.")
	a.wantNoText(t, `id="made"`)
}
