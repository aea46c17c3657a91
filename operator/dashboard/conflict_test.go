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

// shown returns the digests in the form on page, in the field in which a browser sends them.
func (b browser) shown(page string) url.Values {
	b.Helper()
	return url.Values{"seen": {b.marks(page)}}
}

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
	c, _, err := w.idp.Clients.Create(t.Context(),
		idp.Client{ProjectID: w.one.ID, Type: idp.Web, Name: "Shop",
			RedirectURIs: []string{"https://shop.example/cb"}})
	must(t, err)

	// Open the form.
	one := "/dashboard/projects/" + w.one.ID + "/clients/" + c.ID
	edit := b.shown(one + "/edit")
	for name, values := range map[string][]string{
		"name": {"Shop"}, "redirect_uri": {"https://shop.example/cb"}, "profile": {"default"},
		"scope": c.Scopes, "grant": c.Grants, "auth_method": {string(c.AuthMethod)},
		"access_token": {string(c.AccessToken)}, "id_token_alg": {string(c.IDTokenAlg)}, "pkce": {"required"},
		"acr": {""},
	} {
		edit[name] = values
	}

	// Another operator changes other fields; both changes are kept.
	must(t, w.idp.Clients.Change(t.Context(), c.ID, func(c *idp.Client) {
		c.RedirectURIs, c.FirstParty, c.Scopes = []string{"https://new.example/cb"}, true, []string{"openid"}
	}))

	edit.Set("name", "Market")
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	after, err := w.idp.Clients.Find(t.Context(), c.ID)
	if err != nil || after.Name != "Market" || after.RedirectURIs[0] != "https://new.example/cb" ||
		!after.FirstParty || len(after.Scopes) != 1 {
		t.Errorf("after both changes, the client is %+v, %v", after, err)
	}

	// Now both have changed a field.
	edit.Set("name", "Fair")
	edit.Set("redirect_uri", "https://mine.example/cb")
	a := b.post(one+"/edit", one+"/edit", edit)
	for _, want := range []string{`id="f-redirect_uri-fault"`,
		"changed by somebody else since you opened this form, to “https://new.example/cb”", "https://mine.example/cb",
		`id="f-name-fault"`, "to “Market”"} {
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) {
			t.Errorf("a form that conflicts with another's change: %s, want %s in it: %s", a.Status, want,
				between(a.body, `id="faults"`, "</div>"))
		}
	}

	if after, err = w.idp.Clients.Find(t.Context(), c.ID); err != nil || after.Name != "Market" {
		t.Errorf("a refused form changed the client: %+v, %v", after, err)
	}

	// The form that reports the conflict can be saved again, which overwrites the other change.
	edit.Set("seen", a.find(t, `name="seen" value="([^"]+)"`))
	if strings.Contains(a.body, `name="first_party" value="yes" checked`) {
		edit.Set("first_party", "yes")
	}

	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	if after, err = w.idp.Clients.Find(t.Context(), c.ID); err != nil || after.Name != "Fair" ||
		after.RedirectURIs[0] != "https://mine.example/cb" || !after.FirstParty {
		t.Errorf("after saving again, the client is %+v, %v", after, err)
	}
}

// ownForms matches the actions of forms that change only what belongs to the operator who sends
// them.
var ownForms = regexp.MustCompile("^/dashboard/account/|/recordings/filters/")

// makesNew matches the pages with forms that edit nothing, although they show values.
var makesNew = regexp.MustCompile("/new$|/kinds/|/mails$|/make/|/retention$")

// editable returns the name of the first text input in a form that edits something, or "".
func (f shownForm) editable() string {
	hidden := func(n *html.Node) bool { return attribute(n, "name") == "seen" }
	edits := len(elements(f.node, hidden)) > 0
	if !edits && makesNew.MatchString(f.page) {
		return ""
	}
	for _, n := range f.fields {
		name, value := attribute(n, "name"), cmp.Or(attribute(n, "value"), strings.TrimSpace(textOf(n)))
		isText := n.Data == "textarea" || n.Data == "input" &&
			slices.Contains([]string{"", "text", "url", "email"}, attribute(n, "type"))
		if isText && name != "confirm" && (edits || value != "") {
			return name
		}
	}
	return ""
}

// TestEveryFormTellsTheLoser opens each form that edits something as two operators, who save it one
// after the other. The second operator's form overwrites nothing, keeps what was typed, and can be
// saved again. If what the form edits has been deleted, a page shows what was typed.
func TestEveryFormTellsTheLoser(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, other := w.operator("bob@example.com", ofAll)

	lastID, tried := regexp.MustCompile("[0-9a-f]{8}-[0-9a-f-]{27}|RE[0-9a-f]{32}"), 0
	for _, f := range b.everyForm(ids) {
		name := f.editable()
		if name == "" || ownForms.MatchString(f.action) {
			continue
		}
		tried++
		what := "POST " + f.action
		for _, now := range formsOf(t, f.page, b.get(f.page)) { // other forms may have changed the same row
			if now.action == f.action {
				f = now
			}
		}

		// Both change the same field.
		theirs, mine := f.untouched(), f.untouched()
		one, two := mine.Get(name)+"a", mine.Get(name)+"b"
		if name == "outbound_prefixes" {
			one, two = "+43", "+49"
		}
		theirs.Set("form", other.token("/dashboard/account"))
		theirs.Set(name, one)
		mine.Set(name, two)
		if a := other.send(other.submit(f, theirs)); a.StatusCode != http.StatusSeeOther {
			t.Errorf("%s with another %s: %s, want 303\n%s",
				what, name, a.Status, between(a.body, `id="faults"`, "</div>"))
			continue
		}
		lost := b.send(b.submit(f, mine))
		if lost.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(lost.body, "by somebody else") {
			t.Errorf("%s after another change: %s", what, lost.Status)
			continue
		}
		checkRefused(t, what+" after another change", lost, []string{two})

		// The form can be saved again.
		for _, again := range formsOf(t, f.page, lost) {
			if again.action == f.action {
				if a := b.send(b.submit(again, again.untouched())); a.StatusCode != http.StatusSeeOther {
					t.Errorf("%s, saved again: %s, want 303", what, a.Status)
				}
			}
		}

		// What the form edits has been deleted.
		all := lastID.FindAllString(f.action, -1)
		f.action = strings.Replace(f.action, all[len(all)-1], strings.Repeat("0", len(all[len(all)-1])), 1)
		gone := b.send(b.submit(f, mine))
		if gone.StatusCode != http.StatusNotFound || !strings.Contains(gone.body, `id="gone"`) ||
			!strings.Contains(html.UnescapeString(gone.body), "<bdi>"+two) {
			t.Errorf("%s of something deleted: %s", what, gone.Status)
		}
	}
	if tried < 8 {
		t.Errorf("only %d forms were tried", tried)
	}
}

// TestRotatedMeanwhile shows that an operator who opened a page before another operator rotated a
// secret neither rotates it again nor ends the wrong one.
func TestRotatedMeanwhile(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("ann@example.com", ofAll)
	for _, page := range []string{"keys/{id}", "clients/{id}"} {
		page = ids.Replace("/dashboard/projects/{project}/" + page)
		stale := url.Values{"overlap": {"week"}, "confirm": {"yes"}, "seen": {b.marks(page)}}
		if a := b.post(page, page+"/rotate", url.Values{"overlap": {"week"}}); a.StatusCode != http.StatusOK {
			t.Fatalf("rotating: %s, want 200", a.Status)
		}
		for _, do := range []string{"/rotate", "/old-secret"} {
			if a := b.post(page, page+do, stale); a.StatusCode != http.StatusUnprocessableEntity ||
				!strings.Contains(a.body, "Somebody rotated the secret") {
				t.Errorf("%s with an outdated page: %s", do, a.Status)
			}
		}
		if a := b.get(page); !strings.Contains(a.body, "Valid until") {
			t.Errorf("%s shows no old secret after the refused forms", page)
		}
	}
}

// TestRoleChangedMeanwhile shows that an operator's role is not replaced unless the page showed it.
func TestRoleChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	bob, _ := w.operator("bob@example.com", operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID})
	page := "/dashboard/operators/" + bob.ID
	stale := url.Values{"role": {"admin"}, "project": {w.one.ID}, "seen": {b.marks(page)}}
	_, err := w.operators.Update(t.Context(), bob.ID,
		operator.Input{Roles: []operator.Membership{{Role: operator.Viewer, ProjectID: w.two.ID}}}, "")
	must(t, err)

	a := b.post(page, page+"/role", stale)
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "Somebody else changed the roles") ||
		!strings.Contains(a.body, `value="admin" checked`) {
		t.Errorf("changing the role with an outdated page: %s", a.Status)
	}
	if o, err := w.operators.Find(t.Context(), bob.ID); err != nil || o.Roles[0].ProjectID != w.two.ID {
		t.Errorf("the roles are %+v, %v", o.Roles, err)
	}
	b.post(page, page+"/role", url.Values{"role": {"admin"}, "project": {w.one.ID}}).leadsTo(t, page+"?done=role")
}

// TestOtherFormsDoNotOverwrite shows that the forms of subscribers and rules do not overwrite other
// changes either.
func TestOtherFormsDoNotOverwrite(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	mail, first := "ada@example.com", "Augusta"
	city, off := "DE", fabric.RegistrationOpen
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)

	// Open both forms.
	one, rules := "/dashboard/projects/"+w.one.ID+"/subscribers/"+s.ID, "/dashboard/projects/"+w.one.ID+"/rules"
	edit, ruled := b.shown(one+"/edit"), b.shown(rules+"/edit")
	edit.Set("email", mail)

	// Another operator changes the subscriber and the rules.
	_, err = w.fabric.Subscribers.Update(t.Context(), w.one.ID, s.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &first, Country: &city}})
	must(t, err)
	_, err = w.fabric.Projects.Update(t.Context(), w.one.ID, fabric.ProjectChange{Registration: &off})
	must(t, err)

	// Saving the forms keeps those changes.
	edit.Set("last_name", "King")
	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	s, err = w.fabric.Subscribers.Find(t.Context(), w.one.ID, s.ID)
	if err != nil || s.FirstName != first || s.Country != city || s.LastName != "King" {
		t.Errorf("after both changes the subscriber is %+v, %v", s, err)
	}

	for name, value := range map[string]string{"registration": "off", "require_factor": "no",
		"media_auth": "signed"} {
		ruled.Set(name, value)
	}
	b.post(rules+"/edit", rules+"/edit", ruled).leadsTo(t, rules+"?done=changed")
	now, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	if err != nil || now.Registration != fabric.RegistrationOpen || now.MediaAuth != "signed" {
		t.Errorf("after both changes the rules are %+v, %v", now, err)
	}
}
