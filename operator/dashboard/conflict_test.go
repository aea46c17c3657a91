package dashboard_test

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/operator"
)

// marks returns the digests in the form on page.
func (b browser) marks(page string) string {
	b.Helper()
	return b.get(page).find(b, `name="seen" value="([^"]+)"`)
}

// TestFormsDoNotOverwrite shows that saving a form writes only the fields changed in it, and does
// not overwrite changes that another operator made in the meantime. If both changed a field, the
// form reports the conflict and keeps what was typed.
func TestFormsDoNotOverwrite(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	c, _, err := w.idp.Clients.Create(t.Context(), idp.Client{
		ProjectID:    w.one.ID,
		Type:         idp.Web,
		Name:         "Shop",
		RedirectURIs: []string{"https://shop.example/cb"},
	})
	must(t, err)

	// Open the form.
	one := "/dashboard/projects/" + w.one.ID + "/clients/" + c.ID
	edit := url.Values{
		"seen":         {b.marks(one + "/edit")},
		"name":         {"Shop"},
		"redirect_uri": {"https://shop.example/cb"},
		"profile":      {"default"},
		"scope":        c.Scopes,
		"grant":        c.Grants,
		"auth_method":  {string(c.AuthMethod)},
		"access_token": {string(c.AccessToken)},
		"id_token_alg": {string(c.IDTokenAlg)},
		"pkce":         {"required"},
		"acr":          {""},
	}

	// Another operator changes other fields; both changes are kept.
	must(t, w.idp.Clients.Change(t.Context(), c.ID, func(c *idp.Client) {
		c.RedirectURIs = []string{"https://new.example/cb"}
		c.FirstParty = true
		c.Scopes = []string{"openid"}
	}))
	edit.Set("name", "Market")
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	w.wantClient(t, c.ID, "Market", "https://new.example/cb")
	merged, err := w.idp.Clients.Find(t.Context(), c.ID)
	must(t, err)
	if len(merged.Scopes) != 1 {
		t.Errorf("after both changes, the client has the scopes %q, want one", merged.Scopes)
	}

	// Now both have changed a field.
	edit.Set("name", "Fair")
	edit.Set("redirect_uri", "https://mine.example/cb")
	conflict := b.post(one+"/edit", one+"/edit", edit)
	conflict.wantRefused(t,
		`id="f-redirect_uri-fault"`,
		"changed by somebody else since you opened this form, to “https://new.example/cb”",
		"https://mine.example/cb",
		`id="f-name-fault"`, "to “Market”")
	w.wantClient(t, c.ID, "Market", "https://new.example/cb") // as before

	// The form that reports the conflict can be saved again, which overwrites the other change.
	edit.Set("seen", conflict.find(t, `name="seen" value="([^"]+)"`))
	if strings.Contains(conflict.body, `name="first_party" value="yes" checked`) {
		edit.Set("first_party", "yes")
	}
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	w.wantClient(t, c.ID, "Fair", "https://mine.example/cb")
}

// wantClient reports an error unless the client has the given name and redirect URI, and is a
// first-party client.
func (w *world) wantClient(t *testing.T, id, name, redirectURI string) {
	t.Helper()
	c, err := w.idp.Clients.Find(t.Context(), id)
	must(t, err)
	if c.Name != name {
		t.Errorf("the client is named %q, want %q", c.Name, name)
	}
	if c.RedirectURIs[0] != redirectURI {
		t.Errorf("the client has the redirect URI %q, want %q", c.RedirectURIs[0], redirectURI)
	}
	if !c.FirstParty {
		t.Error("the client is not a first-party client, want a first-party client")
	}
}

// ownForms matches the actions of forms that change only data of the operator who sends them.
var ownForms = regexp.MustCompile("^/dashboard/account/|/recordings/filters/")

// makesNew matches the pages with forms that edit nothing, although they show values.
var makesNew = regexp.MustCompile("/new$|/kinds/|/mails$|/make/|/retention$")

// isText reports whether n is a field in which text is typed.
func isText(n *html.Node) bool {
	switch n.Data {
	case "textarea":
		return true
	case "input":
		return slices.Contains([]string{"", "text", "url", "email"}, attribute(n, "type"))
	}
	return false
}

// editable returns the name of the first text input in a form that edits something, or "".
func (f shownForm) editable() string {
	hidden := func(n *html.Node) bool { return attribute(n, "name") == "seen" }
	edits := len(elements(f.node, hidden)) > 0
	if !edits && makesNew.MatchString(f.page) {
		return ""
	}

	for _, n := range f.fields {
		name := attribute(n, "name")
		value := cmp.Or(attribute(n, "value"), strings.TrimSpace(textOf(n)))
		if isText(n) && name != "confirm" && (edits || value != "") {
			return name
		}
	}
	return ""
}

// TestEveryFormTellsTheLoser shows that if two operators open a form that edits something, and save
// it one after the other, the second operator's form overwrites nothing, keeps what was typed, and
// can be saved again. If the edited row has been deleted, a page still shows the typed text.
func TestEveryFormTellsTheLoser(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, other := w.operator("bob@example.com", ofAll)

	tried := 0
	for _, f := range b.everyForm(ids) {
		name := f.editable()
		if name == "" || ownForms.MatchString(f.action) {
			continue
		}
		tried++
		// Other forms may have changed the same row since the form was read.
		if now, ok := b.get(f.page).form(t, f); ok {
			f = now
		}
		t.Run("POST "+f.action, func(t *testing.T) { checkLoser(t, b, other, f, name) })
	}
	if tried < 8 {
		t.Errorf("only %d forms were tried, want at least 8", tried)
	}
}

// form returns the form on a page that has the same action as f.
func (a answer) form(t testing.TB, f shownForm) (same shownForm, ok bool) {
	t.Helper()
	for _, shown := range formsOf(t, f.page, a) {
		if shown.action == f.action {
			same, ok = shown, true
		}
	}
	return same, ok
}

var lastID = regexp.MustCompile("[0-9a-f]{8}-[0-9a-f-]{27}|RE[0-9a-f]{32}")

// checkLoser sends a form that edits the named field after another operator has changed the field.
func checkLoser(t *testing.T, b, other browser, f shownForm, name string) {
	theirs, mine := f.untouched(), f.untouched()
	theirText, myText := mine.Get(name)+"a", mine.Get(name)+"b"
	if name == "outbound_prefixes" {
		theirText, myText = "+43", "+49"
	}

	// Both change the same field.
	theirs.Set("form", other.token("/dashboard/account"))
	theirs.Set(name, theirText)
	mine.Set(name, myText)
	won := other.send(other.submit(f, theirs))
	won.wantStatus(t, http.StatusSeeOther)
	if t.Failed() {
		return
	}
	lost := b.send(b.submit(f, mine))
	lost.wantRefused(t, "by somebody else")
	if t.Failed() {
		return
	}
	checkRefused(t, "the form after another change", lost, []string{myText})

	// The form can be saved again.
	if again, ok := lost.form(t, f); ok {
		b.send(b.submit(again, again.untouched())).wantStatus(t, http.StatusSeeOther)
	}

	// Send the form for a row that does not exist, as if the edited row had been deleted.
	ids := lastID.FindAllString(f.action, -1)
	id := ids[len(ids)-1]
	f.action = strings.Replace(f.action, id, strings.Repeat("0", len(id)), 1)
	gone := b.send(b.submit(f, mine))
	gone.wantStatus(t, http.StatusNotFound)
	gone.wantText(t, `id="gone"`)
	if !strings.Contains(html.UnescapeString(gone.body), "<bdi>"+myText) {
		t.Errorf("%s does not show the typed %q\n%s", gone, myText, gone.body)
	}
}

// TestRotatedMeanwhile shows that an operator who opened a page before another operator rotated a
// secret neither rotates the secret again nor ends the wrong secret.
func TestRotatedMeanwhile(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("ann@example.com", ofAll)
	for _, kind := range []string{"keys", "clients"} {
		page := ids.Replace("/dashboard/projects/{project}/" + kind + "/{id}")
		outdated := url.Values{"overlap": {"week"}, "confirm": {"yes"}, "seen": {b.marks(page)}}
		rotated := b.post(page, page+"/rotate", url.Values{"overlap": {"week"}})
		if rotated.StatusCode != http.StatusOK {
			t.Fatalf("%s, want 200", rotated)
		}
		for _, action := range []string{"/rotate", "/old-secret"} {
			b.post(page, page+action, outdated).wantRefused(t, "Somebody rotated the secret")
		}
		b.get(page).wantText(t, "Valid until") // the old secret is still listed
	}
}

// TestRoleChangedMeanwhile shows that a form does not replace an operator's role that has changed
// since the form's page was shown.
func TestRoleChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	bob, _ := w.operator("bob@example.com", operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID})
	page := "/dashboard/operators/" + bob.ID
	stale := url.Values{"role": {"admin"}, "project": {w.one.ID}, "seen": {b.marks(page)}}
	_, err := w.operators.Update(t.Context(), bob.ID,
		operator.Input{Roles: []operator.Membership{{Role: operator.Viewer, ProjectID: w.two.ID}}}, "")
	must(t, err)

	b.post(page, page+"/role", stale).
		wantRefused(t, "Somebody else changed the roles", `value="admin" checked`)
	o, err := w.operators.Find(t.Context(), bob.ID)
	must(t, err)
	if got := o.Roles[0].ProjectID; got != w.two.ID {
		t.Errorf("after the refused form, the role is in project %s, want %s", got, w.two.ID)
	}

	b.post(page, page+"/role", url.Values{"role": {"admin"}, "project": {w.one.ID}}).leadsTo(t, page+"?done=role")
}

// TestOtherFormsDoNotOverwrite shows that the forms of subscribers and rules do not overwrite other
// changes either.
func TestOtherFormsDoNotOverwrite(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	email := "ada@example.com"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)

	// Open both forms.
	one := "/dashboard/projects/" + w.one.ID + "/subscribers/" + s.ID
	rules := "/dashboard/projects/" + w.one.ID + "/rules"
	edit := url.Values{"seen": {b.marks(one + "/edit")}, "email": {email}, "last_name": {"King"}}
	ruled := url.Values{
		"seen":           {b.marks(rules + "/edit")},
		"registration":   {"off"},
		"require_factor": {"no"},
		"media_auth":     {"signed"},
	}

	// Another operator changes the subscriber and the rules.
	firstName, country := "Augusta", "DE"
	_, err = w.fabric.Subscribers.Update(t.Context(), w.one.ID, s.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &firstName, Country: &country}})
	must(t, err)
	registration := fabric.RegistrationOpen
	_, err = w.fabric.Projects.Update(t.Context(), w.one.ID, fabric.ProjectChange{Registration: &registration})
	must(t, err)

	// Saving the forms keeps those changes.
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	s, err = w.fabric.Subscribers.Find(t.Context(), w.one.ID, s.ID)
	must(t, err)
	for _, tt := range []struct{ name, got, want string }{
		{"first name", s.FirstName, firstName},
		{"country", s.Country, country},
		{"last name", s.LastName, "King"},
	} {
		if tt.got != tt.want {
			t.Errorf("after both changes, the %s is %q, want %q", tt.name, tt.got, tt.want)
		}
	}

	b.post(rules+"/edit", rules+"/edit", ruled).leadsTo(t, rules+"?done=changed")
	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	if p.Registration != registration {
		t.Errorf("after both changes, registration is %q, want %q", p.Registration, registration)
	}
	if p.MediaAuth != "signed" {
		t.Errorf("after both changes, the access to media is %q, want signed", p.MediaAuth)
	}
}
